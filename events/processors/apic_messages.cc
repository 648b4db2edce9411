#include "events/processors/apic_messages.h"

#include <cstdio>

namespace citcat {
namespace {

/// Registers of a local APIC (Intel SDM vol. 3, table 10-1).
constexpr std::uint32_t kRegisters = 0xfee00000, kRegisterBytes = 0x1000;
constexpr std::uint32_t kLogicalId = 0xd0, kFormat = 0xe0, kSpurious = 0xf0, kCommand = 0x300,
                        kCommandHigh = 0x310, kTimer = 0x320, kLastLocal = 0x370;
constexpr std::uint32_t kEnabled = 0x100, kFlat = 0xf;

/// Delivery modes and shorthands of a command.
constexpr std::uint8_t kFixed = 0, kLowest = 1, kInit = 5;
enum Shorthand : std::uint8_t { kNone, kSelf, kAll, kAllButSelf };
constexpr std::uint8_t kToAll = 0xff;

std::uint8_t byte_of(std::uint64_t data, unsigned number) {
  return static_cast<std::uint8_t>(data >> (8 * number));
}

/// A message: four bytes, as in records of type 17 (docs/formats/capture.md).
struct Message {
  explicit Message(std::uint64_t data)
      : vector(byte_of(data, 0)),
        mode(byte_of(data, 1)),
        destination(byte_of(data, 2)),
        details(byte_of(data, 3)) {}
  /// That of the command register's lower half.
  explicit Message(std::uint32_t command)
      : vector(static_cast<std::uint8_t>(command)),
        mode(command >> 8 & 7),
        details(static_cast<std::uint8_t>((command >> 11 & 1) | (command >> 14 & 3) << 1 |
                                          (command >> 18 & 3) << 4)) {}

  bool is_logical() const { return (details & 1) != 0; }
  std::uint8_t shorthand() const { return details >> 4 & 3; }
  bool is_level() const { return (details & 2) != 0; }
  bool is_to_one_of_many() const { return mode == kLowest; }
  std::string text() const {
    char text[64];
    std::snprintf(text, sizeof text, "vector %02x, mode %u, destination %02x, details %02x", vector,
                  mode, destination, details);
    return text;
  }

  std::uint8_t vector = 0, mode = 0, destination = 0, details = 0;
};

/// A processor sends to itself without the bus, and levels of INIT end without a message on newer
/// buses.
bool need_not_be_shown(const Message& m) {
  return m.shorthand() == kSelf || (m.mode == kInit && !m.is_level());
}

}  // namespace

bool ApicMessages::is_register_write(const BusTransaction& t) {
  return t.op == BusOp::data_write && t.address.is_within32(PhysAddr{kRegisters}, kRegisterBytes);
}

void ApicMessages::wrote(std::uint8_t processor, const BusTransaction& t) {
  Processor& its = processors_[processor];
  const std::uint32_t value = t.value();
  const auto high = static_cast<std::uint8_t>(value >> 24);
  const std::uint32_t at = t.address.low32() - kRegisters;
  if (at == kCommandHigh) its.destination = high;
  if (at == kLogicalId) its.logical_id = high;
  if (at == kFormat) its.is_flat = value >> 28 == kFlat;
  if (at == kSpurious) its.enabled = (value & kEnabled) != 0;
  if (at == kTimer) its.timer = static_cast<std::uint8_t>(value);
  if (at >= kTimer && at <= kLastLocal) its.local.set(static_cast<std::uint8_t>(value));
  if (at != kCommand) return;
  its.commands.push_back({value, its.destination, its.transactions});
}

void ApicMessages::reset(std::uint8_t processor) {
  Processor& its = processors_[processor];
  its.pending.reset();
  its.sent.reset();
  its.enabled = false;
  its.is_flat = false;
  its.logical_id.reset();
  its.timer.reset();
}

/// Against the oldest command of which no message was seen.
std::string ApicMessages::check_command(Processor& sender, const BusNote& note) {
  const Message found(note.data);
  while (!sender.commands.empty()) {
    const Command command = sender.commands.front();
    Message expected(command.low);
    expected.destination = command.destination.value_or(found.destination);
    if (expected.shorthand() != kNone) expected.destination = found.destination;
    const bool same = expected.text() == found.text();
    if (!same && (!need_not_be_shown(expected) || expected.details == found.details))
      return "a message is not the one that its sender's command register asks for: " +
             expected.text();
    sender.commands.pop_front();
    if (same) return "";
  }
  // Written as an MSR, which is not among the accesses. As are other registers then.
  is_hidden_ = true;
  return "";
}

void ApicMessages::send(Processor& to, std::uint8_t vector, bool sure) {
  to.sent.set(vector);
  if (sure && !is_hidden_ && to.enabled.value_or(false)) to.pending.set(vector);
}

void ApicMessages::deliver(const BusNote& note) {
  const Message m(note.data);
  if (m.mode != kFixed && m.mode != kLowest) return;
  vectors_.set(m.vector);
  for (std::size_t p = 0; p < processors_.size(); ++p) {
    const bool self = p == note.processor;
    Processor& to = processors_[p];
    switch (m.shorthand()) {
      case kSelf:
        if (self) send(to, m.vector, true);
        break;
      case kAll:
      case kAllButSelf:
        if (!self || m.shorthand() == kAll) send(to, m.vector, true);
        break;
      default:
        if (!m.is_logical()) {
          const bool meant = m.destination == p || m.destination == kToAll;
          if (meant) send(to, m.vector, !m.is_to_one_of_many());
        } else {
          const bool known = to.logical_id && to.is_flat;
          const bool meant = !known || (*to.logical_id & m.destination) != 0;
          if (meant) send(to, m.vector, known && !m.is_to_one_of_many());
        }
        break;
    }
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

std::string ApicMessages::unsent() const {
  // A message takes a while on its own bus.
  constexpr std::uint64_t kLong = 64;
  for (std::size_t p = 0; p < processors_.size(); ++p) {
    for (const Command& command : processors_[p].commands) {
      Message expected(command.low);
      expected.destination = command.destination.value_or(0);
      if (need_not_be_shown(expected)) continue;
      if (processors_[p].transactions - command.transactions < kLong) break;
      return "processor " + std::to_string(p) +
             " wrote its command register, and the APIC bus shows no message: " + expected.text();
    }
  }
  return "";
}

}  // namespace citcat
