#pragma once
// The tool that makes rows of what it observes.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sql/rows/procedure_calls.h"
#include "sql/rows/row_filter.h"
#include "sql/rows/run_rows.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::sql {

class RowCollector final : public tools::Tool {
 public:
  /// All must outlive the tool.
  RowCollector(const RowNeeds& needs, const RowFilter& filter, const tools::NameSource& names,
               ContextTable& contexts, RunRows& rows);

  tools::Wants wants() const override;
  void* code(const tools::StaticBlock& block) override;
  void run(void* mine, const tools::Execution& execution, const tools::Context& context) override;
  void passed(std::uint64_t first, std::uint64_t end, const tools::Context& context) override;
  void accesses(std::span<const tools::OtherAccess> accesses,
                const tools::Context& context) override;
  void event(const tools::MachineEvent& event, const tools::Context& context) override;
  void unfinished(Position at) override;

  /// Procedures of RunRows::calls; null where nobody asked for them.
  const tools::ProcedureTable* procedures() const {
    return calls_ ? &calls_->procedures() : nullptr;
  }

  std::unique_ptr<tools::Tool> part() const override;
  void follow(tools::Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(tools::Report&) const override {}

 private:
  void look_at(const tools::Context& context) { look_at(context, context.level()); }
  void look_at(const tools::Context& context, std::uint32_t level);
  bool overlaps(const CodePiece& code) const;
  void add_instructions(const CodePiece& code, const tools::Execution& execution);
  void add_accesses(const tools::Execution& execution);
  void add_run(AccessRun run);
  std::uint64_t& accesses_at(std::uint64_t position);
  void add_delivery(const tools::MachineEvent& event);
  void add_system(const tools::MachineEvent& event, const char* kind,
                  const tools::Context& context);
  void add_system_call(const tools::MachineEvent& event);
  void end_system_call(const tools::MachineEvent& event);
  void executed(std::uint64_t first, std::uint64_t count);
  void require_memory();

  const RowNeeds needs_;
  const RowFilter& filter_;
  const tools::NameSource& names_;
  ContextTable& contexts_;
  RunRows& rows_;
  std::unique_ptr<ProcedureCalls> calls_;
  std::deque<CodePiece> pieces_;
  bool is_stale_ = true;  ///< what runs may have another context
  std::uint32_t level_ = 0;
  AddressSpaceId address_space_ = 0;
  ContextNumber context_ = 0;
  bool is_wanted_ = true;                            ///< the filter leaves the context
  std::uint32_t interrupts_ = 0;                     ///< from outside, that are open
  Position behind_;                                  ///< what was reported last
  std::map<std::uint64_t, std::size_t> open_calls_;  ///< rows of system calls, by their numbers
  std::map<std::pair<AddressSpaceId, const std::string*>, std::size_t> process_rows_;
  std::optional<std::size_t> running_;       ///< row of the process that ran last
  AddressSpaceId address_space_before_ = 0;  ///< of the process after the last event
  const std::string* process_before_ = nullptr;
  /// The last load of page tables: where, and which ones were there before.
  std::optional<std::pair<Position, AddressSpaceId>> loaded_;
  std::uint64_t checked_at_ = 0;      ///< instruction at which memory was looked at
  std::uint64_t accessed_at_ = 0;     ///< position of the last accesses that were counted
  std::uint64_t accesses_there_ = 0;  ///< how many there were
};

}  // namespace citcat::sql
