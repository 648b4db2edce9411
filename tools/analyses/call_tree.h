#pragma once
// Which procedure ran within which: call paths, as a tree, with what each executed (docs/tools/tree.md).

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tools/analyses/procedure_table.h"
#include "tools/guest/call_stacks.h"
#include "tools/host/report.h"

namespace citcat::tools {

/// Is told what a CallFollowerListener is told.
class CallTree {
 public:
  static constexpr std::uint64_t kShown = 1000;

  /// What is to be kept as CallFrame::path. `counts`: as a call.
  std::uint32_t entered(const CallFrame* under, ProcedureNumber procedure, bool counts);
  void executed(const CallStacks& stacks, ProcedureNumber procedure, std::uint64_t instructions);
  /// On the path that something was executed on last.
  void executed_further(std::uint64_t instructions) { paths_[last_].own += instructions; }
  void taken_back() { --paths_[last_].own; }
  /// The `shown` paths with most instructions.
  void report(const ProcedureTable& procedures, std::size_t shown, Report& report) const;
  std::uint64_t instructions() const { return totals()[kRoot]; }

 private:
  /// Paths beyond are counted where they branch off.
  static constexpr std::size_t kMostPaths = std::size_t{1} << 20;
  static constexpr std::uint32_t kRoot = 0;

  struct Path {
    std::uint32_t parent = kRoot;
    ProcedureNumber procedure = 0;
    std::uint64_t calls = 0, own = 0;
  };
  std::uint32_t child(std::uint32_t parent, ProcedureNumber procedure);
  std::vector<std::uint64_t> totals() const;

  std::vector<Path> paths_{Path{}};  ///< parents before their children
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::uint32_t last_ = kRoot;  ///< that something was executed in
  std::uint64_t not_kept_ = 0;
};

}  // namespace citcat::tools
