#pragma once
// IDtrace's `.blk`: the basic blocks of the program (docs/formats/idtrace.md).
//
//   file  := u32 blocks, u32 oldt_offset, u32 magic of the original, u32 magic of the traced
//   program
//            block*
//   block := u32 linear address, u8 instructions, u8 not used, (i16 id, u8 bytes, i8 entries)*
//
// A trace names a block by the position of its record in the file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/io/byte_sink.h"
#include "formats/io/input.h"

namespace citcat {

/// One instruction of a block.
struct IdtraceInstruction {
  std::int16_t id = 0;  ///< IDtrace's number for it; in citcat's files see idtrace_instruction_id()
  std::uint8_t bytes = 1;  ///< 1 to 15
  /// Entries in an execution trace, 0 to 2; -1 and -2: so many for each iteration of a REP.
  std::int8_t entries = 0;

  bool repeats() const { return entries < 0; }
  bool operator==(const IdtraceInstruction&) const = default;
};

/// The number that citcat's files give an instruction: opcode in bits 0 to 7, its map in 8 and 9 (0
/// one byte, 1 after 0F, 2 after 0F 38, 3 after 0F 3A), ModRM.reg in 10 to 12 where there is a
/// ModRM.
std::int16_t idtrace_instruction_id(std::uint8_t opcode, unsigned map, unsigned reg);

/// Most instructions in a block that is written: its size is a `char`, which i386 compilers of that
/// time took to have a sign. Longer runs are split.
inline constexpr std::size_t kIdtraceMaxWritten = 127;

struct IdtraceBlock {
  std::uint32_t position = 0;  ///< in the file; what a trace names it by
  std::uint32_t address = 0;   ///< linear, of its first byte
  std::vector<IdtraceInstruction> instructions;

  std::uint32_t code_bytes() const;
};

/// The fields that connect the files of one program with each other.
struct IdtraceMagic {
  std::uint32_t original = 0, traced = 0;
  bool operator==(const IdtraceMagic&) const = default;
};

/// A whole `.blk` file in memory.
class IdtraceBlocks {
 public:
  /// Throws FormatError: a count of blocks that is not that of the file, a block without
  /// instructions, an instruction of 0 or more than 15 bytes or with more than two entries, an end
  /// within a block.
  static IdtraceBlocks load(const std::string& path);
  static IdtraceBlocks load(std::unique_ptr<InputStream> input);

  const std::string& name() const { return name_; }
  std::size_t size() const { return blocks_.size(); }
  const IdtraceBlock& operator[](std::size_t index) const { return blocks_[index]; }
  /// The block whose record is there; null: there begins none.
  const IdtraceBlock* at(std::uint32_t position) const;
  std::size_t index_of(const IdtraceBlock& block) const {
    return static_cast<std::size_t>(&block - blocks_.data());
  }
  /// Where a byte of code lies in the file of the original program: its address less this.
  std::uint32_t text_offset() const { return text_offset_; }
  const IdtraceMagic& magic() const { return magic_; }

 private:
  std::string name_;
  std::vector<IdtraceBlock> blocks_;
  std::uint32_t text_offset_ = 0;
  IdtraceMagic magic_;
};

/// Whether `prefix` is the beginning of a `.blk` file with a block in it, or the whole of one.
bool looks_like_idtrace_blocks(std::span<const std::uint8_t> prefix, bool whole_file);

/// Collects blocks for a `.blk` file. Memory grows with the number of distinct ones.
class IdtraceBlockWriter {
 public:
  /// Adds a block of 1 to kIdtraceMaxWritten instructions; returns its position. Throws IoError
  /// when that is beyond what a trace can name.
  std::uint32_t add(std::uint32_t address, std::span<const IdtraceInstruction> instructions);
  std::uint32_t size() const { return count_; }
  /// The magic that is made of the blocks' records, for `.blk` and `.cnt`.
  std::uint32_t traced_magic() const;
  /// Writes the whole file; the sink is not finished.
  void write(ByteSink& sink, std::uint32_t text_offset, const IdtraceMagic& magic) const;

 private:
  std::vector<std::uint8_t> records_;
  std::uint32_t count_ = 0;
};

}  // namespace citcat
