#include "events/processors/cross_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "events/processors/bus_flags.h"
#include "events/processors/device_addresses.h"
#include "events/startup_event.h"

namespace citcat {
namespace {

/// Writers that are no processors; processor 0 is kFirstWriter.
constexpr std::uint8_t kUnknown = 0, kInitially = 1, kDevice = 2, kFirstWriter = 3;

constexpr const char* kLoneCount =
    "its count of instructions does not fit the processor's others: another processor may have "
    "made "
    "it";

std::string hex_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += (text.empty() ? "" : " ") + std::string(digits);
  }
  return text;
}

std::string hex_address(PhysAddr a) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%08" PRIx64, a.value);
  return digits;
}

}  // namespace

CrossCheck::CrossCheck(std::vector<std::uint8_t> apic_ids, std::uint32_t ram_bytes,
                       bool shows_sharing, std::uint32_t line_bytes)
    : ram_bytes_(ram_bytes),
      shows_sharing_(shows_sharing),
      owners_(apic_ids.size(), line_bytes),
      messages_(apic_ids),
      pending_(apic_ids.size()),
      counts_(apic_ids.size()),
      from_others_(apic_ids.size()),
      told_by_others_(apic_ids.size()) {}

std::optional<std::uint8_t> CrossCheck::byte(PhysAddr a) const {
  const Part* const its = known_part(a);
  if (is_device(a, ram_bytes_) || its == nullptr) return std::nullopt;
  if (its->writer[offset(a)] == kUnknown) return std::nullopt;
  return its->value[offset(a)];
}

void CrossCheck::contradict(const SharedEvent& event, std::string reason, std::string expected,
                            std::string found) {
  if (result_.contradictions++ != 0) return;
  BusTransaction t = event.t;
  if (event.note) {
    t.index = kNoTransaction;
    t.clock = event.note->clock;
    t.address = event.note->address;
  }
  result_.first = BusContradiction{event.processor, t, std::move(reason), std::move(expected),
                                   std::move(found)};
}

std::string CrossCheck::who(const Part& its, std::uint32_t offset) const {
  const std::uint8_t writer = its.writer[offset];
  if (writer == kInitially) return "as it was first read; nobody has written it";
  if (writer == kDevice) return "as a device wrote it last";
  return "as processor " + std::to_string(writer - kFirstWriter) +
         " wrote it last, by its transaction " + std::to_string(its.transaction[offset / 4]);
}

void CrossCheck::write(std::uint8_t writer, PhysAddr address, std::span<const std::uint8_t> bytes,
                       std::uint64_t transaction) {
  for_bus_parts(address, bytes.size(),
                [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                  Part& its = parts_.find_or_make(number);
                  std::memcpy(its.value.data() + at, bytes.data() + i, n);
                  std::memset(its.writer.data() + at, writer, n);
                  for (std::size_t dword = at / 4; dword <= (at + n - 1) / 4; ++dword)
                    its.transaction[dword] = transaction;
                });
}

/// An external write is done when its processor shows the next one, or the bus ends.
void CrossCheck::settle(std::uint8_t processor) {
  std::optional<Pending>& pending = pending_[processor];
  if (!pending) return;
  if (pending->device) {
    ++result_.from_devices;
    if (pending->of_another) told_by_others_[processor].push_back(pending->ordinal);
  } else if (pending->contradicted) {
    ++result_.unexplained;
  } else {
    ++(pending->of_shown ? result_.from_devices : result_.from_others);
    from_others_[processor].push_back(pending->ordinal);
    told_by_others_[processor].push_back(pending->ordinal);
  }
  pending.reset();
}

/// Whether a read shows nothing but what processors wrote last, and another one some of it. Bytes
/// that nobody wrote may be anything.
bool CrossCheck::is_of_another(const SharedEvent& event) const {
  bool another = false;
  for (std::uint32_t i = 0; i < event.t.size; ++i) {
    const PhysAddr a = event.t.address.plus32(i);
    const Part* const its = known_part(a);
    if (its == nullptr) continue;
    const std::uint8_t writer = its->writer[offset(a)];
    if (writer < kFirstWriter) continue;
    if (its->value[offset(a)] != event.t.data[i]) return false;
    another |= writer != kFirstWriter + event.processor;
  }
  return another;
}

/// Whether of the bytes that have changed for the reader a device wrote some last, and no other
/// processor any.
bool CrossCheck::is_of_shown_device(const SharedEvent& event) const {
  bool device = false;
  for (std::uint32_t i = 0; i < event.t.size; ++i) {
    const PhysAddr a = event.t.address.plus32(i);
    const Part* const its = known_part(a);
    if (!event.changed[i] || its == nullptr) continue;
    const std::uint8_t writer = its->writer[offset(a)];
    if (writer >= kFirstWriter && writer != kFirstWriter + event.processor) return false;
    device |= writer == kDevice;
  }
  return device;
}

/// The first byte of a read that is not what it was last, its size where there is none. Bytes that
/// are read for the first time are known from then on.
std::uint32_t CrossCheck::first_other(const BusTransaction& t) {
  std::uint32_t first = t.size;
  for_bus_parts(t.address, t.size,
                [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                  if (first != t.size) return;
                  Part& its = parts_.find_or_make(number);
                  for (const std::size_t end = i + n; i < end; ++i, ++at) {
                    if (its.writer[at] == kUnknown) {
                      its.value[at] = t.data[i];
                      its.writer[at] = kInitially;
                    }
                    if (its.value[at] == t.data[i]) continue;
                    first = static_cast<std::uint32_t>(i);
                    return;
                  }
                });
  return first;
}

void CrossCheck::read(const SharedEvent& event) {
  const BusTransaction& t = event.t;
  const bool device = is_device(t, ram_bytes_);
  if (event.external) {
    settle(event.processor);
    pending_[event.processor] = Pending{*event.external, false, device,
                                        device && is_of_another(event), is_of_shown_device(event)};
  }
  if (device) return;
  ++result_.reads;
  const std::uint32_t i = first_other(t);
  if (i == t.size) return;
  const PhysAddr a = t.address.plus32(i);
  if (pending_[event.processor]) pending_[event.processor]->contradicted = true;
  const std::uint32_t size = std::min<std::uint32_t>(t.size - i, 4);
  std::array<std::uint8_t, 4> held{};
  for (std::uint32_t k = 0; k < size; ++k) {
    const PhysAddr at = a.plus32(k);
    held[k] = part(at).value[offset(at)];
  }
  contradict(event,
             "a read shows a value that nobody wrote: no processor, and no device that the "
             "capture has",
             hex_bytes(std::span(held).first(size)) + " at " + hex_address(a) + ", " +
                 who(part(a), offset(a)),
             hex_bytes(std::span(t.data).subspan(i, size)));
  // One wrong value is told once.
  for (std::uint32_t k = i; k < t.size; ++k) {
    const PhysAddr at = t.address.plus32(k);
    part(at).value[offset(at)] = t.data[k];
  }
}

/// Between the read of a locked access and its write nobody else has the bus (Intel SDM vol. 3,
/// 8.1.2), but to write back a line that is asked for. An operand that does not fit into a bus word
/// is read in parts, and then written in as many. Returns the contradiction, or "".
std::string CrossCheck::lock(std::uint8_t processor, const BusTransaction& t) {
  if (locked_by_ && *locked_by_ != processor) {
    if (t.op == BusOp::data_write && t.has(kSnoop)) return "";
    const std::string owner = std::to_string(*locked_by_);
    locked_by_.reset();
    return "another processor uses the bus while processor " + owner + " has it locked (LOCK#)";
  }
  if (!locked_by_) locked_reads_ = 0;
  const bool locked = (t.flags & kLocked) != 0;
  if (locked && t.op == BusOp::data_read) {
    ++locked_reads_;
  } else if (locked && t.op == BusOp::data_write && locked_reads_ > 1) {
    --locked_reads_;
  } else {
    locked_reads_ = 0;
  }
  locked_by_ = locked_reads_ != 0 ? std::optional(processor) : std::nullopt;
  return "";
}

/// Passes on a transaction that concerns messages of the APIC bus.
void CrossCheck::follow_messages(const SharedEvent& event) {
  const BusTransaction& t = event.t;
  if (is_startup(t)) return messages_.reset(event.processor);
  const bool is_register = ApicMessages::is_register(t);
  if (is_register && t.op == BusOp::data_write) {
    SharedEvent unasked;
    unasked.processor = event.processor;
    unasked.note = messages_.wrote(event.processor, t);
    if (!unasked.note) return;
    return contradict(unasked,
                      "a message is shown that its sender's command register does not ask for", "",
                      "a message of the APIC bus");
  }
  if (is_register) {
    const std::string wrong = messages_.read(event.processor, t);
    if (!wrong.empty()) contradict(event, wrong, "", "a read of that register");
  }
  messages_.passed(event.processor);
  if ((t.flags & kOfLocalApic) == 0) return;
  const std::string wrong = messages_.taken(event.processor, t.data[0]);
  if (!wrong.empty()) contradict(event, wrong, "", "an interrupt of the local APIC");
}

void CrossCheck::take(const SharedEvent& event) {
  if (event.note) {
    const BusNote& note = *event.note;
    if (note.is_lone) contradict(event, kLoneCount, "", "a line taken, or a message");
    if (note.kind == BusNote::Kind::invalidate) {
      ++result_.invalidations;
      if (!shows_sharing_) return;
      const std::string wrong = owners_.invalidate(event.processor, note.address);
      if (!wrong.empty()) contradict(event, wrong, "", "line " + hex_address(note.address));
    } else if (note.kind == BusNote::Kind::device_write) {
      std::array<std::uint8_t, 8> bytes{};
      for (std::size_t i = 0; i < note.size; ++i)
        bytes[i] = static_cast<std::uint8_t>(note.data >> (8 * i));
      write(kDevice, note.address, std::span(bytes).first(note.size), kNoTransaction);
    } else if (const std::string wrong = messages_.sent(note); !wrong.empty()) {
      contradict(event, wrong, "", "a message of the APIC bus");
    }
    return;
  }
  ++result_.transactions;
  const BusTransaction& t = event.t;
  follow_messages(event);
  if (t.op == BusOp::flush && shows_sharing_) flush(event);
  if (!t.is_memory()) return;
  check_count(event);
  const std::string unlocked = shows_sharing_ ? lock(event.processor, t) : "";
  if (!unlocked.empty()) contradict(event, unlocked, "", "an access to " + hex_address(t.address));
  const std::string wrong =
      !shows_sharing_ || is_device(t, ram_bytes_) ? "" : owners_.take(event.processor, t);
  if (!wrong.empty()) contradict(event, wrong, "", "line " + hex_address(t.address));
  if (t.op == BusOp::data_write) {
    write(static_cast<std::uint8_t>(kFirstWriter + event.processor), t.address, t.bytes(), t.index);
  } else {
    read(event);
  }
}

/// A monitor shows what a flush writes back before it shows the flush.
void CrossCheck::flush(const SharedEvent& event) {
  if (!writes_back(event.t)) return owners_.throw_away(event.processor);
  for (const PhysAddr line : owners_.write_back_all(event.processor)) {
    SharedEvent its = event;
    its.t.address = line;
    contradict(its, "WBINVD does not write a line back that its processor has modified", "",
               "line " + hex_address(line));
  }
}

/// The import leaves out a count that does not fit those around it (capture/import/lone_counts.h).
/// A processor whose accesses are not counted at all cannot be judged.
void CrossCheck::check_count(const SharedEvent& event) {
  Counts& counts = counts_[event.processor];
  if (event.t.has(kPositionKnown)) {
    counts.any = true;
  } else if (!counts.missing) {
    counts.missing = event;
  }
  if (!counts.any || !counts.missing) return;
  const SharedEvent missing = *std::exchange(counts.missing, std::nullopt);
  contradict(missing, kLoneCount, "", "an access to " + hex_address(missing.t.address));
}

void CrossCheck::finish() {
  for (std::size_t i = 0; i < pending_.size(); ++i) settle(static_cast<std::uint8_t>(i));
  const std::optional<ApicMessages::Asked> unsent = messages_.unsent();
  if (!unsent) return;
  SharedEvent write;
  write.processor = unsent->processor;
  write.t = unsent->write;
  contradict(write, "a command register is written, and the APIC bus shows no message",
             unsent->message, "no message");
}

CrossCheckResult check_shared_bus(SharedBus& bus, CrossCheck& check) {
  SharedEvent event;
  while (bus.next(event)) check.take(event);
  check.finish();
  return check.result();
}

}  // namespace citcat
