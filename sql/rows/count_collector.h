#pragma once
// Counts in place of rows: how often each piece of code ran, and how many accesses there were of
// each size and kind. For queries that only count, which need no row for each instruction.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sql/rows/row_filter.h"
#include "sql/rows/run_rows.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::sql {

/// The properties by which counts are distinguished.
struct CountNeeds {
  bool instructions = false;  ///< else accesses
  bool code = false;          ///< by instruction
  bool context = false;       ///< by process and level, or these are filtered
  bool process_names = false;
};

struct InstructionCount {
  const CodePiece* code = nullptr;  ///< null: not by code
  ContextNumber context = 0;
  std::uint64_t count = 0;  ///< of each of its instructions
};

struct AccessCount {
  ContextNumber context = 0;
  std::uint16_t size = 0;
  AccessClass kind = AccessClass::data;
  bool write = false;
  std::uint64_t count = 0;
};

class CountCollector final : public tools::Tool {
 public:
  /// All must outlive the tool.
  CountCollector(const CountNeeds& needs, const RowFilter& filter, const tools::NameSource& names,
                 ContextTable& contexts);

  /// After the run.
  std::vector<InstructionCount> instruction_counts() const;
  std::vector<AccessCount> access_counts() const;

  tools::Wants wants() const override;
  void* code(const tools::StaticBlock& block) override;
  void run(void* mine, const tools::Execution& execution, const tools::Context& context) override;
  void passed(std::uint64_t first, std::uint64_t end, const tools::Context& context) override;
  void counted(void* mine, std::uint64_t executions) override;
  void iterated(void* mine, std::uint64_t begun, std::uint64_t further) override;
  void interrupted(void* mine, std::uint64_t times) override;
  void accesses(std::span<const tools::OtherAccess> accesses,
                const tools::Context& context) override;
  void event(const tools::MachineEvent& event, const tools::Context& context) override;
  void unfinished(Position at) override;

  std::unique_ptr<tools::Tool> part() const override;
  void follow(tools::Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(tools::Report&) const override {}

 private:
  bool counts_plainly() const { return needs_.instructions && needs_.code && !needs_.context; }
  void look_at(const tools::Context& context);
  void add(std::uint64_t instructions);
  void add_access(const tools::Reference& r, AccessClass kind, std::uint32_t times);
  void add_accesses(const tools::Execution& execution);

  const CountNeeds needs_;
  const RowFilter& filter_;
  const tools::NameSource& names_;
  ContextTable& contexts_;
  std::deque<CodePiece> pieces_;
  bool is_stale_ = true;
  std::uint32_t level_ = 0;
  ContextNumber context_ = 0;
  bool is_wanted_ = true;
  CodePiece* repeats_ = nullptr;  ///< the REP that was reported last
  std::uint64_t repeats_at_ = 0;
  ContextNumber repeats_in_ = 0;
  std::vector<std::uint64_t> by_context_;
  using AccessKey = std::tuple<ContextNumber, std::uint16_t, AccessClass, bool>;
  std::map<AccessKey, std::uint64_t> accesses_;
  /// Accesses of up to 16 bytes in the current context, by size, class and direction.
  std::vector<std::uint64_t> small_;
};

}  // namespace citcat::sql
