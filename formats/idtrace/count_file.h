#pragma once
// IDtrace's `.cnt`: how often each block of `.blk` was executed (docs/formats/idtrace.md).
//
//   file := u32 magic of the original, u32 magic of the traced program, set*
//   set  := u32 count of each block, in the order of `.blk`
//
// Counts are added up over the sets: one that is full begins another.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/idtrace/block_file.h"
#include "formats/io/byte_sink.h"
#include "formats/io/input.h"

namespace citcat {

struct IdtraceCounts {
  IdtraceMagic magic;
  std::uint64_t sets = 0;
  std::vector<std::uint64_t> executions;  ///< of each block, in the order of `.blk`

  /// Reads a `.cnt` file of so many blocks. Throws FormatError where it ends within a set.
  static IdtraceCounts load(const std::string& path, std::size_t blocks);
  static IdtraceCounts load(std::unique_ptr<InputStream> input, std::size_t blocks);
  /// Throws FormatError, naming `name`, where the counts are not of these blocks.
  void require(const IdtraceBlocks& blocks, const std::string& name) const;
};

/// Writes a `.cnt` file: as many sets as the largest count needs, one at least. The sink is not
/// finished.
void write_idtrace_counts(ByteSink& sink, const IdtraceMagic& magic,
                          std::span<const std::uint64_t> executions);

}  // namespace citcat
