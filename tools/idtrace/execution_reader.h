#pragma once
// Reads an IDtrace execution trace as the instructions that it stands for: idt2kt.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/kt/kt.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat::tools {

class IdtraceExecutionReader {
 public:
  /// All must outlive the reader. Throws FormatError where `trace` is of another kind.
  IdtraceExecutionReader(IdtraceReader& trace, const IdtraceBlocks& blocks,
                         const IdtraceCode& code);
  IdtraceExecutionReader(const IdtraceExecutionReader&) = delete;
  IdtraceExecutionReader& operator=(const IdtraceExecutionReader&) = delete;

  /// The next instruction, or iteration of a REP, as KT has it. False at the end. Throws
  /// FormatError where the trace names a block that there is none of, has other entries than its
  /// instructions, or ends within it; and where `.blk` is not of the code.
  bool next(KtInstruction& out);
  /// What next() gave last is the first of its block.
  bool begins_block() const { return begins_block_; }
  /// It is no further iteration of a REP.
  bool begins_instruction() const { return begins_instruction_; }
  /// What next() gave last, decoded; and the default size of its code segment.
  const DecodedInstruction& decoded() const { return last_->info; }
  unsigned bits() const { return code_.bits(blocks_[number_]); }
  /// Number of its block in `.blk`.
  std::size_t block_number() const { return number_; }

 private:
  struct Instruction {
    KtInstruction record;  ///< without addresses
    DecodedInstruction info;
  };
  using Block = std::vector<Instruction>;

  bool enter_block();
  const Block& prepare(const IdtraceBlock& block);
  Instruction prepare(const IdtraceBlock& block, std::size_t number, std::uint32_t begin);
  bool next_of_repeat(const Instruction& instruction, KtInstruction& out);
  void take_entries(const Instruction& instruction, KtInstruction& out);
  IdtraceEntry need(const Instruction& instruction);
  bool read();

  IdtraceReader& trace_;
  const IdtraceBlocks& blocks_;
  const IdtraceCode& code_;
  std::vector<std::unique_ptr<const Block>> prepared_;  ///< by number in `.blk`
  const Block* block_ = nullptr;                        ///< in progress; null between blocks
  std::size_t number_ = 0;                              ///< of it, or of the last one
  std::size_t at_ = 0;                                  ///< instruction of it that is next
  std::uint64_t iterations_ = 0;                        ///< of the REP that is next
  IdtraceEntry entry_;
  const Instruction* last_ = nullptr;
  bool begins_block_ = false, begins_instruction_ = false;
};

}  // namespace citcat::tools
