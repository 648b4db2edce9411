#pragma once
// Cuts a run of instructions into IDtrace's blocks. It need not receive everything that ran. The
// run is cut where it does not continue after the last instruction. So a block in which an
// interrupt was taken is whole if the handler is not reported, and becomes two blocks if another
// program ran in between.

#include <cstdint>
#include <span>
#include <vector>

#include "events/machine/address.h"
#include "formats/idtrace/trace_entry.h"
#include "tools/idtrace/block_table.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat::tools {

/// An entry of an execution trace, and what other kinds of traces need to know of it.
struct IdtraceBlockEntry {
  IdtraceEntry entry;
  std::uint8_t pointer_code = 0;  ///< of a target: as in IdtraceEntryPlan
};

/// Receives blocks: open(), then entries() any number of times, then close().
class IdtraceBlockReceiver {
 public:
  virtual ~IdtraceBlockReceiver() = default;
  /// A block begins to run. `last`: its last instruction.
  virtual void open(const ExecutedRun& run, const DecodedInstruction& last) = 0;
  /// Entries of its instructions, in their order.
  virtual void entries(std::span<const IdtraceBlockEntry> entries) = 0;
  virtual void close() = 0;
};

class IdtraceBlockBuilder {
 public:
  /// `receiver` must outlive the builder.
  explicit IdtraceBlockBuilder(IdtraceBlockReceiver& receiver) : receiver_(receiver) {}
  IdtraceBlockBuilder(const IdtraceBlockBuilder&) = delete;
  IdtraceBlockBuilder& operator=(const IdtraceBlockBuilder&) = delete;

  /// An instruction, or `count` iterations of a REP whose addresses are each `step` bytes higher.
  /// `addresses`: those of its KT record; none of a REP that did nothing.
  void instruction(LinearAddr linear, const DecodedInstruction& info,
                   std::span<const std::uint32_t> addresses, std::uint32_t count = 1,
                   std::uint32_t step = 0);
  /// The run is over.
  void finish();
  /// A jump, call or the like ran last, or nothing: what comes next begins a block.
  bool is_between_blocks() const { return run_.instructions.empty(); }

 private:
  bool continues_repeat(LinearAddr linear, const DecodedInstruction& info,
                        bool does_something) const;
  void add(LinearAddr linear, const DecodedInstruction& info);
  void add_entries(const DecodedInstruction& info, std::span<const std::uint32_t> addresses,
                   std::uint32_t count, std::uint32_t step);
  void end_repeat();
  void end_block();
  void hand_over();

  /// Entries kept before the block is known to end: a REP with more of them ends it.
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 16;

  IdtraceBlockReceiver& receiver_;
  ExecutedRun run_;
  std::vector<IdtraceBlockEntry> entries_;
  DecodedInstruction last_;
  LinearAddr next_;         ///< after the last instruction
  bool repeating_ = false;  ///< the last one is a REP that may go on
  bool opened_ = false;     ///< the receiver knows of the block
};

}  // namespace citcat::tools
