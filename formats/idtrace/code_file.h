#pragma once
// The code of the blocks in `.blk`: from the original program's file, as with IDtrace, or from
// citcat's own file beside it, which also holds code that several programs have at one address.
//
//   file := 'CITCATBC', u32 version = 1, u32 magic, XXH3-64 of what follows,
//           (u8 bits = 16 or 32, code bytes of a block, as many as its instructions have)*

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/idtrace/block_file.h"
#include "formats/io/byte_sink.h"
#include "formats/io/input.h"

namespace citcat {

/// Where the bytes of blocks are found.
class IdtraceCode {
 public:
  /// `path`: citcat's own file, or the original program. Throws FormatError if citcat's file is
  /// damaged or belongs to other blocks. `blocks` must outlive the object.
  static IdtraceCode load(const std::string& path, const IdtraceBlocks& blocks);
  static IdtraceCode load(std::unique_ptr<InputStream> input, const IdtraceBlocks& blocks);

  /// All bytes of one of the blocks. Throws FormatError where the program's file does not reach
  /// there.
  std::span<const std::uint8_t> code(const IdtraceBlock& block) const;
  /// Default size of its code segment, 16 or 32.
  unsigned bits(const IdtraceBlock& block) const;

 private:
  void find_blocks(std::size_t at);

  const IdtraceBlocks* blocks_ = nullptr;
  std::string name_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> places_;  ///< in citcat's own file, of each block; empty: of a program
};

/// Collects the code of blocks for citcat's own file.
class IdtraceCodeWriter {
 public:
  /// Blocks are added in the order of `.blk`.
  void add(unsigned bits, std::span<const std::uint8_t> code);
  /// Made of all code: the magic of the original program, for `.blk`, `.cnt` and this file.
  std::uint32_t magic() const;
  /// Writes the whole file; the sink is not finished.
  void write(ByteSink& sink) const;

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace citcat
