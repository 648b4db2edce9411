#include "sql/rows/shared_rows.h"

#include <algorithm>
#include <string>

#include "events/position_text.h"
#include "formats/io/memory_limit.h"
#include "replay/processors/machine_session.h"

namespace citcat::sql {
namespace {

/// Calls `poll` now and then, and passes accesses on.
class PolledListener final : public MachineListener {
 public:
  PolledListener(MachineListener& to, const std::function<void()>& poll) : to_(to), poll_(poll) {}
  void access(const ProcessorAccess& access) override {
    if (poll_ && ++accesses_ % kEvery == 0) poll_();
    to_.access(access);
  }

 private:
  static constexpr std::uint64_t kEvery = 1024;
  MachineListener& to_;
  const std::function<void()>& poll_;
  std::uint64_t accesses_ = 0;
};

}  // namespace

const std::vector<tools::Communication>& SharedRows::of(std::size_t reader) {
  if (!collected_) collect();
  return rows_[reader];
}

void SharedRows::collect() {
  rows_.assign(machine_ != nullptr ? machine_->processors() : 1, {});
  stopped_.clear();
  if (machine_ != nullptr) {
    const Symbols none;
    tools::SharingTool sharing(
        rows_.size(), shared_line_bytes(machine_->open(0).recording()), [] { return 0; }, 0, none);
    std::uint64_t rows = 0;
    sharing.report_each([&](const tools::Communication& communication) {
      const Position at = communication.read.position;
      if (++rows * sizeof communication > memory_limit()) {
        refuse_memory("what processors communicate",
                      "instruction " + position_text(at) + " of processor " +
                          std::to_string(communication.read.processor));
      }
      rows_[communication.read.processor].push_back(communication);
    });
    PolledListener listener(sharing, poll_);
    const auto policy = check_ ? std::optional(ComparisonPolicy{}) : std::nullopt;
    stopped_ = MachineSession(*machine_, listener, policy).run();
  }
  for (auto& each : rows_) {
    std::stable_sort(each.begin(), each.end(), [](const auto& a, const auto& b) {
      return a.read.position < b.read.position;
    });
  }
  collected_ = true;
}

}  // namespace citcat::sql
