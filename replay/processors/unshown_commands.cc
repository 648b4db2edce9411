#include "replay/processors/unshown_commands.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "events/processors/apic_receivers.h"
#include "replay/machine/observer.h"

namespace citcat {
namespace {

constexpr PhysAddr kCommand{kApicRegisters + kApicCommand};

/// The instructions that the recording shows to write the command register.
std::set<std::uint64_t> shown_commands(const RecordingFile& file) {
  std::set<std::uint64_t> shown;
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  for (BusTransaction t; evidence->next(t);) {
    if (t.op == BusOp::data_write && t.address == kCommand && t.has(kPositionKnown))
      shown.insert(t.position.instruction);
  }
  return shown;
}

/// Whether a command asks for a message. Its destination is in another register.
bool asks_for(std::uint32_t command, const BusNote& note) {
  ApicMessage asked = ApicMessage::of_command(command), sent(note.data);
  asked.destination = sent.destination = 0;
  return asked.data() == sent.data();
}

/// Finds the last write of the command register that asks for a message and is not shown.
class UnshownCommand final : public Observer {
 public:
  UnshownCommand(const BusNote& note, std::set<std::uint64_t> shown)
      : note_(note), shown_(std::move(shown)) {}

  Interest interest() const override { return Interest::changes(); }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
    if (a != kCommand || bytes.size() != sizeof(std::uint32_t)) return;
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    if (!shown_.contains(now.instruction) && asks_for(value, note_)) found_ = now;
  }
  std::optional<Position> found() const { return found_; }

 private:
  const BusNote& note_;
  std::set<std::uint64_t> shown_;
  std::optional<Position> found_;
};

}  // namespace

void check_unasked_message(const MachineFile& machine, const CrossCheck& check,
                           std::size_t processor, const ComparisonPolicy& policy,
                           CrossCheckResult& result) {
  const std::optional<BusNote> note = check.unasked_message(processor);
  if (!note) return;
  const RecordingFile file = machine.open(processor);
  UnshownCommand commands(*note, shown_commands(file));
  SessionOptions options;
  options.policy = policy;
  (void)ReplaySession(file, &commands, options).run();
  if (!commands.found() || result.contradictions++ != 0) return;
  BusContradiction first;
  first.processor = static_cast<std::uint8_t>(processor);
  first.t.index = kNoTransaction;
  first.t.flags = kPositionKnown;
  first.t.position = *commands.found();
  first.t.clock = note->clock;
  first.t.address = kCommand;
  first.reason = "a processor writes its command register, and the recording does not show this";
  first.found = "a message of the APIC bus";
  result.first = first;
}

}  // namespace citcat
