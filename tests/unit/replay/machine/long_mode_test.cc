// Instructions of 64-bit mode, on a guest with four levels of page tables: what the engine does
// otherwise than the processor, and what is refused. Whole kernels: tests/acceptance.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/error.h"
#include "replay/machine/block_judge.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

struct Stores final : Observer {
  Interest interest() const override { return {.stores = true}; }
  void write(PhysAddr, std::span<const std::uint8_t>, AccessKind kind, Position) override {
    count += kind == AccessKind::data;
  }
  unsigned count = 0;
};

struct StoredRanges final : Observer {
  Interest interest() const override { return {.stores = true}; }
  void write(PhysAddr at, std::span<const std::uint8_t> bytes, AccessKind kind, Position) override {
    if (kind == AccessKind::data) list.emplace_back(at.value, bytes.size());
  }
  std::vector<std::pair<std::uint64_t, std::size_t>> list;
};

struct PortWrites final : Observer {
  Interest interest() const override { return {}; }
  void io_write(std::uint16_t, std::uint32_t size, std::uint32_t value, Position) override {
    list.emplace_back(size, value);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> list;
};

/// Compares where each access is told to lie with its physical address, which is the same here.
struct Places final : Observer {
  Interest interest() const override { return {.stores = true, .reads = true}; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void read(PhysAddr at, std::uint32_t, AccessKind kind, Position) override { look(at, kind); }
  void write(PhysAddr at, std::span<const std::uint8_t>, AccessKind kind, Position) override {
    look(at, kind);
  }
  void look(PhysAddr at, AccessKind kind) {
    if (kind != AccessKind::data) return;
    ++count;
    EXPECT_EQ(machine_->accessed().value, at.value);
  }
  const Machine* machine_ = nullptr;
  unsigned count = 0;
};

class NoBytes final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t>) override {}
  void finish() override {}
};

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST_F(LongModeGuest, AComparisonThatFindsEqualLeavesTheUpperHalfOfRaxAlone) {
  put(kCode, {0x48, 0xb8, 5, 0, 0, 0, 0x44, 0x33, 0x22, 0x11});  // mov rax, 1122334400000005
  put(kCode + 10, {0xc7, 0x04, 0x25, 0, 0, 2, 0, 5, 0, 0, 0});   // mov dword [20000], 5
  put(kCode + 21, {0xb9, 7, 0, 0, 0, 0x0f, 0xb1, 0x0c, 0x25, 0, 0, 2, 0});  // cmpxchg [20000], ecx
  put(kCode + 34, {0x0f, 0xb1, 0x0c, 0x25, 0, 0, 2, 0});                    // again: differs
  run(4);
  EXPECT_EQ(after("rax"), 0x1122334400000005u);
  run(5);
  EXPECT_EQ(after("rax"), 7u);
}

/// SDM vol. 2, MASKMOVDQU and MASKMOVQ: bit 7 of each byte of the second register selects a byte.
TEST_F(LongModeGuest, MaskedMovesStoreTheSelectedBytesAndNoOthers) {
  put(kCode, {0x0f, 0x10, 0x0c, 0x25, 0,    1, 2, 0,     // movups xmm1, [20100]
              0x44, 0x0f, 0x10, 0x0c, 0x25, 0, 1, 2, 0,  // movups xmm9, [20100]
              0x0f, 0x6f, 0x14, 0x25, 0,    1, 2, 0,     // movq mm2, [20100]
              0x66, 0x0f, 0xf7, 0xc1,                    // maskmovdqu xmm0, xmm1
              0x66, 0x41, 0x0f, 0xf7, 0xc1,              // maskmovdqu xmm0, xmm9
              0x0f, 0xf7, 0xc2,                          // maskmovq mm0, mm2
              0x66, 0x0f, 0xef, 0xc9,                    // pxor xmm1, xmm1
              0x66, 0x0f, 0xf7, 0xc1});                  // maskmovdqu xmm0, xmm1
  put_quad(kData + 0x100, 0x80007f8080000080);
  put_quad(kData + 0x108, 0xff00000000000080);
  set_register(recording_.initial, "rdi", kData + 3);
  using Range = std::pair<std::uint64_t, std::size_t>;
  const std::vector<Range> low{{kData + 3, 1}, {kData + 6, 2}},
      whole{{kData + 3, 1}, {kData + 6, 2}, {kData + 10, 2}, {kData + 18, 1}};
  std::vector<Range> expected = whole;
  expected.insert(expected.end(), whole.begin(), whole.end());
  expected.insert(expected.end(), low.begin(), low.end());
  expected.emplace_back(kData + 10, 1);
  StoredRanges stored;
  const ReplayReport report = run(8, &stored);
  EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
  EXPECT_EQ(stored.list, expected);
}

/// FINCSTP makes another register the top of the x87 stack.
TEST_F(LongModeGuest, TheMaskOfMaskmovqIsAnMmxRegisterWhateverTheX87StackHolds) {
  put(kCode, {0x0f, 0x6f, 0x14, 0x25, 0, 1, 2, 0,  // movq mm2, [20100]
              0xd9, 0xf7,                          // fincstp
              0x0f, 0xf7, 0xc2});                  // maskmovq mm0, mm2
  put_quad(kData + 0x100, 0x8000);
  set_register(recording_.initial, "rdi", kData);
  StoredRanges stored;
  run(3, &stored);
  EXPECT_EQ(stored.list, (std::vector<std::pair<std::uint64_t, std::size_t>>{{kData + 1, 1}}));
}

TEST_F(LongModeGuest, PortsTakeFourBytesBehindAWideRexPrefixToo) {
  set_register(recording_.initial, "rax", ~std::uint64_t{0});
  set_register(recording_.initial, "rdx", 0x61);
  set_register(recording_.initial, "rsi", kData + 4);
  set_register(recording_.initial, "rdi", kData);
  put(kData + 4, {0xaa, 0xbb, 0xcc, 0xdd, 0xee});
  put(kCode, {0x48, 0xed, 0x48, 0xef,                 // in rax, dx; out dx, rax
              0x48, 0x6d, 0x48, 0x6f, 0x66, 0x48,     // insq; outsq
              0xe5, 0x61, 0x8b, 0x0c, 0x25, 0, 0, 2,  // in rax, 61h, of 2 bytes without REX
              0});                                    // mov ecx, [20000]
  for (const std::uint32_t value : {0x11223344u, 0x55667788u, 0x99aabbccu}) {
    IoRead read;
    read.port = 0x61;
    read.size = 4;
    read.value = value;
    recording_.io_reads.push_back(read);
  }
  for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
    PortWrites writes;
    ReplayOptions options;
    options.to = 6;
    options.path = path;
    Replayer replayer(recording_, &writes, options);
    const ReplayReport report = replayer.run();
    EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
    after_ = replayer.machine().save();
    EXPECT_THAT(writes.list,
                testing::ElementsAre(std::pair{4u, 0x11223344u}, std::pair{4u, 0xddccbbaau}));
    EXPECT_EQ(after("rax"), 0x99aabbccu);
    EXPECT_EQ(after("rcx"), 0x55667788u);
    EXPECT_EQ(after("rdi"), kData + 4);
    EXPECT_EQ(after("rsi"), kData + 8);
  }
}

TEST_F(LongModeGuest, AScanThatFindsNoBitLeavesItsDestinationAlone) {
  put(kCode, {0x48, 0x83, 0xca, 0xff, 0x31, 0xc0, 0x0f, 0xbc, 0xd0});  // or rdx, -1; bsf edx, eax
  run(3);
  EXPECT_EQ(after("rdx"), ~std::uint64_t{0});
}

TEST_F(LongModeGuest, APageThatMayNotBeExecutedFaultsWithItsReason) {
  put(kCode, {0xb8, 0x10, 0, 0x20, 0, 0xff, 0xe0});  // jmp to 200010
  put(kHandler, {0x58, 0x5b});                       // pop rax: the error code; pop rbx
  const ReplayReport report = run(4);
  EXPECT_EQ(report.exceptions, 1u);
  EXPECT_EQ(after("rax"), 0x11u);
  EXPECT_EQ(after("rbx"), 0x200010u);
  EXPECT_EQ(after("cr2"), 0x200010u);
}

TEST_F(LongModeGuest, SystemCallsKeepWhatTheyComeFromAndReturnThere) {
  recording_.initial.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32},
                             {0xc0000082, kHandler},
                             {0xc0000084, 0x200}};
  set_register(recording_.initial, "rflags", 0x202);
  put(kCode, {0x0f, 0x05, 0x90});
  put(kHandler, {0x90, 0x48, 0x0f, 0x07});  // nop; sysretq
  run(2);
  EXPECT_EQ(after("rcx"), kCode + 2);
  EXPECT_EQ(after("r11"), 0x202u);
  EXPECT_EQ(after("rflags"), 2u);
  run(3);
  EXPECT_EQ(after("rip"), kCode + 2);
  EXPECT_EQ(after("cs"), 0x2bu);
  EXPECT_EQ(after("ss"), 0x23u);
  EXPECT_EQ(after("rflags"), 0x202u);
}

TEST_F(LongModeGuest, AmdsProcessorsTakeSystemCallsFromCompatibilityModeToAPlaceOfTheirOwn) {
  CpuState& s = recording_.initial;
  s.msrs = {{0xc0000081, std::uint64_t{0x18} << 48 | std::uint64_t{8} << 32},
            {0xc0000082, 0},
            {0xc0000083, kHandler},
            {0xc0000084, 0x200}};
  set_register(s, "cs", 0x1b);
  set_register(s, "cs.attributes", 0xcffb);
  set_register(s, "ss", 0x23);
  set_register(s, "ss.attributes", 0xcff3);
  set_register(s, "rflags", 0x202);
  set_register(s, "rcx", ~std::uint64_t{0});
  put(kCode, {0x0f, 0x05});
  put(kHandler, {0x90, 0x0f, 0x07});  // nop; sysretd
  s.cpuid = {{0, 1, 0x68747541, 0x444d4163, 0x69746e65}, {1, 0, 0, 0, 0}};
  run(2);
  EXPECT_EQ(after("rip"), kHandler + 1);
  EXPECT_EQ(after("rcx"), kCode + 2);
  EXPECT_EQ(after("r11"), 0x202u);
  EXPECT_EQ(after("cs"), 8u);
  EXPECT_EQ(after("rflags"), 2u);
  run(3);
  EXPECT_EQ(after("cs"), 0x1bu);
  EXPECT_EQ(after("rip"), kCode + 2);
  s.cpuid[0].ebx = 0x756e6547;
  EXPECT_NE(run(1).exceptions, 0u);  // Intel's: undefined
}

// What follows was found by steps on a host (docs/silicon.md): the engine does it otherwise.

TEST_F(LongModeGuest, ShiftsOf64BitsByMoreThan31StoreTheirResult) {
  put_quad(kData, 5);
  put(kCode, {0x48, 0xc1, 0x24, 0x25, 0, 0, 2, 0, 32});  // shl qword [20000], 32
  ReplayOptions options;
  options.to = 1;
  Stores stores;
  Replayer replayer(recording_, &stores, options);
  replayer.run();
  EXPECT_EQ(stores.count, 1u);
}

TEST_F(LongModeGuest, FlagsGoToAndFromAhWhateverRexSays) {
  set_register(recording_.initial, "rax", 0x1100);
  set_register(recording_.initial, "rsp", kStack);
  put(kCode, {0x48, 0x9e, 0x40, 0x9f});  // rex.w sahf; rex lahf
  run(1);
  EXPECT_EQ(after("rflags"), 0x13u);
  run(2);
  EXPECT_EQ(after("rax"), 0x1300u);
  EXPECT_EQ(after("rsp"), kStack);
}

TEST_F(LongModeGuest, SegmentPrefixesBehindFsAreWithoutEffect) {
  set_register(recording_.initial, "fs.base", kData);
  put_quad(kData + 8, 0x77);
  put(kCode, {0x64, 0x3e, 0x8b, 0x04, 0x25, 8, 0, 0, 0});  // mov eax, fs:[8]
  run(1);
  EXPECT_EQ(after("rax"), 0x77u);
}

TEST_F(LongModeGuest, AComparisonThatFindsAnotherLeavesItsRegisterAlone) {
  set_register(recording_.initial, "rax", 1);
  set_register(recording_.initial, "rsi", 0x1122334400000002);
  put(kCode, {0x0f, 0xb1, 0xc6});  // cmpxchg esi, eax
  run(1);
  EXPECT_EQ(after("rsi"), 0x1122334400000002u);
  EXPECT_EQ(after("rax"), 2u);
}

TEST_F(LongModeGuest, DoubleShiftsByANumberFindTheirOperandByRip) {
  put_quad(kCode + 0x10, 0x8000000000000001);
  put(kCode, {0x48, 0x0f, 0xa4, 0x05, 7, 0, 0, 0, 1});  // shld [rip + 7], rax, 1
  put(kCode + 9, {0x48, 0x8b, 0x0d, 0, 0, 0, 0});       // mov rcx, [rip]
  run(2);
  EXPECT_EQ(after("rcx"), 2u);
}

TEST_F(LongModeGuest, PopulationCountsOf64BitsTakeNoNoticeOfAnOperandSizePrefix) {
  set_register(recording_.initial, "rax", ~std::uint64_t{0});
  put(kCode, {0x66, 0xf3, 0x48, 0x0f, 0xb8, 0xc8});  // popcnt rcx, rax
  run(1);
  EXPECT_EQ(after("rcx"), 64u);
}

TEST_F(LongModeGuest, MovesOfANumberTakeNoNoticeOfRexR) {
  set_register(recording_.initial, "rbx", kData);
  put(kCode,
      {0x4c, 0xc7, 0x03, 1, 0, 0, 0, 0x48, 0x8b, 0x03});  // mov qword [rbx], 1; mov rax, [rbx]
  run(2);
  EXPECT_EQ(after("rax"), 1u);
}

TEST_F(LongModeGuest, EachPartOfAnImageIsToldAtItsLinearAddress) {
  set_register(recording_.initial, "rbx", kData);
  set_register(recording_.initial, "rsi", kData + 0x2f40);  // into the next page
  put(kCode, {0x0f, 0xae, 0x03, 0x0f, 0xae, 0x0b, 0x48, 0x0f, 0xae, 0x06, 0x48, 0x0f, 0xae, 0x0e});
  Places places;  // fxsave [rbx]; fxrstor [rbx]; fxsave64 [rsi]; fxrstor64 [rsi]
  EXPECT_EQ(run(4, &places).instructions, 4u);
  EXPECT_GT(places.count, 20u);
}

TEST_F(LongModeGuest, HorizontalAdditionsOfARegisterAndItself) {
  for (std::size_t i = 0; i < 4; ++i)
    recording_.initial.fx[160 + 4 * i] = static_cast<std::uint8_t>(1 << i);
  put(kCode, {0x66, 0x0f, 0x38, 0x02, 0xc0});  // phaddd xmm0, xmm0
  run(1);
  EXPECT_EQ(after_.fx[160], 3);
  EXPECT_EQ(after_.fx[164], 12);
  EXPECT_EQ(after_.fx[168], 3);
  EXPECT_EQ(after_.fx[172], 12);
}

TEST_F(LongModeGuest, RoundingsAreMadeByMxcsrAndLeaveTheirFlags) {
  CpuState& s = recording_.initial;
  s.fx[24] = 0x80;  // masked, towards minus infinity
  s.fx[25] = 0x3f;
  s.fx[162] = 0xc0;  // xmm0: 1.5
  s.fx[163] = 0x3f;
  put(kCode, {0x66, 0x0f, 0x3a, 0x0a, 0xc0, 4});  // roundss xmm0, xmm0 as MXCSR says
  run(1);
  EXPECT_EQ(after_.fx[162], 0x80);  // 1.0
  EXPECT_EQ(after_.fx[24], 0xa0);   // inexact
}

TEST_F(LongModeGuest, RexIsNoPartOfTheNumbersOfMmxRegisters) {
  CpuState& s = recording_.initial;
  s.fx[48] = 0xff;                             // mm1: a byte of -1
  put(kCode, {0x45, 0x0f, 0x38, 0x1c, 0xc1});  // pabsb mm0, mm1, with REX.R and REX.B
  run(1);
  EXPECT_EQ(after_.fx[32], 1);
}

TEST_F(LongModeGuest, ComparisonsOfStringsNeedNoAlignment) {
  set_register(recording_.initial, "rbx", kData + 3);
  put(kHandler, {0x90});
  put(kCode, {0x66, 0x0f, 0x3a, 0x63, 0x03, 0});  // pcmpistri xmm0, [rbx], 0
  EXPECT_EQ(run(1).exceptions, 0u);
}

TEST_F(LongModeGuest, AComparisonOf16BytesIsRefusedWhereItIsNotAligned) {
  put(kHandler, {0x90});
  put(kCode, {0x48, 0x0f, 0xc7, 0x0c, 0x25, 8, 0, 0x40, 0});  // cmpxchg16b [400008]: not mapped
  EXPECT_EQ(run(1).exceptions, 1u);
  EXPECT_EQ(after("cr2"), 0u);
}

TEST_F(LongModeGuest, CodeBeyond4GiBRunsWithBytesThatTheEngineTakesOtherwise) {
  // The same 2 MiB once more, at 8000000000.
  put_quad(kTables + 8, kTables + 0x1007);
  constexpr std::uint64_t kUp = 0x8000000000;
  set_register(recording_.initial, "rip", kUp + kCode);
  put(kCode, {0x66, 0xeb, 2, 0, 0, 0x90});  // jmp, with an operand-size prefix
  EXPECT_EQ(run(2).exceptions, 0u);
  EXPECT_EQ(after("rip"), kUp + kCode + 6);
}

TEST_F(LongModeGuest, InstructionsThatTheProcessorHasAndNobodyExecutesEndTheReplayByName) {
  put(kCode, {0x90, 0xc5, 0xf8, 0x77});  // nop; vzeroupper
  set_cpuid(1u << 28);
  const ReplayReport report = run(3);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_EQ(report.divergence->position.instruction, 1u);
  EXPECT_THAT(report.divergence->reason, HasSubstr("an instruction of AVX"));
}

TEST_F(LongModeGuest, TheSameIsUndefinedWhereTheProcessorHasItNot) {
  put(kCode, {0xc5, 0xf8, 0x77});
  set_cpuid(0);
  EXPECT_EQ(run(1).exceptions, 1u);
  // popcnt eax, eax, which the engine would execute
  put(kCode, {0xf3, 0x0f, 0xb8, 0xc0});
  EXPECT_EQ(run(1).exceptions, 1u);
  set_cpuid(1u << 23);
  EXPECT_EQ(run(1).exceptions, 0u);
}

TEST_F(LongModeGuest, FlushesOfLinesAreAlikeWhereTheProcessorHasThem) {
  put(kCode, {0x66, 0x0f, 0xae, 0x3c, 0x25, 0, 0, 2, 0,    // clflushopt [20000]
              0x66, 0x0f, 0xae, 0x34, 0x25, 0, 0, 2, 0});  // clwb [20000]
  put(kHandler, {0x90});
  for (const bool amd : {false, true}) {
    recording_.initial.cpuid = {{0, 7, 0, 0, 0}, {7, 0, 3u << 23, 0, 0}};
    if (amd) recording_.initial.cpuid[0] = {0, 7, 0x68747541, 0x444d4163, 0x69746e65};
    EXPECT_EQ(run(2).exceptions, 0u);
    EXPECT_EQ(after("rip"), kCode + 18);
  }
  recording_.initial.cpuid[1].ebx = 1u << 23;
  EXPECT_EQ(run(2).exceptions, 1u);
}

TEST_F(LongModeGuest, ProgramsAreToldNothingOfTheSystemWhereItSaysSo) {
  CpuState& s = recording_.initial;
  put_quad(kTables + 0x2000, 0x87);
  for (const auto& [name, value] : {std::pair{"cs", 0x2b},
                                    {"cs.attributes", 0xaffb},
                                    {"ss", 0x23},
                                    {"ss.attributes", 0xcff3}}) {
    set_register(s, name, static_cast<std::uint64_t>(value));
  }
  put(kHandler, {0x90});
  for (const std::uint64_t cr4 : {0x620u, 0xe20u}) {
    set_register(s, "cr4", cr4);
    put(kCode, {0x0f, 0x01, 0xe0});  // smsw eax
    // The handler has no stack: a shutdown.
    EXPECT_EQ(run(1).instructions, cr4 == 0x620 ? 1u : 0u);
    put(kCode, {0x0f, 0x01, 0x04, 0x25, 0, 0, 2, 0});  // sgdt [20000]
    EXPECT_EQ(run(1).instructions, cr4 == 0x620 ? 1u : 0u);
  }
}

TEST_F(LongModeGuest, BitsOfEferThatIntelsProcessorsHaveNotGotAreRefused) {
  set_register(recording_.initial, "rax", 0x1d01);
  set_register(recording_.initial, "rcx", 0xc0000080);
  put(kCode, {0x0f, 0x30});  // wrmsr
  put(kHandler, {0x90});
  set_cpuid(0);
  EXPECT_EQ(run(1).exceptions, 1u);
  recording_.initial.cpuid = {{0, 1, 0x68747541, 0x444d4163, 0x69746e65}, {1, 0, 0, 0, 0}};
  EXPECT_EQ(run(1).end, ReplayReport::End::diverged);
}

TEST_F(LongModeGuest, FiveLevelsOfPageTablesAreRefusedByName) {
  set_register(recording_.initial, "cr4", 0x1620);
  EXPECT_THAT([&] { run(1); }, ThrowsMessage<UsageError>(HasSubstr("LA57")));
  set_register(recording_.initial, "cr4", 0x620);
  put(kCode, {0xb8, 0x20, 0x16, 0, 0, 0x0f, 0x22, 0xe0});  // mov cr4, eax
  const ReplayReport report = run(2);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("LA57"));
}

TEST_F(LongModeGuest, BitsOfCr4ThatNobodyExecutesAreRefusedByNameWhereTheProcessorHasThem) {
  constexpr std::pair<unsigned, const char*> kRefused[] = {{12, "LA57"}, {13, "VMXE"}, {14, "SMXE"},
                                                           {22, "PKE"},  {23, "CET"},  {24, "PKS"}};
  put(kCode, {0x0f, 0x22, 0xe0});  // mov cr4, rax
  put(kHandler, {0x90});
  for (const auto& [bit, name] : kRefused) {
    set_register(recording_.initial, "rax", 0x620 | 1u << bit);
    recording_.initial.cpuid = {{0, 7, 0, 0, 0}, {1, 0, 0, 3u << 5, 0}, {7, 0, 0, 0x80010088, 0}};
    const ReplayReport report = run(1);
    ASSERT_EQ(report.end, ReplayReport::End::diverged) << name;
    EXPECT_THAT(report.divergence->reason, HasSubstr(name));
    set_cpuid(0);
    EXPECT_EQ(run(1).exceptions, 1u) << name;
    set_register(recording_.initial, "cr4", 0x620 | 1u << bit);
    EXPECT_THAT([&] { run(1); }, ThrowsMessage<UsageError>(HasSubstr(name)));
    set_register(recording_.initial, "cr4", 0x620);
  }
}

TEST_F(LongModeGuest, MemoryBeyond4GiBThatNothingDefinesIsNamedAtEveryLevelOfTheTables) {
  constexpr std::uint64_t kBeyond = 0x100000000;
  struct Case {
    std::uint32_t at;  ///< entry of a table
    std::uint64_t entry, linear, undefined;
  };
  const Case cases[] = {
      {kTables + 8, kBeyond | (kTables + 0x1007), 0x8000000000, kBeyond | (kTables + 0x1000)},
      {kTables + 0x1008, kBeyond | (kTables + 0x2007), 0x40000000, kBeyond | (kTables + 0x2000)},
      {kTables + 0x1008, kBeyond | 0x87, 0x40000000, kBeyond},
      {kTables + 0x2008, kBeyond | 0x7007, 0x200000, kBeyond | 0x7000},
      {kTables + 0x2008, kBeyond | 0x200087, 0x200000, kBeyond | 0x200000},
      {0x7000, kBeyond | 0x1007, 0x200000, kBeyond | 0x1000}};
  put_quad(kTables + 0x2008, 0x7007);
  put(kCode, {0x90, 0x48, 0x8b, 0x03});  // nop; mov rax, [rbx]
  for (const Case& c : cases) {
    put_quad(c.at, c.entry);
    set_register(recording_.initial, "rbx", c.linear);
    const ReplayReport report = run(2);
    ASSERT_EQ(report.end, ReplayReport::End::diverged) << c.at;
    EXPECT_EQ(report.instructions, 1u);
    EXPECT_THAT(report.divergence->reason,
                HasSubstr(fmt::format("at physical {:08x}", c.undefined)));
    put_quad(c.at, c.at == kTables + 0x2008 ? 0x7007 : 0);
  }
}

TEST_F(LongModeGuest, TablesMayBeginBeyond4GiB) {
  put(kCode, {0x0f, 0x22, 0xd8, 0x90});  // mov cr3, rax; nop
  set_register(recording_.initial, "rax", 0x100000000 | kTables);
  const std::string undefined = fmt::format("at physical {:08x}", 0x100000000 | kTables);
  ReplayReport report = run(2);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_EQ(report.instructions, 1u);
  EXPECT_THAT(report.divergence->reason, HasSubstr(undefined));
  set_register(recording_.initial, "cr3", 0x100000000 | kTables);
  report = run(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr(undefined));
}

TEST_F(LongModeGuest, APageDirectoryMayBeBeyond4GiBOutsideLongModeToo) {
  begin_in_protected_mode();
  set_register(recording_.initial, "rbx", 0x40000000);
  put_quad(kTables + 8, 0x100000000 | (kTables + 0x2000) | 1);
  put(kCode, {0x90, 0x8b, 0x03});  // nop; mov eax, [ebx]
  const ReplayReport report = run(2);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_EQ(report.instructions, 1u);
  EXPECT_THAT(report.divergence->reason,
              HasSubstr(fmt::format("at physical {:08x}", 0x100000000 | (kTables + 0x2000))));
}

/// Expects every store, and takes iterations of a string for what they are going to do.
class Agreeing final : public BlockJudge {
 public:
  Interest interest() const override { return {}; }
  void judges(Machine&) override {}
  bool judges_blocks() const override { return true; }
  std::uint32_t agreed_iterations(const StringIterations& all, Position) override {
    return all.count;
  }
};

TEST_F(LongModeGuest, IterationsThatAreComparedAreMadeManyAtATime) {
  constexpr std::uint64_t kCount = 400;
  set_register(recording_.initial, "rcx", kCount);
  set_register(recording_.initial, "rax", 0x1122334455667788);
  set_register(recording_.initial, "rdi", kData);
  set_register(recording_.initial, "rsi", kData - 8);
  for (const int opcode : {0xab, 0xa5}) {
    put(kCode, {0xf3, 0x48, opcode, 0x90});  // rep stosq, or movsq; nop
    put_quad(kData - 8, 0x8877665544332211);
    Agreeing judge;
    Listeners listeners;
    listeners.add(judge);
    ReplayOptions options;
    options.to = 2;
    Replayer replayer(recording_, listeners, options);
    ASSERT_EQ(replayer.run().instructions, 2u);
    const MachineStats stats = replayer.machine().stats();
    EXPECT_EQ(stats.string_iterations, kCount - 1);
    EXPECT_LE(stats.engine_runs, 4u);
    const CpuState after = replayer.machine().save();
    EXPECT_EQ(get_register(after, "rcx"), 0u);
    EXPECT_EQ(get_register(after, "rdi"), kData + 8 * kCount);
    std::uint64_t last = 0;
    std::memcpy(&last, replayer.machine().memory().host(PhysAddr{kData + 8 * (kCount - 1)}), 8);
    EXPECT_EQ(last, opcode == 0xab ? 0x1122334455667788 : 0x8877665544332211);
  }
}

/// Where each iteration of a string stores, and how often several were reported at once.
class IterationAddresses final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::blocks}; }
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (!e.info->is_repeated()) return;
    stored.push_back(e.ea[e.ea_count - 1].value);
    iterations_made.push_back(now.iteration);
  }
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override {
    ++reports;
    Observer::iterations(first, count, step, now);
  }
  std::vector<std::uint64_t> stored;
  std::vector<std::uint32_t> iterations_made;
  std::uint32_t reports = 0;
};

TEST_F(LongModeGuest, IterationsAreReportedTogetherAtAddressesBeyond4GiBToo) {
  constexpr std::uint64_t kCount = 400, kAlias = 0x8000000000;
  constexpr std::uint32_t kSource = kData + 0x2000;
  put_quad(kTables + 8, kTables + 0x1007);  // the same memory once more
  set_register(recording_.initial, "rcx", kCount);
  set_register(recording_.initial, "rsi", kAlias | kSource);
  for (std::uint32_t i = 0; i < kCount; ++i) put_quad(kSource + 8 * i, i);
  for (const std::uint64_t base : {std::uint64_t{0}, kAlias}) {
    set_register(recording_.initial, "rdi", base | kData);
    for (const int opcode : {0xab, 0xa5}) {
      for (const bool compares : {false, true}) {
        put(kCode, {0xf3, 0x48, opcode, 0x90});  // rep stosq, or movsq; nop
        IterationAddresses told;
        Agreeing judge;
        Listeners listeners;
        if (compares) listeners.add(judge);
        listeners.add(told);
        ReplayOptions options;
        options.to = 2;
        ASSERT_EQ(Replayer(recording_, listeners, options).run().instructions, 2u);
        ASSERT_EQ(told.stored.size(), kCount);
        for (std::uint32_t i = 0; i < kCount; ++i) {
          EXPECT_EQ(told.stored[i], (base | kData) + 8 * i);
          EXPECT_EQ(told.iterations_made[i], i);
        }
        EXPECT_GT(told.reports, 0u);
        EXPECT_LT(told.reports, 8u);
      }
    }
  }
}

TEST_F(LongModeGuest, IntegerVectorsNeedNoEngine) {
  put_quad(kData, 0x1111222233334444);
  put_quad(kData + 8, 0x5555666677778888);
  set_register(recording_.initial, "rbx", kData);
  put(kCode, {0x66, 0x44, 0x0f, 0x6f, 0x03,          // movdqa xmm8, [rbx]
              0x66, 0x41, 0x0f, 0x70, 0xc0, 0x4e,    // pshufd xmm0, xmm8, 4eh
              0x66, 0x44, 0x0f, 0xef, 0xc0,          // pxor xmm8, xmm0
              0x66, 0x4c, 0x0f, 0x7e, 0xc0,          // movq rax, xmm8
              0xf3, 0x44, 0x0f, 0x7f, 0x43, 0x11});  // movdqu [rbx+11h], xmm8
  ReplayOptions options;
  options.to = 5;
  Replayer replayer(recording_, nullptr, options);
  ASSERT_EQ(replayer.run().instructions, 5u);
  EXPECT_EQ(replayer.machine().stats().engine_runs, 0u);
  constexpr std::uint64_t kBoth = 0x1111222233334444 ^ 0x5555666677778888;
  EXPECT_EQ(get_register(replayer.machine().save(), "rax"), kBoth);
  std::uint64_t stored = 0;
  std::memcpy(&stored, replayer.machine().memory().host(PhysAddr{kData + 0x19}), 8);
  EXPECT_EQ(stored, kBoth);
}

TEST_F(LongModeGuest, ProgramsOf32BitsRunInBlocksWhereNoUpperHalfIsLeft) {
  for (const auto& [name, value] : {std::pair<const char*, std::uint64_t>{"cs", 0x1b},
                                    {"cs.attributes", 0xc0fb},
                                    {"ss", 0x23},
                                    {"ss.attributes", 0xc0f3},
                                    {"rcx", 1000}}) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  put(kCode, {0x40, 0x49, 0x75, 0xfc, 0x90});  // again: inc eax; dec ecx; jnz again; nop
  for (const std::uint64_t upper : {0u, 1u}) {
    set_register(recording_.initial, "r8", ~0ull);
    set_register(recording_.initial, "rdx", upper << 32 | 5);
    ReplayOptions options;
    options.to = 3000;
    Replayer replayer(recording_, nullptr, options);
    ASSERT_EQ(replayer.run().instructions, 3000u);
    const CpuState after = replayer.machine().save();
    EXPECT_EQ(get_register(after, "rax"), 1000u);
    EXPECT_EQ(get_register(after, "rdx"), upper << 32 | 5);
    EXPECT_EQ(get_register(after, "r8"), ~0ull);
    EXPECT_EQ(replayer.machine().stats().alone > 10, upper != 0);
  }
}

TEST_F(LongModeGuest, ATraceWithAddressesOf32BitsIsRefused) {
  NoBytes bytes;
  KtWriter narrow(bytes, KtForm::narrow), wide(bytes, KtForm::wide);
  KtSink refused(narrow, {}), accepted(wide, {});
  EXPECT_THAT([&] { Replayer(recording_, &refused, ReplayOptions{}); },
              ThrowsMessage<UsageError>(
                  HasSubstr("can be replayed and verified, but this output has only addresses")));
  EXPECT_NO_THROW(Replayer(recording_, &accepted, ReplayOptions{}));
}

TEST_F(LongModeGuest, ASnapshotTakesTheWholeOfItBack) {
  put(kCode, {0x49, 0xff, 0xc7, 0xeb, 0xfb});  // inc r15; jmp back
  ReplayOptions options;
  Replayer replayer(recording_, nullptr, options);
  replayer.run_to(20);
  const Replayer::Checkpoint there = replayer.checkpoint();
  replayer.run_to(40);
  const CpuState first = replayer.machine().save();
  replayer.restore(there);
  replayer.run_to(40);
  EXPECT_EQ(replayer.machine().save(), first);
}

}  // namespace
}  // namespace citcat
