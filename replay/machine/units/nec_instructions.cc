#include "replay/machine/units/nec_instructions.h"

#include <vector>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/operands.h"

namespace citcat {

namespace {

/// Two decimal digits of each, and a carry.
struct DecimalSum {
  std::uint8_t value = 0;
  bool carry = false;
};

DecimalSum add_digits(unsigned a, unsigned b, bool carry) {
  unsigned low = (a & 0xf) + (b & 0xf) + (carry ? 1 : 0);
  unsigned high = (a >> 4) + (b >> 4);
  if (low > 9) {
    low += 6;
    high += low >> 4;
  }
  const bool out = high > 9;
  if (out) high += 6;
  return {static_cast<std::uint8_t>((high & 0xf) << 4 | (low & 0xf)), out};
}

DecimalSum subtract_digits(unsigned a, unsigned b, bool borrow) {
  int low = static_cast<int>(a & 0xf) - static_cast<int>(b & 0xf) - (borrow ? 1 : 0);
  int high = static_cast<int>(a >> 4) - static_cast<int>(b >> 4);
  if (low < 0) {
    low += 10;
    --high;
  }
  const bool out = high < 0;
  if (out) high += 10;
  return {static_cast<std::uint8_t>((high & 0xf) << 4 | (low & 0xf)), out};
}

}  // namespace

bool NecInstructions::is_one(const DecodedInstruction& info) {
  if (info.row == nullptr) return false;
  switch (info.row->operation) {
    case Operation::test1:
    case Operation::clr1:
    case Operation::set1:
    case Operation::not1:
    case Operation::rol4:
    case Operation::ror4:
    case Operation::add4s:
    case Operation::sub4s:
    case Operation::cmp4s:
    case Operation::ins_bits:
    case Operation::ext_bits:
    case Operation::brkem:
      return true;
    default:
      return false;
  }
}

std::uint16_t NecInstructions::execute(std::uint16_t value) {
  switch (flight_.info->row->operation) {
    case Operation::rol4:
    case Operation::ror4:
      return rotate_digit(value);
    case Operation::add4s:
    case Operation::sub4s:
    case Operation::cmp4s:
      add_decimals();
      return value;
    case Operation::ins_bits:
    case Operation::ext_bits:
      return move_field(value);
    case Operation::brkem:
      throw ReplayStopped{cpu_.position, "BRKEM: the emulation of an 8080 is not replayed"};
    default:
      return change_bit(value);
  }
}

/// TEST1, CLR1, SET1, NOT1.
std::uint16_t NecInstructions::change_bit(std::uint16_t value) {
  const DecodedInstruction& info = *flight_.info;
  const bool by_cl = info.row->operands[1] == OperandForm::CL;
  const unsigned number = by_cl ? cpu_.engine.gpr(kEcx) : info.immediate;
  const auto bit = static_cast<std::uint16_t>(1u << (number & (8u * info.operand_bytes - 1)));
  if (info.is(Operation::clr1)) return value & static_cast<std::uint16_t>(~bit);
  if (info.is(Operation::set1)) return value | bit;
  if (info.is(Operation::not1)) return value ^ bit;
  const std::uint32_t others = cpu_.engine.eflags() & ~(kCf | kOf | kZf);
  cpu_.engine.set_eflags(others | ((value & bit) == 0 ? kZf : 0));
  return value;
}

/// ROL4 and ROR4: through the lower half of AL.
std::uint16_t NecInstructions::rotate_digit(std::uint16_t value) {
  const std::uint32_t ax = cpu_.engine.gpr(kEax), digit = ax & 0xf;
  const bool left = flight_.info->is(Operation::rol4);
  const unsigned rotated = left ? (value << 4 & 0xf0u) | digit : digit << 4 | (value >> 4 & 0xfu);
  const unsigned out = left ? value >> 4 & 0xfu : value & 0xfu;
  cpu_.set_low_part(kEax, (ax & 0xfff0) | out, 2);
  return static_cast<std::uint16_t>(rotated);
}

/// ADD4S, SUB4S, CMP4S: CL digits at DS:SI (IX) and ES:DI (IY), the lowest ones first.
void NecInstructions::add_decimals() {
  const DecodedInstruction& info = *flight_.info;
  const unsigned digits = cpu_.engine.gpr(kEcx) & 0xff, bytes = (digits + 1) / 2;
  if (bytes == 0 || bytes > flight_.stores.size()) {
    throw ReplayStopped{cpu_.position, "ADD4S, SUB4S or CMP4S of no digits, or more than 80"};
  }
  const auto source = static_cast<std::uint16_t>(cpu_.engine.gpr(kEsi));
  const auto destination = static_cast<std::uint16_t>(cpu_.engine.gpr(kEdi));
  std::vector<std::uint8_t> result;
  bool carry = false, zero = true;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto at = static_cast<std::uint16_t>(destination + i);
    const unsigned b = read(source_segment(), static_cast<std::uint16_t>(source + i), 1);
    const unsigned a = read(kEs, at, 1);
    const DecimalSum sum =
        info.is(Operation::add4s) ? add_digits(a, b, carry) : subtract_digits(a, b, carry);
    carry = sum.carry;
    zero = zero && sum.value == 0;
    result.push_back(sum.value);
    if (!info.is(Operation::cmp4s)) plan_store(kEs, at, 1);
  }
  if (!info.is(Operation::cmp4s)) operands_.write_stores(result);
  const std::uint32_t others = cpu_.engine.eflags() & ~(kCf | kZf);
  cpu_.engine.set_eflags(others | (carry ? kCf : 0) | (zero ? kZf : 0));
}

/// INS puts the lower bits of AX (AW) into a field of memory, EXT takes such a field to AX. Of a
/// word at ES:DI or DS:SI the field begins at bit `offset`, and may reach into the next; its length
/// is one more than the second operand says. After it the next field may follow.
std::uint16_t NecInstructions::move_field(std::uint16_t offset) {
  const DecodedInstruction& info = *flight_.info;
  const bool inserts = info.is(Operation::ins_bits);
  unsigned last = info.immediate;
  if (info.row->operands[1] == OperandForm::Gb) {
    const std::uint32_t whole = cpu_.engine.gpr(info.reg_field & 3);
    last = info.reg_field < 4 ? whole : whole >> 8;
  }
  const unsigned first = offset & 0xfu, length = (last & 0xf) + 1, end = first + length;
  const int pointer = inserts ? kEdi : kEsi;
  const SegmentRegister segment = inserts ? kEs : source_segment();
  const auto at = static_cast<std::uint16_t>(cpu_.engine.gpr(pointer));
  const auto next = static_cast<std::uint16_t>(at + 2);
  const bool reaches_over = end > 16;
  std::uint32_t words = read(segment, at, 2);
  if (reaches_over) words |= read(segment, next, 2) << 16;
  const std::uint32_t field = ((1u << length) - 1) << first;
  if (inserts) {
    const std::uint32_t put = (words & ~field) | (cpu_.engine.gpr(kEax) << first & field);
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < (reaches_over ? 4u : 2u); ++i) {
      bytes.push_back(static_cast<std::uint8_t>(put >> 8 * i));
    }
    plan_store(segment, at, 2);
    if (reaches_over) plan_store(segment, next, 2);
    operands_.write_stores(bytes);
  } else {
    cpu_.set_low_part(kEax, (words & field) >> first, 2);
  }
  if (end > 15) cpu_.set_low_part(pointer, next, 2);
  return static_cast<std::uint16_t>(end & 0xf);
}

SegmentRegister NecInstructions::source_segment() const {
  const std::int8_t other = flight_.info->segment_override;
  return other >= 0 ? static_cast<SegmentRegister>(other) : kDs;
}

/// Tells the access, and reads.
std::uint32_t NecInstructions::read(SegmentRegister segment, std::uint16_t offset,
                                    std::uint16_t size) {
  MemoryOperand operand;
  operand.segment = segment;
  operand.size = size;
  operand.width = AddressWidth::bits16;
  operand.read = true;
  DataAccess access;
  access.offset = offset;
  access.linear = linear32(cpu_.engine.segment_base(segment), offset);
  access.size = size;
  operands_.access(access, operand);
  std::uint32_t value = 0;
  for (std::uint16_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::uint16_t>(offset + i);
    value |= operands_.read_value(linear32(cpu_.engine.segment_base(segment), at), 1) << 8 * i;
  }
  return value;
}

void NecInstructions::plan_store(SegmentRegister segment, std::uint16_t offset,
                                 std::uint16_t size) {
  MemoryOperand operand;
  operand.segment = segment;
  operand.size = size;
  operand.width = AddressWidth::bits16;
  operand.write = true;
  DataAccess access;
  access.offset = offset;
  access.linear = linear32(cpu_.engine.segment_base(segment), offset);
  access.size = size;
  access.write = true;
  operands_.access(access, operand);
}

}  // namespace citcat
