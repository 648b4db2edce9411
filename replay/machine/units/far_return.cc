#include "replay/machine/units/far_return.h"

#include <algorithm>
#include <array>
#include <optional>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/known_bytes.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

bool FarReturn::returns_here() const {
  if (cpu_.traits.sixteen_bit) return false;  // early_.prepare()
  const bool far = flight_.info->kind == InstructionClass::far_return;
  // The stack of an outer level may be another.
  if (flight_.info->immediate >= 0x8000 && (cpu_.stack32() || (far && cpu_.protected_mode())))
    return true;
  if (!far || cpu_.stack32() || cpu_.protected_mode()) return false;
  return (cpu_.engine.gpr(kEsp) & 0xffff) + flight_.info->operand_bytes > 0xffff;
}

void FarReturn::return_far() {
  const std::uint32_t width = flight_.info->operand_bytes, flags = cpu_.engine.system_flags();
  const std::uint32_t target = stacked(0, width);
  const auto selector = static_cast<std::uint16_t>(stacked(width, 2));
  if (cpu_.protected_mode()) {
    return_to_segment(selector, target, static_cast<std::uint32_t>(flight_.info->stack_delta));
  } else {
    check_return_target();
    cpu_.engine.set_segment(kCs, real_mode_segment(cpu_.engine.segment(kCs), selector));
    cpu_.move_stack_pointer(flight_.info->stack_delta);
  }
  cpu_.engine.set_eip(target);
  cpu_.engine.sync_mode();
  retirement_.report_completed();
  retirement_.finish_mode_switch(flags);
}

/// RETF and IRET of protected mode, but for EIP. They release so many bytes of the inner stack.
void FarReturn::return_to_segment(std::uint16_t selector, std::uint32_t target,
                                  std::uint32_t released) {
  const std::uint32_t error = selector & 0xfffcu, level = selector & 3u;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  Descriptor code;
  if (!segments_.look_up(selector, code) || !code.is_code_of(level) || level < cpl) {
    throw CpuException{kProtection, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const Segment segment = code.segment(selector);
  std::optional<Segment> outer;
  if (level != cpl) outer = outer_stack(level, released);
  if (target > segment.limit) throw CpuException{kProtection, 0u, 0};
  const std::uint32_t outer_esp = outer ? stacked(released, flight_.info->operand_bytes) : 0;
  cpu_.engine.set_segment(kCs, segment);
  if (!outer) return cpu_.move_stack_pointer(released);
  cpu_.engine.set_segment(kSs, *outer);
  const std::uint32_t mask = stack_mask(*outer);
  cpu_.engine.set_gpr(
      kEsp, (cpu_.engine.gpr(kEsp) & ~mask) | ((outer_esp + flight_.info->immediate) & mask));
  for (const int s : {kEs, kFs, kGs, kDs}) segments_.drop_inner(s, level);
}

/// The stack of an outer level, whose selector lies after the `released` bytes and its pointer.
Segment FarReturn::outer_stack(std::uint32_t level, std::uint32_t released) {
  const auto selector =
      static_cast<std::uint16_t>(stacked(released + flight_.info->operand_bytes, 2));
  const std::uint32_t error = selector & 0xfffcu;
  Descriptor stack;
  if ((selector & 3u) != level || !segments_.look_up(selector, stack) ||
      !stack.is_writable_data() || stack.dpl() != level) {
    throw CpuException{kProtection, error, 0};
  }
  if (!stack.present()) throw CpuException{kStackFault, error, 0};
  return stack.segment(selector);
}

void FarReturn::check_return_target() {
  const std::uint32_t width = flight_.info->operand_bytes, target = stacked(0, width);
  if (!cpu_.protected_mode()) {
    if (target > cpu_.engine.segment_limit(kCs)) throw CpuException{kProtection, 0u, 0};
    return;
  }
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  const bool interrupt_return = flight_.info->kind == InstructionClass::iret;
  if (interrupt_return && width == 4 && cpl == 0 && (stacked(8, 4) & kFlagVm) != 0) {
    if (target > 0xffff) throw CpuException{kProtection, 0u, 0};
    return;
  }
  const auto selector = static_cast<std::uint16_t>(stacked(width, 2));
  Descriptor code;
  if (!segments_.look_up(selector, code) || target <= code.segment(selector).limit) return;
  if (!code_admits_return(code)) return;
  const std::uint32_t level = selector & 3u;
  const std::uint32_t behind = interrupt_return ? 3 * width : 2 * width + flight_.info->immediate;
  if (level == cpl || stack_admits_return(level, behind)) throw CpuException{kProtection, 0u, 0};
}

/// What the stack holds `offset` bytes above its pointer.
std::uint32_t FarReturn::stacked(std::uint32_t offset, std::uint32_t size) {
  const std::uint32_t mask = cpu_.stack_bits();
  return operands_.read_value(
      linear32(cpu_.engine.segment_base(kSs), (cpu_.engine.gpr(kEsp) + offset) & mask), size);
}

/// RETF and IRET may lead to the segment, at the level of its selector.
bool FarReturn::code_admits_return(const Descriptor& code) const {
  const std::uint32_t level = code.selector & 3u;
  return code.is_code_of(level) && code.present() && level >= (cpu_.engine.hflags() & kHfCpl);
}

/// The stack may be changed for that of an outer level, which lies after the `released` bytes.
bool FarReturn::stack_admits_return(std::uint32_t level, std::uint32_t released) {
  const auto selector =
      static_cast<std::uint16_t>(stacked(released + flight_.info->operand_bytes, 2));
  Descriptor stack;
  return (selector & 3u) == level && segments_.look_up(selector, stack) &&
         stack.is_writable_data() && stack.dpl() == level && stack.present();
}

/// VM in the image of EFLAGS that IRET finds, where that is known without an effect.
std::optional<bool> FarReturn::image_has_vm() {
  constexpr std::uint32_t kImageOfVm = 10;  // the byte of the 12 that IRETD pops
  const std::uint32_t mask = cpu_.stack_bits();
  const LinearAddr linear =
      linear32(cpu_.engine.segment_base(kSs), (cpu_.engine.gpr(kEsp) + kImageOfVm) & mask);
  std::uint8_t byte = 0;
  if (known_bytes(cpu_, linear, Access::read, {&byte, 1}) == 0) return std::nullopt;
  return (byte & kFlagVm >> 16) != 0;
}

bool FarReturn::ignores_vm_flag() {
  if (flight_.info->operand_bytes != 4 || (cpu_.engine.hflags() & kHfCpl) == 0) return false;
  return image_has_vm().value_or(false);
}

bool FarReturn::returns_from_interrupt() {
  const bool nested = (cpu_.engine.system_flags() & kFlagNt) != 0;
  return cpu_.protected_mode() && !nested && flight_.info->operand_bytes == 4 &&
         !image_has_vm().value_or(true);
}

void FarReturn::return_from_interrupt() {
  constexpr std::uint32_t kReleased = 12;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl, flags = cpu_.engine.system_flags();
  const std::uint32_t target = stacked(0, 4), image = stacked(8, 4);
  return_to_segment(static_cast<std::uint16_t>(stacked(4, 2)), target, kReleased);
  load_flags(image, cpl);
  cpu_.engine.set_eip(target);
  cpu_.engine.sync_mode();
  retirement_.report_completed();
  retirement_.finish_mode_switch(flags);
}

/// Loads the bits of EFLAGS that IRET may load at level `cpl` (SDM vol. 2, IRET).
void FarReturn::load_flags(std::uint32_t image, std::uint32_t cpl) {
  constexpr std::uint32_t kArithmetic = 0xcd5, kIopl = 3u << 12, kId = 1u << 21;
  std::uint32_t loaded = kArithmetic | kFlagTf | kFlagNt | kFlagRf | kFlagAc | kId;
  const std::uint32_t before = cpu_.engine.eflags();
  if (cpl <= (before >> 12 & 3)) loaded |= kFlagIf;
  if (cpl == 0) loaded |= kIopl;
  cpu_.engine.set_eflags((before & ~loaded) | (image & loaded));
}

std::uint32_t FarReturn::read_stack(std::uint32_t above, std::uint32_t width) {
  const Segment stack = cpu_.engine.segment(kSs);
  DataAccess a;
  const std::uint32_t offset = (cpu_.engine.gpr(kEsp) + above) & stack_mask(stack);
  a.offset = offset;
  a.linear = linear32(stack.base, offset);
  a.size = static_cast<std::uint16_t>(width);
  MemoryOperand operand;
  operand.segment = kSs;
  operand.read = true;
  operands_.access(a, operand);
  return operands_.read_value(a.linear, width);
}

void FarReturn::return_within_level() {
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  if (cpl != 3) {
    throw ReplayStopped{cpu_.position, "IRET with VM set in its image of EFLAGS at level 1 or 2"};
  }
  std::array<std::uint32_t, 3> words{};
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = read_stack(4 * i, 4);
  const auto selector = static_cast<std::uint16_t>(words[1]);
  const std::uint32_t error = selector & 0xfffcu;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
  const bool fits = code.conforming() ? code.dpl() <= cpl : code.dpl() == cpl;
  if (!code.is_code() || (selector & 3u) != cpl || !fits) {
    throw CpuException{kProtection, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const Segment segment = code.segment(selector);
  if (words[0] > segment.limit) throw CpuException{kProtection, 0u, 0};
  segments_.mark_accessed(code);
  cpu_.move_stack_pointer(12);
  cpu_.engine.set_segment(kCs, segment);
  cpu_.engine.set_eip(words[0]);
  load_flags(words[2], cpl);
}

void FarReturn::tell_transfer_descriptors() {
  const DecodedInstruction& info = *flight_.info;
  const auto selector_at = [&](LinearAddr linear) {
    return static_cast<std::uint16_t>(operands_.read_value(linear, 2));
  };
  const std::uint32_t width = info.operand_bytes;
  const Segment stack = cpu_.engine.segment(kSs);
  const auto stacked = [&](std::uint32_t words, std::uint32_t bytes_more) {
    return linear32(stack.base,
                    (cpu_.engine.gpr(kEsp) + words * width + bytes_more) & stack_mask(stack));
  };
  const bool interrupt_return = info.kind == InstructionClass::iret;
  const auto tell_words = [&](std::uint32_t from, std::uint32_t to, std::uint32_t more) {
    for (std::uint32_t i = from; i < to; ++i) tell_stack_read(stacked(i, more), width);
  };
  if (interrupt_return && width == 4) {
    if ((selector_at(stacked(2, 2)) & kFlagVm >> 16) != 0) {  // to virtual-8086 mode
      tell_words(3, 9, 0);
      return;
    }
  }
  const std::uint16_t selector = selector_at(stacked(1, 0));
  if (!segments_.descriptor_type_byte(selector)) return;  // the engine will refuse it
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
  const std::uint32_t level = selector & 3u;
  // Refused before the outer stack pointer is read (SDM vol. 2, RET and IRET).
  if (level == (cpu_.engine.hflags() & kHfCpl) || !code_admits_return(code)) return;
  const std::uint32_t released = interrupt_return ? 0 : info.immediate;
  const std::uint32_t outer = interrupt_return ? 3 : 2;
  tell_stack_read(stacked(outer, released), width);
  tell_stack_read(stacked(outer + 1, released), 2);
  segments_.tell_descriptor(selector_at(stacked(outer + 1, released)));
  segments_.watch_return();
}

/// Tells a read of the stack that is not among the instruction's operands.
void FarReturn::tell_stack_read(LinearAddr linear, std::uint32_t size) {
  while (size != 0) {
    const std::uint32_t n = std::min(size, kPageSize - linear.offset_in_page());
    const PhysAddr at = cpu_.mmu.translate(linear, Access::read, cpu_.program());
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, n)) {
      throw UndefinedMemory{at, n, "stack"};
    }
    flight_.accessed = linear;
    if (cpu_.wants_reads) cpu_.audience.read(at, n, AccessKind::data, cpu_.position);
    linear = linear.plus32(n);
    size -= n;
  }
}

}  // namespace citcat
