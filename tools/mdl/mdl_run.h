#pragma once
// Metrics during a run: follows calls and events, and reaches the points of all metrics.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/analyses/call_follower.h"
#include "tools/analyses/procedure_table.h"
#include "tools/host/tool.h"
#include "tools/mdl/library.h"
#include "tools/mdl/metric_run.h"

namespace citcat::mdl {

/// The columns of tables of metrics' results.
std::vector<tools::Column> metric_columns();

class MdlRun final : private tools::CallFollowerListener {
 public:
  /// `names` may be null; it and the library must outlive the object. Throws UsageError as
  /// make_plan() does, and for a symbol that `names` lacks.
  MdlRun(const Library& library, const std::vector<MetricRequest>& requests,
         const tools::NameSource* names);
  MdlRun(const MdlRun&) = delete;
  MdlRun& operator=(const MdlRun&) = delete;

  tools::Wants wants() const;
  // A tool passes these on.
  void* code(const tools::StaticBlock& block);
  void run(void* mine, const tools::Execution& execution, const tools::Context& context);
  void accesses(std::span<const tools::OtherAccess> all, const tools::Context& context);
  void event(const tools::MachineEvent& event, const tools::Context& context);
  void unfinished(Position at) { follower_.unfinished(at); }
  void left_scope(const tools::Context& context) { follower_.left_scope(context); }
  /// The run has ended.
  void end();
  void report(tools::Table& table) const;

 private:
  /// Code of a metric at a point.
  struct Code {
    MetricRun* run = nullptr;
    const Attachment* attachment = nullptr;
  };
  /// The memory of the machine that the context is of.
  class Memory final : public PointMemory {
   public:
    explicit Memory(const MdlRun& run) : run_(run) {}
    std::optional<std::int64_t> integer(std::int64_t address) const override;

   private:
    const MdlRun& run_;
  };
  using Codes = std::vector<Code>;
  using Arguments = std::vector<std::optional<std::int64_t>>;
  static constexpr std::size_t kProcedurePoints = 4;
  /// What is known of a piece of the recorded code.
  struct Piece {
    void* followed = nullptr;
    /// Instruction points of it, with the number of the instruction.
    std::vector<std::pair<std::uint32_t, PointKind>> points;
    std::uint32_t count = 0;  ///< of instructions
    bool transfers = false;   ///< a block ends with it
    bool calls = false;
  };

  Plan plan_of(const MetricRequest& request) const;
  void add(Plan plan);
  void put(Codes& codes, MetricRun& run, const Attachment& attachment) const;
  std::array<Codes, kProcedurePoints>& points_of(tools::ProcedureNumber procedure);
  void add_for_code(tools::ProcedureNumber procedure);
  Codes& at(PointKind kind) { return points_[static_cast<std::size_t>(kind)]; }
  bool is_wanted(PointKind kind) const { return !points_[static_cast<std::size_t>(kind)].empty(); }

  void look_at_context(const tools::Context& context);
  void context_changes() { known_ = false; }
  Thread& enter(const tools::CallStacks::Clock& clock);
  void begin_thread(Thread& thread);
  void reach(const Codes& codes, const tools::CallStacks::Clock& clock, const Point& point);
  void reach(PointKind kind, Point point);
  void reach_references(const tools::Execution& execution, tools::CallFollower::Part part);
  void keep_arguments(const tools::Context& context);
  Point point_here() const;

  void called(tools::ProcedureNumber caller, tools::ProcedureNumber procedure) override;
  void went_on(tools::ProcedureNumber procedure) override;
  void enter_procedure(tools::ProcedureNumber procedure, const Point& call);
  void executed(tools::ProcedureNumber procedure, std::uint64_t instructions) override;
  void taken_back(tools::ProcedureNumber procedure) override;
  void left(const tools::CallFrame& frame, std::uint64_t instructions, bool outermost,
            bool outermost_arc) override;

  const Library& library_;
  const tools::NameSource* names_;
  std::vector<MetricRequest> for_each_code_;
  std::deque<MetricRun> runs_;
  std::map<std::string, bool> made_;  ///< of for_each_code_, by their texts
  std::array<Codes, kPointKinds> points_;
  std::deque<std::array<Codes, kProcedurePoints>> procedure_points_;
  bool wants_arguments_ = false, reads_memory_ = false;
  Memory memory_{*this};

  tools::ProcedureTable procedures_;
  tools::CallFollower follower_{procedures_, *this};
  std::deque<Piece> pieces_;
  ThreadTable threads_;

  const tools::Context* context_ = nullptr;
  bool known_ = false;  ///< the context has been looked at
  std::uint32_t level_ = 0;
  AddressSpaceId space_ = 0;
  const tools::Context::Open* open_ = nullptr;
  std::uint64_t window_ = 1;
  // What is being observed:
  const Piece* piece_ = nullptr;
  const tools::Execution* execution_ = nullptr;
  tools::ProcedureNumber procedure_ = tools::ProcedureTable::kUnknown;
  bool begins_block_ = true;
  Arguments arguments_;  ///< of the call that was made last
  std::vector<MetricRun*> passed_;
};

}  // namespace citcat::mdl
