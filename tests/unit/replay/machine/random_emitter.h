#pragma once
// How random programs put their code into memory, whatever the mode.

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "unit/replay/machine/random_draws.h"

namespace citcat {

class RandomEmitter : protected RandomDraws {
 public:
  /// Both must outlive the object.
  RandomEmitter(std::mt19937_64& random, std::vector<std::uint8_t>& ram)
      : RandomDraws(random), ram_(ram) {}

 protected:
  void emit(std::initializer_list<std::uint32_t> bytes) {
    for (const std::uint32_t b : bytes) ram_[at_++] = static_cast<std::uint8_t>(b);
  }
  /// The low `bytes` bytes of `v`, 8 at most.
  void imm(std::uint64_t v, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; ++i) emit({static_cast<std::uint32_t>(v >> 8 * i & 0xff)});
  }
  /// A register in ModRM, any but the stack pointer.
  std::uint32_t reg() {
    const std::uint32_t r = pick(7);
    return r >= 4 ? r + 1 : r;
  }

  std::vector<std::uint8_t>& ram_;
  std::uint32_t at_ = 0;  ///< where the next byte goes
};

}  // namespace citcat
