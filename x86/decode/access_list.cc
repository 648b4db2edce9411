#include "x86/decode/access_list.h"

#include <algorithm>

#include "formats/io/error.h"
#include "x86/decode/class_facts.h"

// Orders of accesses that no manual gives were read off buses: the 80286's in its single-step
// suite, later ones in recordings (docs/fidelity.md).

namespace citcat {
namespace {

/// The segment register that a row names: PUSH ES, LDS.
SegmentRegister named_segment(const OpcodeRow& row) {
  const auto form = std::find_if(row.operands.begin(), row.operands.end(), [](OperandForm f) {
    return f >= OperandForm::ES && f <= OperandForm::GS;
  });
  CITCAT_ASSERT(form != row.operands.end());
  return static_cast<SegmentRegister>(static_cast<int>(*form) - static_cast<int>(OperandForm::ES));
}

}  // namespace

void AccessList::build() {
  using Pattern = AccessPattern;
  switch (info_.row->accesses) {
    case Pattern::none:
      break;
    case Pattern::operand:
      if (add_explicit() != nullptr) add_ea_operand(0);
      break;
    case Pattern::page:
      // Names a page, touches nothing.
      if (MemoryOperand* const page = add_explicit()) page->read = page->write = false;
      break;
    case Pattern::parts:
      parts();
      break;
    case Pattern::load_segment:
      load_segment();
      break;
    case Pattern::far_pointer:
      far_pointer();
      break;
    case Pattern::bound:
      bound();
      break;
    case Pattern::string:
      string();
      break;
    case Pattern::xlat:
      xlat();
      break;
    case Pattern::bit_string:
      bit_string();
      break;
    case Pattern::masked_move:
      masked_move();
      break;
    case Pattern::branch:
    case Pattern::call:
    case Pattern::ret:
    case Pattern::jump_indirect:
    case Pattern::call_indirect:
    case Pattern::jump_far:
    case Pattern::call_far:
    case Pattern::jump_far_indirect:
    case Pattern::call_far_indirect:
    case Pattern::ret_far:
    case Pattern::interrupt:
    case Pattern::iret:
      add_transfer_accesses();
      break;
    default:
      add_stack_accesses();
  }
  finish();
}

void AccessList::add_stack_accesses() {
  switch (info_.row->accesses) {
    case AccessPattern::push:
      add_ea(EaSource::stack_push, word_);
      return add_push(word_);
    case AccessPattern::push_all:
      return push_all();
    case AccessPattern::push_operand:
      return push_operand();
    case AccessPattern::push_segment:
      return push_segment();
    case AccessPattern::pop:
      return pop_register();
    case AccessPattern::pop_all:
      return pop_all();
    case AccessPattern::pop_operand:
      return pop_operand();
    case AccessPattern::pop_segment:
      return pop_segment();
    case AccessPattern::enter:
      return enter();
    case AccessPattern::leave:
      return leave();
    default:
      throw InternalError("a pattern of accesses is in no group");
  }
}

void AccessList::add_transfer_accesses() {
  switch (info_.row->accesses) {
    case AccessPattern::branch:
    case AccessPattern::jump_far:
      return add_ea(EaSource::target);
    case AccessPattern::call:
      add_ea(EaSource::target);
      add_ea(EaSource::stack_push, word_);
      return add_push(word_);
    case AccessPattern::call_far:
      add_ea(EaSource::target);
      add_ea(EaSource::stack_push, word_);
      return add_push(word_, 2);
    case AccessPattern::jump_indirect:
      info_.indirect = true;
      return jump_indirect();
    case AccessPattern::call_indirect:
      info_.indirect = true;
      add_ea(EaSource::stack_push, word_);
      jump_indirect();
      return add_push(word_);
    case AccessPattern::jump_far_indirect:
      info_.indirect = true;
      add_far_pointer(false);
      return add_ea_operand(0);
    case AccessPattern::call_far_indirect:
      info_.indirect = true;
      add_far_pointer(false);
      add_ea_operand(0);
      add_ea(EaSource::stack_push, word_);
      return add_push(word_, 2);
    case AccessPattern::ret:
      return ret(false);
    case AccessPattern::ret_far:
      return ret(true);
    case AccessPattern::interrupt:
      return add_ea(EaSource::stack_push, word_);
    case AccessPattern::iret:
      return interrupt_return();
    default:
      throw InternalError("a pattern of accesses is in no group");
  }
}

// A 32-bit PUSH of a segment register moves ESP by four and writes only the two bytes of the
// selector (SDM vol. 2, PUSH: "the segment selector is written on the stack using a 16-bit
// move"); the upper half of the slot keeps what it held. In 64-bit mode all of the slot is written,
// and read by POP.
void AccessList::push_segment() {
  info_.reg_field = named_segment(*info_.row);
  add_ea(EaSource::stack_push, word_);
  add_push(word_, 1, word_ == 8 ? 0 : 2);
}

void AccessList::pop_segment() {
  info_.reg_field = named_segment(*info_.row);
  add_pop(word_, 1, word_ == 8 ? 0 : 2);
  add_ea(EaSource::stack_pop);
  note_segment_load();
}

/// The machine makes its accesses by itself.
void AccessList::parts() {
  MemoryOperand* const area = add_explicit();
  area->read = area->write = false;
  add_ea_operand(0);
}

void AccessList::load_segment() {
  note_segment_load();
  if (add_explicit() != nullptr) add_ea_operand(0);
}

void AccessList::note_segment_load() {
  info_.shadows_interrupts = info_.reg_field == kSs || traits_.segment_loads_shadow;
  info_.control_flow = info_.reg_field == kCs;
  info_.ends_block = info_.shadows_interrupts || info_.control_flow;
}

// LDS and its like read the offset first on the 80286's bus (single-step suite, C4 and C5); the
// later machines seen read the selector first.
void AccessList::far_pointer() {
  const bool selector_first = !traits_.sixteen_bit;
  add_far_pointer(selector_first);
  add_ea_operand(selector_first ? 1 : 0);
  info_.rm_field = info_.reg_field;  // the general register; the address is in the operands
  info_.reg_field = named_segment(*info_.row);
  info_.shadows_interrupts = info_.reg_field == kSs;
  info_.ends_block = info_.shadows_interrupts;
}

void AccessList::pop_register() {
  add_pop(word_);
  add_ea(EaSource::stack_pop);
  const bool esp = info_.row->operands[0] == OperandForm::Zv && info_.rm_field == kEsp;
  if (esp) info_.stack_delta = 0;
}

// The 80286 stores DI first, upward to AX; later machines seen store downward from the stack
// pointer.
void AccessList::push_all() {
  constexpr unsigned kRegisters = 8;
  add_ea(EaSource::stack_push, word_);
  add_push(word_, kRegisters);
  if (!traits_.pushes_all_upward) return;
  MemoryOperand& pushes = info_.operands[0];
  pushes.displacement = info_.stack_delta;
  pushes.stride = static_cast<std::int8_t>(word_);
}

// The 80286 fetches AX, the last word, before the others.
void AccessList::pop_all() {
  add_ea(EaSource::stack_pop);
  if (!traits_.pops_ax_first) return add_pop(word_, 8);
  info_.stack_delta = 7 * word_;
  add_pop(word_);
  info_.stack_delta = 0;
  add_pop(word_, 7);
  info_.stack_delta = 8 * word_;
}

void AccessList::push_operand() {
  add_ea(EaSource::stack_push, word_);
  if (add_explicit() != nullptr) add_ea_operand(0);
  add_push(word_);
}

void AccessList::pop_operand() {
  add_pop(word_);
  MemoryOperand* const destination = add_explicit();
  if (destination == nullptr) {
    if (info_.rm_field == kEsp) info_.stack_delta = 0;
    return add_ea(EaSource::stack_pop);
  }
  if (destination->base == kEsp) destination->kind = OperandKind::address_after_pop;
  add_ea_operand(1);
}

void AccessList::bound() {
  MemoryOperand* const bounds = add_explicit();
  if (bounds == nullptr) return;
  bounds->size = word_;
  bounds->count = 2;
  bounds->stride = static_cast<std::int8_t>(word_);
  add_ea_operand(0);
}

void AccessList::string() {
  const unsigned size = (info_.opcode & 1) == 0 ? 1 : word_;
  for (unsigned i = 0; i < info_.prefix_bytes; ++i) {
    if (info_.bytes[i] == 0xf3) info_.repeat = RepeatPrefix::rep;
    if (info_.bytes[i] == 0xf2) info_.repeat = RepeatPrefix::repne;
    if (!traits_.has_nec_opcodes) continue;
    if (info_.bytes[i] == 0x65) info_.repeat = RepeatPrefix::repc;
    if (info_.bytes[i] == 0x64) info_.repeat = RepeatPrefix::repnc;
  }
  if (info_.row->operation == Operation::cmps) return compare_strings(size);
  bool reads = false, writes = false, compares = false;
  for (std::size_t i = 0; i < 2; ++i) {
    const OperandForm form = info_.row->operands[i];
    reads = reads || form == OperandForm::Xb || form == OperandForm::Xv;
    const bool destination = form == OperandForm::Yb || form == OperandForm::Yv;
    writes = writes || (destination && i == 0);
    compares = compares || (destination && i == 1);
  }
  if (reads) add_string(true, size, false);
  if (writes || compares) add_string(false, size, writes);
  for (unsigned i = 0; i < info_.operand_count; ++i) add_ea_operand(i);
}

// The 80286 reads ES:DI before DS:SI (seen on its bus in every CMPS of the single-step suite that
// faults); KT lists the source first in any case.
void AccessList::compare_strings(unsigned size) {
  const bool destination_first = traits_.compares_destination_first;
  add_string(!destination_first, size, false);
  add_string(destination_first, size, false);
  add_ea_operand(destination_first ? 1 : 0);
  add_ea_operand(destination_first ? 0 : 1);
}

void AccessList::xlat() {
  MemoryOperand operand;
  operand.kind = OperandKind::table;
  operand.width = address_width();
  operand.segment = override_or(kDs);
  operand.base = kEbx;
  operand.size = 1;
  operand.read = true;
  add(operand);
  add_ea_operand(0);
}

// PUSH EBP; then for a nesting level L > 0, L-1 frame pointers copied from below EBP and the new
// frame pointer pushed; then room for locals (SDM vol. 2, ENTER).
void AccessList::enter() {
  add_ea(EaSource::stack_push, word_);
  add_push(word_);
  const unsigned level = encoded_.immediates[1] & 31;
  if (level > 1) {
    MemoryOperand display;
    display.kind = OperandKind::frame;
    display.width = stack_width();
    display.segment = kSs;
    display.base = kEbp;
    display.displacement = -std::int64_t{word_};
    display.size = word_;
    display.count = static_cast<std::uint8_t>(level - 1);
    display.stride = static_cast<std::int8_t>(-static_cast<int>(word_));
    display.read = true;
    display.interleaved = true;
    add(display);
    add_push(word_, level - 1);
  }
  if (level > 0) add_push(word_);
  info_.stack_delta -= static_cast<std::int32_t>(info_.immediate);
}

void AccessList::leave() {
  MemoryOperand operand;
  operand.kind = OperandKind::frame;
  operand.width = stack_width();
  operand.segment = kSs;
  operand.base = kEbp;
  operand.size = word_;
  operand.read = true;
  add(operand);
  add_ea(EaSource::frame);
}

void AccessList::ret(bool far) {
  add_pop(word_, far ? 2 : 1);
  add_ea(EaSource::stack_pop);
  info_.stack_delta += static_cast<std::int32_t>(info_.immediate);
}

// The 80286 reads FLAGS, IP, CS (its bus in the single-step suite); later machines seen read
// upward in real mode and FLAGS, CS, EIP in protected mode.
void AccessList::interrupt_return() {
  add_ea(EaSource::stack_pop);
  if (traits_.returns_flags_first) {
    info_.stack_delta = 2 * word_;
    add_pop(word_);
    info_.stack_delta = 0;
    add_pop(word_, 2);
    info_.stack_delta = 3 * word_;
    return;
  }
  if (info_.bits64) return add_pop(word_, 5);  // SS and RSP always (SDM vol. 3, 6.14.3)
  add_pop(word_, 3);
  if (info_.real_or_v86) return;
  info_.operands[0].displacement = 2 * word_;
  info_.operands[0].stride = static_cast<std::int8_t>(-static_cast<int>(word_));
}

void AccessList::jump_indirect() {
  if (add_explicit() != nullptr) return add_ea_operand(0);
  add_ea(EaSource::reg, info_.rm_field);
}

void AccessList::bit_string() {
  MemoryOperand* const operand = add_explicit();
  if (operand == nullptr) return;
  operand->kind = OperandKind::bit_string;
  operand->bit_register = static_cast<std::int8_t>(info_.reg_field);
  add_ea_operand(0);
}

void AccessList::masked_move() {
  MemoryOperand operand;
  operand.kind = OperandKind::string_destination;
  operand.width = address_width();
  operand.segment = override_or(kDs);
  operand.base = kEdi;
  operand.size = info_.mandatory_prefix == 0x66 ? 16 : 8;
  operand.write = true;
  operand.conditional_write = true;
  add(operand);
  add_ea_operand(0);
}

void AccessList::finish() {
  const ClassFacts& facts = class_facts(info_.kind);
  if (info_.kind == InstructionClass::sti) info_.shadows_interrupts = true;
  if (facts.transfers) {
    info_.control_flow = true;
    info_.operand_bytes = word_;
  }
  if (info_.control_flow || info_.is_repeated() || facts.ends_block) info_.ends_block = true;
}

// ---------------------------------------------------------------------------------------------
// Adding one

MemoryOperand& AccessList::add(const MemoryOperand& operand) {
  CITCAT_ASSERT(info_.operand_count < kMaxOperands);
  MemoryOperand& slot = info_.operands[info_.operand_count++];
  slot = operand;
  return slot;
}

MemoryOperand* AccessList::add_explicit() {
  if (!encoded_.in_memory || encoded_.address.size == 0) return nullptr;
  return &add(encoded_.address);
}

void AccessList::add_far_pointer(bool selector_first) {
  MemoryOperand offset = encoded_.address;
  offset.size = word_;
  MemoryOperand selector = offset;
  selector.displacement += word_;
  selector.size = 2;
  add(selector_first ? selector : offset);
  add(selector_first ? offset : selector);
}

/// `count` slots of `slot` bytes each, of which `size` are accessed (0: all); the first one `above`
/// the stack pointer.
MemoryOperand& AccessList::add_slots(OperandKind kind, int above, unsigned slot, unsigned count,
                                     unsigned size) {
  MemoryOperand operand;
  operand.kind = kind;
  operand.width = stack_width();
  operand.segment = kSs;
  operand.base = kEsp;
  operand.displacement = above;
  operand.size = static_cast<std::uint16_t>(size == 0 ? slot : size);
  operand.count = static_cast<std::uint8_t>(count);
  return add(operand);
}

void AccessList::add_push(unsigned slot, unsigned count, unsigned size) {
  const auto step = static_cast<int>(slot);
  MemoryOperand& pushes =
      add_slots(OperandKind::stack_push, info_.stack_delta - step, slot, count, size);
  pushes.stride = static_cast<std::int8_t>(-step);
  pushes.write = true;
  info_.stack_delta -= static_cast<std::int32_t>(slot * count);
}

void AccessList::add_pop(unsigned slot, unsigned count, unsigned size) {
  MemoryOperand& pops = add_slots(OperandKind::stack_pop, info_.stack_delta, slot, count, size);
  pops.stride = static_cast<std::int8_t>(slot);
  pops.read = true;
  info_.stack_delta += static_cast<std::int32_t>(slot * count);
}

void AccessList::add_string(bool source, unsigned size, bool write) {
  MemoryOperand operand;
  operand.kind = source ? OperandKind::string_source : OperandKind::string_destination;
  operand.width = address_width();
  operand.segment = source ? override_or(kDs) : kEs;
  operand.base = source ? kEsi : kEdi;
  operand.size = static_cast<std::uint16_t>(size);
  operand.read = !write;
  operand.write = write;
  add(operand);
}

void AccessList::add_ea(EaSource source, unsigned argument) {
  CITCAT_ASSERT(info_.ea_count < info_.ea.size());
  info_.ea[info_.ea_count++] = EaSlot{source, static_cast<std::uint8_t>(argument)};
}

}  // namespace citcat
