// Repeated strings leave the memory, the registers and the flags that one element after another
// would, by instructions and by blocks, which make many at a time (Intel SDM vol. 2, "REP").

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/kt/kt.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kFrom = 0x10100, kElsewhere = 0x10900, kBytes = 0x80;

class RepeatedStrings : public testing::TestWithParam<ExecutionPath> {
 protected:
  static constexpr std::uint64_t kLoads = 4;
  /// Behind those, each of 5 bytes, and a jump.
  static constexpr std::uint32_t kBehindJump = PagedGuest::kMain + 5 * (kLoads + 1);
  /// Memory from kFrom on is 0, 7, 14, ...; the registers are loaded.
  static PagedGuest guest_of(std::uint32_t esi, std::uint32_t edi, std::uint32_t ecx,
                             std::uint32_t eax) {
    PagedGuest guest;
    for (std::uint32_t i = 0; i < kBytes; ++i) guest.put(kFrom + i, {pattern(i)});
    guest.add({0xbe}, {esi});
    guest.add({0xbf}, {edi});
    guest.add({0xb9}, {ecx});
    guest.add({0xb8}, {eax});
    return guest;
  }
  static std::uint8_t pattern(std::uint32_t i) { return static_cast<std::uint8_t>(7 * i); }
  /// The string instruction, and one that is not repeated.
  static PagedGuest::Outcome run(PagedGuest& guest, std::initializer_list<int> string) {
    guest.add(string);
    guest.add({0x90});
    return guest.run(kLoads + 2, GetParam());
  }
};

TEST_P(RepeatedStrings, MoveWhatTheyHaveJustStoredWhereTheyMoveUpByLittle) {
  constexpr std::uint32_t kCount = 13;
  for (const int size : {1, 2, 4}) {
    for (const int by : {-5, -4, -3, -1, 0, 1, 2, 3, 4, 5, 9}) {
      SCOPED_TRACE(std::to_string(size) + " bytes by " + std::to_string(by));
      constexpr std::uint32_t kBegin = 16;
      std::array<std::uint8_t, kBytes> expected{};
      for (std::uint32_t i = 0; i < kBytes; ++i) expected[i] = pattern(i);
      for (std::uint32_t i = 0; i < kCount; ++i) {
        const std::uint32_t at = kBegin + i * static_cast<std::uint32_t>(size);
        std::array<std::uint8_t, 4> element{};
        std::copy_n(&expected[at], size, element.begin());
        std::copy_n(element.begin(), size, &expected[at + static_cast<std::uint32_t>(by)]);
      }
      const std::uint32_t from = kFrom + kBegin, to = from + static_cast<std::uint32_t>(by);
      PagedGuest guest = guest_of(from, to, kCount, 0);
      const auto o = size == 1   ? run(guest, {0xf3, 0xa4})
                     : size == 2 ? run(guest, {0x66, 0xf3, 0xa5})
                                 : run(guest, {0xf3, 0xa5});
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &o.memory[kFrom]));
      EXPECT_EQ(o.cpu.gpr[kEcx], 0u);
      EXPECT_EQ(o.cpu.gpr[kEsi], from + kCount * static_cast<std::uint32_t>(size));
      EXPECT_EQ(o.cpu.gpr[kEdi], to + kCount * static_cast<std::uint32_t>(size));
    }
  }
}

TEST_P(RepeatedStrings, StoreEveryElement) {
  for (const std::uint32_t count : {1u, 2u, 3u, 7u, 30u}) {
    PagedGuest guest = guest_of(0, kFrom + 3, count, 0x44332211);
    const auto o = run(guest, {0xf3, 0xab});
    for (std::uint32_t i = 0; i < 4 * count; ++i) {
      EXPECT_EQ(o.memory[kFrom + 3 + i], 0x11 * (i % 4 + 1)) << count << ", byte " << i;
    }
    EXPECT_EQ(o.memory[kFrom + 2], pattern(2));
    EXPECT_EQ(o.memory[kFrom + 3 + 4 * count], pattern(3 + 4 * count));
    EXPECT_EQ(o.cpu.gpr[kEcx], 0u);
    EXPECT_EQ(o.cpu.gpr[kEdi], kFrom + 3 + 4 * count);
  }
}

TEST_P(RepeatedStrings, CompareUpToTheFirstDifference) {
  constexpr std::uint32_t kCount = 20;
  for (const std::uint32_t different : {0u, 1u, 2u, 9u, 19u, 20u}) {
    SCOPED_TRACE(different);
    PagedGuest guest = guest_of(kFrom, kElsewhere, kCount, 0);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      guest.put(kElsewhere + i, {pattern(i) ^ (i == different ? 1 : 0)});
    }
    const auto o = run(guest, {0xf3, 0xa6});
    const std::uint32_t compared = std::min(different + 1, kCount);
    EXPECT_EQ(o.cpu.gpr[kEcx], kCount - compared);
    EXPECT_EQ(o.cpu.gpr[kEsi], kFrom + compared);
    EXPECT_EQ(o.cpu.gpr[kEdi], kElsewhere + compared);
    EXPECT_EQ(o.cpu.eflags & kZf, different < kCount ? 0 : kZf);
  }
}

TEST_P(RepeatedStrings, ScanUpToTheElementThatIsSought) {
  constexpr std::uint32_t kCount = 20;
  for (const std::uint32_t sought : {0u, 1u, 2u, 9u, 19u, 20u}) {
    SCOPED_TRACE(sought);
    PagedGuest guest = guest_of(0, kFrom, kCount, pattern(sought));
    const auto o = run(guest, {0xf2, 0xae});
    const std::uint32_t scanned = std::min(sought + 1, kCount);
    EXPECT_EQ(o.cpu.gpr[kEcx], kCount - scanned);
    EXPECT_EQ(o.cpu.gpr[kEdi], kFrom + scanned);
    EXPECT_EQ(o.cpu.eflags & kZf, sought < kCount ? kZf : 0);
  }
}

/// The instructions that a replay traces: address and bytes.
using Trace = std::vector<std::pair<std::uint32_t, std::vector<std::uint8_t>>>;

class StringTrace final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> b) override {
    bytes.insert(bytes.end(), b.begin(), b.end());
  }
  void finish() override {}
  std::vector<std::uint8_t> bytes;
};

Trace trace_of(const Recording& recording, ExecutionPath path) {
  StringTrace kt;
  KtWriter writer(kt);
  KtSink sink(writer, {});
  ReplayOptions options;
  options.path = path;
  const ReplayReport report = Replayer(recording, &sink, options).run();
  EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
  writer.flush();
  Trace trace;
  KtReader reader(kt.bytes, "trace");
  for (KtRecord r; reader.next(r);) {
    const auto code = r.instruction.bytes();
    trace.push_back({r.instruction.eip, {code.begin(), code.end()}});
  }
  return trace;
}

TEST_P(RepeatedStrings, AreTracedAsTheyWereWhereTheyStoreOverThemselves) {
  // The code ends a page. The engine then finds another instruction there, and asks for the next
  // page: of it the processor has no translation yet, or has not marked it, or it is not there.
  constexpr std::uint32_t kNext = PagedGuest::kMain + kPageSize, kString = kNext - 2;
  constexpr std::uint32_t kEntry = kNext | PagedGuest::kWritable | PagedGuest::kPresent;
  for (const std::uint32_t entry : {kEntry | PagedGuest::kUsed, kEntry, 0u}) {
    SCOPED_TRACE(entry);
    PagedGuest guest = guest_of(0, kString - 2, 5, 0x2c);
    guest.add({0xe9}, {kString - kBehindJump});  // jmp kString
    guest.put(kString, {0xf3, 0xaa});            // rep stosb
    guest.put_word(PagedGuest::kTable + 4 * (kNext / kPageSize), entry);
    guest.recording.instructions = kLoads + 2;  // what a REP leaves unfinished is none
    Trace trace = trace_of(guest.recording, GetParam());
    ASSERT_EQ(trace.size(), kLoads + 5);
    trace.erase(trace.begin(), trace.begin() + kLoads + 1);
    const Trace::value_type string{kString, {0xf3, 0xaa}}, other{kString, {0x2c, 0xaa}};  // sub al
    EXPECT_EQ(trace, (Trace{string, string, string, other}));
  }
}

TEST_P(RepeatedStrings, EndBehindThemselvesWhereTheLastElementIsStoredOverThem) {
  constexpr std::uint32_t kNext = PagedGuest::kMain + kPageSize;
  constexpr std::uint32_t kEntry = kNext | PagedGuest::kWritable | PagedGuest::kPresent;
  using EndAndEntry = std::pair<std::uint32_t, std::uint32_t>;
  for (const auto& [end, entry] : {EndAndEntry{kNext, kEntry | PagedGuest::kUsed},
                                   {kNext, kEntry},
                                   {kNext - 8, kEntry},
                                   {kNext - 8, 0}}) {
    SCOPED_TRACE(testing::Message() << "end " << end << ", entry of the next page " << entry);
    const std::uint32_t string = end - 2;
    PagedGuest guest = guest_of(0, string - 2, 3, 0x2c);
    guest.add({0xe9}, {string - kBehindJump});  // jmp string
    guest.put(string, {0xf3, 0xaa, 0x40});      // rep stosb; inc eax
    guest.put_word(PagedGuest::kTable + 4 * (kNext / kPageSize), entry);
    guest.recording.instructions = kLoads + 3;
    Trace trace = trace_of(guest.recording, GetParam());
    ASSERT_EQ(trace.size(), kLoads + 5);
    trace.erase(trace.begin(), trace.begin() + kLoads + 1);
    const Trace::value_type each{string, {0xf3, 0xaa}}, behind{end, {0x40}};
    EXPECT_EQ(trace, (Trace{each, each, each, behind}));
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, RepeatedStrings, both_paths(), path_name);

}  // namespace
}  // namespace citcat
