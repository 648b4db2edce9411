#include "replay/machine/units/segment_loader.h"

#include <array>
#include <cstring>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

constexpr std::array<int, 4> kDataSegments = {kEs, kFs, kGs, kDs};

bool is_null(std::uint16_t selector) { return (selector & 0xfffc) == 0; }

/// And not one of LDTR or TR.
bool is_segment_load(const DecodedInstruction& info) {
  return info.kind != InstructionClass::lldt && info.kind != InstructionClass::ltr;
}

}  // namespace

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
    bytes[i] = *cpu_.memory.host(cpu_.mmu.translate(at, Access::read, Who::processor));
  }
  out.selector = selector;
  out.linear = entry;
  std::memcpy(&out.low, bytes.data(), 4);
  std::memcpy(&out.high, &bytes[4], 4);
  return true;
}

SegmentLoader::Loaded SegmentLoader::loaded(int s) const {
  return {cpu_.engine.segment(s), cpu_.engine.wide().segment_base(s)};
}

void SegmentLoader::set_loaded(int s, const Loaded& loaded) {
  cpu_.engine.set_segment(s, loaded.segment);
  cpu_.engine.wide().set_segment_base(s, loaded.base);
}

/// SDM vol. 2, RET and IRET: the selector alone is set, a null one too. Programs see it: one of 1
/// to 3 in FS or GS becomes 0 at every interrupt (Intel's and AMD's; not QEMU, target/i386/tcg,
/// validate_seg()).
void SegmentLoader::drop_inner(int s, std::uint32_t level) {
  const Loaded now = loaded(s);
  constexpr std::uint32_t kConformingCode = (kDescCode | kDescConforming) >> 8;
  const std::uint16_t attributes = now.segment.attributes;
  if (is_null(now.segment.selector)) {
    if ((s == kFs || s == kGs) && model_registers_.is_emulated()) return;
  } else {
    const bool conforming = (attributes & kConformingCode) == kConformingCode;
    const std::uint32_t dpl = attributes >> 5 & 3;
    if (now.segment.unusable || conforming || dpl >= level) return;
  }
  // Nobody sees the base of DS and ES: in 64-bit mode there is none, and elsewhere it is a fault to
  // use a null selector.
  const std::uint64_t base = s == kFs || s == kGs ? now.base : 0;
  set_loaded(s, {{0, 0, now.segment.limit, now.segment.attributes, true}, base});
}

void SegmentLoader::watch_return() {
  flight_.returns_outward = true;
  for (const int s : kDataSegments) before_return_[static_cast<std::size_t>(s)] = loaded(s);
}

/// The engine sets a base to 0 with the selector, and leaves null selectors of FS and GS alone.
void SegmentLoader::drop_returned(std::uint32_t level) {
  for (const int s : kDataSegments) {
    set_loaded(s, before_return_[static_cast<std::size_t>(s)]);
    drop_inner(s, level);
  }
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
  // A far pointer has two operands; this one is the offset.
  const unsigned number = info.ea[0].argument;
  const bool pointer = info.kind == InstructionClass::load_far_pointer;
  MemoryOperand operand = info.operands[pointer ? 1 - number : number];
  operand.size = 2;
  return static_cast<std::uint16_t>(operands_.part(operand, 0));
}

void SegmentLoader::watch() {
  // The engine sets accessed and busy bits itself: remember the byte to see whether it did.
  watched_ = {};
  kept_base_.reset();
  if (!cpu_.protected_mode()) return;
  const std::uint16_t selector = operand_selector();
  const int loaded = flight_.info->reg_field;
  if (is_null(selector) && (loaded == kFs || loaded == kGs) && is_segment_load(*flight_.info) &&
      !model_registers_.clears_base_of_null()) {
    kept_base_ = cpu_.engine.wide().segment_base(loaded);
  }
  if (cpu_.bits64()) check_null_stack(selector);
  const InstructionClass kind = flight_.info->kind;
  const bool local_table = kind == InstructionClass::lldt, task = kind == InstructionClass::ltr;
  // SDM vol. 2, LTR; the engine takes it for one without a task.
  if (task && is_null(selector)) throw CpuException{kProtection, 0u, 0};
  const auto linear = descriptor_type_byte(selector);
  if (!linear) return;
  tell_descriptor(selector);
  // Values of the byte with a descriptor's type (SDM vol. 3, tables 3-1 and 3-2).
  constexpr std::uint8_t kPresentType = 0x9f, kLocalTable = 0x82, kFreeTask = 0x89;
  watched_.physical = cpu_.mmu.translate(*linear, Access::read, Who::processor);
  watched_.before = *cpu_.memory.host(watched_.physical);
  if (task && cpu_.cpl() == 0) require_task_of_mode(selector);
  if (cpu_.long_mode() && (local_table || task) &&
      (watched_.before & kPresentType) == (task ? kFreeTask : kLocalTable)) {
    // The descriptor has 16 bytes, with the upper half of the base (SDM vol. 3, figure 7-4). If its
    // type is refused, the upper half is not examined.
    const LinearAddr entry = *entry_of(selector);
    system_.read(cpu_.onward_in_system(entry, 8), 4);
    system_.read(cpu_.onward_in_system(entry, 12), 4);
  }
  if (local_table) return;
  watched_.active = true;
  const std::uint8_t to_set = task ? 2 : 1;  // busy, accessed
  if ((watched_.before & to_set) == 0) cpu_.mmu.translate(*linear, Access::write, Who::processor);
}

/// The engine takes task states of 16 and of 32 bits in every mode. Long mode has none of 16 (SDM
/// vol. 3, table 3-2), the 80286 none of 32.
void SegmentLoader::require_task_of_mode(std::uint16_t selector) const {
  constexpr std::uint8_t kType = 0x1f, kFree16 = 1, kFree32 = 9;
  const std::uint8_t type = watched_.before & kType;
  const bool refused =
      (cpu_.long_mode() && type == kFree16) || (cpu_.traits.sixteen_bit && type == kFree32);
  if (refused) throw CpuException{kProtection, selector & 0xfffcu, 0};
}

/// The engine takes a null stack segment for one of level 0, and of any level's selector.
void SegmentLoader::check_null_stack(std::uint16_t selector) const {
  const bool stack = is_segment_load(*flight_.info) && flight_.info->reg_field == kSs;
  if (!stack || (selector & 0xfffc) != 0) return;
  const std::uint32_t cpl = cpu_.cpl();
  if (cpl == 3 || (selector & 3u) != cpl) throw CpuException{kProtection, 0u, 0};
  if (cpl == 0) return;
  throw ReplayStopped{cpu_.position, "a null stack segment at level 1 or 2, which is not executed"};
}

void SegmentLoader::report_watched() {
  if (kept_base_) {
    cpu_.engine.wide().set_segment_base(flight_.info->reg_field, *kept_base_);
    kept_base_.reset();
  }
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
  const std::uint32_t level = cpu_.engine.hflags() & kHfCpl;
  const bool outer = level != (flight_.hflags_before & kHfCpl);
  if (outer && flight_.returns_outward) drop_returned(level);
  flight_.returns_outward = false;
  for (const int s : {kCs, kSs}) {
    if (s == kSs && !outer) continue;
    const auto linear = descriptor_type_byte(cpu_.engine.segment_selector(s));
    if (!linear) continue;
    constexpr std::uint8_t kAccessedBit = 1;
    const PhysAddr at = cpu_.mmu.translate(*linear, Access::read, Who::processor);
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
