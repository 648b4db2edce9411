#include "events/derive/simd_memory.h"

#include <algorithm>
#include <bit>

#include "events/smm_entry.h"
#include "formats/io/error.h"
#include "formats/io/simd_intrinsics.h"
#include "formats/io/simd_vectors.h"

namespace citcat {

/// Where in [first, end) the first is that is watched; `end` when none is.
std::size_t SimdMemory::before_watched(std::size_t first, std::size_t end) const {
  for (std::size_t at = first / 16 * 16; at < end; at += 16) {
    const unsigned here = at < first ? ~0U << (first - at) : ~0U;
    const unsigned found = watched_[at / 16] & here;
    if (found != 0) return std::min(end, at + static_cast<std::size_t>(std::countr_zero(found)));
  }
  return end;
}

#if defined(__x86_64__)

namespace {

constexpr std::size_t kStepsAtOnce = 16;
constexpr unsigned kWholeBits = 28;
static_assert(MemoryModel::kWholeWord == 0xfU << kWholeBits);

CITCAT_WIDE inline __attribute__((always_inline)) __m512i every_dword(std::uint32_t value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}

CITCAT_WIDE inline __attribute__((always_inline)) __mmask16 has(__m512i shape, unsigned flag) {
  return _mm512_test_epi32_mask(shape, every_dword(flag << kShapeFlagsShift));
}

CITCAT_WIDE inline __attribute__((always_inline)) __mmask16 is_op(__m512i shape, BusOp op) {
  return _mm512_cmpeq_epi32_mask(_mm512_and_si512(shape, every_dword(3)),
                                 every_dword(static_cast<std::uint32_t>(op)));
}

CITCAT_WIDE inline __attribute__((always_inline)) __m512i size_of(__m512i shape) {
  return _mm512_and_si512(_mm512_srli_epi32(shape, kShapeSizeShift), every_dword(31));
}

CITCAT_WIDE inline __attribute__((always_inline)) __mmask16 is_watched(
    __m512i address, const SmmEntryDetector::Watch& watch) {
  return _mm512_cmpeq_epi32_mask(_mm512_and_si512(address, every_dword(watch.mask)),
                                 every_dword(watch.value));
}

inline std::uint64_t count_of(unsigned mask) {
  return static_cast<std::uint64_t>(std::popcount(mask));
}

/// Counts sixteen accesses at a time, of those the `live` ones.
class Counter {
 public:
  CITCAT_WIDE inline __attribute__((always_inline)) void add(__m512i shape, __mmask16 live) {
    const unsigned writes = is_op(shape, BusOp::data_write) & live;
    const unsigned reads = ~writes & live, lines = has(shape, kLine);
    const unsigned processor_writes = writes & ~has(shape, kWriteBack);
    all_.line_fills += count_of(reads & lines);
    all_.reads += count_of(reads & ~lines);
    all_.data_reads += count_of(is_op(shape, BusOp::data_read) & live);
    all_.writes += count_of(processor_writes);
    all_.write_backs += count_of(writes & ~processor_writes);
    written_ = _mm512_mask_add_epi32(written_, static_cast<__mmask16>(processor_writes), written_,
                                     size_of(shape));
  }
  CITCAT_WIDE inline __attribute__((always_inline)) AccessTotals totals() const {
    AccessTotals all = all_;
    all.written = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(written_));
    return all;
  }

 private:
  AccessTotals all_;
  __m512i written_ = {};
};

}  // namespace

CITCAT_WIDE void SimdMemory::prepare(const AccessRun& run) {
  CITCAT_ASSERT(run.columns != nullptr && run.column + run.size() <= AccessColumns::kMax);
  const AccessColumns& columns = *run.columns;
  const auto by_write = SmmEntryDetector::watch_of(BusOp::data_write, 0);
  const auto by_fill = SmmEntryDetector::watch_of(BusOp::data_read, kStoreFill);
  const __m512i one = every_dword(1);
  Counter counter;
  for (std::size_t i = 0; i < run.size(); i += kStepsAtOnce) {
    const std::size_t at = run.column + i;
    const auto live = static_cast<__mmask16>(
        run.size() - i >= kStepsAtOnce ? 0xffffU : (1U << (run.size() - i)) - 1);
    const __m512i shape = _mm512_maskz_loadu_epi32(live, &columns.shape[at]);
    const __m512i address = _mm512_maskz_loadu_epi32(live, &columns.address[at]);
    const __mmask16 writes = is_op(shape, BusOp::data_write);
    const __m512i bytes = _mm512_sub_epi32(_mm512_sllv_epi32(one, size_of(shape)), one);
    const __m512i offset = _mm512_and_si512(address, every_dword(MemoryModel::kLineBytes - 1));
    const __m512i cover = _mm512_sllv_epi32(bytes, offset);
    _mm512_store_si512(&cover_[i], cover);
    _mm512_store_si512(&read_[i], _mm512_mask_mov_epi32(cover, writes, _mm512_setzero_si512()));
    _mm_store_si128(reinterpret_cast<__m128i*>(&reads_[i]),
                    _mm_movm_epi8(static_cast<__mmask16>(~writes)));
    const unsigned watched = (writes & is_watched(address, by_write)) |
                             (~writes & has(shape, kStoreFill) & is_watched(address, by_fill));
    watched_[i / kStepsAtOnce] = static_cast<std::uint16_t>(watched & live);
    counter.add(shape, live);
  }
  totals_ = counter.totals();
}

CITCAT_WIDE std::size_t SimdMemory::put(const AccessRun& run,
                                        std::span<MemoryModel::Line* const> lines,
                                        std::size_t first, std::size_t count, std::uint32_t epoch,
                                        bool keeps) const {
  CITCAT_ASSERT(first + count <= run.size() && run.size() <= lines.size());
  // For each word of a line: the bits of its note that say which of its bytes are known.
  const __m256i place = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
  const __m256i whole = _mm256_set1_epi32(static_cast<int>(MemoryModel::kWholeWord));
  const __m256i touched = _mm256_set1_epi32(static_cast<int>(MemoryModel::kWholeWord | epoch));
  const unsigned keep = keeps ? 0xff : 0;
  const std::size_t end = before_watched(first, first + count);
  const std::uint8_t* data =
      run.records.data() + first * kBusRecordBytes + kBusRecordBytes - kBusRecordData;
  std::size_t i = first;
  for (; i < end; ++i, data += kBusRecordBytes) {
    MemoryModel::Line& line = *lines[i];
    auto* const value_at = reinterpret_cast<__m256i*>(line.value.data());
    auto* const note_at = reinterpret_cast<__m256i*>(line.note.data());
    const __m256i value = _mm256_load_si256(value_at), note = _mm256_load_si256(note_at);
    const __m256i its_data =
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
    const __mmask32 cover = cover_[i];
    const __m256i bytes = _mm256_maskz_expand_epi8(cover, its_data);
    const __m256i all_covered = _mm256_set1_epi32(static_cast<int>(cover_[i]));
    const __m256i covered = _mm256_and_si256(_mm256_sllv_epi32(all_covered, place), whole);
    const auto must_be_known = static_cast<__mmask8>(reads_[i] | keep);
    const __mmask8 unknown =
        _mm256_mask_test_epi32_mask(must_be_known, _mm256_andnot_si256(note, covered), covered);
    const __mmask32 differ = _mm256_mask_cmpneq_epi8_mask(read_[i], value, bytes);
    if (_kortestz_mask32_u8(differ, unknown) == 0) [[unlikely]]
      break;
    const __mmask8 words = _mm256_cmpeq_epi32_mask(covered, whole);
    _mm256_store_si256(value_at, _mm256_mask_mov_epi8(value, cover, bytes));
    _mm256_store_si256(note_at,
                       _mm256_mask_mov_epi32(_mm256_or_si256(note, covered), words, touched));
  }
  return i - first;
}

CITCAT_WIDE AccessTotals SimdMemory::totals(const AccessRun& run, std::size_t first,
                                            std::size_t count) const {
  if (count == run.size()) return totals_;
  Counter counter;
  for (std::size_t i = 0; i < count; i += kStepsAtOnce) {
    const auto live =
        static_cast<__mmask16>(count - i >= kStepsAtOnce ? 0xffffU : (1U << (count - i)) - 1);
    counter.add(_mm512_maskz_loadu_epi32(live, &run.columns->shape[run.column + first + i]), live);
  }
  return counter.totals();
}

#else

void SimdMemory::prepare(const AccessRun&) { CITCAT_ASSERT(false); }
std::size_t SimdMemory::put(const AccessRun&, std::span<MemoryModel::Line* const>, std::size_t,
                            std::size_t, std::uint32_t, bool) const {
  return 0;
}
AccessTotals SimdMemory::totals(const AccessRun&, std::size_t, std::size_t) const { return {}; }

#endif

}  // namespace citcat
