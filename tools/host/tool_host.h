#pragma once
// Shows a replay to tools: one observer for any number of them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/machine/observer.h"
#include "tools/host/analysis.h"
#include "tools/host/code_library.h"
#include "tools/host/context.h"
#include "tools/host/pending_accesses.h"
#include "tools/host/scope.h"
#include "tools/host/tool.h"
#include "tools/host/window_plan.h"

namespace citcat::tools {

/// The part of a run that the tools receive.
struct HostOptions {
  std::uint64_t from = 0;                ///< first instruction
  std::uint64_t to = ~std::uint64_t{0};  ///< first one that is not reported
  const Scope* scope = nullptr;          ///< null: everything
  std::vector<Split> by;
  NameSource* names = nullptr;          ///< null: by address
  const WindowPlan* windows = nullptr;  ///< null: one, of it all
  /// Where tools that need executions in their order are told of them, by position; null:
  /// everywhere. Not with a scope, groups or `windows`.
  const WindowPlan* samples = nullptr;
  /// Context::has_isolated_tables() from the beginning on (begins_with_isolated_tables()).
  bool isolated_tables = false;
};

struct CodeNote;

/// Numbers of the tools that receive what ran, events, and accesses of no instruction.
struct Listening {
  std::vector<std::size_t> run, events, accesses;
};

/// The last report of what ran.
struct LastTold {
  const Group* group = nullptr;  ///< whose tools received it; null: none did
  ToolCode* repeat = nullptr;    ///< the REP that they received last; null: others ran since

  /// The tools of that group are going to receive what runs, or none.
  void turn_to(const Group* next, const Context& context) {
    if (group == next) return;
    repeat = nullptr;
    const Group* const left = std::exchange(group, next);
    if (left == nullptr) return;
    for (const auto& tool : left->tools) tool->left_scope(context);
  }
};

class ToolHost final : public Observer, private SystemCallWatcher {
 public:
  /// Reports go to the tools of `analysis`, which must outlive the object, as must what `options`
  /// points to.
  ToolHost(Analysis& analysis, const HostOptions& options);
  ~ToolHost() override;

  /// After the replay, while its machine is there: what was only counted so far is handed over.
  void finish();

  Interest interest() const override;
  void watch(const Machine& machine) override;
  Interest interest_from(std::uint64_t instruction) override;
  void passed(std::uint64_t from, std::uint64_t to) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void counted(const ExecutedBlock& block, std::uint64_t executions) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void cache_flushed(bool write_back, Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

 private:
  bool in_range(Position now) {
    return now.instruction >= options_.from && now.instruction < options_.to && in_window(now);
  }
  bool in_window(Position now) {
    if (counter_) return counter_->is_open();
    if (plan_ == nullptr) return true;
    if (now.instruction >= phase_end_ || now.instruction < phase_begin_) find_phase(now);
    return options_.samples != nullptr || phase_ != Phase::gap;
  }
  /// What is reported if windows consist of instructions.
  enum class Phase : std::uint8_t {
    window,   ///< everything
    warming,  ///< models follow it, and nothing counts
    gap,      ///< nothing
  };
  Phase phase_at(std::uint64_t instruction) const;
  /// Between windows nothing is reported that would claim the accesses of walks and deliveries.
  bool is_unclaimed(Position now) const {
    return plan_ != nullptr && phase_at(now.instruction) == Phase::gap;
  }
  void find_phase(Position now);
  void enter(Phase phase);
  void count(ToolCode& kept, const KnownCode& code, const Execution& execution);
  bool is_told_whole(Position first, std::uint64_t end);
  void count_for_windows(Happening h, Position now);
  void count_for_windows(Counted what, std::uint64_t value, Position now,
                         bool is_of_instruction = false) {
    count_for_windows(
        Happening{.what = what, .value = value, .is_of_instruction = is_of_instruction}, now);
  }
  void count_for_windows(const ExecutedInstruction& e, std::span<const Reference> references,
                         Position now);
  bool windows_count(Counted what) const { return counter_ && options_.windows->counts(what); }
  void look_for_another_process(Position now);
  void context_changed();
  Group& group();
  KnownCode& code_of(const ExecutedBlock& block);
  CodeNote& note_of(const ExecutedBlock& block);
  void block(const ExecutedBlock& block, Position first);
  void trailed(std::span<const ExecutedBlock> blocks, Position first);
  void tell(KnownCode& code, const Execution& execution);
  void tell_in_scope(KnownCode& code, const Execution& execution);
  void tell_group(KnownCode& code, const Execution& execution);
  void tell_plainly(const ExecutedBlock& block, Position first, const Group& mine);
  void tell_to(ToolCode& kept, const KnownCode& code, const Execution& execution);
  ToolCode& group_code(KnownCode& code, const Group& mine);
  ToolCode& make_group_code(KnownCode& code);
  void look_at(KnownCode& code) const;
  void block_by_instructions(const ExecutedBlock& block, Position first);
  void tell_alone(const ExecutedInstruction& e, std::uint32_t iterations, std::uint32_t step,
                  Position now);
  void tell_in_context(const ExecutedInstruction& e, std::uint32_t iterations, std::uint32_t step,
                       Position now);
  void tell_with_values(KnownCode& code, const ExecutedInstruction& e,
                        std::span<const Reference> told, std::uint32_t iterations,
                        std::uint32_t step, Position now);
  void follow_context(const ExecutedInstruction& e, Position now);
  std::span<const Reference> claim_accesses(const ExecutedInstruction& e);
  void flush_others();
  void leave_repeat(Position at);
  void tell_event(MachineEvent event);
  void call_began(std::uint64_t number, const SystemCall& call) override;
  void call_ended(std::uint64_t number, const SystemCall& call) override;
  void tell_call(MachineEvent::Kind kind, std::uint64_t number, const SystemCall& call,
                 Group& group);

  Analysis& analysis_;
  const HostOptions options_;
  const Wants wants_;
  const WindowPlan* const plan_;  ///< windows or samples, of instructions; null: report all
  bool passes_ = false;           ///< blocks that only need to be counted pass
  Detail each_ = Detail::blocks;  ///< how it receives what run() reports
  bool trails_ = false;           ///< ran() has the last of what passed
  Context context_;
  CodeLibrary& library_;
  std::vector<std::string> labels_;  ///< of the group that runs
  Group* group_ = nullptr;           ///< that one, where it was asked for
  LastTold told_;
  Position now_;  ///< of the reported event
  std::map<std::uint64_t, Group*>
      open_calls_;  ///< system calls whose beginning was reported, and to whom
  std::uint64_t context_terms_ = 0;
  Listening listening_, in_windows_;  ///< just now; within windows
  std::vector<std::size_t> counted_;  ///< numbers of the tools that receive how often code ran
  std::optional<Position> interrupted_at_;  ///< by a software interrupt that is not reported yet
  std::optional<WindowCounter> counter_;    ///< of windows that events are counted for
  std::string process_;                     ///< what runs, where windows ask for it
  Phase phase_ = Phase::window;
  std::uint64_t phase_begin_ = 0, phase_end_ = 0;  ///< instructions of it, as far as that is known
  std::vector<std::size_t> pass_;  ///< tools that do not need run() for all ordinary code
  PendingAccesses pending_;
  std::vector<Reference> claimed_;
};

}  // namespace citcat::tools
