#pragma once
// The run as most formats of others want it: instruction by instruction, each with what it accessed
// and with where the run goes on, which is known when the next one is.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {

/// An access as the instruction made it, across a page's end too.
struct StepAccess {
  LinearAddr linear;
  PhysAddr physical;  ///< of its first byte
  std::uint32_t size = 0;
  bool write = false;
};

/// An instruction, or an iteration of a REP.
struct Step {
  const StaticInstruction* code = nullptr;
  Position position;
  std::span<const StepAccess> accesses;
  std::array<LinearAddr, 2> addresses{};  ///< of its KT record
  std::uint8_t address_count = 0;
  std::uint32_t level = 0;          ///< that it ran at
  std::uint32_t address_space = 0;  ///< CR3
  LinearAddr next;                  ///< of the instruction that the run goes on with
  /// It is a further iteration: the instruction was fetched before.
  bool further = false;
  /// With it an instruction has completed. Not so of iterations but the last, nor of a REP that an
  /// interrupt was taken in: it is begun anew.
  bool completes = true;

  LinearAddr behind() const { return code->behind(); }
};

/// An event where the steps around it are known.
struct StepEvent {
  MachineEvent event;
  std::uint32_t level = 0;          ///< behind it
  std::uint32_t address_space = 0;  ///< the same
  std::uint32_t eax = 0;            ///< at it: of a system call, its number
  LinearAddr stack;                 ///< the stack pointer behind it
};

/// What all exporters count, to be held against each other.
struct StepTotals {
  std::uint64_t instructions = 0;  ///< completed
  std::uint64_t fetched = 0;       ///< instructions begun
  std::uint64_t further = 0;       ///< further iterations of REP
  std::uint64_t reads = 0, writes = 0;
  std::uint64_t user = 0;  ///< of those fetched, at level 3

  void add(const Step& step);
  void report(Report& out) const;
};

/// A tool that is told steps.
class StepTool : public Tool {
 public:
  Wants wants() const override { return {.executions = true, .references = true, .events = true}; }
  void* code(const StaticBlock& block) override { return const_cast<StaticBlock*>(&block); }
  void run(void* mine, const Execution& execution, const Context& context) override;
  void event(const MachineEvent& event, const Context& context) override;
  /// Whoever writes a stream cannot begin within it.
  bool merges() const override { return false; }
  void follow(Tool&&) override;
  void save(ByteWriter&) const override;
  void load(ByteReader&) override;
  void report(Report& out) const final;

 protected:
  virtual void step(const Step& step) = 0;
  /// Between two steps.
  virtual void happened(const StepEvent&) {}
  /// The run is over.
  virtual void end() = 0;
  virtual void report_more(Report& /*out*/) const {}
  const StepTotals& totals() const { return totals_; }
  /// Within step() and happened(): the run where the next step begins. Null for the last step.
  const Context* context() const { return context_; }

 private:
  void add(const Execution& execution, std::uint32_t instruction, std::uint32_t iteration,
           std::span<const Reference> references, const Context& context);
  void settle(LinearAddr next, std::uint64_t instruction);
  void tell_events();

  Step pending_;
  bool is_pending_ = false;
  std::vector<StepAccess> accesses_;  ///< of the pending one
  std::vector<StepEvent> events_;     ///< behind the pending one
  StepTotals totals_;
  const Context* context_ = nullptr;
  bool ended_ = false;
};

}  // namespace citcat::tools
