// simpoint: how often basic blocks ran in each interval, for SimPoint. Format and source:
// docs/export/simpoint.md.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

/// A block is what runs from one transfer of control to the next, however the machine cuts the run;
/// its number is that of its first coming, from 1.
class SimpointTool final : public StepTool {
 public:
  SimpointTool(ExportFile file, std::uint64_t interval)
      : StepTool(std::move(file)), interval_(interval) {}
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<SimpointTool>(file().anew(), interval_);
  }

 private:
  void step(const Step& step) override {
    if (block_instructions_ == 0) block_ = step.code;
    if (!step.further) ++block_instructions_;
    const bool goes_on = !step.code->control_flow &&
                         (step.next == step.code->behind() || step.next == step.code->linear);
    if (!goes_on) end_block();
  }

  std::uint64_t know(const StaticInstruction&) override {
    known_.push_back(0);
    return known_.size() - 1;
  }
  void steps(const StepRun& run) override {
    if (block_instructions_ == 0) block_ = run.code.data();
    block_instructions_ += run.code.size();
    const StepCode& last = run.code.back();
    const bool goes_on =
        !last.control_flow && (run.next == last.behind() || run.next == last.linear);
    if (!goes_on) end_block();
  }

  /// The number of the block in progress.
  std::uint32_t id() {
    std::uint32_t& id = known_[block_->known];
    if (id != 0) return id;
    const auto next = static_cast<std::uint32_t>(ids_.size() + 1);
    id = ids_.try_emplace(block_->linear.value, next).first->second;
    if (id >= weights_.size()) weights_.resize(id + 1);
    return id;
  }

  void end_block() {
    if (block_instructions_ == 0) return;
    const std::uint32_t block = id();
    if (weights_[block] == 0) ran_.push_back(block);
    weights_[block] += block_instructions_;
    in_interval_ += block_instructions_;
    block_instructions_ = 0;
    if (in_interval_ >= interval_) end_interval();
  }

  void end_interval() {
    if (ran_.empty()) return;
    std::sort(ran_.begin(), ran_.end());
    std::string line = "T";
    for (const std::uint32_t id : ran_) {
      fmt::format_to(std::back_inserter(line), ":{}:{} ", id, std::exchange(weights_[id], 0));
    }
    file().write(line + "\n");
    ran_.clear();
    in_interval_ = 0;
    ++intervals_;
  }

  void end() override {
    end_block();
    end_interval();
    file().finish();
  }
  void report_more(Report& out) const override {
    out.value("intervals", "intervals", intervals_);
    out.value("blocks", "blocks", static_cast<std::uint64_t>(ids_.size()));
  }

  std::uint64_t interval_;
  const StepCode* block_ = nullptr;  ///< that the block in progress begins with
  std::uint64_t block_instructions_ = 0, in_interval_ = 0, intervals_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  ///< by address
  std::vector<std::uint32_t> known_;    ///< ids, by StepCode::known; 0: not looked up yet
  std::vector<std::uint64_t> weights_;  ///< instructions of the interval, by id
  std::vector<std::uint32_t> ran_;      ///< ids that have some
};

std::unique_ptr<Tool> make_simpoint(ToolOptions& options, const Setup& setup) {
  constexpr std::uint64_t kInterval = 100'000, kMost = std::uint64_t{1} << 40;
  const std::uint64_t interval = options.number("interval", kInterval, 1, kMost);
  return std::make_unique<SimpointTool>(ExportFile(options, setup), interval);
}

}  // namespace

extern const ToolRow kSimpointTool{
    "simpoint",
    "Write basic block vectors of intervals for SimPoint",
    "to=FILE  output file\ninterval=N  instructions per interval (100000); an interval never cuts "
    "a block",
    "citcat replay boot.citcat -o boot.bb --format simpoint:interval=1000000",
    ToolRow::Merging::exact,
    make_simpoint};

}  // namespace citcat::tools
