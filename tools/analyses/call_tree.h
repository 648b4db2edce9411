#pragma once
// Which procedure ran within which: call paths as a tree, with the instructions that each executed
// (docs/tools/tree.md).

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tools/analyses/procedure_table.h"
#include "tools/guest/call_stacks.h"
#include "tools/host/report.h"

namespace citcat::tools {

/// Receives what a CallFollowerListener receives.
class CallTree {
 public:
  static constexpr std::uint64_t kShown = 1000;
  static constexpr CallPath kRoot = 0;

  enum class Kind : std::uint8_t { root, process, system, interrupt, exception, call, procedure };
  struct Path {
    CallPath parent = kRoot;
    Kind kind = Kind::root;
    std::uint64_t value = 0;    ///< number of a procedure, CR3 of a process, vector
    std::uint32_t depth = 0;    ///< paths that it goes on from
    std::uint64_t calls = 0;    ///< of a procedure
    std::uint64_t entered = 0;  ///< the same, and without one
    std::uint64_t own = 0;      ///< instructions executed in it
  };

  /// A path of its own below another one; once more it is entered.
  CallPath enter(CallPath parent, Kind kind, std::uint64_t value);
  /// `counts`: as a call.
  CallPath enter_procedure(CallPath under, ProcedureNumber procedure, bool counts);
  void executed(const CallStacks& stacks, ProcedureNumber procedure, std::uint64_t instructions);
  /// On the path that something was executed on last.
  void executed_further(std::uint64_t instructions) { paths_[last_].own += instructions; }
  void taken_back() { --paths_[last_].own; }

  /// Parents before their children.
  const std::vector<Path>& paths() const { return paths_; }
  /// What was executed on each path and on those that go on from it.
  std::vector<std::uint64_t> totals() const;
  /// The `shown` paths with most instructions.
  void report(const ProcedureTable& procedures, std::size_t shown, Report& report) const;

 private:
  /// Paths beyond are counted where they branch off.
  static constexpr std::size_t kMostPaths = std::size_t{1} << 20;
  /// Where nothing returns any more: what is written of each path is as long as it is deep.
  static constexpr std::uint32_t kDeepest = 1024;

  CallPath child(CallPath parent, Kind kind, std::uint64_t value);

  std::vector<Path> paths_{Path{}};
  /// By parent, kind and value.
  struct Key {
    CallPath parent;
    Kind kind;
    std::uint64_t value;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      const std::uint64_t mixed = (std::uint64_t{k.parent} << 32 | k.value) * 0x9e3779b97f4a7c15u;
      return static_cast<std::size_t>((mixed ^ mixed >> 29) + static_cast<unsigned>(k.kind));
    }
  };
  std::unordered_map<Key, CallPath, KeyHash> children_;
  CallPath last_ = kRoot;  ///< that something was executed on
  std::uint64_t not_kept_ = 0;
};

}  // namespace citcat::tools
