#pragma once
// Where branches went: what runs next decides a branch at the end of a block.

#include <cstdint>
#include <optional>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// A branch with known destinations.
struct FollowedBranch {
  LinearAddr address;  ///< of its first byte
  LinearAddr next;     ///< of the instruction after it
  LinearAddr target;   ///< of one that names it, else not used
  InstructionClass kind = InstructionClass::jcc;
  bool indirect = false;  ///< it goes where a register or memory says
  bool is_conditional() const {
    return kind == InstructionClass::jcc || kind == InstructionClass::loop;
  }
};

/// Classes that BranchFollower follows: conditional branches, near jumps, calls and returns.
bool is_followed(InstructionClass kind);

/// Follows one stream of executions. An outcome is seen where what completes next lies where the
/// branch may have gone. One that an interrupt was delivered after is not seen: that of a
/// conditional branch shows in where the handler lies; of others delivered() has to be called.
class BranchFollower {
 public:
  /// What a block, as Tool::code() is shown it, means to it.
  struct End {
    LinearAddr first;  ///< of the block
    bool branches = false;
    FollowedBranch branch;  ///< where it does; its target of a direct one
  };
  static End end_of(const StaticBlock& block);

  /// To be called with every execution. `settle(const FollowedBranch&, LinearAddr to)` is called
  /// with the branch before it, if there was one.
  template <class F>
  void step(const End& end, const Execution& execution, F&& settle) {
    if (execution.first().iteration != 0) return;
    if (!first_ && !delivered_first_) first_ = end.first;
    if (pending_) settle(branch_, end.first);
    pending_ = end.branches;
    if (!pending_) return;
    branch_ = end.branch;
    if (branch_.is_conditional()) {
      branch_.target = execution.address(execution.block().count() - 1);
    }
  }
  /// What comes next is not what ran next: the end of the last branch is not seen.
  void gap() { pending_ = false; }
  /// A handler comes next. `unseen(const FollowedBranch&)` is called with the branch before it, if
  /// there was one.
  template <class F>
  void delivered(F&& unseen) {
    if (!first_) delivered_first_ = true;
    if (std::exchange(pending_, false)) unseen(branch_);
  }
  /// The last reported branch, if nothing has followed it.
  const FollowedBranch* pending() const { return pending_ ? &branch_ : nullptr; }
  /// `later` saw the next part of the run.
  template <class F, class G>
  void follow(const BranchFollower& later, F&& settle, G&& unseen) {
    if (later.delivered_first_) {
      delivered(unseen);
    } else if (!later.first_) {
      return;
    } else {
      if (pending_) settle(branch_, *later.first_);
      if (!first_ && !delivered_first_) first_ = later.first_;
    }
    pending_ = later.pending_;
    branch_ = later.branch_;
  }
  template <class F>
  void follow(const BranchFollower& later, F&& settle) {
    follow(later, settle, [](const FollowedBranch&) {});
  }

  void save(ByteWriter& out) const;
  /// Throws FormatError for what save() never writes.
  void load(ByteReader& in);

 private:
  std::optional<LinearAddr> first_;  ///< that ran, unless a delivery came before it
  bool delivered_first_ = false;
  bool pending_ = false;  ///< `branch_` ran last
  FollowedBranch branch_;
};

/// What became of a conditional branch that was followed by `to`; nullopt where that cannot be
/// known.
inline std::optional<bool> outcome(const FollowedBranch& branch, LinearAddr to) {
  if (to == branch.next) return false;
  if (to == branch.target) return true;
  return std::nullopt;
}

/// Addresses in the state of tools.
inline void save_address(ByteWriter& out, LinearAddr a) { out.varint(a.value); }
LinearAddr load_address(ByteReader& in, const char* what);

}  // namespace citcat::tools
