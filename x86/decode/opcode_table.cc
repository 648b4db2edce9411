#include "x86/decode/opcode_table.h"

#include <array>

#include "formats/io/error.h"

namespace citcat {
namespace {

// ---------------------------------------------------------------------------------------------
// What the columns of opcodes.def may say besides enumerators.

namespace modrm_columns {

constexpr ModRmMatch no{};
constexpr ModRmMatch any{true, true, true}, mem{true, true, false}, reg{true, false, true};

constexpr ModRmMatch with(ModRmMatch match, int reg_field) {
  match.reg = static_cast<std::int8_t>(reg_field);
  return match;
}
constexpr ModRmMatch byte(unsigned modrm) {
  ModRmMatch match = with(reg, static_cast<int>(modrm >> 3 & 7));
  match.rm = static_cast<std::int8_t>(modrm & 7);
  return match;
}

constexpr ModRmMatch any0 = with(any, 0), any1 = with(any, 1), any2 = with(any, 2),
                     any3 = with(any, 3), any4 = with(any, 4), any5 = with(any, 5),
                     any6 = with(any, 6), any7 = with(any, 7);
constexpr ModRmMatch mem0 = with(mem, 0), mem1 = with(mem, 1), mem2 = with(mem, 2),
                     mem3 = with(mem, 3), mem4 = with(mem, 4), mem5 = with(mem, 5),
                     mem6 = with(mem, 6), mem7 = with(mem, 7);
constexpr ModRmMatch reg0 = with(reg, 0), reg1 = with(reg, 1), reg2 = with(reg, 2),
                     reg3 = with(reg, 3), reg4 = with(reg, 4), reg5 = with(reg, 5),
                     reg6 = with(reg, 6), reg7 = with(reg, 7);

}  // namespace modrm_columns

namespace register_columns {

constexpr unsigned no = 0, AX = 1, CX = 2, DX = 4, BX = 8, SP = 16, BP = 32, SI = 64, DI = 128,
                   ALL = 255;

}  // namespace register_columns

namespace processor_columns {

constexpr ProcessorSet only(InstructionSet one) {
  return {static_cast<std::uint16_t>(1u << static_cast<unsigned>(one))};
}
constexpr ProcessorSet since(InstructionSet first) {
  const unsigned all = 2u * only(InstructionSet::p6).bits - 1;
  return {static_cast<std::uint16_t>(all & ~(only(first).bits - 1u))};
}

constexpr ProcessorSet operator|(ProcessorSet a, ProcessorSet b) {
  return {static_cast<std::uint16_t>(a.bits | b.bits)};
}

constexpr ProcessorSet i8088 = since(InstructionSet::i8088), i186 = since(InstructionSet::i186),
                       i286 = since(InstructionSet::i286), i386 = since(InstructionSet::i386),
                       i486 = since(InstructionSet::i486), pentium = since(InstructionSet::pentium),
                       p6 = since(InstructionSet::p6);
constexpr ProcessorSet only_8088 = only(InstructionSet::i8088),
                       only_v20 = only(InstructionSet::v20),
                       till_v20 = only_8088 | only(InstructionSet::i186) | only_v20,
                       only_286 = only(InstructionSet::i286), only_386 = only(InstructionSet::i386);

}  // namespace processor_columns

namespace trait_columns {

constexpr unsigned no = 0, lock = kLockable, may_store = kMayLeaveMemory,
                   unaligned = kTakesUnaligned, no64 = kNotIn64BitMode, protect = kProtectedMode,
                   only64 = kOnly64BitMode, lm = kLongModeAlone, newer = kNewerMeaning;

}  // namespace trait_columns

// Sums of registers and of traits are written with names of their namespaces alone.
constexpr auto kRows = [] {
  using namespace register_columns;  // NOLINT(google-build-using-namespace)
  using trait_columns::lock, trait_columns::may_store, trait_columns::unaligned,
      trait_columns::no64, trait_columns::protect, trait_columns::only64, trait_columns::lm,
      trait_columns::newer;
  return std::to_array<OpcodeRow>({
#define OPCODE(MAP, FIRST, COUNT, MODRM, PREFIX, OPERATION, ONE, TWO, THREE, ACCESS, REGISTERS, \
               CLASS, ACCESSES, FLAGS, PROCESSORS, TRAITS, FAST)                                \
  OpcodeRow{OpcodeMap::MAP,                                                                     \
            FIRST,                                                                              \
            COUNT,                                                                              \
            modrm_columns::MODRM,                                                               \
            MandatoryPrefix::PREFIX,                                                            \
            Operation::OPERATION,                                                               \
            {OperandForm::ONE, OperandForm::TWO, OperandForm::THREE},                           \
            OperandAccess::ACCESS,                                                              \
            static_cast<std::uint8_t>(REGISTERS),                                               \
            InstructionClass::CLASS,                                                            \
            AccessPattern::ACCESSES,                                                            \
            flag_facts::FLAGS,                                                                  \
            processor_columns::PROCESSORS,                                                      \
            static_cast<std::uint8_t>(TRAITS)},
#include "x86/decode/opcodes.def"
#undef OPCODE
  });
}();

// ---------------------------------------------------------------------------------------------
// The search: by opcode; where that is not enough by prefix, form and ModRM.reg; where that is not
// enough by ModRM.rm.

using Entry = std::uint16_t;  ///< 0 for no row, number of a row + 1, or kMore | number of a block
constexpr Entry kMore = 0x8000;

constexpr std::size_t block_place(unsigned prefix, bool registers, unsigned reg) {
  return prefix << 4 | (registers ? 8u : 0u) | reg;
}

struct Index {
  std::array<std::array<Entry, 256>, kOpcodeMaps> opcodes{};
  std::array<std::array<Entry, 64>, 256> blocks{};
  std::array<std::array<Entry, 8>, 64> bytes{};
  unsigned block_count = 0, byte_count = 0;

  constexpr void claim(Entry& entry, Entry row) {
    if (entry != 0) throw "two rows are for the same encoding";
    entry = row;
  }
  constexpr void claim(Entry& entry, const ModRmMatch& match, Entry row) {
    if (match.rm < 0) return claim(entry, row);
    if (entry == 0) entry = static_cast<Entry>(kMore | byte_count++);
    if ((entry & kMore) == 0) throw "two rows are for the same encoding";
    claim(bytes[entry & ~kMore][static_cast<unsigned>(match.rm)], row);
  }
  constexpr void claim(std::array<Entry, 64>& block, const OpcodeRow& opcode, Entry row) {
    const ModRmMatch& match = opcode.modrm;
    for (unsigned prefix = 0; prefix < 4; ++prefix) {
      const bool ours = opcode.prefix == MandatoryPrefix::any ||
                        opcode.prefix == static_cast<MandatoryPrefix>(prefix);
      if (!ours) continue;
      for (int reg = 0; reg < 8; ++reg) {
        if (match.reg >= 0 && match.reg != reg) continue;
        const auto field = static_cast<unsigned>(reg);
        if (match.memory) claim(block[block_place(prefix, false, field)], match, row);
        if (match.registers) claim(block[block_place(prefix, true, field)], match, row);
      }
    }
  }
  constexpr void add(const OpcodeRow& row, Entry number) {
    const ModRmMatch& match = row.modrm;
    const bool by_opcode_alone =
        !match.present ||
        (row.prefix == MandatoryPrefix::any && match.memory && match.registers && match.reg < 0);
    for (unsigned i = 0; i < row.count; ++i) {
      Entry& entry = opcodes[static_cast<std::size_t>(row.map)][row.opcode + i];
      if (by_opcode_alone) {
        claim(entry, number);
        continue;
      }
      if (entry == 0) entry = static_cast<Entry>(kMore | block_count++);
      if ((entry & kMore) == 0) throw "two rows are for the same encoding";
      claim(blocks[entry & ~kMore], row, number);
    }
  }
};

constexpr Index make_index(OpcodeTrait left_out) {
  Index index;
  Entry number = 0;
  for (const OpcodeRow& row : kRows) {
    ++number;
    // What only early processors have left its place to others (0F 05, 0F 07).
    const bool gone = left_out == kNotIn64BitMode && !row.processors.has(InstructionSet::p6);
    if (!row.has(left_out) && !gone && !row.has(kNewerMeaning)) index.add(row, number);
  }
  return index;
}

constexpr Index kIndex = make_index(kOnly64BitMode), kIndex64 = make_index(kNotIn64BitMode);

}  // namespace

std::span<const OpcodeRow> opcode_rows() { return kRows; }

const OpcodeRow& newer_meaning(const OpcodeRow& row) {
  const auto next = static_cast<std::size_t>(&row - kRows.data()) + 1;
  CITCAT_ASSERT(next < kRows.size() && kRows[next].has(kNewerMeaning));
  return kRows[next];
}

OpcodeMatch find_opcode(OpcodeMap map, std::uint8_t opcode, MandatoryPrefix prefix,
                        std::optional<std::uint8_t> modrm, bool bits64) {
  const Index& index = bits64 ? kIndex64 : kIndex;
  Entry entry = index.opcodes[static_cast<std::size_t>(map)][opcode];
  if ((entry & kMore) != 0) {
    if (!modrm) return {nullptr, true};
    const auto column = static_cast<unsigned>(prefix);
    entry = index.blocks[entry & ~kMore][block_place(column, *modrm >= 0xc0, *modrm >> 3 & 7u)];
    if ((entry & kMore) != 0) entry = index.bytes[entry & ~kMore][*modrm & 7u];
  }
  if (entry == 0) return {};
  const OpcodeRow& row = kRows[entry - 1u];
  // Without ModRM an opcode has one row at most, and its prefix is not in the index.
  const bool right = row.prefix == MandatoryPrefix::any || row.prefix == prefix;
  return {right ? &row : nullptr, false};
}

}  // namespace citcat
