// Operands in parts. With 16-bit addresses each part has an offset of its own, which goes on at 0
// behind FFFF: selectors of far pointers, upper bounds, and what x87 operands consist of. Found by
// single steps on the host's processor (docs/silicon.md); the engine goes on at 10000.

#include "replay/machine/machine_descriptor.h"
#include "replay/x86/fx_image.h"

namespace citcat {

namespace {

constexpr std::uint32_t kSegmentBytes = 0x10000;
constexpr std::uint8_t kBoundRange = 5;
constexpr std::uint32_t kRegister = fx_image::kRegisterBytes;

/// Calls visit(first, size) for the slots of FXSAVE's area.
template <class F>
void for_each_slot(const MemoryOperand& operand, F&& visit) {
  for (std::uint32_t at = 0; at < operand.size; at += fx_image::kSlot) {
    const std::size_t size = operand.read ? fx_image::restored_bytes(at) : fx_image::kSlot;
    visit(at, static_cast<std::uint32_t>(size));
  }
}

/// The same for the parts of any other operand of the x87 unit: the fields of an environment, and
/// mantissa and exponent of registers.
template <class F>
void for_each_part(const MemoryOperand& operand, F&& visit) {
  constexpr std::uint32_t kEnvironment16 = 14, kEnvironment32 = 28, kRegisters = 80, kMantissa = 8;
  const std::uint32_t bytes = operand.size;
  if (bytes > kEnvironment32 + kRegisters) return for_each_slot(operand, visit);
  const std::uint32_t environment = bytes == kRegister   ? 0
                                    : bytes > kRegisters ? bytes - kRegisters
                                                         : bytes;
  const std::uint32_t field = environment == kEnvironment16 ? 2 : 4;
  std::uint32_t at = 0;
  for (; at < environment; at += field) visit(at, field);
  for (; at < bytes; at += kRegister) {
    visit(at, kMantissa);
    visit(at + kMantissa, kRegister - kMantissa);
  }
}

}  // namespace

/// The access is one to an operand in parts that reaches beyond FFFF.
bool Machine::is_in_parts(const DataAccess& a, const MemoryOperand& operand) const {
  const bool floating = flight_.info->kind == InstructionClass::x87 ||
                        flight_.info->kind == InstructionClass::fxsave ||
                        flight_.info->kind == InstructionClass::fxrstor;
  constexpr std::uint16_t kLargestWhole = 8;
  return floating && operand.width == AddressWidth::bits16 && a.size > kLargestWhole &&
         a.offset + a.size > kSegmentBytes;
}

void Machine::access_parts(const DataAccess& a, const MemoryOperand& operand) {
  for_each_part(operand, [&](std::uint32_t first, std::uint32_t size) {
    DataAccess part = a;
    part.offset = (a.offset + first) % kSegmentBytes;
    part.linear = a.linear - a.offset + part.offset;
    part.size = static_cast<std::uint16_t>(size);
    access(part, operand);
  });
}

/// The operand of the floating-point instruction in flight.
void Machine::read_floating_operand(std::span<std::uint8_t> out) {
  const MemoryOperand& operand = flight_.info->operands[0];
  DataAccess a;
  a.offset = cpu_.offset_of(operand);
  a.size = static_cast<std::uint16_t>(out.size());
  const std::uint32_t base = cpu_.engine.segment_base(operand.segment);
  if (!is_in_parts(a, operand)) return read_operand(base + a.offset, out);
  for_each_part(operand, [&](std::uint32_t first, std::uint32_t size) {
    read_operand(base + (a.offset + first) % kSegmentBytes, out.subspan(first, size));
  });
}

/// Part number `i` of an operand of at most four bytes each.
std::uint32_t Machine::operand_part(const MemoryOperand& operand, unsigned i) {
  const std::uint32_t first = cpu_.offset_of(operand);
  return read_value(
      cpu_.engine.segment_base(operand.segment) + access_offset(operand, first, i, cpu_.stack32()),
      operand.size);
}

/// The operand of the instruction in flight has two parts, of which the second begins at 0.
bool Machine::wraps_between_parts() const {
  const DecodedInstruction& info = *flight_.info;
  switch (info.kind) {
    case InstructionClass::load_far_pointer:
    case InstructionClass::bound:
      break;
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
      if (info.indirect && info.operand_count > 1) break;
      return false;
    default:
      return false;
  }
  if (cpu_.real_16_bit()) return false;  // prepare_16_bit()
  const MemoryOperand& first = info.operands[info.ea[0].argument];
  const std::uint32_t offset = cpu_.offset_of(first);
  return first.width == AddressWidth::bits16 && offset + first.size >= kSegmentBytes;
}

/// SDM vol. 2, BOUND.
void Machine::emulate_bound() {
  const MemoryOperand& bounds = flight_.info->operands[0];
  const auto extended = [&](std::uint32_t value) {
    return bounds.size == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int16_t>(value);
  };
  const std::int32_t index = extended(cpu_.engine.gpr(flight_.info->reg_field));
  if (index < extended(operand_part(bounds, 0)) || index > extended(operand_part(bounds, 1))) {
    throw CpuException{kBoundRange, std::nullopt, 0};
  }
}

/// LES and its like. What prepare_operands() looks at and watches has been looked at.
void Machine::emulate_load_far_pointer() {
  const DecodedInstruction& info = *flight_.info;
  const int s = info.reg_field;
  const std::uint32_t offset = operand_part(info.operands[info.ea[0].argument], 0);
  const Segment loaded = loaded_segment(s, operand_selector());
  constexpr std::uint8_t kAccessedBit = 1;
  if (watched_.active && (watched_.before & kAccessedBit) == 0) {
    const std::uint8_t accessed = watched_.before | kAccessedBit;
    cpu_.memory.store(watched_.physical, {&accessed, 1});
  }
  const std::uint32_t kept =
      info.operand_bytes == 4 ? 0 : cpu_.engine.gpr(info.rm_field) & 0xffff0000;
  cpu_.engine.set_segment(s, loaded);
  cpu_.engine.set_gpr(info.rm_field, kept | offset);
  cpu_.engine.sync_mode();
}

/// What a segment register holds when `selector` was loaded (SDM vol. 2, MOV: the checks).
Segment Machine::loaded_segment(int s, std::uint16_t selector) {
  if (!cpu_.protected_mode()) {
    return real_mode_segment(cpu_.engine.segment(s), selector);
  }
  const std::uint32_t error = selector & 0xfffcu;
  const CpuException refused{kProtection, error, 0};
  const bool stack = s == kSs;
  if (error == 0) {
    if (stack) throw refused;
    return {selector, 0, 0, 0, true};
  }
  Descriptor d;
  if (!look_up(selector, d)) throw refused;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl, rpl = selector & 3u;
  const bool allowed =
      stack ? d.is_writable_data() && rpl == cpl && d.dpl() == cpl
            : d.is_readable() && (d.conforming() || (rpl <= d.dpl() && cpl <= d.dpl()));
  if (!allowed) throw refused;
  if (!d.present()) throw CpuException{stack ? kStackFault : kNotPresent, error, 0};
  return d.segment(selector);
}

}  // namespace citcat
