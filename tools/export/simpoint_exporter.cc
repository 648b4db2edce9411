// simpoint: how often basic blocks ran in each interval, for SimPoint. Format and source:
// docs/export/simpoint.md.

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string>
#include <unordered_map>

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
    if (block_instructions_ == 0) block_ = step.code->linear.value;
    if (!step.further) ++block_instructions_;
    const bool goes_on = !step.code->info.control_flow &&
                         (step.next == step.behind() || step.next == step.code->linear);
    if (!goes_on) end_block();
  }

  void end_block() {
    if (block_instructions_ == 0) return;
    const auto id = static_cast<std::uint32_t>(ids_.size() + 1);
    weights_[ids_.try_emplace(block_, id).first->second] += block_instructions_;
    in_interval_ += block_instructions_;
    block_instructions_ = 0;
    if (in_interval_ >= interval_) end_interval();
  }

  void end_interval() {
    if (weights_.empty()) return;
    std::string line = "T";
    for (const auto& [id, weight] : weights_) {
      fmt::format_to(std::back_inserter(line), ":{}:{} ", id, weight);
    }
    file().write(line + "\n");
    weights_.clear();
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
  std::uint64_t block_ = 0;  ///< address of the one in progress
  std::uint64_t block_instructions_ = 0, in_interval_ = 0, intervals_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  ///< by address
  std::map<std::uint32_t, std::uint64_t> weights_;        ///< instructions, by id
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
    "to=FILE  output file\ninterval=N  instructions of an interval (100000), which never cuts a "
    "block",
    "citcat replay boot.citcat -o boot.bb --format simpoint:interval=1000000",
    ToolRow::Merging::exact,
    make_simpoint};

}  // namespace citcat::tools
