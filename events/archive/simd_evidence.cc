#include "events/archive/simd_evidence.h"

#include <bit>

#include "formats/io/error.h"
#include "formats/io/simd_intrinsics.h"
#include "formats/io/simd_vectors.h"

namespace citcat {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kAtOnce = 16;

CITCAT_WIDE inline __attribute__((always_inline)) __m512i all_of(std::uint32_t value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}

/// Appends those of sixteen numbers that are chosen to `out`.
CITCAT_WIDE inline __attribute__((always_inline)) void append(std::uint32_t* out,
                                                              std::size_t& count, __mmask16 chosen,
                                                              __m512i numbers) {
  _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(chosen, numbers));
  count += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(chosen)));
}

/// The same, eight numbers of 64 bits.
CITCAT_WIDE inline __attribute__((always_inline)) void append(std::uint64_t* out,
                                                              std::size_t& count, __mmask8 chosen,
                                                              __m512i numbers) {
  _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi64(chosen, numbers));
  count += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(chosen)));
}

/// Addresses that sixteen accesses are expected at: of those of one operation, the end of the one
/// before, the first that in the last lane of `before`, which becomes the last end.
CITCAT_WIDE inline __attribute__((always_inline)) __m512i expect(__m512i expected, __mmask16 chosen,
                                                                 __m512i end, __m512i& before) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i ends = _mm512_maskz_compress_epi32(chosen, end);
  const __m512i previous = _mm512_alignr_epi32(ends, before, kAtOnce - 1);
  const int count = std::popcount(static_cast<unsigned>(chosen));
  before =
      _mm512_permutex2var_epi32(before, _mm512_add_epi32(lanes, _mm512_set1_epi32(count)), ends);
  return _mm512_mask_expand_epi32(expected, chosen, previous);
}

}  // namespace

CITCAT_WIDE void SimdEvidence::pack(const AccessRun& run, std::uint32_t shape_flags) {
  CITCAT_ASSERT(run.columns != nullptr && run.column + run.size() <= AccessColumns::kMax);
  const AccessColumns& columns = *run.columns;
  const __m512i one = all_of(1), in_column = all_of(StepLayout::kInColumn);
  const __m512i in_columns = _mm512_set1_epi64(StepLayout::kInColumn);
  __m512i before[3] = {all_of(address[0]), all_of(address[1]), all_of(address[2])};
  __m512i clock_before = all_of(clock), iteration_before = all_of(iteration);
  __m512i instruction_before = _mm512_set1_epi64(static_cast<long long>(instruction));
  __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::size_t address_at = 0, clock_at = 0, instruction_at = 0, write_at = 0, other_at = 0;
  for (std::size_t i = 0; i < run.size(); i += kAtOnce) {
    const std::size_t at = run.column + i;
    const auto live =
        static_cast<__mmask16>(run.size() - i >= kAtOnce ? 0xffffU : (1U << (run.size() - i)) - 1);
    const auto live_high = static_cast<__mmask8>(live >> 8);

    // Packs the bytes that each folded address difference needs, one after the other.
    const __m512i shape = _mm512_maskz_loadu_epi32(live, &columns.shape[at]);
    const __m512i op = _mm512_and_si512(shape, all_of(3));
    const __m512i size = _mm512_and_si512(_mm512_srli_epi32(shape, kShapeSizeShift), all_of(31));
    const __m512i its_address = _mm512_maskz_loadu_epi32(live, &columns.address[at]);
    const __m512i end = _mm512_add_epi32(its_address, size);
    __m512i expected = _mm512_setzero_si512();
    for (unsigned k = 0; k < 3; ++k) {
      const __mmask16 its = _mm512_mask_cmpeq_epi32_mask(live, op, all_of(k));
      expected = expect(expected, its, end, before[k]);
    }
    const __m512i difference = _mm512_sub_epi32(its_address, expected);
    const __m512i folded =
        _mm512_xor_si512(_mm512_slli_epi32(difference, 1), _mm512_srai_epi32(difference, 31));
    const __mmask16 some = _mm512_mask_test_epi32_mask(live, folded, folded);
    const __mmask16 two = _mm512_mask_cmpgt_epu32_mask(live, folded, all_of(0xff));
    const __mmask16 four = _mm512_mask_cmpgt_epu32_mask(live, folded, all_of(0xffff));
    __m512i needed = _mm512_maskz_mov_epi32(some, all_of(0xff));
    needed = _mm512_mask_mov_epi32(needed, two, all_of(0xffff));
    needed = _mm512_mask_mov_epi32(needed, four, all_of(0xffffffff));
    const __mmask64 bytes = _mm512_movepi8_mask(needed);
    _mm512_storeu_si512(address_bytes + address_at, _mm512_maskz_compress_epi8(bytes, folded));
    address_at += static_cast<std::size_t>(std::popcount(bytes));
    __m512i how = _mm512_maskz_mov_epi32(some, one);
    how = _mm512_mask_add_epi32(how, two, how, one);
    how = _mm512_mask_add_epi32(how, four, how, one);

    const __m512i its_clock = _mm512_maskz_loadu_epi32(live, &columns.clock[at]);
    const __m512i ticks =
        _mm512_sub_epi32(its_clock, _mm512_alignr_epi32(its_clock, clock_before, kAtOnce - 1));
    const __mmask16 long_ticks = _mm512_mask_cmpge_epu32_mask(live, ticks, in_column);
    append(clocks, clock_at, static_cast<__mmask8>(long_ticks),
           _mm512_cvtepu32_epi64(_mm512_castsi512_si256(ticks)));
    append(clocks, clock_at, static_cast<__mmask8>(long_ticks >> 8),
           _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(ticks, 1)));
    how = _mm512_or_si512(
        how, _mm512_slli_epi32(_mm512_min_epu32(ticks, in_column), StepLayout::kClockShift));

    const __m512i low =
        _mm512_maskz_loadu_epi64(static_cast<__mmask8>(live), &columns.instructions[at]);
    const __m512i high = _mm512_maskz_loadu_epi64(live_high, &columns.instructions[at] + 8);
    const __m512i low_more = _mm512_sub_epi64(low, _mm512_alignr_epi64(low, instruction_before, 7));
    const __m512i high_more = _mm512_sub_epi64(high, _mm512_alignr_epi64(high, low, 7));
    append(instructions, instruction_at,
           _mm512_mask_cmpge_epu64_mask(static_cast<__mmask8>(live), low_more, in_columns),
           low_more);
    append(instructions, instruction_at,
           _mm512_mask_cmpge_epu64_mask(live_high, high_more, in_columns), high_more);
    const __m256i low_told = _mm512_cvtepi64_epi32(_mm512_min_epu64(low_more, in_columns));
    const __m256i high_told = _mm512_cvtepi64_epi32(_mm512_min_epu64(high_more, in_columns));
    const __m512i told = _mm512_inserti64x4(_mm512_castsi256_si512(low_told), high_told, 1);
    how = _mm512_or_si512(how, _mm512_slli_epi32(told, StepLayout::kInstructionShift));

    const __m512i now = _mm512_maskz_loadu_epi32(live, &columns.iterations[at]);
    const __m512i previous = _mm512_alignr_epi32(now, iteration_before, kAtOnce - 1);
    __m512i iterates = all_of(StepLayout::kOther);
    iterates = _mm512_mask_mov_epi32(iterates,
                                     _mm512_cmpeq_epi32_mask(now, _mm512_add_epi32(previous, one)),
                                     all_of(StepLayout::kOneMore));
    iterates = _mm512_mask_mov_epi32(iterates, _mm512_cmpeq_epi32_mask(now, previous),
                                     all_of(StepLayout::kSame));
    iterates = _mm512_mask_mov_epi32(iterates, _mm512_testn_epi32_mask(now, now),
                                     all_of(StepLayout::kZero));
    how = _mm512_or_si512(how, _mm512_slli_epi32(iterates, StepLayout::kIterationShift));
    append(others.data(), other_at,
           _mm512_mask_cmpeq_epi32_mask(live, iterates, all_of(StepLayout::kOther)), place);
    append(writes.data(), write_at,
           _mm512_mask_cmpeq_epi32_mask(live, op,
                                        all_of(static_cast<std::uint32_t>(BusOp::data_write))),
           place);
    const __m512i its_key = _mm512_or_si512(_mm512_or_si512(shape, all_of(shape_flags)),
                                            _mm512_slli_epi32(how, kShapeBits));
    _mm512_store_si512(&key[i], its_key);

    place = _mm512_add_epi32(place, all_of(kAtOnce));
    clock_before = its_clock;
    instruction_before = high;
    iteration_before = now;
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const __m128i last = _mm512_extracti32x4_epi32(before[k], 3);
    address[k] = static_cast<std::uint32_t>(_mm_extract_epi32(last, 3));
  }
  address_count = address_at;
  clock_count = clock_at;
  instruction_count = instruction_at;
  write_count = write_at;
  other_count = other_at;
}

#else

void SimdEvidence::pack(const AccessRun&, std::uint32_t) { CITCAT_ASSERT(false); }

#endif

}  // namespace citcat
