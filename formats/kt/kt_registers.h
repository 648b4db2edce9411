#pragma once
// The registers of a traced program, as far as they can be guessed from the addresses that its
// instructions used. The guesses need not be correct, only the same for writer and reader.

#include <array>
#include <cstdint>
#include <vector>

#include "formats/kt/kt_hash.h"
#include "formats/kt/kt_operands.h"

namespace citcat {

class KtRegisters {
 public:
  KtRegisters() : memory_(kKtTableSlots) {}

  std::uint32_t expected_address(const KtAddressRule& rule) const {
    return values_[rule.base] + (values_[rule.index] << rule.scale) + rule.displacement;
  }
  /// `address` came about by the rule.
  void learn_address(const KtAddressRule& rule, std::uint32_t address) {
    const std::uint32_t sum = address - rule.displacement;
    if (rule.index == KtOperands::kNone) {
      learn(rule.base, sum);
    } else {
      learn(rule.index, (sum - values_[rule.base]) >> rule.scale);
    }
  }
  /// An instruction was executed whose first address is `address`.
  void apply(const KtOperands& o, std::uint32_t address);

 private:
  struct Remembered {
    std::uint32_t address = 0;
    std::uint32_t value = 0;
  };
  std::uint32_t recall(std::uint32_t address) const {
    const Remembered& r = memory_[kt_hash(address)];
    return r.address == address ? r.value : 0;
  }
  void remember(std::uint32_t address, std::uint32_t value) {
    memory_[kt_hash(address)] = {address, value};
  }
  void learn(std::uint8_t reg, std::uint32_t value) {
    if (reg == KtOperands::kNone || values_[reg] == value) return;
    values_[reg] = value;
    if (origin_[reg] != 0) remember(origin_[reg], value);
  }

  std::array<std::uint32_t, 9> values_{};
  std::array<std::uint32_t, 9> origin_{};  ///< where the register was loaded from; 0: elsewhere
  std::vector<Remembered> memory_;
};

}  // namespace citcat
