#include "capture/import/dump_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/capture/import/dump_writes.h"

namespace citcat::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kBase = 0xfef00000;

std::optional<DumpedState> find(const std::vector<BusTransaction>& writes) {
  DumpFinder finder;
  for (const BusTransaction& t : writes) finder.take(t);
  return finder.take_state();
}

void expect_whole_state(const std::optional<DumpedState>& dumped, std::uint32_t base) {
  ASSERT_TRUE(dumped.has_value());
  const CpuState& s = dumped->state;
  EXPECT_EQ(dumped->base.value, base);
  EXPECT_EQ(s.gpr[kEbx], 0x10014u);
  EXPECT_EQ(s.eip, 0x10028u);
  EXPECT_EQ(s.segment[kGs].base, 0x10084u);
  EXPECT_EQ(s.tr.limit, 0x100a8u);
  EXPECT_EQ(s.cr3, 0x100c8u);
  EXPECT_EQ(s.dr[7], 0x100e4u);
  EXPECT_EQ(s.tsc, 0x10100000100fcu);
  EXPECT_EQ(s.fx[2], 0x01);
  EXPECT_EQ(s.model, CpuModel::i486);
  ASSERT_EQ(s.msrs.size(), 3u);
  EXPECT_EQ(s.msrs[0], (Msr{0x10, 0x700000005}));
  EXPECT_EQ(s.msrs[2], (Msr{0x176, 0x1234}));
  EXPECT_THAT(s.unknown, ElementsAre("smbase"));  // only an SMI shows it
  EXPECT_TRUE(dumped->warnings.empty());
}

TEST(DumpWindow, IsRecognisedByTheMonitorsMark) {
  expect_whole_state(find(dump_writes(kBase, kStateWindow)), kBase);
}

TEST(DumpWindow, IsRecognisedByItsMagicWordsAtAnyPage) {
  for (const std::uint32_t base : {0x00100000u, 0x3ff0000u, 0xffff0000u, 0x00005000u}) {
    expect_whole_state(find(dump_writes(base)), base);
  }
}

TEST(DumpWindow, MayBeWrittenInAnyOrder) {
  std::mt19937 random(7);
  for (const unsigned flags : {0u, unsigned{kStateWindow}}) {
    for (int round = 0; round < 50; ++round) {
      auto writes = dump_writes(kBase, flags);
      std::shuffle(writes.begin(), writes.end(), random);
      DumpFinder finder;
      for (std::size_t i = 0; i < writes.size(); ++i) {
        EXPECT_EQ(finder.complete(), false) << i;
        finder.take(writes[i]);
      }
      EXPECT_TRUE(finder.complete());
      expect_whole_state(finder.take_state(), kBase);
    }
  }
}

TEST(DumpWindow, MayBeWrittenByteByByte) {
  std::vector<BusTransaction> bytes;
  for (const BusTransaction& word : dump_writes(kBase)) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      BusTransaction t = word;
      t.address = word.address.plus32(i);
      t.size = 1;
      t.data = {word.data[i]};
      bytes.push_back(t);
    }
  }
  expect_whole_state(find(bytes), kBase);
}

TEST(DumpWindow, IsFoundAmongOtherTraffic) {
  std::vector<BusTransaction> traffic;
  std::uint32_t other = 0x1000;
  for (const BusTransaction& word : dump_writes(kBase)) {
    traffic.push_back(memory_write(other += 4, CITCAT_STATE_MAGIC));
    traffic.push_back(word);
    traffic.push_back(memory_write(other += 4, CITCAT_STATE_END));
  }
  expect_whole_state(find(traffic), kBase);
}

TEST(DumpWindow, IsNotSeenInOrdinaryWrites) {
  DumpFinder finder;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    EXPECT_FALSE(finder.take(memory_write(0x7000 + 4 * i, 0x53544900 + i)));
  }
  EXPECT_FALSE(finder.found());
  EXPECT_FALSE(finder.take_state().has_value());
}

TEST(DumpWindow, NamesEachWordThatIsMissing) {
  struct Case {
    std::uint32_t offset;
    const char* name;
  };
  constexpr Case kCases[] = {{20, "ebx"},
                             {48 + 16 + 8, "cs.limit"},
                             {144, "ldtr"},
                             {CITCAT_STATE_CR3, "cr3"},
                             {CITCAT_STATE_DR(5), "dr7"},
                             {CITCAT_STATE_TSC_HIGH, "tsc"},
                             {CITCAT_STATE_FXSAVE + 100, "fx"},
                             {CITCAT_STATE_CPUID(1) + 4, "cpuid.00000001"}};
  for (const unsigned flags : {0u, unsigned{kStateWindow}}) {
    for (const Case& c : kCases) {
      auto writes = dump_writes(kBase, flags);
      writes.erase(writes.begin() + c.offset / 4);
      DumpFinder finder;
      for (const BusTransaction& t : writes) finder.take(t);
      EXPECT_FALSE(finder.complete());
      EXPECT_TRUE(finder.found()) << c.name;
      const auto dumped = finder.take_state();
      ASSERT_TRUE(dumped.has_value()) << c.name;
      EXPECT_THAT(dumped->state.unknown, UnorderedElementsAre(c.name, "smbase"));
      EXPECT_EQ(dumped->warnings.size(), 1u);
      EXPECT_EQ(dumped->state.msrs.size(), 3u);
    }
  }
}

TEST(DumpWindow, SurvivesTheLossOfItsCounts) {
  for (const std::uint32_t offset :
       {std::uint32_t{CITCAT_STATE_CPUID_COUNT}, std::uint32_t{CITCAT_STATE_MSR_COUNT(2)}}) {
    auto writes = dump_writes(kBase);
    writes.erase(writes.begin() + offset / 4);
    const auto dumped = find(writes);
    ASSERT_TRUE(dumped.has_value());
    EXPECT_EQ(dumped->state.cpuid.size(), 2u);
    EXPECT_EQ(dumped->state.msrs.size(), 3u);
    EXPECT_EQ(dumped->state.unknown.size(), 2u);  // and smbase
  }
}

/// A dump of layout version 2, laid out by its description and not by the header that the reader
/// uses: two words for what has 64 bits, five for a segment.
std::vector<BusTransaction> wide_dump_writes(unsigned flags = 0) {
  std::vector<std::uint32_t> words;
  const auto numbered = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      words.push_back(0x20000u + static_cast<std::uint32_t>(4 * words.size()));
  };
  numbered(2);
  words[0] = 0x53544943;
  words[1] = 2;
  numbered(2 * 18 + 5 * 8 + 3 + 3 + 2 * 5 + 2 + 2 * 6 + 2);  // to XCR0
  words.insert(words.end(), {0xffffffff, 0, 0, 0x8000000, 0, 5, 7});
  numbered(128);
  words.insert(words.end(), {1, 1, 0x0f41, 0, 0, 0});    // CPUID
  words.insert(words.end(), {1, 0xc0000080, 0xd01, 0});  // MSRs
  words.push_back(0x45544943);
  std::vector<BusTransaction> writes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    writes.push_back(memory_write(kBase + static_cast<std::uint32_t>(4 * i), words[i], flags));
  }
  return writes;
}

void expect_wide_state(const std::optional<DumpedState>& dumped) {
  ASSERT_TRUE(dumped.has_value());
  const CpuState& s = dumped->state;
  EXPECT_EQ(s.model, CpuModel::x86_64);
  EXPECT_EQ(dumped->end, 0x3d4u + 4 + 20 + 4 + 12 + 4);
  const auto value = [&](const char* name) { return get_register(s, name); };
  const auto at = [](std::uint64_t offset) {
    return 0x20000 + offset + ((0x20004 + offset) << 32);
  };
  EXPECT_EQ(value("rax"), at(8));
  EXPECT_EQ(value("r15"), at(128));
  EXPECT_EQ(value("rip"), at(136));
  EXPECT_EQ(value("gs"), 252u);
  EXPECT_EQ(value("gs.base"), at(256));
  EXPECT_EQ(value("gs.limit"), 0x20000u + 264);
  EXPECT_EQ(value("tr.base"), at(296));
  EXPECT_EQ(value("idtr.base"), at(324));
  EXPECT_EQ(value("cr3"), at(352));
  EXPECT_EQ(value("cr8"), at(368));
  EXPECT_EQ(value("efer"), at(376));
  EXPECT_EQ(value("dr7"), at(424));
  EXPECT_EQ(value("xcr0"), at(432));
  EXPECT_EQ(s.ram_bytes, 0x8000000u);
  EXPECT_EQ(s.tsc, 0x700000005u);
  EXPECT_EQ(s.fx[0], 468 & 0xff);
  ASSERT_EQ(s.msrs.size(), 1u);
  EXPECT_EQ(s.msrs[0], (Msr{0xc0000080, 0xd01}));
  ASSERT_EQ(s.cpuid.size(), 1u);
  EXPECT_EQ(s.cpuid[0].eax, 0x0f41u);
}

TEST(DumpWindow, OfLongModeMayBeWrittenInAnyOrder) {
  std::mt19937 random(9);
  for (const unsigned flags : {0u, unsigned{kStateWindow}}) {
    for (int round = 0; round < 10; ++round) {
      auto writes = wide_dump_writes(flags);
      std::shuffle(writes.begin(), writes.end(), random);
      const auto dumped = find(writes);
      expect_wide_state(dumped);
      EXPECT_THAT(dumped->state.unknown, ElementsAre("smbase"));
      EXPECT_TRUE(dumped->warnings.empty());
    }
  }
}

TEST(DumpWindow, OfLongModeNamesARegisterOfWhichAHalfIsMissing) {
  struct Case {
    std::uint32_t offset;
    const char* name;
  };
  for (const Case& c : {Case{12, "rax"}, Case{140, "rip"}, Case{260, "gs.base"}, Case{356, "cr3"},
                        Case{376, "efer"}, Case{464, "tsc"}, Case{468 + 300, "fx"}}) {
    auto writes = wide_dump_writes(kStateWindow);
    writes.erase(writes.begin() + c.offset / 4);
    const auto dumped = find(writes);
    ASSERT_TRUE(dumped.has_value()) << c.name;
    EXPECT_THAT(dumped->state.unknown, ElementsAre(c.name, "smbase"));
    EXPECT_EQ(dumped->warnings.size(), 1u);
  }
}

TEST(DumpWindow, OfLongModeSurvivesTheLossOfItsVersionAndCounts) {
  for (const bool without_count : {false, true}) {
    auto writes = wide_dump_writes(kStateWindow);
    if (without_count) writes.erase(writes.begin() + 980 / 4);
    writes.erase(writes.begin() + 1);
    const auto dumped = find(writes);
    expect_wide_state(dumped);
    EXPECT_THAT(dumped->state.unknown, testing::Contains("version"));
  }
}

/// The block that a driver in a 64-bit kernel writes beside the other, as its header describes it:
/// two words for each register from 4008h on, in the order given there.
std::vector<BusTransaction> second_block() {
  std::vector<BusTransaction> writes{memory_write(kBase + 0x4000, 0x34365443)};
  for (std::uint32_t at = 0x4008; at < 0x4140; at += 4) {
    writes.push_back(memory_write(kBase + at, 0x30000 + at));
  }
  writes.push_back(memory_write(kBase + 0x4140, 0x34364543));
  return writes;
}

TEST(DumpWindow, OfTheDriverInA64BitKernelHasTwoBlocks) {
  for (const bool second_comes_last : {false, true}) {
    auto writes = dump_writes(kBase);
    const auto second = second_block();
    writes.insert(second_comes_last ? writes.end() : writes.begin() + 9, second.begin(),
                  second.end());
    const auto dumped = find(writes);
    ASSERT_TRUE(dumped.has_value());
    const CpuState& s = dumped->state;
    const auto value = [&](const char* name) { return get_register(s, name); };
    const auto at = [](std::uint64_t offset) {
      return 0x30000 + offset + ((0x30004 + offset) << 32);
    };
    EXPECT_EQ(s.model, CpuModel::x86_64);
    EXPECT_EQ(value("rax"), at(0x4008));
    EXPECT_EQ(value("r15"), at(0x4080));
    EXPECT_EQ(value("rip"), at(0x4088));
    EXPECT_EQ(value("gs.base"), at(0x40c0));
    EXPECT_EQ(value("tr.base"), at(0x40d0));
    EXPECT_EQ(value("idtr.base"), at(0x40e0));
    EXPECT_EQ(value("cr3"), at(0x40f8));
    EXPECT_EQ(value("cr8"), at(0x4108));
    EXPECT_EQ(value("dr7"), at(0x4138));
    EXPECT_EQ(value("gs"), 128u) << "of the first block: 10080h, cut to a selector";
    EXPECT_EQ(value("tr.limit"), 0x100a8u);
    EXPECT_EQ(value("gdtr.limit"), 180u);
    EXPECT_EQ(s.tsc, 0x10100000100fcu);
    // XCR0 is in neither block, and EFER not among these MSRs.
    EXPECT_THAT(s.unknown, ElementsAre("efer", "xcr0", "smbase"));
  }
}

TEST(DumpWindow, RefusesAnotherLayoutVersion) {
  auto writes = dump_writes(kBase, kStateWindow);
  writes[1] = memory_write(kBase + 4, 3, kStateWindow);
  EXPECT_FALSE(find(writes).has_value());
}

TEST(DumpWindow, SeesTheDriversMarkers) {
  DumpFinder finder;
  finder.take(memory_write(kBase + CITCAT_MEMORY_MAP_COUNT, 0));
  for (const BusTransaction& t : dump_writes(kBase)) finder.take(t);
  EXPECT_TRUE(finder.expects_marker());
  EXPECT_FALSE(finder.started());
  EXPECT_TRUE(finder.take(memory_write(kBase + CITCAT_MARK_OFFSET, CITCAT_MARK_START)));
  EXPECT_TRUE(finder.started());
  ASSERT_TRUE(finder.take_state().has_value());
  EXPECT_FALSE(finder.take(memory_write(0x1000, CITCAT_MARK_STOP)));
  EXPECT_FALSE(finder.stopped());
  finder.take(memory_write(kBase + CITCAT_MARK_OFFSET, CITCAT_MARK_STOP));
  EXPECT_TRUE(finder.stopped());
}

TEST(DumpWindow, TellsTheProcessorByItsFamily) {
  EXPECT_EQ(cpu_model_of({{1, 0x0543, 0, 0, 0}}), CpuModel::pentium);
  EXPECT_EQ(cpu_model_of({{0, 1, 0, 0, 0}, {1, 0x0673, 0, 0, 0}}), CpuModel::p6);
  EXPECT_EQ(cpu_model_of({{1, 0x0f12, 0, 0, 0}}), CpuModel::p6);
  EXPECT_EQ(cpu_model_of({}), CpuModel::unknown);
}

}  // namespace
}  // namespace citcat::test
