// The table of opcodes held to another decoder, Zydis, for every opcode, mandatory prefix and ModRM
// byte of all maps.

#include "x86/decode/opcode_table.h"

#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

constexpr std::array<std::uint8_t, 4> kPrefixBytes = {0, 0x66, 0xf3, 0xf2};

struct Encoding {
  OpcodeMap map;
  std::uint8_t opcode;
  MandatoryPrefix prefix;
  std::uint8_t modrm;
  std::uint8_t rex = 0;  ///< of 64-bit mode

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> code;
    const std::uint8_t byte = kPrefixBytes[static_cast<std::size_t>(prefix)];
    if (byte != 0) code.push_back(byte);
    if (rex != 0) code.push_back(rex);
    if (map != OpcodeMap::one) code.push_back(0x0f);
    if (map == OpcodeMap::m38) code.push_back(0x38);
    if (map == OpcodeMap::m3A) code.push_back(0x3a);
    code.insert(code.end(), {opcode, modrm, 0x24, 0x91, 0x82, 0x73, 0x64, 0x55, 0x46, 0x37});
    code.resize(kMaxInstructionBytes, 0x28);
    return code;
  }
  std::string text() const {
    std::string hex;
    for (const std::uint8_t byte : bytes()) {
      constexpr char kDigits[] = "0123456789abcdef";
      hex += {kDigits[byte >> 4], kDigits[byte & 15], ' '};
    }
    return hex;
  }
};

/// Prefixes, the escape, and what Zydis takes for VEX, EVEX and XOP.
bool is_no_opcode(const Encoding& e) {
  constexpr std::array<std::uint8_t, 12> kPrefixes = {0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x64,
                                                      0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3};
  if (e.map == OpcodeMap::m0F) return e.opcode == 0x38 || e.opcode == 0x3a || e.opcode == 0x0f;
  if (e.map != OpcodeMap::one) return false;
  const bool vector = e.modrm >= 0xc0 && (e.opcode == 0xc4 || e.opcode == 0xc5 || e.opcode == 0x62);
  const bool alias = e.opcode == 0x82 || ((e.opcode & 0xfe) == 0xf6 && (e.modrm & 0x38) == 8);
  return vector || alias || (e.opcode == 0x8f && (e.modrm & 0x38) != 0) ||
         std::find(kPrefixes.begin(), kPrefixes.end(), e.opcode) != kPrefixes.end();
}

template <typename Visitor>
void for_each_encoding(Visitor visit) {
  for (const OpcodeMap map : {OpcodeMap::one, OpcodeMap::m0F, OpcodeMap::m38, OpcodeMap::m3A}) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned prefix = 0; prefix < 4; ++prefix) {
        for (unsigned modrm = 0; modrm < 256; ++modrm) {
          const Encoding e{map, static_cast<std::uint8_t>(opcode),
                           static_cast<MandatoryPrefix>(prefix), static_cast<std::uint8_t>(modrm)};
          if (!is_no_opcode(e)) visit(e);
        }
      }
    }
  }
}

struct OracleInstruction {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  std::span<const ZydisDecodedOperand> all() const {
    return std::span(operands).first(instruction.operand_count);
  }
};

class Oracle {
 public:
  explicit Oracle(int bits) {
    ZydisDecoderInit(&decoder_,
                     bits == 64   ? ZYDIS_MACHINE_MODE_LONG_64
                     : bits == 32 ? ZYDIS_MACHINE_MODE_LEGACY_32
                                  : ZYDIS_MACHINE_MODE_LEGACY_16,
                     bits == 64   ? ZYDIS_STACK_WIDTH_64
                     : bits == 32 ? ZYDIS_STACK_WIDTH_32
                                  : ZYDIS_STACK_WIDTH_16);
    for (const ZydisDecoderMode off :
         {ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYDIS_DECODER_MODE_KNC, ZYDIS_DECODER_MODE_MPX,
          ZYDIS_DECODER_MODE_CET, ZYDIS_DECODER_MODE_LZCNT, ZYDIS_DECODER_MODE_TZCNT,
          ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_CLDEMOTE}) {
      ZydisDecoderEnableMode(&decoder_, off, ZYAN_FALSE);
    }
  }

  std::optional<OracleInstruction> decode(std::span<const std::uint8_t> bytes) const {
    OracleInstruction found;
    const ZyanStatus status = ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(),
                                                     &found.instruction, found.operands.data());
    if (!ZYAN_SUCCESS(status)) return std::nullopt;
    if (found.instruction.encoding != encoding_) return std::nullopt;
    return found;
  }
  void take(ZydisInstructionEncoding encoding) { encoding_ = encoding; }

 private:
  ZydisInstructionEncoding encoding_ = ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  ZydisDecoder decoder_;
};

/// What Zydis knows and no processor here has.
bool is_too_new(const ZydisDecodedInstruction& instruction) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSRET:
      return true;
    default:
      break;
  }
  switch (instruction.meta.isa_ext) {
    case ZYDIS_ISA_EXT_BASE:
    case ZYDIS_ISA_EXT_X87:
    case ZYDIS_ISA_EXT_MMX:
    case ZYDIS_ISA_EXT_SSE:
    case ZYDIS_ISA_EXT_SSE2:
    case ZYDIS_ISA_EXT_SSE3:
    case ZYDIS_ISA_EXT_SSSE3:
    case ZYDIS_ISA_EXT_SSE4:
    case ZYDIS_ISA_EXT_AES:
    case ZYDIS_ISA_EXT_PCLMULQDQ:
    case ZYDIS_ISA_EXT_MOVBE:
    case ZYDIS_ISA_EXT_ADOX_ADCX:
    case ZYDIS_ISA_EXT_CLFSH:
    case ZYDIS_ISA_EXT_PAUSE:
    case ZYDIS_ISA_EXT_MONITOR:
    case ZYDIS_ISA_EXT_AMD3DNOW_PREFETCH:
    case ZYDIS_ISA_EXT_PREFETCHWT1:
      return instruction.mnemonic == ZYDIS_MNEMONIC_FEMMS;
    default:
      return true;
  }
}

const OpcodeRow* row_of(const Encoding& e) {
  return find_opcode(e.map, e.opcode, e.prefix, e.modrm).row;
}

TEST(OpcodeTable, HasARowForWhatAnotherDecoderKnowsAndForNothingElse) {
  const Oracle oracle(32);
  for_each_encoding([&](const Encoding& e) {
    const auto found = oracle.decode(e.bytes());
    const OpcodeRow* const row = row_of(e);
    const bool wanted = found && !is_too_new(found->instruction);
    const bool has =
        row != nullptr && row->processors.has(InstructionSet::p6) && !row->has(kLongModeAlone);
    ASSERT_EQ(has, wanted) << e.text();
  });
}

/// The first processor that has what Zydis calls a set of instructions; its sets are those of the
/// manuals' appendices of what came when. Nothing where it does not tell processors apart.
std::optional<InstructionSet> first_with(const OracleInstruction& found) {
  switch (found.instruction.mnemonic) {
    // Documented from the Pentium on; later processors of the kind before it have them.
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RSM:
      return std::nullopt;
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP:
    // They work on MMX registers and came with SSE (SDM vol. 1, 5.6.3 and 5.6.4).
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MOVNTQ:
    case ZYDIS_MNEMONIC_PAVGB:
    case ZYDIS_MNEMONIC_PAVGW:
    case ZYDIS_MNEMONIC_PEXTRW:
    case ZYDIS_MNEMONIC_PINSRW:
    case ZYDIS_MNEMONIC_PMAXSW:
    case ZYDIS_MNEMONIC_PMAXUB:
    case ZYDIS_MNEMONIC_PMINSW:
    case ZYDIS_MNEMONIC_PMINUB:
    case ZYDIS_MNEMONIC_PMULHUW:
    case ZYDIS_MNEMONIC_PSADBW:
    case ZYDIS_MNEMONIC_PSHUFW:
      return InstructionSet::p6;
    default:
      break;
  }
  for (const ZydisDecodedOperand& operand : found.all()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && operand.reg.value == ZYDIS_REGISTER_CR4)
      return InstructionSet::pentium;
  }
  switch (found.instruction.meta.isa_set) {
    case ZYDIS_ISA_SET_I186:
      return InstructionSet::i186;
    case ZYDIS_ISA_SET_I286PROTECTED:
    case ZYDIS_ISA_SET_I286REAL:
      return InstructionSet::i286;
    case ZYDIS_ISA_SET_I386:
      return InstructionSet::i386;
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
      return InstructionSet::i486;
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_PENTIUMMMX:
      return InstructionSet::pentium;
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_FCMOV:
    case ZYDIS_ISA_SET_PPRO:
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSE2:
    case ZYDIS_ISA_SET_SSE3:
    case ZYDIS_ISA_SET_SSE3X87:
    case ZYDIS_ISA_SET_SSE4:
      return InstructionSet::p6;
    default:
      return std::nullopt;
  }
}

TEST(OpcodeTable, GivesNoProcessorWhatCameLater) {
  const Oracle oracle(32);
  std::set<std::string> wrong;
  for_each_encoding([&](const Encoding& e) {
    if ((e.modrm & 7) != 0) return;  // one operand of each kind will do
    const OpcodeRow* const row = row_of(e);
    const auto found = oracle.decode(e.bytes());
    const auto first = found && row != nullptr ? first_with(*found) : std::nullopt;
    // Operands of 32 bits are another name of an older opcode.
    const bool is_wide = e.map == OpcodeMap::one && first == InstructionSet::i386;
    if (!first || is_wide) return;
    for (const InstructionSet set :
         {InstructionSet::i186, InstructionSet::i286, InstructionSet::i386, InstructionSet::i486,
          InstructionSet::pentium, InstructionSet::p6}) {
      if (row->processors.has(set) != (set >= *first))
        wrong.insert(ZydisMnemonicGetString(found->instruction.mnemonic));
    }
  });
  EXPECT_TRUE(wrong.empty()) << ::testing::PrintToString(wrong);
}

TEST(OpcodeTable, NamesEachOperationOfItsEnumeration) {
  std::set<Operation> used;
  for (const OpcodeRow& row : opcode_rows()) used.insert(row.operation);
  EXPECT_EQ(used.size(), static_cast<std::size_t>(*used.rbegin()) + 1);
}

TEST(OpcodeTable, FindsEachRowByAnEncodingOfItsOwn) {
  for (const OpcodeRow& row : opcode_rows()) {
    if (row.has(kNewerMeaning)) continue;
    const auto reg = static_cast<unsigned>(std::max<int>(row.modrm.reg, 0));
    const auto rm = static_cast<unsigned>(std::max<int>(row.modrm.rm, 0));
    const unsigned mod = row.modrm.memory ? 0 : 3;
    const auto modrm = static_cast<std::uint8_t>(mod << 6 | reg << 3 | rm);
    const MandatoryPrefix prefix =
        row.prefix == MandatoryPrefix::any ? MandatoryPrefix::np : row.prefix;
    for (unsigned i = 0; i < row.count; ++i) {
      const auto opcode = static_cast<std::uint8_t>(row.opcode + i);
      const bool bits64 = row.has(kOnly64BitMode);
      EXPECT_EQ(find_opcode(row.map, opcode, prefix, modrm, bits64).row, &row) << int{opcode};
    }
  }
}

/// Registers that the oracle says are written, by number.
std::uint8_t written_gprs(const OracleInstruction& found) {
  unsigned mask = 0;
  for (const ZydisDecodedOperand& operand : found.all()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    const ZydisRegister whole =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LEGACY_32, operand.reg.value);
    if (whole < ZYDIS_REGISTER_EAX || whole > ZYDIS_REGISTER_EDI) continue;
    mask |= 1u << (whole - ZYDIS_REGISTER_EAX);
  }
  return static_cast<std::uint8_t>(mask);
}

/// The oracle does not say that CMPS, INS and OUTS move their pointers.
bool is_string(const DecodedInstruction& info) {
  return info.row->accesses == AccessPattern::string;
}

/// Compares an instruction whose only operand in memory is the explicit one.
void expect_same_operand(const DecodedInstruction& info, const OracleInstruction& found,
                         const std::string& text) {
  if (info.row->accesses != AccessPattern::operand) return;
  const auto all = found.all();
  const auto memory = std::find_if(all.begin(), all.end(), [](const ZydisDecodedOperand& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
           operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
  });
  ASSERT_EQ(info.operand_count == 1, memory != all.end()) << text;
  if (memory == all.end()) return;
  const MemoryOperand& ours = info.operands[0];
  // LAR, LSL and the descriptor tables: 2 and 6 bytes; FXSAVE: without the reserved ones. CMPXCHG
  // writes in either case.
  const bool sized_otherwise = info.row->operands[1] == OperandForm::Ew ||
                               info.row->operands[0] == OperandForm::Ms ||
                               info.row->operands[0] == OperandForm::Mfx;
  if (!sized_otherwise) {
    EXPECT_EQ(ours.size, memory->size / 8) << text;
  }
  EXPECT_EQ(ours.write, (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) << text;
  if (!info.is(Operation::cmpxchg) && !info.is(Operation::cmpxchg8b)) {
    EXPECT_EQ(ours.read, (memory->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) << text;
  }
  const auto number = [](ZydisRegister reg) {
    return reg == ZYDIS_REGISTER_NONE ? kNoRegister : int{ZydisRegisterGetId(reg)};
  };
  const bool relative = memory->mem.base == ZYDIS_REGISTER_RIP;
  EXPECT_EQ(ours.base, relative ? kRip : number(memory->mem.base)) << text;
  EXPECT_EQ(ours.index, number(memory->mem.index)) << text;
  EXPECT_EQ(static_cast<int>(ours.segment), number(memory->mem.segment)) << text;
  EXPECT_EQ(ours.displacement - (relative ? info.length : 0), memory->mem.disp.value) << text;
}

void expect_same_immediate(const DecodedInstruction& info, const OracleInstruction& found,
                           const std::string& text) {
  const auto& immediate = found.instruction.raw.imm[0];
  if (immediate.size == 0 || info.row->operands[0] == OperandForm::Ap) return;
  if (immediate.is_relative) {
    EXPECT_EQ(info.target_displacement, immediate.value.s) << text;
  } else {
    const std::uint64_t mask = (std::uint64_t{1} << immediate.size) - 1;
    EXPECT_EQ(info.immediate, immediate.value.u & mask) << text;
  }
}

void expect_decodes_alike(int bits) {
  const Oracle oracle(bits);
  for_each_encoding([&](const Encoding& e) {
    const auto found = oracle.decode(e.bytes());
    if (!found || is_too_new(found->instruction)) return;
    const std::string text = e.text();
    const DecodedInstruction info =
        decode_instruction(e.bytes(), CodeMode{bits == 32, false}, CpuModel::p6);
    ASSERT_EQ(info.state, DecodeState::ok) << text;
    ASSERT_EQ(info.row, row_of(e)) << text;
    ASSERT_EQ(info.length, found->instruction.length) << text;
    expect_same_operand(info, *found, text);
    expect_same_immediate(info, *found, text);
    if (is_string(info)) return;
    auto written = static_cast<std::uint8_t>(info.registers.others);
    if (info.registers.kind != RegisterEffect::Kind::none) {
      written |= static_cast<std::uint8_t>(1u << info.registers.target);
    }
    std::uint8_t theirs = written_gprs(*found);
    if (info.stack_delta != 0) theirs &= static_cast<std::uint8_t>(~(1u << kEsp));
    if (info.stack_delta != 0) written &= static_cast<std::uint8_t>(~(1u << kEsp));
    EXPECT_EQ(written, theirs) << text;
  });
}

TEST(OpcodeTable, DecodesLengthsOperandsAndWrittenRegistersLikeAnotherDecoder32Bits) {
  expect_decodes_alike(32);
}

TEST(OpcodeTable, DecodesLengthsOperandsAndWrittenRegistersLikeAnotherDecoder16Bits) {
  expect_decodes_alike(16);
}

// ---------------------------------------------------------------------------------------------
// 64-bit mode

/// What is_too_new() says, but for what comes with long mode.
bool is_too_new_for_64_bits(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.isa_ext) {
    case ZYDIS_ISA_EXT_LONGMODE:
    case ZYDIS_ISA_EXT_XSAVE:
    case ZYDIS_ISA_EXT_XSAVEOPT:
    case ZYDIS_ISA_EXT_XSAVEC:
    case ZYDIS_ISA_EXT_XSAVES:
    case ZYDIS_ISA_EXT_CLFLUSHOPT:
    case ZYDIS_ISA_EXT_CLWB:
    case ZYDIS_ISA_EXT_RDWRFSGS:
    case ZYDIS_ISA_EXT_SMAP:
    case ZYDIS_ISA_EXT_INVPCID:
    case ZYDIS_ISA_EXT_RDPID:
    case ZYDIS_ISA_EXT_RDRAND:
    case ZYDIS_ISA_EXT_RDSEED:
      return false;
    default:
      break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_RDTSCP:
      return false;
    default:
      return is_too_new(instruction);
  }
}

/// REX itself, and what Zydis takes for VEX, EVEX and XOP whatever follows.
bool is_no_opcode_of_64_bits(const Encoding& e) {
  const bool one = e.map == OpcodeMap::one;
  const bool vector = e.opcode == 0xc4 || e.opcode == 0xc5 || e.opcode == 0x62;
  return one && (vector || (e.opcode & 0xf0) == 0x40);
}

void expect_decodes_alike_64(std::uint8_t rex) {
  const Oracle oracle(64);
  for_each_encoding([&](Encoding e) {
    if (is_no_opcode_of_64_bits(e)) return;
    e.rex = rex;
    const auto found = oracle.decode(e.bytes());
    const bool wanted = found && !is_too_new_for_64_bits(found->instruction);
    const DecodedInstruction info =
        decode_instruction(e.bytes(), CodeMode{false, false, true}, CpuModel::x86_64);
    ASSERT_EQ(info.state == DecodeState::ok, wanted) << e.text();
    if (!wanted) return;
    ASSERT_EQ(info.length, found->instruction.length) << e.text();
    expect_same_operand(info, *found, e.text());
    // Only the low half of an eight-byte immediate is kept.
    if (found->instruction.raw.imm[0].size <= 32) expect_same_immediate(info, *found, e.text());
  });
}

TEST(OpcodeTable, DecodesLengthsAndOperandsOf64BitModeLikeAnotherDecoder) {
  expect_decodes_alike_64(0);
}

TEST(OpcodeTable, DecodesThemBehindEachBitOfRexLikeAnotherDecoder) {
  expect_decodes_alike_64(0x45);
  expect_decodes_alike_64(0x4a);
}

/// Behind C4: maps 2 and 3, with each of W, L, vvvv and the bits that stand for REX.
template <typename Visitor>
void for_each_vex_encoding(Visitor visit) {
  for (unsigned map = 0xe2; map <= 0xe3; ++map) {
    for (unsigned extended = 0; extended < 8; ++extended) {
      for (const unsigned second : {0x78u, 0x70u, 0x38u, 0xf8u, 0x98u, 0x7cu}) {
        for (unsigned prefix = 0; prefix < 4; ++prefix) {
          for (unsigned opcode = 0xe8; opcode < 256; ++opcode) {
            for (unsigned modrm = 0; modrm < 256; modrm += 3) {
              visit({0xc4, static_cast<std::uint8_t>(map ^ extended << 5),
                     static_cast<std::uint8_t>(second | prefix), static_cast<std::uint8_t>(opcode),
                     static_cast<std::uint8_t>(modrm), 0x24, 0x91, 0x82, 0x73, 0x64, 0x55, 0x46,
                     0x37, 0x28, 0x28});
            }
          }
        }
      }
    }
  }
}

void expect_decodes_vex_alike(int bits, CodeMode mode) {
  Oracle oracle(bits);
  oracle.take(ZYDIS_INSTRUCTION_ENCODING_VEX);
  unsigned count = 0;
  for_each_vex_encoding([&](const std::vector<std::uint8_t>& bytes) {
    if (bits != 64 && bytes[1] < 0xc0) return;  // LES
    const std::string text = testing::PrintToString(bytes);
    const auto found = oracle.decode(bytes);
    const bool wanted = found && (found->instruction.meta.isa_ext == ZYDIS_ISA_EXT_BMI1 ||
                                  found->instruction.meta.isa_ext == ZYDIS_ISA_EXT_BMI2);
    const DecodedInstruction info = decode_instruction(bytes, mode, CpuModel::x86_64);
    ASSERT_EQ(info.state == DecodeState::ok, wanted) << text;
    if (!wanted) return;
    ++count;
    ASSERT_EQ(info.length, found->instruction.length) << text;
    EXPECT_EQ(8 * info.operand_bytes, found->operands[0].size) << text;
    expect_same_operand(info, *found, text);
    expect_same_immediate(info, *found, text);
    const auto& first = found->operands[0].reg.value;
    const unsigned number =
        info.row->operands[0] == OperandForm::By ? info.vex_register : info.reg_field;
    EXPECT_EQ(static_cast<int>(number), ZydisRegisterGetId(first)) << text;
    std::uint32_t read = 0;
    if (found->instruction.cpu_flags != nullptr) read = found->instruction.cpu_flags->tested;
    EXPECT_EQ(info.row->flags.read, read & kArithmeticFlags) << text;
  });
  EXPECT_GT(count, 1000u);
}

TEST(OpcodeTable, DecodesIntegerInstructionsBehindVexLikeAnotherDecoder) {
  expect_decodes_vex_alike(64, {false, false, true});
  expect_decodes_vex_alike(32, {true, false});
}

TEST(OpcodeTable, KnowsVexNeitherInRealModeNorBehindPrefixesThatSelect) {
  const auto state = [](std::vector<std::uint8_t> bytes, CodeMode mode) {
    bytes.resize(kMaxInstructionBytes, 0xc0);
    return decode_instruction(bytes, mode, CpuModel::x86_64).state;
  };
  const CodeMode wide{false, false, true};
  EXPECT_EQ(state({0xc4, 0xe2, 0x78, 0xf2, 0xc0}, {false, true}), DecodeState::invalid);
  EXPECT_EQ(state({0xc4, 0xe2, 0x78, 0xf2, 0xc0}, wide), DecodeState::ok);
  EXPECT_EQ(state({0x65, 0xc4, 0xe2, 0x78, 0xf2, 0x00}, wide), DecodeState::ok);
  for (const int byte : {0x66, 0xf2, 0xf3, 0xf0, 0x41}) {
    const auto prefix = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(state({prefix, 0xc4, 0xe2, 0x78, 0xf2, 0xc0}, wide), DecodeState::invalid);
  }
}

TEST(OpcodeTable, TakesScansBehindF3ForCountsWhereTheProcessorHasThem) {
  const auto decoded = [](std::uint8_t opcode, bool tzcnt, bool lzcnt) {
    const std::vector<std::uint8_t> bytes = {0xf3, 0x0f, opcode, 0xc8};
    return decode_instruction(bytes, {false, false, true, tzcnt, lzcnt}, CpuModel::x86_64)
        .row->operation;
  };
  EXPECT_EQ(decoded(0xbc, true, false), Operation::tzcnt);
  EXPECT_EQ(decoded(0xbc, false, true), Operation::bsf);
  EXPECT_EQ(decoded(0xbd, false, true), Operation::lzcnt);
  EXPECT_EQ(decoded(0xbd, true, false), Operation::bsr);
}

TEST(OpcodeTable, ReadsAndDefinesTheFlagsThatAnotherDecoderNames) {
  const Oracle oracle(32);
  for_each_encoding([&](const Encoding& e) {
    const auto found = oracle.decode(e.bytes());
    if (!found || is_too_new(found->instruction)) return;
    const OpcodeRow& row = *row_of(e);
    const ZydisAccessedFlags* const flags = found->instruction.cpu_flags;
    if (row.accesses == AccessPattern::string) return;  // REPE reads what it has written itself
    const std::uint32_t read = flags == nullptr ? 0 : flags->tested & kArithmeticFlags;
    EXPECT_EQ(row.flags.read, read) << e.text();
  });
}

TEST(OpcodeTable, LetsNothingBeUndefinedThatIsNotWritten) {
  for (const OpcodeRow& row : opcode_rows()) {
    EXPECT_EQ(row.flags.undefined & ~row.flags.written, 0u) << int{row.opcode};
  }
}

}  // namespace
}  // namespace citcat
