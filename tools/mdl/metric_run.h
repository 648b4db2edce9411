#pragma once
// A metric at a focus during a run: its values, for each process and each resource that the focus
// matches.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/host/context.h"
#include "tools/host/names.h"
#include "tools/host/report.h"
#include "tools/mdl/plan.h"
#include "tools/mdl/thread_table.h"

namespace citcat::mdl {

/// What a point that was reached knows besides the context.
struct Point {
  PointValues values;
  const std::string* module = nullptr;  ///< of the code that runs
  const std::string* procedure = nullptr;
  std::optional<std::uint8_t> vector;  ///< the interrupt that begins or ends here
  std::optional<std::uint16_t> port;
  std::optional<tools::LinearRange> data;  ///< that is accessed
};

class MetricRun {
 public:
  /// `number`: of its states in the threads.
  MetricRun(Plan plan, std::size_t number) : plan_(std::move(plan)), number_(number) {}

  const Plan& plan() const { return plan_; }
  /// Its state in the thread. Valid until the table of threads changes.
  ThreadState& state(Thread& thread) const;

  /// What runs from now on may be part of other resources.
  void look_at(const tools::Context& context, const tools::NameSource* names, std::uint64_t window);
  /// Code at a point is reached.
  void reach(const Attachment& code, Thread& thread, const Point& point);
  /// Its timer runs, and so many instructions were executed.
  void pass(std::uint64_t instructions, Thread& thread, const Point& point);
  /// The last instruction of those was none.
  void take_back();
  bool wall_timer_runs() const { return wall_starts_ != 0; }

  /// Rows: metric, focus, value, unit, processes, lines of code left out for what was not known.
  void report(tools::Table& table) const;

 private:
  class Access;
  using Values = std::map<AddressSpaceId, std::int64_t>;  ///< by CR3

  bool part_of_focus(const Point& point, std::string* text) const;
  bool part_of_focus(const Resource& resource, const Point& point, std::string* text) const;
  bool constraints_hold(const ThreadState& state) const;
  std::int64_t& cell(const Point& point);
  tools::Cell aggregated(const Values& values) const;
  void start_timer(Thread& thread);
  void stop_timer(Thread& thread);

  Plan plan_;
  std::size_t number_;
  bool in_context_ = false;            ///< what runs is part of the focus' contexts
  std::vector<std::string> contexts_;  ///< of each resource of the focus: what it is now
  AddressSpaceId space_ = 0;
  std::uint64_t wall_starts_ = 0;
  std::uint64_t unknown_ = 0;             ///< lines that came upon an argument no evidence tells
  std::map<std::string, Values> values_;  ///< by focus
  Values* here_ = nullptr;                ///< those of the context, where the point does not matter
  std::int64_t* passed_ = nullptr;
};

}  // namespace citcat::mdl
