#pragma once
// What blocks that ran unreported read and stored, for a judge that compares it.
//
// Most blocks the judge need not hear of: nothing is expected where they run. Of these only which
// bytes have become defined is kept, and that they read no others. The rest are told with
// everything they read and stored. What they will overwrite is saved before they run, so that a
// block the judge does not agree with can be taken back: memory, registers and flags are put back,
// and its instructions are executed once more, each reported. So a comparison of whole blocks need
// not find out what is wrong, nor judge what is rare: it may refuse whatever is not plainly right.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/address.h"
#include "replay/machine/block_template.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/run/defined_lines.h"
#include "replay/machine/running_block.h"

namespace citcat {

/// may_tell() and foresees() before a block runs; tell() behind it, with the registers at both ends
/// in RunningBlock; roll_back() between runs of the engine, when tell() returned false.
class BlockSpeculation {
 public:
  /// All must outlive the object.
  BlockSpeculation(CpuContext& cpu, InFlight& flight, Expectation& expectation,
                   RunningBlock& running)
      : cpu_(cpu), flight_(flight), expectation_(expectation), running_(running) {}

  /// Whether `block`, about to run and to be compared, can be told behind it, or taken back: false
  /// where it cannot be told what it is going to overwrite.
  bool foresees(const BlockTemplate& block);
  /// The block in progress came to `count` instructions, and is going to be taken back: no other
  /// begins before those are made again.
  void be_careful_behind(std::uint32_t count) {
    careful_until_ = cpu_.position.instruction + count + 1;
  }
  /// What was taken back no longer counts.
  void be_careless() { careful_until_ = 0; }
  /// The block in progress was left before its first instruction. False when it has to be taken
  /// back.
  bool was_untouched() const {
    return !expectation_.block_compared || running_.speculated || left_no_traces(0);
  }

  /// Whether `block`, about to run, may be told as a whole.
  bool may_tell(const BlockTemplate& block);
  /// Tells `block`, which ran, to those who do not judge it.
  void tell_unasked(const BlockTemplate& block) {
    if (expectation_.keeps_account && (!expectation_.block_compared || running_.speculated))
      note_accesses(block);
    if (cpu_.audience.hears_instructions()) tell_observers(block, cpu_.position);
  }
  /// Tells it to the observers, of whom one at least hears of instructions.
  void tell_observers(const BlockTemplate& block, Position first) {
    if (block.address_count() > addresses_.size()) [[unlikely]]
      addresses_.resize(2 * block.address_count());
    block.find_addresses(addresses_.data(), running_.registers);
    cpu_.audience.block(block, addresses_.data(), first);
  }
  /// Tells what ran. False when it has to be taken back.
  bool tell(const BlockTemplate& block);
  /// After the engine stopped: back to where the block began.
  void roll_back();

 private:
  void note_accesses(const BlockTemplate& block);
  void note_access(std::uint32_t linear, const BlockTemplate::Access& a);
  void note_defined(std::uint32_t linear, PhysAddr at);
  std::uint64_t lines_mark() const { return DefinedLines::mark_of(cpu_.mmu.epoch()); }
  bool find_stores(const BlockTemplate& block);
  bool is_stored(PhysAddr at, std::uint32_t size) const;
  bool add_store(const BlockStore& store);
  void save_overwritten();
  bool agrees_ahead(const BlockTemplate& block);
  void copy_out(PhysAddr at, std::uint32_t size, std::array<std::uint8_t, 8>& to) const;
  bool left_no_traces(std::size_t first) const;
  bool gather_stores(const BlockTemplate& block);
  bool gather_read(const BlockTemplate::Access& read, std::uint32_t linear);
  bool tell_accesses(const BlockTemplate& block);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  RunningBlock& running_;

  std::vector<std::uint32_t> addresses_;  ///< of the block that observers are told
  Engine::RawFlags flags_at_entry_{};
  std::vector<BlockStore> block_stores_;  ///< what it was going to store
  std::size_t stores_told_ = 0;           ///< of these, belong to instructions that completed
  std::vector<BlockRead> block_reads_;
  DefinedLines defined_lines_;
  std::uint32_t block_begin_ = 0;    ///< linear address of its first instruction
  std::uint64_t careful_until_ = 0;  ///< no block begins before this instruction
};

}  // namespace citcat
