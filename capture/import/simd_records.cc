#include "capture/import/simd_records.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/io/error.h"
#include "formats/io/simd_intrinsics.h"
#include "formats/io/simd_vectors.h"

namespace citcat {
namespace {

constexpr std::size_t kAtOnce = 16;
constexpr unsigned kWithinShift = 16, kLastShift = 24;
static_assert(kShapeBits <= kWithinShift);

}  // namespace

void SimdRecords::set_kinds(std::span<const Kind> kinds) {
  const bool has_room = kinds.size() <= kMaxKinds;
  kinds = kinds.first(std::min(kinds.size(), kMaxKinds));
  // A factor that gives each a slot of its own is soon found for as many kinds as are met; where it
  // is not, the last of a slot has it.
  constexpr std::uint32_t kFactor = 0x9e3779b1;
  constexpr unsigned kTries = 64;
  std::size_t most = 0;
  std::uint32_t best = kFactor;
  for (unsigned i = 0; i < kTries && most < kinds.size(); ++i) {
    const std::uint32_t factor = kFactor * (2 * i + 1);
    std::array<bool, std::size_t{1} << kSlotBits> used{};
    for (const Kind& kind : kinds) used[kind.key * factor >> (32 - kSlotBits)] = true;
    const auto slots = static_cast<std::size_t>(std::count(used.begin(), used.end(), true));
    if (slots > most) most = slots, best = factor;
  }
  factor_ = best;
  kinds_ = kinds.size();
  has_all_ = has_room && most == kinds.size();
  place_.fill(0);
  key_.fill(0);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    place_[kind.key * factor_ >> (32 - kSlotBits)] = static_cast<std::uint8_t>(i);
    key_[i] = kind.key;
    rule_[i] = kind.shape | std::uint32_t{kind.within} << kWithinShift |
               std::uint32_t{kind.last} << kLastShift;
    number_[i] = kind.number;
  }
}

#if defined(__x86_64__)

namespace {

/// Words 8 k + `word` of eight records of five words, as their lanes.
struct Eight {
  __m512i row[5];
};

CITCAT_WIDE inline __attribute__((always_inline)) Eight load_eight(const std::uint8_t* records) {
  Eight all;
  for (int i = 0; i < 5; ++i) all.row[i] = _mm512_loadu_si512(records + 64 * i);
  return all;
}

/// Where words `kWord` + 5 k, those of the same field of eight records, are in five rows: lanes
/// of the first two rows, of the next two and of the last, and which lanes come from these.
template <int kWord>
struct Places {
  std::array<std::int64_t, 8> low{}, middle{}, last{};
  __mmask8 in_middle = 0, in_last = 0;

  constexpr Places() {
    for (std::size_t k = 0; k < 8; ++k) {
      const std::size_t word = kWord + 5 * k;
      (word < 16 ? low : word < 32 ? middle : last)[k] = static_cast<std::int64_t>(word % 16);
      const unsigned lane = 1U << k;
      if (word >= 16 && word < 32) in_middle = static_cast<__mmask8>(in_middle | lane);
      if (word >= 32) in_last = static_cast<__mmask8>(in_last | lane);
    }
  }
};

template <int kWord>
CITCAT_WIDE inline __attribute__((always_inline)) __m512i word_of(const Eight& all) {
  static constexpr Places<kWord> kPlaces;
  const __m512i low =
      _mm512_permutex2var_epi64(all.row[0], _mm512_loadu_si512(kPlaces.low.data()), all.row[1]);
  const __m512i middle =
      _mm512_permutex2var_epi64(all.row[2], _mm512_loadu_si512(kPlaces.middle.data()), all.row[3]);
  return _mm512_mask_permutexvar_epi64(_mm512_mask_blend_epi64(kPlaces.in_middle, low, middle),
                                       kPlaces.in_last, _mm512_loadu_si512(kPlaces.last.data()),
                                       all.row[4]);
}

/// The lowest / highest halves of sixteen words.
CITCAT_WIDE inline __attribute__((always_inline)) __m512i low_halves(__m512i a, __m512i b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_epi32(a, even, b);
}
CITCAT_WIDE inline __attribute__((always_inline)) __m512i high_halves(__m512i a, __m512i b) {
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_epi32(a, odd, b);
}

/// Bits of the data of eight records that lie beyond their sizes.
CITCAT_WIDE inline __attribute__((always_inline)) __m512i beyond(const Eight& all, __m256i size) {
  const __m512i ones = _mm512_set1_epi64(-1), word = _mm512_set1_epi64(64);
  const __m512i bits = _mm512_slli_epi64(_mm512_cvtepu32_epi64(size), 3);
  const __m512i first = _mm512_and_si512(word_of<3>(all), _mm512_sllv_epi64(ones, bits));
  const __m512i more = _mm512_sub_epi64(_mm512_max_epu64(bits, word), word);
  const __m512i second = _mm512_and_si512(word_of<4>(all), _mm512_sllv_epi64(ones, more));
  return _mm512_or_si512(first, second);
}

}  // namespace

CITCAT_WIDE std::size_t SimdRecords::take(std::span<const std::uint8_t> records, std::size_t at,
                                          Last& last, AccessColumns& columns,
                                          std::span<std::uint8_t> number) const {
  const std::size_t count = records.size() / kBusRecordBytes;
  const std::size_t most = at + (count + kAtOnce - 1) / kAtOnce * kAtOnce;
  CITCAT_ASSERT(most <= AccessColumns::kMax && most <= number.size());
  if (kinds_ == 0) return 0;
  const __m512i factor = _mm512_set1_epi32(static_cast<int>(factor_));
  const __m512i place_low = _mm512_load_si512(place_.data());
  const __m512i place_high = _mm512_load_si512(place_.data() + 64);
  const __m512i key_low = _mm512_load_si512(key_.data());
  const __m512i key_high = _mm512_load_si512(key_.data() + 16);
  const __m512i rule_low = _mm512_load_si512(rule_.data());
  const __m512i rule_high = _mm512_load_si512(rule_.data() + 16);
  const __m512i numbers = _mm512_load_si512(number_.data());
  __m512i clock_before = _mm512_set1_epi32(static_cast<int>(last.clock));
  __m512i before = _mm512_set1_epi64(static_cast<long long>(last.instructions));
  __m512i flags = _mm512_setzero_si512();
  std::array<std::uint8_t, kAtOnce * kBusRecordBytes> rest;
  std::size_t i = 0;
  for (unsigned good = kAtOnce; i < count && good == kAtOnce; i += good) {
    const std::uint8_t* bytes = records.data() + i * kBusRecordBytes;
    good = static_cast<unsigned>(std::min<std::size_t>(kAtOnce, count - i));
    if (good < kAtOnce) [[unlikely]] {
      std::memcpy(rest.data(), bytes, good * kBusRecordBytes);
      std::memset(rest.data() + good * kBusRecordBytes, 0, rest.size() - good * kBusRecordBytes);
      bytes = rest.data();
    }
    const Eight a = load_eight(bytes), b = load_eight(bytes + 8 * kBusRecordBytes);
    const __m512i a_third = word_of<2>(a), b_third = word_of<2>(b);
    const __m512i key = high_halves(a_third, b_third);
    const __m512i slot = _mm512_srli_epi32(_mm512_mullo_epi32(key, factor), 32 - kSlotBits);
    // Bytes above the lowest of each lane stay zero.
    const __m512i place =
        _mm512_maskz_permutex2var_epi8(0x1111111111111111, place_low, slot, place_high);
    const __m512i known = _mm512_permutex2var_epi32(key_low, place, key_high);
    const __m512i rule = _mm512_permutex2var_epi32(rule_low, place, rule_high);
    __m512i shape = _mm512_and_si512(rule, _mm512_set1_epi32((1 << kShapeBits) - 1));
    const __m512i size =
        _mm512_and_si512(_mm512_srli_epi32(rule, kShapeSizeShift), _mm512_set1_epi32(0x1f));

    const __m512i a_second = word_of<1>(a), b_second = word_of<1>(b);
    const __m512i clock = low_halves(a_second, b_second);
    const __m512i address = high_halves(a_second, b_second);
    const __m512i inside = _mm512_and_si512(
        address, _mm512_and_si512(_mm512_srli_epi32(rule, kWithinShift), _mm512_set1_epi32(15)));
    const __m512i clock_previous = _mm512_alignr_epi32(clock, clock_before, 15);

    const __m512i a_first = word_of<0>(a), b_first = word_of<0>(b);
    const __m512i a_previous = _mm512_alignr_epi64(a_first, before, 7);
    const __m512i b_previous = _mm512_alignr_epi64(b_first, a_first, 7);

    const __m512i a_more = beyond(a, _mm512_castsi512_si256(size));
    const __m512i b_more = beyond(b, _mm512_extracti64x4_epi64(size, 1));
    const __m512i more = _mm512_or_si512(a_more, b_more);
    const unsigned wrong = _mm512_cmpneq_epi32_mask(key, known) |
                           _mm512_cmplt_epu32_mask(clock, clock_previous) |
                           _mm512_cmpgt_epu32_mask(inside, _mm512_srli_epi32(rule, kLastShift));
    const unsigned a_back = _mm512_cmplt_epu64_mask(a_first, a_previous);
    const unsigned b_back = _mm512_cmplt_epu64_mask(b_first, b_previous);
    // No count of instructions reaches the highest bit.
    const unsigned some = wrong | a_back | b_back | _mm512_test_epi64_mask(more, more) |
                          _mm512_movepi64_mask(_mm512_or_si512(a_first, b_first));
    if (some != 0) [[unlikely]] {
      const unsigned a_wrong =
          a_back | _mm512_test_epi64_mask(a_more, a_more) | _mm512_movepi64_mask(a_first);
      const unsigned b_wrong =
          b_back | _mm512_test_epi64_mask(b_more, b_more) | _mm512_movepi64_mask(b_first);
      const unsigned all = wrong | a_wrong | b_wrong << 8;
      good = std::min(good, static_cast<unsigned>(std::countr_zero(all)));
    }
    if (good < kAtOnce) [[unlikely]]
      shape = _mm512_maskz_mov_epi32(static_cast<__mmask16>((1U << good) - 1), shape);

    // Entries after the good ones are written again later, or never read.
    _mm512_storeu_si512(&columns.instructions[at + i], a_first);
    _mm512_storeu_si512(&columns.instructions[at + i] + 8, b_first);
    _mm512_storeu_si512(&columns.clock[at + i], clock);
    _mm512_storeu_si512(&columns.address[at + i], address);
    _mm512_storeu_si512(&columns.iterations[at + i], low_halves(a_third, b_third));
    _mm512_storeu_si512(&columns.shape[at + i], shape);
    const __m512i numbered = _mm512_permutexvar_epi8(place, numbers);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&number[at + i]), _mm512_cvtepi32_epi8(numbered));
    flags = _mm512_or_si512(flags, shape);
    clock_before = clock;
    before = b_first;
  }
  if (i != 0) {
    last.instructions = columns.instructions[at + i - 1];
    last.clock = columns.clock[at + i - 1];
    const auto all = static_cast<std::uint32_t>(_mm512_reduce_or_epi32(flags));
    last.flags = static_cast<std::uint16_t>(last.flags | all >> kShapeFlagsShift);
  }
  return i;
}

CITCAT_WIDE std::size_t SimdRecords::add_rows(std::span<const std::uint8_t> records,
                                              std::uint8_t end, Row& column, Row& behind) {
  constexpr std::size_t kTypeAt = offsetof(BusRecord, type);
  // Where types are among the 64 bytes of each vector of a row.
  std::array<__mmask64, 5> types{};
  for (std::size_t i = 0; i < kRowRecords; ++i) {
    const std::size_t byte = i * kBusRecordBytes + kTypeAt;
    types[byte / 64] |= __mmask64{1} << byte % 64;
  }
  const __m512i ends = _mm512_set1_epi8(static_cast<char>(end));
  __m512i sum[5], sums[5];
  for (int k = 0; k < 5; ++k) {
    sum[k] = _mm512_loadu_si512(column.data() + 8 * k);
    sums[k] = _mm512_loadu_si512(behind.data() + 8 * k);
  }
  const std::size_t rows = records.size() / sizeof(Row);
  std::size_t row = 0;
  for (; row < rows; ++row) {
    const Eight all = load_eight(records.data() + row * sizeof(Row));
    __mmask64 ended = 0;
    for (std::size_t k = 0; k < 5; ++k)
      ended |= _mm512_mask_cmpeq_epi8_mask(types[k], all.row[k], ends);
    if (ended != 0) break;
    for (int k = 0; k < 5; ++k) {
      sums[k] = _mm512_add_epi64(sums[k], sum[k]);
      sum[k] = _mm512_add_epi64(sum[k], all.row[k]);
    }
  }
  for (int k = 0; k < 5; ++k) {
    _mm512_storeu_si512(column.data() + 8 * k, sum[k]);
    _mm512_storeu_si512(behind.data() + 8 * k, sums[k]);
  }
  return row * kRowRecords;
}

#else

std::size_t SimdRecords::take(std::span<const std::uint8_t>, std::size_t, Last&, AccessColumns&,
                              std::span<std::uint8_t>) const {
  return 0;
}
std::size_t SimdRecords::add_rows(std::span<const std::uint8_t>, std::uint8_t, Row&, Row&) {
  return 0;
}

#endif

}  // namespace citcat
