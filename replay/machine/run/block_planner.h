#pragma once
// What of the engine's code runs unreported.
//
// Whenever the engine is about to translate a block its instructions are looked at. Those from the
// first on that needs care are reported, and pass InstructionRunner::prepare(). Each translation is
// handed back with the template made for it, so that none runs unreported that is not known.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/run/block_table.h"
#include "replay/machine/run/code_bytes.h"
#include "replay/machine/running_block.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat {

class CodeFetch;
class CodePatcher;
class DebugUnit;
class InstructionRunner;

/// plan_translation(), reports() and hides() inside the engine's loop, as EngineClient says; the
/// rest between runs of it. Templates live until forget_code().
class BlockPlanner {
 public:
  /// All must outlive the object.
  BlockPlanner(CpuContext& cpu, InFlight& flight, Expectation& expectation, RunningBlock& running,
               SegmentRights& rights, DebugUnit& debug, CodePatcher& patcher, CodeFetch& code,
               InstructionRunner& instructions)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        running_(running),
        rights_(rights),
        debug_(debug),
        patcher_(patcher),
        code_(code),
        instructions_(instructions) {}

  /// A block at `linear` that is reported was met: true when it is hot.
  bool heat(std::uint32_t linear);
  /// The engine made a block of `size` bytes where another one was planned.
  void note_size(std::uint32_t linear, std::uint32_t size) {
    const bool again = short_block_.linear == linear && short_block_.size == size;
    short_block_ = {linear, again ? 0 : size};
  }

  /// The engine is about to translate the block at `linear`. Its template; null: it is reported.
  TranslatedBlock* plan_translation(std::uint32_t linear);
  /// The first part runs unreported, and so does the last one where nothing follows it. Between two
  /// reports in one of its blocks the engine may leave flags unwritten: there everything is
  /// reported.
  bool reports(std::uint32_t linear);
  /// The engine ends the process where it translates BT, BTS, BTR or BTC of a register behind LOCK,
  /// which is undefined (SDM vol. 2, LOCK). Without LOCK it does not.
  std::span<const PhysAddr> hides(std::uint32_t linear);
  /// Whether the engine may be translating just the one instruction at `linear`, which was left or
  /// reported just now and stores into its own block (BlockRunner::stores_into_itself()).
  bool may_be_once_more(std::uint32_t linear) const;
  /// After the engine stopped before a block that is reported and hot.
  void retranslate();
  /// After the engine stopped before a block whose template does not fit its translation, or what
  /// has changed since.
  void replan();
  /// Has the engine forget all code, and drops all templates.
  void forget_code();

 private:
  std::uint64_t block_mode() const;
  BlockTemplate* plan_block(std::uint32_t linear);
  std::array<std::optional<PhysAddr>, 2> engine_frames(LinearAddr page);
  void note_hidden(CodeBytes& code);
  bool would_be_left(const BlockTemplate& block);
  bool can_be_told(const BlockTemplate& block);
  CodeBytes code_bytes(const BlockKey& key) const;
  bool is_still(const BlockTemplate& block, std::uint32_t limit) const;
  BlockTemplate compile_block(const BlockKey& key, std::uint32_t limit);
  bool lies_in_patched_frame(const CodeBytes& code) const;
  bool must_be_reported(const DecodedInstruction& info, const BlockKey& key) const;
  bool may_be_made_twice(const DecodedInstruction& info, const BlockKey& key) const;

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  RunningBlock& running_;
  SegmentRights& rights_;
  DebugUnit& debug_;
  CodePatcher& patcher_;
  CodeFetch& code_;
  InstructionRunner& instructions_;

  BlockTable templates_;
  std::vector<PhysAddr> hidden_;         ///< prefixes of the instruction being translated: hides()
  const BlockTemplate* plan_ = nullptr;  ///< of the block being translated; null: it is reported
  std::uint32_t translations_ = 0;       ///< so far, modulo 2^32
  /// A block that the engine made shorter than it was planned; size 0: it is not to be planned.
  struct {
    std::uint32_t linear = 0, size = 0xffffffff;
  } short_block_;
};

}  // namespace citcat
