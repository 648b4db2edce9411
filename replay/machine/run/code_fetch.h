#pragma once
// The bytes of the instruction about to be executed, and what it is.

#include <cstdint>
#include <span>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/decode_cache.h"
#include "x86/decoded_code.h"

namespace citcat {

/// The engine executes code of another frame than the processor does.
struct CodeElsewhere {};

/// fetch() says what the processor fetches, and throws what it would: a page fault, or the end of
/// the segment. What it returns is valid until another instruction is fetched.
class CodeFetch {
 public:
  /// All must outlive the object.
  CodeFetch(CpuContext& cpu, InFlight& flight, Expectation& expectation)
      : cpu_(cpu), flight_(flight), expectation_(expectation) {}

  /// What the bytes are in this mode; valid until the next call.
  const DecodedInstruction& decode(std::span<const std::uint8_t> bytes, CodeMode mode) {
    return decode_cache_.decode(bytes, mode);
  }

  /// Instructions that no cache knew.
  std::uint64_t decoded() const { return decode_cache_.decoded(); }

  /// The instruction at `linear`. Throws CodeElsewhere too.
  const DecodedInstruction& fetch(LinearAddr linear);
  /// Handles code at `linear` that is not an instruction.
  [[noreturn]] void refuse_undefined(const DecodedInstruction& info, LinearAddr linear);

 private:
  void find_page(LinearAddr linear);
  void read(DecodedCode::Slot& slot, LinearAddr linear, std::uint32_t here, CodeMode mode);
  bool wraps_around(LinearAddr linear) const;
  void read_around(DecodedCode::Slot& slot, LinearAddr linear, CodeMode mode);
  void require_code_at(LinearAddr page, PhysAddr frame) const;
  bool reaches_beyond_limit(LinearAddr linear);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;

  DecodedCode decoded_;
  DecodeCache decode_cache_{cpu_.model};
};

}  // namespace citcat
