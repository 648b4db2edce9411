#pragma once
// The probabilities that the KT model has learnt for the outcomes of its decisions, for one form of
// records.

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/io/range_coder.h"
#include "formats/kt/kt_operands.h"

namespace citcat {

/// Where a guess at the next instruction comes from: statistics of their own.
enum class KtSource : std::uint8_t { call, far_path, near_path, successor, interrupted };
inline constexpr std::size_t kKtSources = 5;

/// `Form`: of kt_records.h.
template <class Form>
struct KtStatistics {
  using Word = typename Form::Word;
  static constexpr std::size_t kFlows = 5;
  // Confidence, history.
  std::array<std::array<std::array<AdaptiveBit, 8>, 8>, kKtSources> next_hit;
  std::array<std::array<AdaptiveBit, kFlows>, 4> next_other;  // candidate
  AdaptiveBit other_record;
  std::array<AdaptiveBit, kFlows> eip_fall, eip_target;
  AdaptiveBit eip_recent;
  AdaptiveNumber<4> eip_which;
  AdaptiveBit same_eip;
  AdaptiveNumber<8> type;
  AdaptiveBit static_target;
  std::array<AdaptiveNumber<8>, 3 * 256> code;  // position, byte before
  // Kind, which predictor comes first, history of hits.
  std::array<std::array<std::array<AdaptiveBit, 64>, 2>, KtAddressRule::kKinds> first;
  std::array<std::array<std::array<AdaptiveBit, 8>, 2>, KtAddressRule::kKinds> second;
  std::array<std::array<AdaptiveBit, 8>, KtAddressRule::kKinds> third;
  static constexpr std::size_t kFarKinds = KtAddressRule::kKinds + 1;
  std::array<AdaptiveNumber<Form::kSizeBits>, kFarKinds> far_size;
  static constexpr std::size_t kSizes = 8 * sizeof(Word) + 1;
  std::array<std::array<std::array<AdaptiveBit, 8>, kSizes>, kFarKinds> far_top;
  std::array<std::array<std::array<AdaptiveBit, 4>, kSizes>, kFarKinds> far_low;
  AdaptiveBit other_kind;
  std::array<AdaptiveNumber<8>, 3 * sizeof(Word)> word;
  std::array<Word, 16> recent_eips{};
  std::uint32_t recent_at = 0;
  std::array<Word, 3> last_word{};
};

}  // namespace citcat
