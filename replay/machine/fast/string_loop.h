#pragma once
// String instructions of the fast tier: as many iterations at a time as lie in one page of each
// operand.

#include <array>
#include <cstdint>
#include <functional>

#include "events/machine/address.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/memory.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat::fast {

/// A page that may be accessed as often as one likes.
struct StringPage {
  std::uint8_t* host = nullptr;  ///< of the byte asked for; null: it may not be accessed here
  PhysAddr at;
};

/// Runs one string instruction on the registers of a State.
class StringLoop {
 public:
  /// `find`: where a linear address lies, for a store or a read. `stored`: memory was stored to,
  /// with what lies at `from` where that is not null. `made`: so many iterations were made, the
  /// first with its operands at these addresses, in the order of DecodedInstruction::operands; each
  /// further one's are `step` bytes higher.
  using Find = std::function<StringPage(LinearAddr linear, bool write)>;
  using Stored = std::function<void(PhysAddr at, std::uint32_t size, const PhysAddr* from)>;
  struct Operand {
    LinearAddr linear;
    PhysAddr at;
  };
  using Made = std::function<void(const std::array<Operand, 2>& first, std::uint32_t count,
                                  std::int32_t step)>;
  StringLoop(Memory& memory, Find find, Stored stored, Made made)
      : memory_(memory),
        find_(std::move(find)),
        stored_(std::move(stored)),
        made_(std::move(made)) {}

  /// Makes iterations of `info`, whose code lies in `code_frame`, `most` of them and a page more.
  /// True: it is complete. False: what comes next has to be looked at elsewhere; registers are as
  /// they are between iterations.
  bool run(State& s, const DecodedInstruction& info, PhysAddr code_frame, std::uint32_t most);
  /// `info` is repeated no times.
  static bool nothing_to_do(const State& s, const DecodedInstruction& info) {
    return (s.r[kEcx] & address_mask(info.address_bits)) == 0;
  }
  /// Iterations of the last run() that were made.
  std::uint32_t iterations() const { return iterations_; }

 private:
  struct Side {
    LinearAddr linear;
    StringPage page;
  };
  std::uint32_t room(const State& s, const MemoryOperand& operand, Side& side) const;
  std::uint32_t room_in_segment(const State& s, const MemoryOperand& operand,
                                std::uint32_t offset) const;
  bool find_sides(const State& s, std::uint32_t& count);
  std::uint32_t make(State& s, std::uint32_t count);
  std::uint32_t compare(State& s, std::uint32_t count);
  void pass(State& s, std::uint32_t count);
  std::uint8_t* lowest(const Side& side, std::uint32_t count) const {
    return side.page.host - (down_ ? (count - 1) * size_ : 0);
  }
  PhysAddr lowest_at(const Side& side, std::uint32_t count) const {
    return side.page.at.plus32(down_ ? 0u - (count - 1) * size_ : 0);
  }

  Memory& memory_;
  const Find find_;
  const Stored stored_;
  const Made made_;

  const DecodedInstruction* info_ = nullptr;
  PhysAddr code_frame_;
  std::uint32_t size_ = 0;  ///< of an element
  std::uint64_t mask_ = 0;  ///< of offsets and the count
  bool down_ = false;
  bool ended_ = false;  ///< a comparison has ended the repetition
  std::array<Side, 2> sides_;
  std::uint32_t iterations_ = 0;
};

}  // namespace citcat::fast
