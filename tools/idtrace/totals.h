#pragma once
// The figures of IDtrace's vcount and rtrace, from its files.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"
#include "formats/idtrace/count_file.h"
#include "formats/idtrace/idtrace_reader.h"

namespace citcat::tools {

/// vcount: instructions by their number, mix, blocks.
struct IdtraceTotals {
  std::uint64_t executions = 0;  ///< of instructions; a REP counts once
  /// Iterations of REPs after the first; nullopt if the file does not show iterations.
  std::optional<std::uint64_t> iterations;
  std::map<std::string, std::uint64_t> mix;  ///< by mnemonic, or number where there is no code
  struct Block {
    LinearAddr linear;
    std::uint32_t instructions = 0;
    std::uint64_t executions = 0;
  };
  std::vector<Block> blocks;  ///< all, in the order of the file

  /// The totals of a profile. `code` may be null.
  static IdtraceTotals of(const IdtraceBlocks& blocks, const IdtraceCounts& counts,
                          const IdtraceCode* code);
  /// Counted over a whole execution trace.
  static IdtraceTotals of(IdtraceReader& trace, const IdtraceBlocks& blocks,
                          const IdtraceCode& code);
};

/// Entries of a trace by tag and size; of a branch trace also which branches were taken.
struct IdtraceEntryTotals {
  std::uint64_t entries = 0;
  std::array<std::array<std::uint64_t, kIdtraceMaxSizeCode + 1>, 12> by_tag{};  ///< by tag >> 4
  std::uint64_t of(IdtraceTag tag) const;
  std::uint64_t taken = 0, not_taken = 0;  ///< control instructions after which a block follows

  static IdtraceEntryTotals of(IdtraceReader& trace);
};

/// rtrace: what REP string instructions did.
struct IdtraceRepeats {
  struct Row {
    std::uint64_t begun = 0, iterations = 0, longest = 0;
    std::uint64_t nothing_done = 0;  ///< of those begun
    /// By the logarithm of the iterations to base 2, rounded down: [0] is one iteration.
    std::vector<std::uint64_t> by_length;
    void add(std::uint64_t iterations);
  };
  std::map<std::string, Row> rows;  ///< by mnemonic, or by what is accessed where there is no code

  /// Counted over a whole execution trace.
  static IdtraceRepeats of(IdtraceReader& trace, const IdtraceBlocks& blocks,
                           const IdtraceCode& code);
  /// Repetition in a cache trace with tags for it (-r). Empty where there are none: it was made
  /// without, or nothing was repeated. Throws FormatError for another kind of trace.
  static IdtraceRepeats of(IdtraceReader& trace);
};

}  // namespace citcat::tools
