#include "x86/decode/decoded_instruction.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace citcat {
namespace {

using Kind = InstructionClass;

constexpr CodeMode k32{true, false};
constexpr CodeMode k16{false, true};

DecodedInstruction decode(std::initializer_list<int> bytes, CodeMode mode = k32,
                          CpuModel model = CpuModel::p6) {
  std::vector<std::uint8_t> code;
  for (const int byte : bytes) code.push_back(static_cast<std::uint8_t>(byte));
  return decode_instruction(code, mode, model);
}

/// Registers with telling values: EAX=1001_0010 ECX=.. ESP=0001_8000 and so on.
struct Registers {
  std::array<std::uint64_t, 8> gpr{0x10010010, 0x00020003, 0x30030030, 0x40040040,
                                   0x00018000, 0x00019000, 0x60060060, 0x70070070};
  std::array<std::uint64_t, 6> bases{0xe000000, 0xc000000, 0x5000000,
                                     0xd000000, 0xf000000, 0x9000000};
};

std::vector<DataAccess> accesses(const DecodedInstruction& info, const Registers& r, bool stack32) {
  std::vector<DataAccess> list;
  for_each_access(info, r.gpr.data(), r.bases.data(), stack32,
                  [&](const DataAccess& access) { list.push_back(access); });
  return list;
}

std::vector<std::uint32_t> offsets(const DecodedInstruction& info, const Registers& r,
                                   bool stack32) {
  std::vector<std::uint32_t> list;
  for (const DataAccess& access : accesses(info, r, stack32)) {
    list.push_back(static_cast<std::uint32_t>(access.offset));
  }
  return list;
}

using Offsets = std::vector<std::uint32_t>;

TEST(DecodedInstruction, EveryProperPrefixOfAnInstructionNeedsMoreBytes) {
  const std::vector<std::uint8_t> code = {0xf0, 0x26, 0x67, 0x81, 0x84, 0x8b, 1, 2, 3, 4, 5, 6};
  for (std::size_t n = 0; n < code.size(); ++n) {
    const auto part = std::span(code).first(n);
    const DecodeState state = decode_instruction(part, k16, CpuModel::i386).state;
    EXPECT_EQ(state, DecodeState::needs_more_bytes) << n;
  }
  const DecodedInstruction whole = decode_instruction(code, k16, CpuModel::i386);
  EXPECT_EQ(whole.state, DecodeState::ok);
  EXPECT_EQ(whole.length, 12);
}

TEST(DecodedInstruction, TooManyBytesAreAProtectionFaultAtEachProcessorsLimit) {
  std::vector<std::uint8_t> code(16, 0x36);
  EXPECT_EQ(decode_instruction(code, k32, CpuModel::p6).reason, InvalidReason::too_long);
  code[14] = 0x90;
  EXPECT_EQ(decode_instruction(code, k32, CpuModel::p6).state, DecodeState::ok);
  EXPECT_EQ(decode_instruction(code, k16, CpuModel::i286).reason, InvalidReason::too_long);
  code[9] = 0x90;
  EXPECT_EQ(decode_instruction(code, k16, CpuModel::i286).length, 10);
}

TEST(DecodedInstruction, UndocumentedEncodingsRunAsTheirDocumentedTwins) {
  const DecodedInstruction test = decode({0xf7, 0xc8, 1, 2, 3, 4});
  EXPECT_EQ(test.state, DecodeState::ok);
  EXPECT_TRUE(test.aliased);
  EXPECT_EQ(test.canonical[1], 0xc0);
  EXPECT_EQ(test.length, 6);
  EXPECT_EQ(decode({0xd6}).length, 1);  // SALC
  EXPECT_EQ(decode({0xf1}).kind, Kind::icebp);
  EXPECT_EQ(decode({0xd1, 0xf0}).flag_rule, FlagRule::shift_left);
  EXPECT_EQ(decode({0x82, 0xc0, 1}).canonical[0], 0x80);
}

TEST(DecodedInstruction, LockIsRefusedFromThe386OnAndIgnoredBefore) {
  EXPECT_EQ(decode({0xf0, 0x01, 0x00}).state, DecodeState::ok);
  EXPECT_EQ(decode({0xf0, 0x39, 0x00}).reason, InvalidReason::lock_prefix);     // CMP
  EXPECT_EQ(decode({0xf0, 0x01, 0xc0}).reason, InvalidReason::lock_prefix);     // register
  EXPECT_EQ(decode({0xf0, 0x0f, 0xa3, 0}).reason, InvalidReason::lock_prefix);  // BT
  EXPECT_EQ(decode({0xf0, 0x0f, 0xab, 0}).state, DecodeState::ok);              // BTS
  const DecodedInstruction old = decode({0xf0, 0x39, 0x46, 0x02}, k16, CpuModel::i286);
  EXPECT_EQ(old.state, DecodeState::ok);
  EXPECT_TRUE(old.lock_ignored);
  EXPECT_EQ(old.canonical[0], 0x36);  // [BP+2] is in SS anyway
  EXPECT_EQ(decode({0x26, 0xf0, 0x39, 0x07}, k16, CpuModel::i286).canonical[1], 0x26);
}

TEST(DecodedInstruction, The8088DecodesTheGapsOfItsOpcodeMap) {
  const auto on_8088 = [](std::initializer_list<int> bytes) {
    return decode(bytes, k16, CpuModel::i8088);
  };
  EXPECT_EQ(on_8088({0x60, 0x05}).kind, Kind::jcc);
  EXPECT_EQ(on_8088({0x64, 0x05}).kind, Kind::jcc);
  EXPECT_EQ(on_8088({0xc0, 0x05, 0x00}).kind, Kind::ret);
  EXPECT_EQ(on_8088({0xc9}).kind, Kind::far_return);
  EXPECT_EQ(on_8088({0xf1, 0xa4}).kind, Kind::string);
  EXPECT_EQ(on_8088({0x8f, 0x08}).state, DecodeState::ok);
  EXPECT_EQ(on_8088({0x8d, 0xc0}).length, 2);
  const DecodedInstruction pop_cs = on_8088({0x0f});
  EXPECT_EQ(pop_cs.kind, Kind::pop_segment);
  EXPECT_EQ(pop_cs.reg_field, kCs);
  EXPECT_TRUE(pop_cs.control_flow);
}

TEST(DecodedInstruction, EachProcessorHasItsOwnInstructions) {
  EXPECT_EQ(decode({0x8f, 0x08, 0, 0, 0}, k16, CpuModel::i286).reason,
            InvalidReason::undefined_opcode);
  EXPECT_EQ(decode({0x8c, 0xe0}, k16, CpuModel::i286).state, DecodeState::invalid);
  EXPECT_EQ(decode({0x8c, 0xe0}, k16, CpuModel::i386).state, DecodeState::ok);
  EXPECT_EQ(decode({0x64, 0x8b, 0x07}, k16, CpuModel::i286).state, DecodeState::invalid);
  EXPECT_EQ(decode({0x0f, 0x05}, k16, CpuModel::i286).kind, Kind::loadall);
  EXPECT_EQ(decode({0x0f, 0xa2}, k32, CpuModel::i386).state, DecodeState::invalid);
  EXPECT_EQ(decode({0x0f, 0xa2}, k32, CpuModel::i486).kind, Kind::cpuid);
  EXPECT_EQ(decode({0x0f, 0x31}, k32, CpuModel::i486).state, DecodeState::invalid);
  EXPECT_EQ(decode({0x0f, 0x31}, k32, CpuModel::pentium).kind, Kind::rdtsc);
  EXPECT_EQ(decode({0x0f, 0x44, 0xc0}, k32, CpuModel::pentium).state, DecodeState::invalid);
  EXPECT_EQ(decode({0x0f, 0x44, 0xc0}, k32, CpuModel::p6).state, DecodeState::ok);
  EXPECT_EQ(decode({0xc5, 0xf8, 0x77}).state, DecodeState::invalid);  // VEX is LDS with a register
  EXPECT_EQ(decode({0x0f, 0x0b}).reason, InvalidReason::undefined_opcode);
}

TEST(DecodedInstruction, SysenterIsKnownInEveryMode) {
  // In real mode #GP, in virtual-8086 mode as anywhere (SDM vol. 2): never #UD.
  EXPECT_EQ(decode({0x0f, 0x34}, k16).kind, Kind::sysenter);
  EXPECT_EQ(decode({0x0f, 0x35}, k16).kind, Kind::sysexit);
}

TEST(DecodedInstruction, PrefixesOfLaterProcessorsDoNotChangeOldInstructions) {
  EXPECT_EQ(decode({0xf3, 0x0f, 0xbc, 0xc1}).flag_rule, FlagRule::bit_scan);
  EXPECT_EQ(decode({0xf3, 0x0f, 0x09}).kind, Kind::cache_flush);
  EXPECT_EQ(decode({0xf3, 0x0f, 0x1e, 0xfb}).state, DecodeState::ok);
}

TEST(DecodedInstruction, AddressesWrapWithTheAddressSizeAndStacksWithTheStackSegment) {
  Registers r;
  r.gpr[kEbx] = 0xfff0;
  r.gpr[kEsi] = 0x20;
  EXPECT_EQ(offsets(decode({0x8a, 0x00}, k16), r, false), (Offsets{0x10}));
  r.gpr[kEsp] = 0x10001;
  EXPECT_EQ(offsets(decode({0x50}), r, true), (Offsets{0xfffd}));
  EXPECT_EQ(offsets(decode({0x50}), r, false), (Offsets{0xfffd}));
  r.gpr[kEsp] = 0x10002;
  EXPECT_EQ(offsets(decode({0x60}, k16), r, false),
            (Offsets{0, 0xfffe, 0xfffc, 0xfffa, 0xfff8, 0xfff6, 0xfff4, 0xfff2}));
}

TEST(DecodedInstruction, PopToMemoryCountsEspAfterTheIncrement) {
  Registers r;
  EXPECT_EQ(offsets(decode({0x8f, 0x44, 0x24, 0x04}), r, true), (Offsets{0x18000, 0x18008}));
  // A 16-bit stack moves SP alone: ESP 1FFFE becomes 10000.
  r.gpr[kEsp] = 0x1fffe;
  const DecodedInstruction info = decode({0x67, 0x8f, 0x44, 0x24, 0x04}, CodeMode{false, false});
  EXPECT_EQ(offsets(info, r, false), (Offsets{0xfffe, 0x10004}));
}

TEST(DecodedInstruction, BitStringsReachUnitsBeforeAndAfterTheirBase) {
  Registers r;
  r.gpr[kEbx] = 0x1000;
  r.gpr[kEax] = 33;
  EXPECT_EQ(offsets(decode({0x0f, 0xa3, 0x03}), r, true), (Offsets{0x1004}));
  r.gpr[kEax] = 0xffffffff;
  EXPECT_EQ(offsets(decode({0x0f, 0xa3, 0x03}), r, true), (Offsets{0xffc}));
  r.gpr[kEax] = 0x1234fff0;  // 16-bit operand: AX = -16
  EXPECT_EQ(offsets(decode({0x66, 0x0f, 0xa3, 0x03}), r, true), (Offsets{0xffe}));
}

TEST(DecodedInstruction, EnterCopiesFramePointersOneByOne) {
  const std::vector<DataAccess> list = accesses(decode({0xc8, 0x10, 0, 3}), Registers(), true);
  ASSERT_EQ(list.size(), 6u);
  const Offsets wanted = {0x17ffc, 0x18ffc, 0x17ff8, 0x18ff8, 0x17ff4, 0x17ff0};
  const std::vector<bool> writes = {true, false, true, false, true, true};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(list[i].offset, wanted[i]);
    EXPECT_EQ(list[i].write, writes[i]);
  }
  EXPECT_EQ(decode({0xc8, 0x10, 0, 3}).stack_delta, -32);
}

TEST(DecodedInstruction, ReadModifyWriteReadsFirstAndWritesLast) {
  const std::vector<DataAccess> list = accesses(decode({0x0f, 0xc7, 0x0e}), Registers(), true);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_FALSE(list[0].write);
  EXPECT_TRUE(list[1].write);
  EXPECT_EQ(list[1].size, 8);
  EXPECT_EQ(list[1].linear, LinearAddr{0xd000000u + 0x60060060u});
}

TEST(DecodedInstruction, PushOfASegmentRegisterWritesTwoBytesOfItsSlot) {
  const DecodedInstruction push = decode({0x1e});
  EXPECT_EQ(push.stack_delta, -4);
  EXPECT_EQ(push.operands[0].size, 2);
  EXPECT_EQ(offsets(push, Registers(), true), (Offsets{0x17ffc}));
}

TEST(DecodedInstruction, StringsUseDsUnlessOverriddenAndAlwaysEs) {
  const DecodedInstruction movs = decode({0xf3, 0x64, 0xa5});
  EXPECT_EQ(movs.repeat, RepeatPrefix::rep);
  EXPECT_EQ(movs.operands[0].segment, kFs);
  EXPECT_EQ(movs.operands[1].segment, kEs);
  EXPECT_EQ(movs.operands[0].size, 4);
  const DecodedInstruction old = decode({0xa7}, k16, CpuModel::i286);  // CMPSW reads ES:DI first
  EXPECT_EQ(old.operands[0].kind, OperandKind::string_destination);
  EXPECT_EQ(old.ea[0].argument, 1);
}

// The table of effective addresses in the IDtrace report, appendix B, row by row.
TEST(DecodedInstruction, KtEffectiveAddressesFollowTheReportsTable) {
  const Registers r;
  const auto addresses = [&](std::initializer_list<int> bytes) {
    const DecodedInstruction info = decode(bytes);
    Offsets list;
    for (unsigned i = 0; i < info.ea_count; ++i) {
      list.push_back(kt_address(info, i, 0x1000, r.gpr.data(), r.bases.data(), true).low32());
    }
    return list;
  };
  const std::uint32_t push = 0x5000000 + 0x17ffc, stack = 0x5000000 + 0x18000, cs = 0xc000000;
  const std::uint32_t at_esi = 0xd000000 + 0x60060060;
  EXPECT_EQ(addresses({0xff, 0x16}), (Offsets{push, at_esi}));           // call [esi]
  EXPECT_EQ(addresses({0xff, 0xd6}), (Offsets{push, cs + 0x60060060}));  // call esi
  EXPECT_EQ(addresses({0xff, 0x36}), (Offsets{push, at_esi}));           // push [esi]
  EXPECT_EQ(addresses({0xff, 0xf6}), (Offsets{push}));                   // push esi
  EXPECT_EQ(addresses({0xe8, 5, 0, 0, 0}), (Offsets{cs + 0x100a, push}));
  EXPECT_EQ(addresses({0xa5}), (Offsets{at_esi, 0xe000000 + 0x70070070}));
  EXPECT_EQ(addresses({0x9a, 1, 0, 0, 0, 8, 0}), (Offsets{1, push}));
  EXPECT_EQ(addresses({0xff, 0x1e}), (Offsets{at_esi, push}));     // call far [esi]
  EXPECT_EQ(addresses({0x74, 0xfe}), (Offsets{cs + 0x1000}));      // taken or not
  EXPECT_EQ(addresses({0xff, 0x26}), (Offsets{at_esi}));           // jmp [esi]
  EXPECT_EQ(addresses({0xff, 0xe6}), (Offsets{cs + 0x60060060}));  // jmp esi
  EXPECT_EQ(addresses({0xc3}), (Offsets{stack}));
  EXPECT_EQ(addresses({0xc9}), (Offsets{0x5000000 + 0x19000}));
  EXPECT_EQ(addresses({0x60}), (Offsets{push}));
  EXPECT_EQ(addresses({0x61}), (Offsets{stack}));
  EXPECT_EQ(addresses({0x8f, 0x06}), (Offsets{at_esi}));
  EXPECT_EQ(addresses({0xcd, 0x80}), (Offsets{push}));
  EXPECT_EQ(addresses({0xcf}), (Offsets{stack}));
  EXPECT_EQ(addresses({0x01, 0x06}), (Offsets{at_esi}));  // one, though read and written
  EXPECT_EQ(addresses({0xd7}), (Offsets{0xd000000 + 0x40040050}));
  EXPECT_EQ(addresses({0x8d, 0x06}), (Offsets{}));        // lea
  EXPECT_EQ(addresses({0x0f, 0x1f, 0x06}), (Offsets{}));  // nop
  EXPECT_EQ(addresses({0x0f, 0x01, 0x3e}), (Offsets{}));  // invlpg
  EXPECT_EQ(addresses({0xec}), (Offsets{}));              // in
}

TEST(DecodedInstruction, NeverReadsBeyondTheBytesOrBreaksOnAnyInput) {
  std::uint32_t state = 12345;  // xorshift: the same bytes in every run
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  };
  constexpr std::array<CpuModel, 7> kModels = {
      CpuModel::unknown, CpuModel::i8088,   CpuModel::i286, CpuModel::i386,
      CpuModel::i486,    CpuModel::pentium, CpuModel::p6};
  const Registers r;
  for (int i = 0; i < 300000; ++i) {
    std::vector<std::uint8_t> code(random() % 16);
    for (std::uint8_t& byte : code) byte = static_cast<std::uint8_t>(random() >> 11);
    const CodeMode mode{(random() & 64) != 0, (random() & 64) != 0};
    const CpuModel model = kModels[random() % kModels.size()];
    const DecodedInstruction info = decode_instruction(code, mode, model);
    if (info.state != DecodeState::ok) {
      EXPECT_EQ(info.state == DecodeState::invalid, info.reason != InvalidReason::none);
      continue;
    }
    ASSERT_GT(info.length, 0);
    ASSERT_LE(info.length, code.size());
    for (const DataAccess& access : accesses(info, r, true)) ASSERT_GT(access.size, 0);
    for (unsigned n = 0; n < info.ea_count; ++n) {
      const bool is_operand = info.ea[n].source == EaSource::operand;
      ASSERT_TRUE(!is_operand || info.ea[n].argument < info.operand_count);
    }
    // The canonical form decodes to the same instruction and is its own canonical form.
    const DecodedInstruction again =
        decode_instruction(std::span(info.canonical).first(info.length), mode, model);
    if (info.aliased || info.lock) {
      ASSERT_EQ(again.state, DecodeState::ok) << testing::PrintToString(info.bytes);
      ASSERT_EQ(again.kind, info.kind);
      ASSERT_EQ(again.canonical, info.canonical);
      ASSERT_EQ(offsets(again, r, true), offsets(info, r, true));
    }
  }
}

}  // namespace
}  // namespace citcat
