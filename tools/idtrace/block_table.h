#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/machine/address.h"
#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"

namespace citcat::tools {

/// A block as it was executed: where, which instructions, which bytes.
struct ExecutedRun {
  LinearAddr linear;
  unsigned bits = 32;  ///< default size of the code segment
  std::vector<IdtraceInstruction> instructions;
  std::vector<std::uint8_t> code;

  void clear() {
    instructions.clear();
    code.clear();
  }
};

/// The distinct blocks of a run, numbered as they come. Blocks with other bytes, as other programs
/// have at the same address, or with fewer instructions, because the run went on elsewhere, are
/// other blocks. Memory grows with them, not with the run.
class IdtraceBlockTable {
 public:
  /// The number of a block, which is added if it is not there.
  std::uint32_t number(const ExecutedRun& run);
  std::uint32_t position(std::uint32_t number) const { return positions_[number]; }
  /// In the order of their numbers.
  const std::vector<ExecutedRun>& runs() const { return runs_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(positions_.size()); }

  const IdtraceBlockWriter& blocks() const { return blocks_; }
  const IdtraceCodeWriter& code() const { return code_; }
  IdtraceMagic magic() const { return {code_.magic(), blocks_.traced_magic()}; }

 private:
  bool is(std::uint32_t number, const ExecutedRun& run) const;

  IdtraceBlockWriter blocks_;
  IdtraceCodeWriter code_;
  std::vector<std::uint32_t> positions_;
  std::vector<ExecutedRun> runs_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

}  // namespace citcat::tools
