#include "events/processors/apic_messages.h"

#include <cstdio>
#include <utility>

namespace citcat {
namespace {

/// Registers of a local APIC (Intel SDM vol. 3, table 10-1).
constexpr std::uint32_t kSpurious = 0xf0, kTimer = 0x320, kLastLocal = 0x370;
constexpr std::uint32_t kEnabled = 0x100;

/// A processor sends to itself without the bus, and levels of INIT end without a message on newer
/// buses.
bool need_not_be_shown(const ApicMessage& m) {
  return m.shorthand() == ApicMessage::kSelf || (m.mode == ApicMessage::kInit && !m.is_level());
}

/// Bits of a register that read as they were written, or never change: ID, version, logical ID,
/// its format, both halves of the command register (but for the delivery status), initial count
/// and divider of the timer (Intel SDM vol. 3, 10.4.6 to 10.6.2). CR8 changes the task priority.
std::uint32_t kept_bits(std::uint32_t offset) {
  constexpr std::uint32_t kHighest = 0xff000000;
  switch (offset) {
    case 0xd0:
    case kApicCommandHigh:
      return kHighest;
    case 0x20:
    case 0x30:
    case 0x380:
      return ~std::uint32_t{0};
    case 0xe0:
      return 0xf0000000;
    case kApicCommand:
      return 0xccfff;
    case 0x3e0:
      return 0xb;
    default:
      return 0;
  }
}

}  // namespace

bool ApicMessages::is_register(const BusTransaction& t) {
  return (t.op == BusOp::data_write || t.op == BusOp::data_read) &&
         t.address.is_within32(PhysAddr{kApicRegisters}, kApicRegisterBytes);
}

std::string ApicMessages::read(std::uint8_t processor, const BusTransaction& t) {
  const std::uint32_t at = t.address.low32() - kApicRegisters, mask = kept_bits(at);
  if (mask == 0 || t.size != sizeof(std::uint32_t) || is_hidden_) return "";
  const auto [its, is_new] = processors_[processor].registers.emplace(at, t.value());
  const std::uint32_t before = std::exchange(its->second, t.value());
  if (((before ^ t.value()) & mask) == 0) return "";
  char text[96];
  std::snprintf(text, sizeof text, "register %03x of the local APIC is read as %08x, but was %08x",
                at, t.value(), before);
  return text;
}

std::optional<BusNote> ApicMessages::wrote(std::uint8_t processor, const BusTransaction& t) {
  Processor& its = processors_[processor];
  const std::uint32_t value = t.value();
  const std::uint32_t at = t.address.low32() - kApicRegisters;
  receivers_.wrote(processor, at, value);
  if (kept_bits(at) != 0) its.registers[at] = value;
  if (at == kApicCommandHigh) its.destination = static_cast<std::uint8_t>(value >> 24);
  if (at == kSpurious) its.enabled = (value & kEnabled) != 0;
  if (at == kTimer) its.timer = static_cast<std::uint8_t>(value);
  if (at >= kTimer && at <= kLastLocal) its.local.set(static_cast<std::uint8_t>(value));
  if (at == kApicCommand) its.commands.push_back({value, its.destination, its.transactions, t});
  // Who writes registers here does not write them as MSRs.
  return std::exchange(its.unasked, std::nullopt);
}

void ApicMessages::reset(std::uint8_t processor) {
  Processor& its = processors_[processor];
  its.pending.reset();
  its.sent.reset();
  its.enabled = false;
  receivers_.reset(processor);
  its.registers.clear();
  its.timer.reset();
}

/// Against the oldest command of which no message was seen.
std::string ApicMessages::check_command(Processor& sender, const BusNote& note) {
  const ApicMessage found(note.data);
  while (!sender.commands.empty()) {
    const Command command = sender.commands.front();
    ApicMessage expected = ApicMessage::of_command(command.low);
    expected.destination = command.destination.value_or(found.destination);
    if (expected.shorthand() != ApicMessage::kNone) expected.destination = found.destination;
    const bool same = expected.text() == found.text();
    if (!same && (!need_not_be_shown(expected) || expected.details == found.details))
      return "a message is not the one that its sender's command register asks for: " +
             expected.text();
    sender.commands.pop_front();
    if (same) return "";
  }
  // Written as an MSR, which is not among the accesses. As are other registers then.
  if (!sender.unasked) sender.unasked = note;
  is_hidden_ = true;
  return "";
}

void ApicMessages::send(Processor& to, std::uint8_t vector, bool sure) {
  to.sent.set(vector);
  if (sure && !is_hidden_ && to.enabled.value_or(false)) to.pending.set(vector);
}

void ApicMessages::deliver(const BusNote& note) {
  const ApicMessage m(note.data);
  if (m.mode != ApicMessage::kFixed && m.mode != ApicMessage::kLowest) return;
  vectors_.set(m.vector);
  const ApicReceivers::Sets to = receivers_.of(m, note.processor);
  for (std::size_t p = 0; p < processors_.size(); ++p) {
    if (to.may.test(p)) send(processors_[p], m.vector, to.sure.test(p) && !m.is_to_one_of_many());
  }
}

std::string ApicMessages::sent(const BusNote& note) {
  std::string wrong;
  if (note.processor < processors_.size()) wrong = check_command(processors_[note.processor], note);
  deliver(note);
  return wrong;
}

std::string ApicMessages::taken(std::uint8_t processor, std::uint8_t vector) {
  Processor& its = processors_[processor];
  its.enabled = true;
  // The highest pending interrupt comes first (Intel SDM vol. 3, 10.8.3).
  std::string wrong;
  for (unsigned higher = 255; higher > vector && wrong.empty(); --higher) {
    if (!its.pending.test(higher)) continue;
    char text[96];
    std::snprintf(text, sizeof text,
                  "interrupt %02x is taken while %02x, which was sent and comes first, waits",
                  vector, higher);
    wrong = text;
    its.pending.reset(higher);
  }
  if (its.sent.test(vector)) {
    its.sent.reset(vector);
    its.pending.reset(vector);
    return wrong;
  }
  const bool own = is_hidden_ || !its.timer || its.local.test(vector) || !vectors_.test(vector);
  if (wrong.empty() && !own) {
    char text[96];
    std::snprintf(text, sizeof text,
                  "interrupt %02x is taken, and nobody has sent it: the timer's is %02x", vector,
                  *its.timer);
    wrong = text;
  }
  return wrong;
}

std::optional<BusNote> ApicMessages::unasked(std::size_t processor) const {
  const Processor& its = processors_[processor];
  return its.registers.empty() ? std::nullopt : its.unasked;
}

std::optional<ApicMessages::Asked> ApicMessages::unsent() const {
  // A message takes a while on its own bus.
  constexpr std::uint64_t kLong = 64;
  for (std::size_t p = 0; p < processors_.size(); ++p) {
    for (const Command& command : processors_[p].commands) {
      ApicMessage expected = ApicMessage::of_command(command.low);
      expected.destination = command.destination.value_or(0);
      if (need_not_be_shown(expected)) continue;
      if (processors_[p].transactions - command.transactions < kLong) break;
      return Asked{static_cast<std::uint8_t>(p), command.write, expected.text()};
    }
  }
  return std::nullopt;
}

}  // namespace citcat
