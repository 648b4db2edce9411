#include "replay/session/first_entry.h"

#include <optional>
#include <utility>

#include "events/machine/address_space.h"
#include "events/machine/cpu_place.h"
#include "replay/machine/isolated_tables.h"
#include "replay/session/replayer.h"

namespace citcat {

namespace {

constexpr std::uint32_t kProgramLevel = 3;

/// Looks for the first load of CR3, and when the kernel was entered before it.
class FirstEntry final : public Observer {
 public:
  explicit FirstEntry(AddressSpaceId user) : user_(user) {}

  Interest interest() const override { return {.code = Detail::blocks}; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void instruction(const ExecutedInstruction& e, Position now) override {
    const InstructionClass kind = e.info->kind;
    if (kind == InstructionClass::syscall || kind == InstructionClass::sysenter) entered(now);
  }
  void delivered(const DeliveredEvent&, Position now) override {
    if ((machine_->engine().hflags() & kHfCpl) == kProgramLevel) entered(now);
  }
  void address_space(AddressSpaceId cr3, Position now) override {
    if (std::exchange(found_, true)) return;
    isolates_ =
        entered_ && cr3 == (user_ & ~kUserTables) && now.instruction - *entered_ <= kMostToLoad;
  }

  bool found() const { return found_; }
  bool isolates() const { return isolates_; }

 private:
  void entered(Position now) { entered_ = now.instruction; }

  const AddressSpaceId user_;
  const Machine* machine_ = nullptr;
  std::optional<std::uint64_t> entered_;
  bool found_ = false, isolates_ = false;
};

}  // namespace

bool begins_with_isolated_tables(const Recording& recording) {
  constexpr std::uint64_t kStretch = 1 << 16;  // instructions at a time
  const CpuState& initial = recording.initial;
  const AddressSpaceId user = address_space_of(initial.cr3, initial.cr4);
  const bool in_program = (initial.segment[kCs].selector & 3) == kProgramLevel;
  if (!is_in_long_mode(initial) || !in_program || (user & kUserTables) == 0) return false;
  FirstEntry entry(user);
  Listeners listeners;
  listeners.add(entry);
  Replayer replayer(recording, listeners, {});
  for (std::uint64_t to = kStretch; to <= kFirstEntryReach && !entry.found(); to += kStretch) {
    const ReplayReport report = replayer.run_to(to);
    if (report.end == ReplayReport::End::diverged || report.instructions < to) break;
  }
  return entry.isolates();
}

}  // namespace citcat
