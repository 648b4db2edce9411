#pragma once
// All code that a run has shown, each piece once, with what the tools keep for it.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "replay/machine/executed_block.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// What the tools of one group (`--by`) keep with a piece of code.
struct ToolCode {
  /// A tool that receives executions, and what it keeps.
  struct Call {
    Tool* tool = nullptr;
    void* mine = nullptr;
  };
  std::vector<Call> calls;        ///< if all receive them
  std::vector<void*> mine;        ///< of each tool: Tool::code()
  std::uint64_t executions = 0;   ///< not handed to counted() yet; of a REP: begun
  std::uint64_t further = 0;      ///< iterations of a REP
  std::uint64_t interrupted = 0;  ///< of a REP: between two iterations
};

struct KnownCode {
  explicit KnownCode(StaticBlock b) : block(std::move(b)) {}

  StaticBlock block;
  ToolCode* told = nullptr;  ///< of the group that received the last execution
  std::size_t told_group = 0;
  std::vector<std::unique_ptr<ToolCode>> groups;  ///< null where the group has not run it
  std::uint64_t static_terms = 0;                 ///< of the scope: those that hold for all of it
  bool uniform = true;  ///< else they do not hold for each of its instructions alike
  bool looked_at = false;

  bool repeats() const { return block.front().info.is_repeated(); }
};

/// One execution of a block of the machine; `code` is its code.
inline Execution execution_of(const ExecutedBlock& block, const KnownCode& code, Position first) {
  return Execution::ordinary(code.block, first, block.addresses(), block.references());
}

/// The pieces stay valid as long as the library lives: code that is made again at the same place is
/// the same piece.
class CodeLibrary {
 public:
  KnownCode& block(const BlockCode& code);
  /// `rest`: where its bytes lie that are after the end of the page; 0 where that is not known.
  KnownCode& single(const ExecutedInstruction& e, PhysAddr rest);
  KnownCode& single(const StaticInstruction& instruction);
  std::deque<KnownCode>& all() { return pieces_; }

 private:
  KnownCode& find(std::vector<StaticInstruction>& instructions);
  void grow();

  std::deque<KnownCode> pieces_;
  std::vector<KnownCode*> slots_ = std::vector<KnownCode*>(std::size_t{1} << 12);
  std::vector<StaticInstruction> scratch_;
};

}  // namespace citcat::tools
