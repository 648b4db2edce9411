#pragma once
// A tool that receives the run instruction by instruction, each with its accesses and the place
// where the run goes on, which is known when the next instruction arrives.

#include <array>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "tools/export/export_file.h"
#include "tools/export/step_log.h"
#include "tools/export/told_step.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// A tool that receives steps. A process that replays a part of the run keeps what the tool
/// receives (step_log.h); the one that joins the parts passes it to the tool as if it had replayed
/// them.
class StepTool : public Tool, private StepLogListener {
 public:
  explicit StepTool(ExportFile file);
  Wants wants() const override { return {.executions = true, .accesses = true, .events = true}; }
  void* code(const StaticBlock& block) override;
  void run(void* mine, const Execution& execution, const Context& context) override;
  void passed(std::uint64_t first, std::uint64_t end, const Context& context) override;
  void event(const MachineEvent& event, const Context& context) override;
  /// Shares on disk have no spool.
  bool merges() const override { return file_.spool() != nullptr; }
  void follow(Tool&& later) override;
  void save(ByteWriter& out) const override;
  void load(ByteReader& in) override;
  void report(Report& out) const final;

 protected:
  /// What it keeps of an instruction, which is shown for the first time: StepCode::known.
  std::uint64_t know(const StaticInstruction& /*code*/) override { return 0; }
  virtual void step(const Step& step) = 0;
  /// Steps of ordinary code, with Wants::accesses and without facts. By default each is passed to
  /// step(), without the places in memory of what it accessed.
  virtual void steps(const StepRun& run);
  /// Whether StepRun::next matters to steps(); if not, it is not known.
  virtual bool needs_next() const { return true; }
  /// With Wants::passes: steps of ordinary code.
  virtual void stretch(const StepStretch&) {}
  /// Between two steps.
  virtual void happened(const StepEvent& event, const std::string& facts);
  virtual void happened(const StepEvent&) {}
  /// The run is over: finishes the file, which is `NAME.partial` until then.
  virtual void end() = 0;
  virtual void report_more(Report& /*out*/) const {}
  /// Facts from the machine that step() and happened() need, read after the step or event; step()
  /// has some where has_facts() is true.
  virtual bool has_facts() const { return false; }
  virtual std::string facts(const Execution&, const Context&) const { return {}; }
  virtual std::string facts(const MachineEvent&, const Context&) const { return {}; }
  /// What is written of a step follows from the step alone, so that parts of the run are written
  /// side by side: step() does nothing but write to the file.
  virtual bool stands_alone() const { return false; }

  ExportFile& file() { return file_; }
  const ExportFile& file() const { return file_; }
  /// That a format has no place for.
  void leave_out(std::uint64_t accesses) { totals_.left_out += accesses; }
  const StepTotals& totals() const { return totals_; }

 private:
  /// Code that was shown. What it points to lies right behind it.
  struct Shown {
    std::span<const StepCode> code;
    const AddressedAccess* accesses = nullptr;
    const AddressedAccess* last_accesses = nullptr;  ///< those of the last instruction
    std::uint32_t last_addresses = 0;                ///< effective addresses before its own
    bool follow = true;                              ///< all accesses do so from addresses
    /// Among `accesses`, and those that the last instruction makes.
    std::uint16_t reads = 0, writes = 0;
    std::uint8_t last_reads = 0, last_writes = 0;
  };

  void run_block(const Shown& shown, const Execution& execution, const Context& context);
  void count_run(std::uint64_t instructions, std::uint32_t level, std::uint64_t reads,
                 std::uint64_t writes);
  void settle_run(LinearAddr next, bool is_last);
  void unfold_run();
  void set_accesses(const RunAccesses& made);
  bool takes_run() const { return takes_runs_ && (!file_.is_kept() || writes_); }
  void run_each(const Shown& shown, const Execution& execution, const Context& context,
                ToldStep step);
  const Reference* gather(const Reference* r, const Reference* end, std::uint32_t instruction,
                          std::uint32_t moved);
  bool is_logged(const ToldStep& step);
  void begin(const ToldStep& step);
  void begin_further(const ToldStep& step);
  void told_step(const ToldStep& step, std::span<const StepAccess> accesses) override;
  void told_stretch(StepStretch stretch) override;
  void told_event(const ToldEvent& event) override;
  void told_written(LinearAddr first, std::uint64_t instruction, const StepTotals& totals) override;
  void told_text(std::span<const std::uint8_t> text) override { file_.write(text); }
  void settle(LinearAddr next, std::uint64_t instruction, bool is_last = false);
  void tell_events();
  void tell_asked_for();
  void keep(const ToldStep& step);
  void keep_text();
  void tell(std::unique_ptr<StepLog> log);

  ExportFile file_;
  Step pending_;
  bool is_pending_ = false;
  std::vector<StepAccess> accesses_;  ///< of the pending one
  std::string facts_;                 ///< the same
  /// Where the pending one is the last instruction of a run: that one, its effective addresses, and
  /// what it makes. Without code where it is not.
  StepRun last_;
  std::array<LinearAddr, 2> last_addresses_;
  std::uint32_t last_reads_ = 0, last_writes_ = 0;
  bool takes_runs_ = false;                      ///< steps() is called
  std::pmr::monotonic_buffer_resource shown_;    ///< code that was
  std::vector<AddressedAccess> shown_accesses_;  ///< of one block, kept for its capacity
  std::vector<ToldEvent> events_;                ///< after the pending one
  std::vector<ToldEvent> asked_for_;  ///< by the next step, a software interrupt; reported before
  StepTotals totals_;
  bool isolated_ = false;  ///< page tables are; parts of a run learn that late
  bool ended_ = false;

  // For a part of the run.
  std::unique_ptr<StepLog> log_;  ///< where the reported steps are kept
  bool writes_ = false;           ///< steps are written, to be kept as text
  LinearAddr first_;              ///< of the text
  std::uint64_t first_instruction_ = 0;
  std::vector<std::unique_ptr<StepLog>> read_;  ///< they have the code of what was reported
};

}  // namespace citcat::tools
