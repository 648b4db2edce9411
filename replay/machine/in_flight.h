#pragma once
// The instruction between its report by the engine and its completion.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "replay/engine/engine.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// A store goes to a frame nothing was mapped at so far. Thrown while an instruction is prepared,
/// which is begun again once the frame is there.
struct NeedsMapping {
  FrameNumber page = 0;
};

/// One instruction, or one iteration of a REP, from begin to retire. What it holds is valid while
/// `active`, or while the units complete an instruction that was made here; `info` stays until the
/// next one begins.
struct InFlight {
  struct Store {
    PhysAddr physical;
    std::uint32_t size = 0;
    LinearAddr linear;
  };

  const DecodedInstruction* info = nullptr;
  PhysAddr physical;  ///< of its first byte
  bool active = false;
  bool resuming = false;     ///< the engine reports again what is already prepared
  bool iterating = false;    ///< an iteration of a REP is in flight
  bool repeat_done = false;  ///< its final count check is
  unsigned retries = 0;      ///< times the engine asked for the same translation

  // Registers before it.
  std::uint32_t hflags_before = 0;
  std::uint64_t stack_before = 0;  ///< ESP
  std::uint64_t count_before = 0;  ///< ECX

  std::array<LinearAddr, 2> ea{};
  std::uint8_t ea_count = 0;

  std::array<Store, 40> stores;  ///< in the order in which they are made
  std::size_t store_count = 0;
  bool stores_to_code = false;            ///< one of them goes to a frame that holds code
  std::vector<std::uint8_t> overwritten;  ///< by them all then and by INS, in their order
  Engine::RawFlags flags_before{};        ///< the flags then
  std::uint16_t segment_push_upper = 0;   ///< what a PUSH of a segment register is to leave alone
  bool restore_segment_push = false;
  bool returns_outward = false;  ///< the engine is about to return to an outer level
  PhysAddr copied_from;          ///< read last
  LinearAddr accessed;           ///< data that is being reported, or found
  LinearAddr invlpg_linear;
  bool keeps_context = false;  ///< MOV to CR3 that leaves the TLB alone

  unsigned reads_told = 0;     ///< to the listeners, while it is prepared
  unsigned reads_to_skip = 0;  ///< reported when it was prepared before
  bool wants_patch = false;    ///< other bytes are to be in memory while the engine executes it

  /// It is MOVS, repeated or not.
  bool copies_string() const;
  /// It is INS, repeated or not.
  bool inputs_port() const { return info != nullptr && info->kind == InstructionClass::ins; }
  /// It works on floating-point or vector registers.
  bool is_floating_point() const;

  /// It is not going to complete.
  void discard() {
    active = false;
    retries = 0;
    iterating = false;
    repeat_done = false;
    restore_segment_push = false;
    returns_outward = false;
    reads_to_skip = 0;
  }
};

}  // namespace citcat
