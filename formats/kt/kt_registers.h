#pragma once
// The registers of a traced program, as far as they can be guessed from the addresses that its
// instructions used. The guesses need not be correct, only the same for writer and reader.

#include <array>
#include <cstdint>
#include <vector>

#include "formats/kt/kt_hash.h"
#include "formats/kt/kt_operands.h"

namespace citcat {

/// `Word`: an address, of 32 bits or of 64.
template <class Word>
class KtRegisters {
 public:
  KtRegisters() : memory_(kKtTableSlots) {}

  Word expected_address(const KtAddressRule& rule) const {
    return static_cast<Word>(values_[rule.base] + (values_[rule.index] << rule.scale) +
                             rule.displacement);
  }
  /// `address` came about by the rule.
  void learn_address(const KtAddressRule& rule, Word address) {
    const Word sum = address - static_cast<Word>(rule.displacement);
    if (rule.index == KtOperands::kNone) {
      learn(rule.base, sum);
    } else {
      learn(rule.index, (sum - values_[rule.base]) >> rule.scale);
    }
  }
  /// An instruction was executed whose first address is `address`.
  void apply(const KtOperands& o, Word address) {
    if (o.effect != KtEffect::none) change(o, address);
  }

 private:
  void change(const KtOperands& o, Word address);
  struct Remembered {
    Word address = 0;
    Word value = 0;
  };
  Word recall(Word address) const {
    const Remembered& r = memory_[kt_hash(address)];
    return r.address == address ? r.value : 0;
  }
  void remember(Word address, Word value) { memory_[kt_hash(address)] = {address, value}; }
  void learn(std::uint8_t reg, Word value) {
    if (reg == KtOperands::kNone || values_[reg] == value) return;
    values_[reg] = value;
    if (origin_[reg] != 0) remember(origin_[reg], value);
  }

  std::array<Word, KtOperands::kNone + 1> values_{};
  std::array<Word, KtOperands::kNone + 1>
      origin_{};  ///< where the register was loaded from; 0: elsewhere
  std::vector<Remembered> memory_;
};

}  // namespace citcat
