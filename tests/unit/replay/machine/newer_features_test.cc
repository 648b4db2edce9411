// What newer processors with long mode have, as far as it is executed: bases of FS and GS, SMAP,
// process-context identifiers, and integer instructions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/io/error.h"
#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kFsGsBase = 1u << 0, kIdBmi1 = 1u << 3, kIdBmi2 = 1u << 8,
                        kInvpcid = 1u << 10, kIdAdx = 1u << 19, kSmap = 1u << 20;
constexpr std::uint32_t kPcid = 1u << 17, kIdMovbe = 1u << 22, kRdrand = 1u << 30;
constexpr std::uint32_t kRdpid = 1u << 22, kRdseed = 1u << 18, kIdLzcnt = 1u << 5;

/// Both paths; the page at 200000 is the user's, the one at 0 the supervisor's.
class NewerFeatures : public LongModeGuest, public testing::WithParamInterface<ExecutionPath> {
 protected:
  static constexpr std::uint32_t kUserPage = 0x200000, kEntry = kTables + 0x2008;

  void SetUp() override {
    LongModeGuest::SetUp();
    put_quad(kTables + 0x2000, 0x83);
    put_quad(kEntry, 0x8000000000200087);
    for (std::uint32_t i = 0; i < 0x100; ++i) recording_.image.set(PhysAddr{kUserPage + i}, 0);
    put(kUserPage + 0x10, {0x11, 0, 0, 0});
    put(0x10, {0x22, 0, 0, 0});
    put(kHandler, {0x58, 0xf4});  // pop rax: the error code; hlt
  }
  void set_features(std::uint32_t ecx_of_1, std::uint32_t ebx_of_7, std::uint32_t ecx_of_7 = 0,
                    std::uint32_t ecx_of_80000001 = 0) {
    recording_.initial.cpuid = {{0, 7, 0, 0, 0},
                                {1, 0, 0, ecx_of_1, 0},
                                {7, 0, ebx_of_7, ecx_of_7, 0},
                                {0x80000001, 0, 0, ecx_of_80000001, 0}};
  }
  void set(const char* name, std::uint64_t value) {
    ASSERT_TRUE(set_register(recording_.initial, name, value)) << name;
  }
  void enter_level_3() {
    put_quad(kTables + 0x2000, 0x87);
    set("cs", 0x2b);
    set("cs.attributes", 0xaffb);
    set("ss", 0x23);
    set("ss.attributes", 0xcff3);
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
  /// The exception of the one instruction at kCode is `vector`'s, whose handler alone is not HLT.
  ReplayReport fails_with(std::uint32_t vector) {
    put_quad(kIdt + 16 * vector, 0x00018e0000080000 | ((kHandler + 0x100) & 0xffff));
    put(kHandler + 0x100, {0xbf, 0x77, 0, 0, 0, 0xf4});  // mov edi, 77h
    const ReplayReport report = go(2);
    EXPECT_EQ(report.exceptions, 1u);
    EXPECT_EQ(after("rdi"), 0x77u);
    return report;
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, NewerFeatures, both_paths(), path_name);

// ---------------------------------------------------------------------------------------------
// FSGSBASE

TEST_P(NewerFeatures, ProgramsReadAndWriteTheBasesOfFsAndGs) {
  set_features(0, kFsGsBase);
  enter_level_3();
  set("cr4", 0x10620);
  set("rax", 0xffff800000012345);
  set("rdx", ~std::uint64_t{0});
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd0,  // wrfsbase rax
              0xf3, 0x48, 0x0f, 0xae, 0xc1,  // rdfsbase rcx
              0xf3, 0x0f, 0xae, 0xd8,        // wrgsbase eax
              0xf3, 0x48, 0x0f, 0xae, 0xcb,  // rdgsbase rbx
              0xf3, 0x0f, 0xae, 0xc2});      // rdfsbase edx
  EXPECT_EQ(go(5).exceptions, 0u);
  EXPECT_EQ(after("fs.base"), 0xffff800000012345u);
  EXPECT_EQ(after("rcx"), 0xffff800000012345u);
  EXPECT_EQ(after("gs.base"), 0x12345u);
  EXPECT_EQ(after("rbx"), 0x12345u);
  EXPECT_EQ(after("rdx"), 0x12345u);
}

TEST_P(NewerFeatures, TheBaseThatWasWrittenIsUsedAtOnce) {
  set_features(0, kFsGsBase);
  set("cr4", 0x10620);
  set("rax", 0x10);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd0, 0x64, 0x8b, 0x0c, 0x25, 0, 0, 0, 0});
  go(2);  // wrfsbase rax; mov ecx, fs:[0]
  EXPECT_EQ(after("rcx"), 0x22u);
}

TEST_P(NewerFeatures, TheBasesAreUndefinedWithoutTheBitOfCr4) {
  set_features(0, kFsGsBase);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xc1});
  fails_with(6);
}

TEST_P(NewerFeatures, ABaseHasToBeCanonical) {
  set_features(0, kFsGsBase);
  set("cr4", 0x10620);
  set("rax", 0x800000000000);
  put(kCode, {0xf3, 0x48, 0x0f, 0xae, 0xd8});
  fails_with(13);
}

TEST_P(NewerFeatures, BitsOfCr4ThatTheProcessorHasNotGotAreRefused) {
  set("rax", 0x10620);
  put(kCode, {0x0f, 0x22, 0xe0});  // mov cr4, rax
  set_features(0, kFsGsBase);
  EXPECT_EQ(go(1).exceptions, 0u);
  EXPECT_EQ(after("cr4"), 0x10620u);
  set_features(0, kSmap);
  fails_with(13);
}

// ---------------------------------------------------------------------------------------------
// SMAP

TEST_P(NewerFeatures, SupervisorsReachPagesOfUsersWithTheAccessFlagAlone) {
  set_features(0, kSmap);
  set("cr4", 0x200620);
  put(kCode, {0x0f, 0x01, 0xcb,                                // stac
              0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0,              // mov ecx, [200010]
              0xc7, 0x04, 0x25, 0x10, 0, 0x20, 0, 5, 0, 0, 0,  // mov dword [200010], 5
              0x0f, 0x01, 0xca,                                // clac
              0x8b, 0x1c, 0x25, 0x10, 0, 0x20, 0});            // mov ebx, [200010]
  EXPECT_EQ(go(4).exceptions, 0u);
  EXPECT_EQ(after("rcx"), 0x11u);
  EXPECT_EQ(after("rflags"), 2u);
  EXPECT_EQ(go(6).exceptions, 1u);
  EXPECT_EQ(after("rax"), 1u);
  EXPECT_EQ(after("cr2"), 0x200010u);
}

TEST_P(NewerFeatures, AWriteThatSmapRefusesSaysSoAndMarksNothing) {
  set_features(0, kSmap);
  set("cr4", 0x200620);
  put(kCode, {0x89, 0x0c, 0x25, 0x10, 0, 0x20, 0});  // mov [200010], ecx
  EXPECT_EQ(go(2).exceptions, 1u);
  EXPECT_EQ(after("rax"), 3u);
  put(kHandler, {0x58, 0x8b, 0x0c, 0x25, 0x08, 0x30, 0, 0});  // mov ecx, [3008]: the entry
  go(3);
  EXPECT_EQ(after("rcx"), 0x200087u);
}

TEST_P(NewerFeatures, WhatTheProcessorItselfAccessesHasNoAccessFlag) {
  set_features(0, kSmap);
  set("cr4", 0x200620);
  set("rflags", 0x40002);
  set("rax", 16);
  put_quad(kUserPage + 8, 0x00af9b000000ffff);
  put_quad(kUserPage + 16, 0x00cf93000000ffff);
  put(kCode, {0x8e, 0xd8});  // mov ds, eax
  go(1);
  EXPECT_EQ(after("ds"), 16u);
  // The handler's own segment is in the table too: no delivery, a shutdown.
  set("gdtr.base", kUserPage);
  go(1);
  EXPECT_EQ(after("ds"), 0u);
}

TEST_P(NewerFeatures, ProgramsDoNotNoticeSmap) {
  set_features(0, kSmap);
  enter_level_3();
  set("cr4", 0x200620);
  put(kCode, {0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0, 0x0f, 0x01, 0xcb});  // mov ecx, [200010]; stac
  EXPECT_EQ(go(1).exceptions, 0u);
  EXPECT_EQ(after("rcx"), 0x11u);
}

TEST_P(NewerFeatures, TheAccessFlagIsSetByPopfToo) {
  set_features(0, kSmap);
  set("cr4", 0x200620);
  put(kCode, {0x68, 2,    0,    4,    0, 0x9d,       // push 40002; popf
              0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0,    // mov ecx, [200010]
              0x6a, 2,    0x9d,                      // push 2; popf
              0x8b, 0x1c, 0x25, 0x10, 0, 0x20, 0});  // mov ebx, [200010]
  EXPECT_EQ(go(5).exceptions, 0u);
  EXPECT_EQ(after("rcx"), 0x11u);
  EXPECT_EQ(go(7).exceptions, 1u);
}

TEST_P(NewerFeatures, StacIsUndefinedWithoutSmapAndOutsideLevel0) {
  put(kCode, {0x0f, 0x01, 0xcb});
  set_features(0, 0);
  fails_with(6);
  set_features(0, kSmap);
  go(1);
  EXPECT_EQ(after("rflags"), 0x40002u);
}

// ---------------------------------------------------------------------------------------------
// Process-context identifiers

/// mov dword [3008], 87h: the page at 200000 lies at 0 from now on, as far as the TLB does not know
/// better.
constexpr std::initializer_list<int> kMovesPage = {0xc7, 0x04, 0x25, 0x08, 0x30, 0,
                                                   0,    0x87, 0,    0,    0};
constexpr std::uint32_t kTimesMoved = 11;

TEST_P(NewerFeatures, ALoadOfCr3ThatKeepsItsContextKeepsWhatTheTlbKnows) {
  set_features(kPcid, 0);
  set("cr4", 0x20620);
  set("rax", std::uint64_t{1} << 63 | kTables);
  set("rdx", kTables);
  put(kCode, {0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0});  // mov ecx, [200010]
  put(kCode + 7, kMovesPage);
  put(kCode + 7 + kTimesMoved, {0x0f, 0x22, 0xd8,                    // mov cr3, rax
                                0x8b, 0x1c, 0x25, 0x10, 0, 0x20, 0,  // mov ebx, [200010]
                                0x0f, 0x22, 0xda,                    // mov cr3, rdx
                                0x8b, 0x2c, 0x25, 0x10, 0, 0x20, 0,  // mov ebp, [200010]
                                0x0f, 0x20, 0xde});                  // mov rsi, cr3
  EXPECT_EQ(go(7).exceptions, 0u);
  EXPECT_EQ(after("rcx"), 0x11u);
  EXPECT_EQ(after("rbx"), 0x11u);
  EXPECT_EQ(after("rbp"), 0x22u);
  go(3);
  EXPECT_EQ(after("cr3"), kTables);  // without bit 63
}

TEST_P(NewerFeatures, AContextHasItsOwnTranslationsAndLosesNoneOfTheOthers) {
  set_features(kPcid, 0);
  set("cr4", 0x20620);
  set("rax", kTables | 5);
  set("rdx", std::uint64_t{1} << 63 | kTables);
  put(kCode, {0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0});  // mov ecx, [200010]
  put(kCode + 7, kMovesPage);
  put(kCode + 7 + kTimesMoved, {0x0f, 0x22, 0xd8,                      // mov cr3, rax
                                0x0f, 0x22, 0xda,                      // mov cr3, rdx
                                0x8b, 0x1c, 0x25, 0x10, 0, 0x20, 0,    // mov ebx, [200010]
                                0x0f, 0x22, 0xd8,                      // mov cr3, rax
                                0x8b, 0x2c, 0x25, 0x10, 0, 0x20, 0});  // mov ebp, [200010]
  EXPECT_EQ(go(7).exceptions, 0u);
  EXPECT_EQ(after("rbx"), 0x11u);
  EXPECT_EQ(after("rbp"), 0x22u);
  EXPECT_EQ(after("cr3"), kTables | 5);
}

TEST_P(NewerFeatures, InvpcidDropsWhatItNames) {
  set_features(kPcid, kInvpcid);
  put(kCode, {0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0});  // mov ecx, [200010]
  put(kCode + 7, kMovesPage);
  put(kCode + 7 + kTimesMoved, {0x66, 0x0f, 0x38, 0x82, 0x07,          // invpcid rax, [rdi]
                                0x8b, 0x1c, 0x25, 0x10, 0, 0x20, 0});  // mov ebx, [200010]
  set("rdi", kData);
  struct Row {
    std::uint64_t type, context, page;
    bool drops;
  };
  for (const Row& row :
       {Row{0, 5, 0x200000, true}, Row{0, 6, 0x200000, false}, Row{0, 5, 0x500000, false},
        Row{1, 5, 0, true}, Row{1, 6, 0, false}, Row{2, 0, 0, true}, Row{3, 0, 0, true}}) {
    set("cr4", 0x20620);
    set("cr3", kTables | 5);
    set("rax", row.type);
    put_quad(kData, row.context);
    put_quad(kData + 8, row.page);
    EXPECT_EQ(go(4).exceptions, 0u);
    EXPECT_EQ(after("rbx"), row.drops ? 0x22u : 0x11u) << row.type << " " << row.context;
  }
}

TEST_P(NewerFeatures, InvpcidRefusesWhatNamesNothing) {
  set_features(kPcid, kInvpcid);
  put(kCode, {0x66, 0x0f, 0x38, 0x82, 0x07});
  set("rdi", kData);
  struct Row {
    std::uint64_t type, context, page;
    std::uint32_t cr4;
  };
  for (const Row& row :
       {Row{4, 0, 0, 0x20620}, Row{0, 0x1000, 0, 0x20620}, Row{0, 1, 0, 0x620}, Row{1, 1, 0, 0x620},
        Row{0, 0, 0x800000000000, 0x620}, Row{2, 1u << 12, 0, 0x620}}) {
    set("cr4", row.cr4);
    set("rax", row.type);
    put_quad(kData, row.context);
    put_quad(kData + 8, row.page);
    set("rdi", kData);
    fails_with(13);
  }
}

TEST_P(NewerFeatures, ContextsBeginWithTheFirstOne) {
  set_features(kPcid, 0);
  set("rax", 0x20620);
  put(kCode, {0x0f, 0x22, 0xe0});  // mov cr4, rax
  EXPECT_EQ(go(1).exceptions, 0u);
  EXPECT_EQ(after("cr4"), 0x20620u);
  set("cr3", kTables | 8);
  fails_with(13);
}

TEST_P(NewerFeatures, ACheckpointKeepsContextsAndWhomPagesLetIn) {
  set_features(kPcid, kSmap);
  set("cr4", 0x220620);
  set("cr3", kTables | 5);
  set("rflags", 0x40002);
  put(kCode, {0x8b, 0x0c, 0x25, 0x10, 0, 0x20, 0});  // mov ecx, [200010]
  ReplayOptions options;
  options.path = GetParam();
  Replayer replayer(recording_, nullptr, options);
  replayer.run_to(1);
  const Replayer::Checkpoint there = replayer.checkpoint();
  const std::vector<std::uint8_t> bytes = encode_checkpoint_state(there);
  ByteReader in(bytes, "state");
  const Replayer::Checkpoint back = decode_checkpoint_state(in, recording_);
  EXPECT_EQ(back.machine.tlb->dtlb, there.machine.tlb->dtlb);
  EXPECT_EQ(back.machine.tlb->itlb, there.machine.tlb->itlb);
}

TEST_P(NewerFeatures, Bit63OfCr3IsReservedWithoutContexts) {
  set_features(kPcid, 0);
  set("rax", std::uint64_t{1} << 63 | kTables);
  put(kCode, {0x0f, 0x22, 0xd8});
  fails_with(13);
}

// ---------------------------------------------------------------------------------------------
// Integer instructions

TEST_P(NewerFeatures, BitManipulationInRegistersAndMemory) {
  set_features(kIdMovbe, kIdBmi1 | kIdBmi2 | kIdAdx, 0, kIdLzcnt);
  put_quad(kData, 0xff00);
  set("rcx", 0x80);
  set("rbx", 0xf000);
  set("rdx", 0x1000000000000);
  put(kCode, {0xf3, 0x0f, 0xbc, 0xc1,                          // tzcnt eax, ecx
              0xf3, 0x4c, 0x0f, 0xbc, 0x04, 0x25, 0, 0, 2, 0,  // tzcnt r8, [20000]
              0xc4, 0x62, 0xe0, 0xf2, 0x0c, 0x25, 0, 0, 2, 0,  // andn r9, rbx, [20000]
              0xc4, 0x62, 0xab, 0xf6, 0xd9,                    // mulx r11, r10, rcx
              0x4c, 0x0f, 0x38, 0xf0, 0x24, 0x25, 0, 0, 2, 0,  // movbe r12, [20000]
              0x48, 0x0f, 0x38, 0xf1, 0x14, 0x25, 0, 0, 2, 0,  // movbe [20000], rdx
              0x4c, 0x8b, 0x2c, 0x25, 0,    0,    2, 0,        // mov r13, [20000]
              0xf3, 0x4c, 0x0f, 0xbd, 0xf2});                  // lzcnt r14, rdx
  EXPECT_EQ(go(8).exceptions, 0u);
  EXPECT_EQ(after("rax"), 7u);
  EXPECT_EQ(after("r8"), 8u);
  EXPECT_EQ(after("r9"), 0x0f00u);
  EXPECT_EQ(after("r10"), 0x80000000000000u);
  EXPECT_EQ(after("r11"), 0u);
  EXPECT_EQ(after("r12"), 0x00ff000000000000u);
  EXPECT_EQ(after("r13"), 0x100u);
  EXPECT_EQ(after("r14"), 15u);
}

TEST_P(NewerFeatures, ScansBehindF3AreCountsOnlyWhereCpuidSaysSo) {
  put(kCode, {0xf3, 0x48, 0x0f, 0xbc, 0xc1, 0xf3, 0x48, 0x0f, 0xbd, 0xd1});  // of rcx
  set("rcx", 0);
  set("rax", 0x1234);
  set("rdx", 0x80);
  set_features(0, 0);
  go(2);
  EXPECT_EQ(after("rax"), 0x1234u);
  EXPECT_EQ(after("rdx"), 0x80u);
  set_features(0, kIdBmi1, 0, kIdLzcnt);
  go(2);
  EXPECT_EQ(after("rax"), 64u);
  EXPECT_EQ(after("rdx"), 64u);
  EXPECT_NE(after("rflags") & 1, 0u);
}

TEST_P(NewerFeatures, WhatCpuidDoesNotTellIsUndefined) {
  set_features(0, 0);
  put(kCode, {0xc4, 0xe2, 0xe0, 0xf2, 0xc1});  // andn
  fails_with(6);
  put(kCode, {0x66, 0x48, 0x0f, 0x38, 0xf6, 0xc1});  // adcx
  fails_with(6);
  put(kCode, {0x48, 0x0f, 0xc7, 0xf0});  // rdrand
  fails_with(6);
}

TEST_P(NewerFeatures, RandomNumbersComeFromTheRecording) {
  set_features(kRdrand, kRdseed);
  set("rcx", 0x1111222233334444);
  set("rflags", 0x8d7);
  put(kCode, {0x48, 0x0f, 0xc7, 0xf0, 0x66, 0x0f, 0xc7, 0xf9});  // rdrand rax; rdseed cx
  std::vector<InternalRead> values(2);
  values[0].op = InternalRead::Op::rdrand;
  values[0].eax = 0x89abcdef;
  values[0].edx = 0x01234567;
  values[0].ecx = 1;
  values[1].op = InternalRead::Op::rdseed;
  recording_.internal_reads.append(values);
  EXPECT_NE(go(1).end, ReplayReport::End::diverged);
  EXPECT_EQ(after("rax"), 0x0123456789abcdefu);
  EXPECT_EQ(after("rflags"), 3u);
  go(2);
  EXPECT_EQ(after("rcx"), 0x1111222233330000u);
  EXPECT_EQ(after("rflags"), 2u);
  recording_.internal_reads = {};
  const ReplayReport report = go(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("RDRAND"));
}

TEST_P(NewerFeatures, TheProcessorsNumberIsThatOfItsRegister) {
  set_features(0, 0, kRdpid);
  recording_.initial.msrs = {{0xc0000103, 7}};
  set("rcx", ~std::uint64_t{0});
  put(kCode, {0xf3, 0x0f, 0xc7, 0xf9});
  go(1);
  EXPECT_EQ(after("rcx"), 7u);
  recording_.initial.msrs.clear();
  const ReplayReport report = go(1);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("TSC_AUX"));
}

// ---------------------------------------------------------------------------------------------
// Call gates, levels 1 and 2, system management mode

/// Selector 33h is a gate to kHandler at level 0, 40h code of level 1; the task segment has stacks.
class Levels : public NewerFeatures {
 protected:
  static constexpr std::uint32_t kTask = 0x7000, kInnerStack = 0x2f000, kPointer = kData + 0x40;

  void SetUp() override {
    NewerFeatures::SetUp();
    put_gate(0xec00, 8);
    put_quad(kGdt + 64, 0x00afbb000000ffff);
    put_quad(kTask + 4, kInnerStack);
    put_quad(kTask + 12, kInnerStack - 0x100);
    put_quad(kPointer, 0);
    put(kPointer + 4, {0x33, 0, 0, 0});
    set("gdtr.limit", 71);
    set("tr", 0x50);
    set("tr.base", kTask);
    set("tr.limit", 0x67);
    set("tr.attributes", 0x8b);
    put(kCode, {0xff, 0x1c, 0x25, 0x40, 0, 2, 0, 0x90});  // call far [20040]
    enter_level_3();
    set("rsp", kStack);
    set("rflags", 0x202);
  }
  void put_gate(std::uint32_t type, std::uint32_t selector, std::uint64_t offset = kHandler) {
    put_quad(kGdt + 48, (offset & 0xffff) | selector << 16 | std::uint64_t{type} << 32 |
                            (offset >> 16 & 0xffff) << 48);
    put_quad(kGdt + 56, offset >> 32);
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, Levels, both_paths(), path_name);

TEST_P(Levels, ACallThroughAGateGoesToTheInnerStackAndBack) {
  put(kHandler,
      {0x48, 0x8b, 0x04, 0x24, 0x48, 0x8b, 0x5c, 0x24, 8,         // mov rax, [rsp]; rbx, [+8]
       0x48, 0x8b, 0x4c, 0x24, 16,   0x48, 0x8b, 0x54, 0x24, 24,  // rcx, [+16]; rdx, [+24]
       0x48, 0xcb});                                              // retf
  EXPECT_EQ(go(5).exceptions, 0u);
  EXPECT_EQ(after("cs"), 8u);
  EXPECT_EQ(after("ss"), 0u);
  EXPECT_EQ(after("rsp"), kInnerStack - 32);
  EXPECT_EQ(after("rax"), kCode + 7);
  EXPECT_EQ(after("rbx"), 0x2bu);
  EXPECT_EQ(after("rcx"), kStack);
  EXPECT_EQ(after("rdx"), 0x23u);
  EXPECT_EQ(go(7).exceptions, 0u);
  EXPECT_EQ(after("rip"), kCode + 8);
  EXPECT_EQ(after("cs"), 0x2bu);
  EXPECT_EQ(after("ss"), 0x23u);
  EXPECT_EQ(after("rsp"), kStack);
}

TEST_P(Levels, AGateOfTheSameLevelPushesWhatLeadsBackAlone) {
  put_gate(0xec00, 0x28);
  put(kHandler, {0x90, 0x48, 0xcb});
  go(1);
  EXPECT_EQ(after("cs"), 0x2bu);
  EXPECT_EQ(after("rip"), kHandler);
  EXPECT_EQ(after("rsp"), kStack - 16);
  go(3);
  EXPECT_EQ(after("rip"), kCode + 7);
  EXPECT_EQ(after("rsp"), kStack);
  put(kCode, {0xff, 0x2c, 0x25, 0x40, 0, 2, 0});  // jmp far [20040]
  go(1);
  EXPECT_EQ(after("rip"), kHandler);
  EXPECT_EQ(after("rsp"), kStack);
}

/// Gates that are refused, with their exception and error code.
TEST_P(Levels, GatesAreRefusedForWhatIsWrongWithThem) {
  struct Row {
    std::uint32_t type, selector;
    std::uint64_t offset;
    std::uint32_t vector, error;
  };
  put_quad(kTask + 4, kInnerStack);
  for (const Row& row : {Row{0x8c00, 8, kHandler, 13, 0x30},     // of level 0
                         Row{0x6c00, 8, kHandler, 11, 0x30},     // absent
                         Row{0xec00, 0, kHandler, 13, 0},        // no code
                         Row{0xec00, 0x10, kHandler, 13, 0x10},  // data
                         Row{0xec00, 0x18, kHandler, 13, 0x18},  // code of 32 bits
                         Row{0xec00, 8, 0x800000000000, 13, 0}}) {
    put_gate(row.type, row.selector, row.offset);
    put_quad(kIdt + 16 * row.vector, 0x00018e0000080000 | ((kHandler + 0x200) & 0xffff));
    put(kHandler + 0x200, {0x58, 0xf4});  // pop rax
    EXPECT_EQ(go(2).exceptions, 1u);
    EXPECT_EQ(after("rax"), row.error) << row.type << " " << row.selector;
  }
  put_gate(0xec00, 8);
  put_quad(kGdt + 56, std::uint64_t{0x100} << 32);  // a type in the upper half
  go(2);
  EXPECT_EQ(after("rax"), 0x30u);
}

TEST_P(Levels, Level1HasANullStackSegmentOfItsOwn) {
  set("cs", 8);
  set("cs.attributes", 0xa09b);
  set("ss", 16);
  set("ss.attributes", 0xc093);
  put_quad(kTables + 0x2000, 0x83);
  put(kCode, {0x6a, 1,                               // push 1: SS
              0x68, 0,    0xf0, 2, 0,                // push 2f000
              0x68, 2,    0,    0, 0,                // push 2
              0x6a, 0x41,                            // push 41: CS
              0x68, 0x20, 0,    1, 0, 0x48, 0xcf});  // push 10020; iretq
  put(kCode + 0x20, {0x90, 0x0f, 0x0b, 0x90});       // nop; ud2
  put(kHandler, {0x48, 0x8b, 0x44, 0x24, 0x20,       // mov rax, [rsp+20]: SS
                 0x48, 0x83, 0x04, 0x24, 2,          // add qword [rsp], 2
                 0x48, 0xcf});                       // iretq
  go(7);
  EXPECT_EQ(after("cs"), 0x41u);
  EXPECT_EQ(after("ss"), 1u);
  EXPECT_EQ(after("rsp"), 0x2f000u);
  EXPECT_EQ(go(8).exceptions, 1u);
  EXPECT_EQ(after("rax"), 1u);
  EXPECT_EQ(after("ss"), 0u);
  EXPECT_EQ(after("rsp"), kInnerStack - 40);
  EXPECT_EQ(go(11).exceptions, 1u);
  EXPECT_EQ(after("cs"), 0x41u);
  EXPECT_EQ(after("ss"), 1u);
  EXPECT_EQ(after("rip"), kCode + 0x24);
}

TEST_P(NewerFeatures, AnSmiSavesAndRsmRestoresAllOfLongMode) {
  CpuState& s = recording_.initial;
  s.smbase = 0x30000;
  const std::vector<std::pair<const char*, std::uint64_t>> registers = {
      {"r8", 0x1122334455667788},        {"r15", 0xfedcba9876543210},
      {"rax", 0xa0a1a2a3a4a5a6a7},       {"fs.base", 0xffff888800000000},
      {"gs.base", 0x12345678},           {"rflags", 0x246},
      {"gdtr.base", 0xffffffff80005000}, {"cr4", 0x620}};
  for (const auto& [name, value] : registers) set(name, value);
  put(kCode, {0x90, 0x90});
  put(0x38000, {0x66, 0x2e, 0xa1, 0xd0, 0xfe,        // mov eax, cs:[fed0]: EFER
                0x67, 0x66, 0xa3, 0,    0,    2, 0,  // mov [20000], eax
                0x66, 0x2e, 0xa1, 0x84, 0xff,        // mov eax, cs:[ff84]: the upper half of R15
                0x67, 0x66, 0xa3, 4,    0,    2, 0,  // mov [20004], eax
                0x0f, 0xaa});                        // rsm
  Interrupt smi;
  smi.kind = Interrupt::Kind::smi;
  smi.vector = 0x64;
  smi.position_known = true;
  smi.position = {1, 0};
  recording_.interrupts.push_back(smi);
  put(kCode + 1, {0x4c, 0x8b, 0x34, 0x25, 0, 0, 2, 0});  // mov r14, [20000]
  go(3);
  EXPECT_EQ(after("efer"), 0u);
  EXPECT_EQ(after("cs.base"), 0x30000u);
  EXPECT_NE(go(7).end, ReplayReport::End::diverged);
  EXPECT_EQ(after("r14"), 0xfedcba9800000d01u);
  EXPECT_EQ(after("rip"), kCode + 9);
  EXPECT_EQ(after("efer"), 0xd01u);
  EXPECT_EQ(after("cr0"), 0x80050033u);
  EXPECT_EQ(after("cs"), 8u);
  EXPECT_EQ(after("cs.attributes"), 0xa09bu);
  for (const auto& [name, value] : registers) EXPECT_EQ(after(name), value) << name;
}

TEST_P(NewerFeatures, AnSmiInAnotherLayoutIsRefused) {
  recording_.initial.smbase = 0x30000;
  Interrupt smi;
  smi.kind = Interrupt::Kind::smi;
  smi.position_known = true;
  recording_.interrupts.push_back(smi);
  put(kCode, {0x90});
  const ReplayReport report = go(2);
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_THAT(report.divergence->reason, HasSubstr("another layout"));
}

}  // namespace
}  // namespace citcat
