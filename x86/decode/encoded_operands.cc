#include "x86/decode/encoded_operands.h"

#include "formats/io/error.h"

namespace citcat {
namespace {

using Form = OperandForm;

/// What FXSAVE and FXRSTOR touch of their 512-byte area outside 64-bit mode: header, eight x87 and
/// eight XMM registers (SDM vol. 1, table 10-2). The rest is reserved or the program's own.
constexpr unsigned kFxBytes = 32 + 8 * 16 + 8 * 16;
/// The same in 64-bit mode: with XMM8 to XMM15.
constexpr unsigned kFxBytes64 = kFxBytes + 8 * 16;
/// The area of XSAVE without components beyond x87 and SSE (SDM vol. 1, 13.4).
constexpr unsigned kXsaveBytes = 512 + 64;

bool is_moffs(Form form) { return form == Form::Ob || form == Form::Ov; }

unsigned immediate_size(Form form, unsigned word) {
  switch (form) {
    case Form::Ib:
    case Form::Ibs:
    case Form::Jb:
      return 1;
    case Form::Iw:
      return 2;
    case Form::Iz:
    case Form::Jz:
      return word == 2 ? 2 : 4;
    case Form::Iv:
      return word;
    default:
      return 0;
  }
}

/// Bytes from the front of a span, as far as there are any.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool has(std::size_t count) const { return bytes_.size() - read_ >= count; }
  std::size_t count() const { return read_; }
  /// Zero-extended, the low half of eight bytes; `size` at most 8, and there.
  std::uint32_t take(std::size_t size) { return static_cast<std::uint32_t>(take_whole(size)); }
  /// Extended by its sign.
  std::int64_t take_signed(std::size_t size) {
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
    return static_cast<std::int64_t>(take_whole(size) << unused) >> unused;
  }

 private:
  std::uint64_t take_whole(std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{bytes_[read_++]} << (8 * i);
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t read_ = 0;
};

/// Address of a ModRM byte with 16-bit addresses; the size of its displacement is returned.
unsigned address_16(std::uint8_t modrm, MemoryOperand& operand) {
  struct Registers {
    std::int8_t base, index;
  };
  static constexpr std::array<Registers, 8> kRegisters = {{{kEbx, kEsi},
                                                           {kEbx, kEdi},
                                                           {kEbp, kEsi},
                                                           {kEbp, kEdi},
                                                           {kEsi, -1},
                                                           {kEdi, -1},
                                                           {kEbp, -1},
                                                           {kEbx, -1}}};
  const unsigned mod = modrm >> 6, rm = modrm & 7u;
  if (mod == 0 && rm == 6) return 2;
  operand.base = kRegisters[rm].base;
  operand.index = kRegisters[rm].index;
  return mod;
}

/// The same with wider addresses, from a SIB byte if `rm` asks for one.
unsigned address_32(const DecodedInstruction& info, std::uint8_t sib, MemoryOperand& operand) {
  const unsigned mod = info.modrm >> 6;
  unsigned base = info.modrm & 7u;
  const bool has_sib = base == 4;
  if (has_sib) {
    base = sib & 7u;
    const unsigned index = (sib >> 3 & 7u) | info.rex_bit(kRexX);
    if (index != 4) {
      operand.index = static_cast<std::int8_t>(index);
      operand.shift = static_cast<std::uint8_t>(sib >> 6);
    }
  }
  if (mod == 0 && base == 5) {
    if (info.bits64 && !has_sib) operand.base = kRip;
    return 4;
  }
  operand.base = static_cast<std::int8_t>(base | info.rex_bit(kRexB));
  return mod == 2 ? 4 : mod;
}

SegmentRegister segment_of(const DecodedInstruction& info, const MemoryOperand& operand) {
  if (info.segment_override >= 0) return static_cast<SegmentRegister>(info.segment_override);
  return operand.base == kEbp || operand.base == kEsp ? kSs : kDs;
}

bool read_address(const DecodedInstruction& info, Bytes& bytes, MemoryOperand& operand) {
  unsigned size = 0;
  if (info.address_bits == 16) {
    size = address_16(info.modrm, operand);
  } else {
    std::uint8_t sib = 0;
    if ((info.modrm & 7) == 4) {
      if (!bytes.has(1)) return false;
      sib = static_cast<std::uint8_t>(bytes.take(1));
    }
    size = address_32(info, sib, operand);
  }
  if (!bytes.has(size)) return false;
  if (size != 0) operand.displacement = bytes.take_signed(size);
  return true;
}

bool read_immediates(const DecodedInstruction& info, Bytes& bytes, EncodedOperands& operands) {
  std::size_t next = 0;
  for (const Form form : info.row->operands) {
    if (form == Form::Ap) {
      if (!bytes.has(operands.word + std::size_t{2})) return false;
      operands.immediates = {bytes.take(operands.word), bytes.take(2)};
    }
    const unsigned size = immediate_size(form, operands.word);
    if (size == 0) continue;
    if (!bytes.has(size)) return false;
    const bool branch = form == Form::Jb || form == Form::Jz;
    operands.immediates[next++] =
        branch ? static_cast<std::uint32_t>(bytes.take_signed(size)) : bytes.take(size);
  }
  return true;
}

/// Size and direction of the operand in memory.
void describe_access(const OpcodeRow& row, bool bits64, EncodedOperands& operands) {
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    unsigned size = memory_size(row.operands[i], operands.word, bits64);
    if (size == 0) continue;
    if (row.operation == Operation::cmpxchg8b && operands.word == 8) size = 16;
    operands.address.size = static_cast<std::uint16_t>(size);
    const bool changed = i == 0 || row.access == OperandAccess::exchanges;
    operands.address.read = !changed || row.access != OperandAccess::writes;
    operands.address.write = changed && row.access != OperandAccess::reads;
    operands.address.conditional_write = row.has(kMayLeaveMemory);
    return;
  }
}

}  // namespace

MemoryOperand named_address(const DecodedInstruction& info) {
  CITCAT_ASSERT(info.opcode_map == static_cast<std::uint8_t>(OpcodeMap::one));
  EncodedOperands operands;
  const std::span<const std::uint8_t> code(info.bytes.data(), info.length);
  const bool read = read_operands(info, code.subspan(info.prefix_bytes + 1u), operands).has_value();
  CITCAT_ASSERT(read && operands.in_memory);
  // Displacements count from the next instruction, kRip is where this one begins.
  if (operands.address.base == kRip) operands.address.displacement += info.length;
  return operands.address;
}

unsigned memory_size(OperandForm form, unsigned word, bool bits64) {
  switch (form) {
    case Form::Eb:
    case Form::Mb:
    case Form::RdMb:
    case Form::Ob:
    case Form::Wb:
      return 1;
    case Form::Ew:
    case Form::Mw:
    case Form::RvMw:
    case Form::RdMw:
    case Form::Ww:
      return 2;
    case Form::Ed:
    case Form::Md:
    case Form::Qd:
    case Form::Wd:
      return 4;
    case Form::Mq:
    case Form::Qq:
    case Form::Wq:
      return 8;
    case Form::Mx:
    case Form::Wx:
      return 16;
    case Form::Ev:
    case Form::Mv:
    case Form::Ov:
      return word;
    case Form::Ey:
    case Form::My:
      return word == 8 ? 8 : 4;
    case Form::Mp:
      return word + 2;
    case Form::Ma:
      return 2 * word;
    case Form::Ms:
      return bits64 ? 10 : 6;
    case Form::Mt:
      return 10;
    case Form::Menv:
      return word == 2 ? 14 : 28;
    case Form::Msave:
      return (word == 2 ? 14 : 28) + 80;
    case Form::Mfx:
      return bits64 ? kFxBytes64 : kFxBytes;
    case Form::Mxs:
      return kXsaveBytes;
    default:
      return 0;
  }
}

unsigned register_size(OperandForm form, unsigned word) {
  switch (form) {
    case Form::Eb:
    case Form::Gb:
    case Form::Zb:
    case Form::AL:
    case Form::CL:
      return 1;
    case Form::Ew:
    case Form::Gw:
    case Form::DX:
      return 2;
    case Form::Ed:
    case Form::Gd:
    case Form::Rd:
    case Form::RdMb:
    case Form::RdMw:
      return 4;
    case Form::Ev:
    case Form::RvMw:
    case Form::Gv:
    case Form::Zv:
    case Form::rAX:
      return word;
    case Form::Ey:
    case Form::Gy:
    case Form::By:
      return word == 8 ? 8 : 4;
    default:
      return 0;
  }
}

int operand_register(const DecodedInstruction& info, unsigned number, unsigned word) {
  const Form form = info.row->operands[number];
  const unsigned size = register_size(form, word);
  if (size == 0) return kNoRegister;
  // AH, CH, DH and BH are parts of the first four; with REX their numbers name SPL to DIL.
  const auto part = [&](unsigned reg, RexBit upper) {
    const unsigned low = size == 1 && info.rex == 0 ? reg & 3 : reg;
    return static_cast<int>(low | info.rex_bit(upper));
  };
  switch (form) {
    case Form::AL:
    case Form::rAX:
      return kEax;
    case Form::CL:
      return kEcx;
    case Form::DX:
      return kEdx;
    case Form::Zb:
    case Form::Zv:
      return part(info.opcode & 7u, kRexB);
    case Form::Gb:
    case Form::Gw:
    case Form::Gd:
    case Form::Gy:
    case Form::Gv:
      return part(info.modrm >> 3 & 7u, kRexR);
    case Form::Rd:
      return static_cast<int>((info.modrm & 7u) | info.rex_bit(kRexB));
    case Form::By:
      return info.vex_register;
    default:
      return info.register_form ? part(info.modrm & 7u, kRexB) : kNoRegister;
  }
}

std::optional<std::size_t> read_operands(const DecodedInstruction& info,
                                         std::span<const std::uint8_t> bytes,
                                         EncodedOperands& operands) {
  Bytes rest(bytes);
  const OpcodeRow& row = *info.row;
  MemoryOperand& address = operands.address;
  address.width = address_width(info);
  if (info.has_modrm) {
    rest.take(1);
    const bool register_alone = row.operands[0] == Form::Rd || row.operands[1] == Form::Rd;
    if (!info.register_form && !register_alone) {
      if (!read_address(info, rest, address)) return std::nullopt;
      operands.in_memory = true;
    }
  } else if (is_moffs(row.operands[0]) || is_moffs(row.operands[1])) {
    const unsigned size = info.address_bits / 8u;
    if (!rest.has(size)) return std::nullopt;
    address.kind = OperandKind::absolute;
    address.displacement = rest.take_signed(size);
    operands.in_memory = true;
  }
  if (operands.in_memory) {
    address.segment = segment_of(info, address);
    describe_access(row, info.bits64, operands);
  }
  if (!read_immediates(info, rest, operands)) return std::nullopt;
  return rest.count();
}

}  // namespace citcat
