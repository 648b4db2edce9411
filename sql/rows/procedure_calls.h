#pragma once
// Calls of procedures as rows.

#include <cstdint>

#include "sql/rows/run_rows.h"
#include "tools/analyses/call_follower.h"
#include "tools/analyses/procedure_table.h"

namespace citcat::sql {

/// Follows calls for a collector of rows, which passes on what it receives.
class ProcedureCalls final : private tools::CallFollowerListener {
 public:
  /// Both must outlive the object.
  ProcedureCalls(const tools::NameSource& names, RunRows& rows)
      : procedures_(&names), rows_(rows) {}

  void* code(const tools::StaticBlock& block) { return follower_.code(block); }
  void run(void* mine, const tools::Execution& execution, const tools::Context& context,
           ContextNumber number) {
    at_ = execution.first().instruction;
    context_ = number;
    follower_.run(mine, execution, context);
  }
  void event(const tools::MachineEvent& event, const tools::Context& context) {
    at_ = event.position.instruction;
    follower_.event(event, context);
  }
  void unfinished(Position at) { follower_.unfinished(at); }
  const tools::ProcedureTable& procedures() const { return procedures_; }

 private:
  void called(tools::ProcedureNumber caller, tools::ProcedureNumber procedure) override;
  tools::CallPath entered(tools::CallPath under, tools::ProcedureNumber procedure,
                          bool is_base) override;
  void went_on(tools::ProcedureNumber) override { is_no_call_ = true; }
  void executed(tools::ProcedureNumber, std::uint64_t) override {}
  void taken_back(tools::ProcedureNumber) override {}
  void left(const tools::CallFrame& frame, std::uint64_t instructions, bool outermost,
            bool outermost_arc) override;

  tools::ProcedureTable procedures_;
  RunRows& rows_;
  tools::CallFollower follower_{procedures_, *this};
  std::uint64_t at_ = 0;
  ContextNumber context_ = 0;
  bool is_told_first_ = false;  ///< called() was, and entered() is going to be
  bool is_no_call_ = false;     ///< what entered() is going to receive is not a call
  static constexpr std::size_t kNone = ~std::size_t{0};
  bool jumps_ = false;           ///< the procedure that is left next did not return, but jumped
  std::size_t entered_ = kNone;  ///< row for which called() is going to say whether it is a call
  std::uint32_t caller_ = 0;
};

}  // namespace citcat::sql
