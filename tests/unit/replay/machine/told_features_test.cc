// Instructions that a processor has only where CPUID says so: where it does, where it does not,
// where nothing tells, and where it tells in the middle of the run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

using testing::HasSubstr;

/// An instruction, the bit of CPUID that announces it (Intel SDM vol. 2, CPUID, tables 3-8 to 3-17;
/// AMD64 APM vol. 3, appendix E), and what becomes of it where that is set.
struct Announced {
  const char* name;
  std::vector<int> bytes;
  std::uint32_t leaf;
  char in;  ///< register, by its second letter
  unsigned bit;
  enum What { executed, refused, two_meanings } what = executed;
  unsigned subleaf = 0;
};

const Announced kAnnounced[] = {
    {"SSE3", {0xf2, 0x0f, 0xd0, 0xc1}, 1, 'c', 0},                   // addsubps xmm0, xmm1
    {"PCLMULQDQ", {0x66, 0x0f, 0x3a, 0x44, 0xc1, 0}, 1, 'c', 1},     // pclmulqdq xmm0, xmm1, 0
    {"MONITOR", {0x0f, 0x01, 0xc8}, 1, 'c', 3, Announced::refused},  // monitor
    {"SSSE3", {0x0f, 0x38, 0x1c, 0xc1}, 1, 'c', 9},                  // pabsb mm0, mm1
    {"CMPXCHG16B", {0x48, 0x0f, 0xc7, 0x0e}, 1, 'c', 13},            // cmpxchg16b [rsi]
    {"SSE4.1", {0x66, 0x0f, 0x38, 0x10, 0xc1}, 1, 'c', 19},          // pblendvb xmm0, xmm1
    {"SSE4.2", {0xf2, 0x0f, 0x38, 0xf1, 0xc3}, 1, 'c', 20},          // crc32 eax, ebx
    {"MOVBE", {0x0f, 0x38, 0xf0, 0x06}, 1, 'c', 22},                 // movbe eax, [rsi]
    {"POPCNT", {0xf3, 0x0f, 0xb8, 0xc3}, 1, 'c', 23},                // popcnt eax, ebx
    {"AES", {0x66, 0x0f, 0x38, 0xdc, 0xc1}, 1, 'c', 25},             // aesenc xmm0, xmm1
    {"AVX", {0xc5, 0xf8, 0x77}, 1, 'c', 28, Announced::refused},     // vzeroupper
    {"BMI1", {0xc4, 0xe2, 0x78, 0xf3, 0xdb}, 7, 'b', 3},             // blsi eax, ebx
    {"BMI1 (ANDN)", {0xc4, 0xe2, 0x78, 0xf2, 0xc3}, 7, 'b', 3},      // andn eax, eax, ebx
    {"BMI1 (TZCNT)", {0xf3, 0x0f, 0xbc, 0xc3}, 7, 'b', 3, Announced::two_meanings},
    {"BMI2", {0xc4, 0xe2, 0x79, 0xf7, 0xc3}, 7, 'b', 8},                // shlx eax, ebx, eax
    {"ADX", {0x66, 0x0f, 0x38, 0xf6, 0xc3}, 7, 'b', 19},                // adcx eax, ebx
    {"SMAP", {0x0f, 0x01, 0xcb}, 7, 'b', 20},                           // stac
    {"CLFLUSHOPT", {0x66, 0x0f, 0xae, 0x3e}, 7, 'b', 23},               // clflushopt [rsi]
    {"CLWB", {0x66, 0x0f, 0xae, 0x36}, 7, 'b', 24},                     // clwb [rsi]
    {"SHA", {0x0f, 0x38, 0xc9, 0xc1}, 7, 'b', 29, Announced::refused},  // sha1msg1 xmm0, xmm1
    {"LAHF", {0x9f}, 0x80000001, 'c', 0},
    {"LZCNT", {0xf3, 0x0f, 0xbd, 0xc3}, 0x80000001, 'c', 5, Announced::two_meanings},
    {"SSE4A", {0xf2, 0x0f, 0x79, 0xc1}, 0x80000001, 'c', 6, Announced::refused},
    {"3DNow!", {0x0f, 0x0e}, 0x80000001, 'd', 31, Announced::refused},              // femms
    {"MONITORX", {0x0f, 0x01, 0xfa}, 0x80000001, 'c', 29, Announced::refused},      // monitorx
    {"MCOMMIT", {0xf3, 0x0f, 0x01, 0xfa}, 0x80000008, 'b', 8, Announced::refused},  // mcommit
    {"CLZERO", {0x0f, 0x01, 0xfc}, 0x80000008, 'b', 0, Announced::refused},         // clzero
    {"RDPRU", {0x0f, 0x01, 0xfd}, 0x80000008, 'b', 4, Announced::refused},          // rdpru
    {"RTM", {0x0f, 0x01, 0xd5}, 7, 'b', 11, Announced::refused},                    // xend
    {"RTM", {0xc6, 0xf8, 0x01}, 7, 'b', 11, Announced::refused},                    // xabort 1
    {"RTM", {0xc7, 0xf8, 0, 0, 0, 0}, 7, 'b', 11, Announced::refused},              // xbegin
    {"SGX", {0x0f, 0x01, 0xcf}, 7, 'b', 2, Announced::refused},                     // encls
    {"PCONFIG", {0x0f, 0x01, 0xc5}, 7, 'd', 18, Announced::refused},                // pconfig
    {"SERIALIZE", {0x0f, 0x01, 0xe8}, 7, 'd', 14, Announced::refused},              // serialize
    {"TSXLDTRK", {0xf2, 0x0f, 0x01, 0xe8}, 7, 'd', 16, Announced::refused},         // xsusldtrk
    {"GFNI", {0x66, 0x0f, 0x38, 0xcf, 0xc1}, 7, 'c', 8, Announced::refused},        // gf2p8mulb
    {"GFNI", {0x66, 0x0f, 0x3a, 0xce, 0xc1, 0}, 7, 'c', 8, Announced::refused},
    {"MOVDIRI", {0x0f, 0x38, 0xf9, 0x06}, 7, 'c', 27, Announced::refused},  // movdiri
    {"MOVDIR64B", {0x66, 0x0f, 0x38, 0xf8, 0x06}, 7, 'c', 28, Announced::refused},
    {"ENQCMD", {0xf2, 0x0f, 0x38, 0xf8, 0x06}, 7, 'c', 29, Announced::refused},
    {"HRESET", {0xf3, 0x0f, 0x3a, 0xf0, 0xc0, 0}, 7, 'a', 22, Announced::refused, 1},
    {"WRMSRNS", {0x0f, 0x01, 0xc6}, 7, 'a', 19, Announced::refused, 1},
    {"PTWRITE", {0xf3, 0x0f, 0xae, 0xe0}, 0x14, 'b', 4, Announced::refused},  // ptwrite eax
};

class ToldFeatures : public LongModeGuest, public testing::WithParamInterface<ExecutionPath> {
 protected:
  void SetUp() override {
    LongModeGuest::SetUp();
    set("rbx", 0x1000);
    set("rsi", kData);
    put(kHandler, {0xf4});
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void put_bytes(std::uint32_t at, const std::vector<int>& bytes) {
    for (const int b : bytes) put(at++, {b});
  }
  ReplayReport go(std::uint64_t instructions) {
    ReplayOptions options;
    options.to = instructions;
    options.path = GetParam();
    Replayer replayer(recording_, nullptr, options);
    const ReplayReport report = replayer.run();
    after_ = replayer.machine().save();
    return report;
  }
  static CpuidLeaf answer(const Announced& announced, bool has) {
    const std::uint32_t bit = has ? 1u << announced.bit : 0;
    const auto in = [&](char which) { return announced.in == which ? bit : 0; };
    return {announced.leaf, in('a'), in('b'), in('c'), in('d')};
  }
  /// The leaves that say which there are, and the one of the instruction.
  void tell(const Announced& announced, bool has) {
    recording_.initial.cpuid = {{0, 0x14, 0, 0, 0}};
    if (announced.subleaf == 1) recording_.initial.cpuid.push_back({announced.leaf, 1, 0, 0, 0});
    if (announced.leaf < 0x80000000) recording_.initial.cpuid.push_back(answer(announced, has));
    recording_.initial.cpuid.push_back({0x80000000, 0x80000008, 0, 0, 0});
    if (announced.leaf >= 0x80000000) recording_.initial.cpuid.push_back(answer(announced, has));
  }
  /// CPUID as the program executes it, in the order of execution.
  void answer_in_the_run(const CpuidLeaf& leaf) {
    InternalRead read;
    read.op = InternalRead::Op::cpuid;
    read.eax = leaf.eax;
    read.ebx = leaf.ebx;
    read.ecx = leaf.ecx;
    read.edx = leaf.edx;
    recording_.internal_reads.push_back(read);
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, ToldFeatures, both_paths(), path_name);

TEST_P(ToldFeatures, WhatCpuidSaysIsExecutedOrRefusedByName) {
  for (const Announced& a : kAnnounced) {
    put_bytes(kCode, a.bytes);
    tell(a, true);
    const ReplayReport report = go(1);
    EXPECT_EQ(report.exceptions, 0u) << a.name;
    if (a.what != Announced::refused) {
      EXPECT_EQ(report.instructions, 1u) << a.name;
      continue;
    }
    ASSERT_TRUE(report.divergence) << a.name;
    EXPECT_THAT(report.divergence->reason, HasSubstr(a.name));
  }
}

TEST_P(ToldFeatures, WhatItDoesNotSayIsUndefined) {
  for (const Announced& a : kAnnounced) {
    put_bytes(kCode, a.bytes);
    tell(a, false);
    EXPECT_EQ(go(1).exceptions, a.what == Announced::two_meanings ? 0u : 1u) << a.name;
    // What lies beyond the last leaf is not there.
    recording_.initial.cpuid = {{0, 0, 0, 0, 0}, {0x80000000, 0x80000000, 0, 0, 0}};
    EXPECT_EQ(go(1).exceptions, a.what == Announced::two_meanings ? 0u : 1u) << a.name;
  }
}

TEST_P(ToldFeatures, WithoutItsLeafWhatMeansOneThingIsExecutedAndTheRestRefusedByName) {
  set("rbx", 0);  // BSF leaves the destination of a scan of 0 alone, TZCNT does not
  for (const Announced& a : kAnnounced) {
    put_bytes(kCode, a.bytes);
    for (const bool has_others : {false, true}) {
      recording_.initial.cpuid.clear();
      if (has_others) recording_.initial.cpuid = {{0, 0x14, 0, 0, 0}, {0xd, 0, 0, 0, 0}};
      const ReplayReport report = go(1);
      if (a.what == Announced::executed) {
        EXPECT_EQ(report.instructions, 1u) << a.name;
        continue;
      }
      ASSERT_TRUE(report.divergence) << a.name;
      EXPECT_EQ(report.exceptions, 0u) << a.name;
      EXPECT_THAT(report.divergence->reason, HasSubstr(a.name));
      EXPECT_THAT(report.divergence->reason, HasSubstr("CPUID"));
    }
  }
}

TEST_P(ToldFeatures, AScanWhoseTwoMeaningsLeaveTheSameNeedsNoLeaf) {
  struct Scan {
    std::uint64_t source;
    bool alike;
  };
  constexpr Scan kScans[] = {{0, false}, {1, true}, {2, true}, {0x8000, true}, {0x8001, true}};
  for (const Scan& scan : kScans) {
    for (const bool memory : {false, true}) {
      // tzcnt eax, ebx; tzcnt eax, [rsi]
      put_bytes(kCode, {0xf3, 0x0f, 0xbc, memory ? 0x06 : 0xc3});
      set("rbx", scan.source);
      for (std::uint32_t i = 0; i < 4; ++i) {
        put(kData + i, {static_cast<std::uint8_t>(scan.source >> 8 * i)});
      }
      recording_.initial.cpuid.clear();
      const ReplayReport report = go(1);
      EXPECT_EQ(report.divergence.has_value(), !scan.alike) << scan.source << memory;
      if (!scan.alike) continue;
      // CF and ZF: of the others neither says anything.
      constexpr std::uint64_t kDefined = 0x41;
      const std::uint64_t unknown = after("rax"), flags = after("rflags") & kDefined;
      EXPECT_EQ(flags, 0u);
      for (const bool has : {false, true}) {
        recording_.initial.cpuid = {{0, 7, 0, 0, 0}, {7, 0, has ? 8u : 0u, 0, 0}};
        EXPECT_EQ(go(1).instructions, 1u) << scan.source << memory;
        EXPECT_EQ(after("rax"), unknown) << scan.source << memory;
        const std::uint64_t zero = has && (scan.source & 1) != 0 ? 0x40 : 0;
        EXPECT_EQ(after("rflags") & kDefined, flags | zero) << scan.source << memory;
      }
    }
  }
}

/// ZF behind an odd number differs: it is refused where code asks for it, and nowhere else.
TEST_P(ToldFeatures, AScanIsRefusedWhereItsFlagIsAskedFor) {
  struct Behind {
    const char* text;
    std::vector<int> bytes;
    bool asks;
  };
  const Behind kBehind[] = {
      {"jz", {0x74, 0x00}, true},
      {"jbe", {0x76, 0x00}, true},
      {"jg, far", {0x0f, 0x8f, 0, 0, 0, 0}, true},
      {"setnz al", {0x0f, 0x95, 0xc0}, true},
      {"cmovz eax, ecx", {0x0f, 0x44, 0xc1}, true},
      {"pushfq", {0x9c}, true},
      {"lahf", {0x9f}, true},
      {"loope", {0xe1, 0x00}, true},
      {"mov, lea, jz", {0x89, 0xc1, 0x8d, 0x51, 0x01, 0x74, 0x00}, true},
      {"jc to test, jz", {0x72, 0x02, 0x85, 0xc0, 0x74, 0x00}, true},  // by way of the jump
      {"jmp to jz", {0xeb, 0x02, 0x85, 0xc0, 0x74, 0x00}, true},
      {"shl ecx, cl; jz", {0xd3, 0xe1, 0x74, 0x00}, true},
      {"test, jz", {0x85, 0xc0, 0x74, 0x00}, false},
      {"inc ecx, jz", {0xff, 0xc1, 0x74, 0x00}, false},
      {"shl ecx, 1; jz", {0xd1, 0xe1, 0x74, 0x00}, false},
      {"jc, hlt", {0x72, 0x00, 0xf4}, false},
      {"setc al; hlt", {0x0f, 0x92, 0xc0, 0xf4}, false},
      {"ret to jz", {0xc3}, true},
      {"leave, ret to nowhere known", {0xc9, 0xc3}, false},
      {"push, pop, ret to jz", {0x51, 0x59, 0xc3}, true},
      {"pop, push rsp, pop, ret to test, jz", {0x59, 0x90, 0xc3}, false},
      {"call test, jz", {0xe8, 1, 0, 0, 0, 0x90, 0x85, 0xc0, 0x74, 0x00}, false},
      {"call ret, jz", {0xe8, 2, 0, 0, 0, 0x74, 0x00, 0xc3}, true},
      {"mov [rsp], rcx; ret", {0x48, 0x89, 0x0c, 0x24, 0xc3}, true},
      {"push rcx; ret", {0x51, 0xc3}, true},
      {"mov rsp, rcx; ret", {0x48, 0x89, 0xcc, 0xc3}, true},  // somewhere
      {"jmp rcx", {0xff, 0xe1}, true},
      {"syscall", {0x0f, 0x05}, true},
  };
  put(kHandler + 16, {0x74, 0x00});              // jz
  put(kHandler + 32, {0x85, 0xc0, 0x74, 0x00});  // test eax, eax; jz
  put_quad(kStack, kHandler + 16);
  put_quad(kStack + 8, kHandler + 32);
  set("rsp", kStack);
  set("rbp", 0x100000);  // of which nothing is known
  set("rbx", 0x1001);
  recording_.initial.cpuid.clear();
  for (const Behind& behind : kBehind) {
    put_bytes(kCode, {0xf3, 0x0f, 0xbc, 0xc3});  // tzcnt eax, ebx
    put_bytes(kCode + 4, behind.bytes);
    const ReplayReport report = go(1);
    EXPECT_EQ(report.divergence.has_value(), behind.asks) << behind.text;
    if (report.divergence) {
      EXPECT_NE(report.divergence->reason.find("TZCNT"), std::string::npos)
          << report.divergence->reason;
    }
    put_bytes(kCode + 4, {0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4});
  }
}

TEST_P(ToldFeatures, WhatCpuidSaysInTheRunCountsFromThereOn) {
  for (const Announced& a : kAnnounced) {
    for (const bool has : {false, true}) {
      recording_.initial.cpuid.clear();
      if (a.subleaf == 1) recording_.initial.cpuid = {{a.leaf, 1, 0, 0, 0}};
      recording_.internal_reads = {};
      answer_in_the_run(answer(a, has));
      set("rax", a.leaf);
      set("rcx", a.subleaf);
      put(kCode, {0x0f, 0xa2, 0xbb, 0, 0x10, 0, 0, 0x90, 0x90});  // cpuid; mov ebx, 1000h; nops
      put_bytes(kCode + 9, a.bytes);
      const ReplayReport report = go(5);
      const bool undefined = !has && a.what != Announced::two_meanings;
      EXPECT_EQ(report.exceptions, undefined ? 1u : 0u) << a.name << has;
      const bool executed = has && a.what == Announced::executed;
      if (executed || a.what == Announced::two_meanings) {
        EXPECT_EQ(report.instructions, 5u) << a.name << has;
      }
    }
  }
}

TEST_P(ToldFeatures, CountsOfZeroesAreWhatCpuidMakesOfThem) {
  put(kCode, {0xf3, 0x0f, 0xbd, 0xc3, 0x31, 0xdb, 0xf3, 0x0f, 0xbc, 0xcb});
  set("rcx", 7);
  recording_.initial.cpuid = {{0, 7, 0, 0, 0},
                              {7, 0, 8, 0, 0},
                              {0x80000000, 0x80000001, 0, 0, 0},
                              {0x80000001, 0, 0, 32, 0}};
  EXPECT_EQ(go(3).instructions, 3u);
  EXPECT_EQ(after("rax"), 19u);
  EXPECT_EQ(after("rcx"), 32u);
  recording_.initial.cpuid[1].ebx = recording_.initial.cpuid[3].ecx = 0;
  EXPECT_EQ(go(3).instructions, 3u);
  EXPECT_EQ(after("rax"), 12u);
  EXPECT_EQ(after("rcx"), 7u);  // a scan that finds nothing
}

TEST_P(ToldFeatures, ACheckpointKeepsWhatWasSaid) {
  answer_in_the_run({7, 0, 8, 0, 0});
  set("rax", 7);
  put(kCode,
      {0x0f, 0xa2, 0x31, 0xdb, 0xf3, 0x0f, 0xbc, 0xcb});  // cpuid; xor ebx, ebx; tzcnt ecx, ebx
  ReplayOptions options;
  options.path = GetParam();
  Replayer replayer(recording_, nullptr, options);
  replayer.run_to({2, 0});
  const std::vector<std::uint8_t> bytes = encode_checkpoint_state(replayer.checkpoint());
  ByteReader in(bytes, "checkpoint", 0);
  Replayer::Checkpoint kept = decode_checkpoint_state(in, recording_);
  kept.machine.pages = replayer.checkpoint().machine.pages;
  Replayer other(recording_, nullptr, options);
  other.restore(kept);
  EXPECT_EQ(other.run_to({3, 0}).instructions, 3u);
  EXPECT_EQ(get_register(other.machine().save(), "rcx"), 32u);
}

TEST_P(ToldFeatures, SubleavesAreToldByTheirNumbers) {
  recording_.initial.cpuid = {{0, 0xd, 0, 0, 0}, {0xd, 7, 7, 7, 0}, {0xd, 9, 9, 9, 0}};
  put(kCode, {0x0f, 0xa2});
  set("rax", 0xd);
  for (const std::uint64_t subleaf : {0u, 1u}) {
    set("rcx", subleaf);
    EXPECT_EQ(go(1).instructions, 1u);
    EXPECT_EQ(after("rax"), subleaf == 0 ? 7u : 9u);
  }
}

TEST_P(ToldFeatures, ALeafThatNobodyToldIsAskedForByName) {
  recording_.initial.cpuid = {{0, 7, 0, 0, 0}, {7, 0, 8, 0, 0}};
  put(kCode, {0x0f, 0xa2});
  set("rax", 1);
  const ReplayReport report = go(1);
  ASSERT_TRUE(report.divergence);
  EXPECT_THAT(report.divergence->reason, HasSubstr("leaf 1h"));
  set("rax", 8);  // beyond the last one, which answers in its place
  EXPECT_EQ(go(1).instructions, 1u);
  EXPECT_EQ(after("rbx"), 8u);
}

// ---------------------------------------------------------------------------------------------
// Processors before long mode

class ToldFeaturesOf32Bits : public ToldFeatures {
 protected:
  void SetUp() override {
    ToldFeatures::SetUp();
    CpuState& s = recording_.initial;
    s.model = CpuModel::p6;
    s.long_mode.reset();
    set("cs.attributes", 0xc09b);
    set("cr0", 0x11);
    set("cr3", 0);
    set("cr4", 0x600);
    for (const char* segment : {"ds", "es"}) {
      set(segment, 16);
      set((std::string(segment) + ".limit").c_str(), ~0u);
      set((std::string(segment) + ".attributes").c_str(), 0xc093);
    }
    put_quad(kIdt + 8 * 6, 0x00018e0000080000 | (kHandler & 0xffff));
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, ToldFeaturesOf32Bits, both_paths(), path_name);

/// An emulator's processor of 32 bits may have LZCNT, whatever others of its kind have.
TEST_P(ToldFeaturesOf32Bits, CountsAreRefusedWhereNothingTells) {
  set("ebx", 0);
  for (const int opcode : {0xbc, 0xbd}) {
    put(kCode, {0xf3, 0x0f, opcode, 0xcb});  // of ebx, which is 0
    const ReplayReport report = go(1);
    ASSERT_TRUE(report.divergence);
    EXPECT_THAT(report.divergence->reason, HasSubstr(opcode == 0xbc ? "TZCNT" : "LZCNT"));
    EXPECT_THAT(report.divergence->reason, HasSubstr("of CPUID decides"));
  }
}

/// The P6 is the first kind that an emulator has with them.
TEST_P(ToldFeaturesOf32Bits, CountsAreScansOfAnOlderProcessor) {
  recording_.initial.model = CpuModel::pentium;
  put(kCode, {0x31, 0xdb, 0xf3, 0x0f, 0xbc, 0xcb, 0xf3, 0x0f, 0xbd, 0xd3});
  set("ecx", 7);
  set("edx", 8);
  set("cr4", 0);
  EXPECT_EQ(go(3).instructions, 3u);
  EXPECT_EQ(after("ecx"), 7u);
  EXPECT_EQ(after("edx"), 8u);
}

/// As compilers write it for both processors.
TEST_P(ToldFeaturesOf32Bits, AScanWhoseTwoMeaningsLeaveTheSameNeedsNoLeaf) {
  put(kCode, {0xf3, 0x0f, 0xbc, 0xcb, 0x31, 0xc0});  // rep bsf ecx, ebx; xor eax, eax
  set("ebx", 0x1000);
  EXPECT_EQ(go(2).instructions, 2u);
  EXPECT_EQ(after("ecx"), 12u);
}

TEST_P(ToldFeaturesOf32Bits, CountsAreWhatCpuidSays) {
  put(kCode, {0x31, 0xdb, 0xf3, 0x0f, 0xbc, 0xcb, 0xf3, 0x0f, 0xbd, 0xd3});
  set("ecx", 7);
  set("edx", 8);
  recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {0x80000000, 0x80000000, 0, 0, 0}};
  EXPECT_EQ(go(3).instructions, 3u);
  EXPECT_EQ(after("ecx"), 7u);
  EXPECT_EQ(after("edx"), 8u);
  recording_.initial.cpuid = {{0, 7, 0, 0, 0},
                              {7, 0, 8, 0, 0},
                              {0x80000000, 0x80000001, 0, 0, 0},
                              {0x80000001, 0, 0, 32, 0}};
  EXPECT_EQ(go(3).instructions, 3u);
  EXPECT_EQ(after("ecx"), 32u);
  EXPECT_EQ(after("edx"), 32u);
}

TEST_P(ToldFeaturesOf32Bits, WhatCpuidDoesNotSayIsUndefined) {
  put(kCode, {0xf3, 0x0f, 0xb8, 0xc3});  // popcnt eax, ebx
  recording_.initial.cpuid = {{0, 1, 0, 0, 0}, {1, 0, 0, 0, 0}};
  EXPECT_EQ(go(1).exceptions, 1u);
  recording_.initial.cpuid[1].ecx = 1u << 23;
  const ReplayReport report = go(1);
  ASSERT_TRUE(report.divergence);
  EXPECT_THAT(report.divergence->reason, HasSubstr("an instruction of POPCNT"));
  recording_.initial.cpuid.clear();
  EXPECT_EQ(go(1).exceptions, 1u);
}

}  // namespace
}  // namespace citcat
