#pragma once
// The common part of tools that receive calls: they follow them from the beginning of the run to
// its end.

#include <cstddef>
#include <cstdint>

#include "tools/analyses/call_follower.h"
#include "tools/analyses/procedure_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// A call that is open when a part of the run begins is not known there: nothing is put together.
class CallTool : public Tool, protected CallFollowerListener {
 public:
  /// `shown`: rows in the report. `names` must outlive the tool, and may be null.
  CallTool(std::size_t shown, const NameSource* names) : shown_(shown), procedures_(names) {}

  Wants wants() const final { return CallFollower::wants(); }
  void* code(const StaticBlock& block) final { return follower_.code(block); }
  void run(void* mine, const Execution& execution, const Context& context) final {
    follower_.run(mine, execution, context);
  }
  bool warms() const final { return true; }
  void set_warming(bool warming) final {
    warming_ = warming;
    follower_.set_warming(warming);
  }
  void gap() final { follower_.gap(); }
  void left_scope(const Context& context) final { follower_.left_scope(context); }
  void event(const MachineEvent& event, const Context& context) final {
    follower_.event(event, context);
  }
  void unfinished(Position at) final { follower_.unfinished(at); }
  void follow(Tool&&) final {}
  void save(ByteWriter&) const final {}
  void load(ByteReader&) final {}

  static constexpr std::uint64_t kShown = 50, kMostShown = 1u << 20;

 protected:
  bool warming_ = false;  ///< calls do not count
  std::size_t shown_;
  ProcedureTable procedures_;
  CallFollower follower_{procedures_, *this};
};

}  // namespace citcat::tools
