#include "replay/machine/units/segment_loader.h"

#include <array>
#include <cstring>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

Descriptor SegmentLoader::read_descriptor(std::uint16_t selector, std::uint8_t fault,
                                          std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  const auto linear = entry_of(selector);
  if (!linear) throw CpuException{fault, error, 0};
  Descriptor d;
  d.selector = selector;
  d.linear = *linear;
  d.low = system_.read(d.linear, 4);
  d.high = system_.read(cpu_.onward_in_system(d.linear, 4), 4);
  return d;
}

std::uint64_t SegmentLoader::read_upper_half(const Descriptor& d) {
  constexpr std::uint32_t kType = 0x1f00;
  const CpuException refused{kProtection, d.selector & 0xfffcu, 0};
  // A descriptor's selector goes on to the next 8 bytes.
  if (!entry_of(static_cast<std::uint16_t>(d.selector + 8))) throw refused;
  const std::uint32_t upper = system_.read(cpu_.onward_in_system(d.linear, 8), 4);
  if ((system_.read(cpu_.onward_in_system(d.linear, 12), 4) & kType) != 0) throw refused;
  return upper;
}

/// Where its table has the descriptor of `selector`; nullopt where it ends before.
std::optional<LinearAddr> SegmentLoader::entry_of(std::uint16_t selector) const {
  const bool local = (selector & 4) != 0;
  const Engine& engine = cpu_.engine;
  const Segment ldt = engine.ldtr();
  const std::uint64_t base = local ? engine.wide().ldtr_base() : engine.wide().gdtr_base();
  const std::uint32_t limit = local ? (ldt.unusable ? 0 : ldt.limit) : engine.gdtr().limit;
  if ((selector & 0xfff8u) + 7 > limit) return std::nullopt;
  return cpu_.onward_in_system(LinearAddr{base}, selector & 0xfff8u);
}

void SegmentLoader::mark_accessed(const Descriptor& d) {
  // One byte is written: seen on the bus of a recorded machine for far jumps and segment loads.
  if ((d.high & kDescAccessed) != 0) return;
  system_.write(cpu_.onward_in_system(d.linear, 5), (d.high | kDescAccessed) >> 8 & 0xff, 1);
}

std::optional<LinearAddr> SegmentLoader::descriptor_type_byte(std::uint16_t selector) const {
  if ((selector & 0xfffc) == 0) return std::nullopt;
  const auto entry = entry_of(selector);
  if (!entry) return std::nullopt;
  return cpu_.onward_in_system(*entry, 5);
}

bool SegmentLoader::look_up(std::uint16_t selector, Descriptor& out) {
  if (!descriptor_type_byte(selector)) return false;
  const LinearAddr entry = *entry_of(selector);
  std::array<std::uint8_t, 8> bytes{};
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    const LinearAddr at = cpu_.onward_in_system(entry, i);
    bytes[i] = *cpu_.memory.host(cpu_.mmu.translate_implicitly(at, Access::read));
  }
  out.selector = selector;
  out.linear = entry;
  std::memcpy(&out.low, bytes.data(), 4);
  std::memcpy(&out.high, &bytes[4], 4);
  return true;
}

void SegmentLoader::drop_inner(int s, std::uint32_t level) {
  const Segment segment = cpu_.engine.segment(s);
  constexpr std::uint32_t kConformingCode = (kDescCode | kDescConforming) >> 8;
  const bool conforming = (segment.attributes & kConformingCode) == kConformingCode;
  const std::uint32_t dpl = segment.attributes >> 5 & 3;
  if (!segment.unusable && !conforming && dpl < level)
    cpu_.engine.set_segment(s, {0, 0, 0, 0, true});
}

void SegmentLoader::tell_descriptor(std::uint16_t selector) {
  if (!descriptor_type_byte(selector)) return;  // the engine will refuse it
  const LinearAddr entry = *entry_of(selector);
  system_.read(entry, 4);
  system_.read(cpu_.onward_in_system(entry, 4), 4);
}

void SegmentLoader::tell_looked_up() {
  if (cpu_.protected_mode()) tell_descriptor(operand_selector());
}

/// The selector that the instruction is about to load or look up.
std::uint16_t SegmentLoader::operand_selector() {
  const DecodedInstruction& info = *flight_.info;
  if (info.register_form) return static_cast<std::uint16_t>(cpu_.engine.gpr(info.rm_field));
  // Of a far pointer's two operands that is the offset.
  const unsigned number = info.ea[0].argument;
  const bool pointer = info.kind == InstructionClass::load_far_pointer;
  MemoryOperand operand = info.operands[pointer ? 1 - number : number];
  operand.size = 2;
  return static_cast<std::uint16_t>(operands_.part(operand, 0));
}

void SegmentLoader::watch() {
  // The engine sets accessed and busy bits itself: remember the byte to see whether it did.
  watched_ = {};
  if (!cpu_.protected_mode()) return;
  const std::uint16_t selector = operand_selector();
  if (cpu_.bits64()) check_null_stack(selector);
  const auto linear = descriptor_type_byte(selector);
  if (!linear) return;
  tell_descriptor(selector);
  // Of the byte with a descriptor's type (SDM vol. 3, tables 3-1 and 3-2).
  constexpr std::uint8_t kPresentType = 0x9f, kLocalTable = 0x82, kFreeTask = 0x89;
  const InstructionClass kind = flight_.info->kind;
  const bool local_table = kind == InstructionClass::lldt, task = kind == InstructionClass::ltr;
  watched_.physical = cpu_.mmu.translate_implicitly(*linear, Access::read);
  watched_.before = *cpu_.memory.host(watched_.physical);
  if (cpu_.long_mode() && (local_table || task) &&
      (watched_.before & kPresentType) == (task ? kFreeTask : kLocalTable)) {
    // Of 16 bytes, with the upper half of the base (SDM vol. 3, figure 7-4); of what is refused
    // by its type no more than that is looked at.
    const LinearAddr entry = *entry_of(selector);
    system_.read(cpu_.onward_in_system(entry, 8), 4);
    system_.read(cpu_.onward_in_system(entry, 12), 4);
  }
  if (local_table) return;
  watched_.active = true;
  const std::uint8_t to_set = task ? 2 : 1;  // busy, accessed
  if ((watched_.before & to_set) == 0) cpu_.mmu.translate_implicitly(*linear, Access::write);
}

/// The engine takes a null stack segment for one of level 0, and of any level's selector.
void SegmentLoader::check_null_stack(std::uint16_t selector) const {
  const bool stack = flight_.info->kind != InstructionClass::lldt &&
                     flight_.info->kind != InstructionClass::ltr && flight_.info->reg_field == kSs;
  if (!stack || (selector & 0xfffc) != 0) return;
  const std::uint32_t cpl = cpu_.cpl();
  if (cpl == 3 || (selector & 3u) != cpl) throw CpuException{kProtection, 0u, 0};
  if (cpl == 0) return;
  throw ReplayStopped{cpu_.position, "a null stack segment at level 1 or 2, which is not executed"};
}

void SegmentLoader::report_watched() {
  if (!watched_.active) return;
  watched_.active = false;
  const std::uint8_t now = *cpu_.memory.host(watched_.physical);
  if (now == watched_.before) return;
  // A busy bit is written with its dword (seen on the buses of recorded machines), an accessed one
  // with its byte.
  const bool dword = flight_.info->kind == InstructionClass::ltr && !cpu_.traits.sixteen_bit;
  const PhysAddr at{watched_.physical.value - (dword ? 1 : 0)};
  const std::uint32_t size = dword ? 4 : 1;
  cpu_.memory.mark_defined(at, size);
  cpu_.audience.write(at, {cpu_.memory.host(at), size}, AccessKind::system, cpu_.position);
}

void SegmentLoader::mark_transfer_accessed() {
  // The engine loads CS, and SS on a return to an outer level, without setting the descriptors'
  // accessed bits.
  const bool outer = (cpu_.engine.hflags() & kHfCpl) != (flight_.hflags_before & kHfCpl);
  for (const int s : {kCs, kSs}) {
    if (s == kSs && !outer) continue;
    const auto linear = descriptor_type_byte(cpu_.engine.segment_selector(s));
    if (!linear) continue;
    constexpr std::uint8_t kAccessedBit = 1;
    const PhysAddr at = cpu_.mmu.translate_implicitly(*linear, Access::read);
    const std::uint8_t type = *cpu_.memory.host(at);  // has been read before the transfer
    if ((type & kAccessedBit) == 0) system_.write(*linear, std::uint32_t{type} | kAccessedBit, 1);
  }
}

void SegmentLoader::load_far_pointer() {
  const DecodedInstruction& info = *flight_.info;
  const int s = info.reg_field;
  const std::uint32_t offset = operands_.part(info.operands[info.ea[0].argument], 0);
  const Segment loaded = loaded_segment(s, operand_selector());
  mark_watched();
  cpu_.engine.set_segment(s, loaded);
  cpu_.set_low_part(info.rm_field, offset, info.operand_bytes);
  cpu_.engine.sync_mode();
}

void SegmentLoader::load_segment() {
  const DecodedInstruction& info = *flight_.info;
  const Segment loaded = loaded_segment(info.reg_field, operand_selector());
  mark_watched();
  cpu_.engine.set_segment(info.reg_field, loaded);
  cpu_.engine.sync_mode();
  cpu_.move_stack_pointer(info.stack_delta);
}

/// The descriptor that watch() found has been accessed.
void SegmentLoader::mark_watched() {
  constexpr std::uint8_t kAccessedBit = 1;
  if (!watched_.active || (watched_.before & kAccessedBit) != 0) return;
  const std::uint8_t accessed = watched_.before | kAccessedBit;
  cpu_.memory.store(watched_.physical, {&accessed, 1});
}

/// What a segment register holds when `selector` was loaded (SDM vol. 2, MOV: the checks).
Segment SegmentLoader::loaded_segment(int s, std::uint16_t selector) {
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
