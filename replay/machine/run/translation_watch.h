#pragma once
// The questions that the engine asks before it translates code.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/run/code_bytes.h"

namespace citcat {

/// begins() and hides() inside the engine's loop, as EngineClient says of the members of like
/// names; forget_code() between runs of it.
class TranslationWatch {
 public:
  /// `cpu` must outlive the object.
  explicit TranslationWatch(CpuContext& cpu) : cpu_(cpu) {}

  /// A block is about to be translated.
  void begins();
  /// The engine ends the process where it translates BT, BTS, BTR or BTC of a register after LOCK,
  /// which is undefined (SDM vol. 2, LOCK). Without LOCK it does not.
  std::span<const PhysAddr> hides(LinearAddr linear);
  /// Has the engine forget all code.
  void forget_code();

 private:
  std::array<std::optional<PhysAddr>, 2> engine_frames(LinearAddr page);
  void note_hidden(CodeBytes& code);

  CpuContext& cpu_;
  std::vector<PhysAddr> hidden_;    ///< prefixes of the instruction being translated
  std::uint32_t translations_ = 0;  ///< so far, modulo 2^32
};

}  // namespace citcat
