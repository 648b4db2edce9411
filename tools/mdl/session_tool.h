#pragma once
// Metrics that are added and removed during a run. Each gives the result that a run from the place
// where it was added to the place where it was removed would have given.

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/guest/system_call.h"
#include "tools/host/tool.h"
#include "tools/mdl/mdl_run.h"

namespace citcat::mdl {

class SessionMetrics {
 public:
  /// Both must outlive the object; `names` may be null.
  SessionMetrics(const Library& library, const tools::NameSource* names)
      : library_(library), names_(names) {}

  /// Counts from `position` on. Throws UsageError as make_plan() does, and where it is there.
  void add(const MetricRequest& request, std::uint64_t position);
  /// What it has found stays for report(). Throws UsageError where it is not there. Without a
  /// focus all of the metric's go.
  void remove(const std::string& request, std::uint64_t position);
  /// The run is going to stop before instruction `to`. What happens there before the instruction
  /// belongs to what comes then: metrics are told of it when the run goes on.
  void go_to(std::uint64_t to);
  /// Reports everything that ever counted; `position` is where the run is.
  void report(tools::Report& report, std::uint64_t position) const;

  // What a tool passes on.
  void* code(const tools::StaticBlock& block);
  void run(void* mine, const tools::Execution& execution, const tools::Context& context);
  void accesses(std::span<const tools::OtherAccess> all, const tools::Context& context);
  void event(const tools::MachineEvent& event, const tools::Context& context);

 private:
  struct Entry {
    MetricRequest request;
    std::uint64_t from = 0, to = ~std::uint64_t{0};
    std::unique_ptr<MdlRun> run;
    std::set<std::uint64_t> open_calls;  ///< system calls whose beginning was reported
    bool counts() const { return to == ~std::uint64_t{0}; }
  };
  struct Piece {
    const tools::StaticBlock* block = nullptr;
    std::vector<std::pair<const Entry*, void*>> mine;  ///< of the entries that count
  };
  /// An event at the place where the run stops, as it was reported.
  struct Held {
    tools::MachineEvent event;
    std::optional<tools::SystemCall> call;  ///< of the event
    tools::Context context;
  };
  void* piece_of(Piece& piece, Entry& entry);
  void tell(const tools::MachineEvent& event, const tools::Context& context);

  const Library& library_;
  const tools::NameSource* names_;
  std::list<Entry> entries_;
  std::deque<Piece> pieces_;
  std::uint64_t stop_ = 0;
  std::vector<Held> held_;
};

/// The tool of a session; `metrics` must outlive it.
std::unique_ptr<tools::Tool> make_session_tool(SessionMetrics& metrics);

}  // namespace citcat::mdl
