#include "replay/x86/operand_list.h"

#include "formats/io/error.h"
#include "replay/x86/operand_decoder.h"

namespace citcat {
namespace {

std::int8_t gpr_number(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return kNoRegister;
  const ZyanI8 id = ZydisRegisterGetId(reg);
  return id >= 0 && id < 8 ? static_cast<std::int8_t>(id) : kNoRegister;
}

std::uint8_t scale_shift(unsigned scale) {
  return static_cast<std::uint8_t>(scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0);
}

}  // namespace

OperandList::OperandList(DecodedInstruction& info, CpuModel model,
                         const ZydisDecodedInstruction& decoded,
                         std::span<const ZydisDecodedOperand> operands)
    : info_(info), model_(model), decoded_(decoded), zydis_operands_(operands) {
  const bool bits32 = (info.address_bits == 32) != info.address_prefix;
  word_ = bits32 != info.operand_prefix ? 4 : 2;
}

const ZydisDecodedOperand* OperandList::explicit_memory() const {
  for (const ZydisDecodedOperand& operand : zydis_operands_) {
    const bool ours = operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
    if (ours && operand.type == ZYDIS_OPERAND_TYPE_MEMORY) return &operand;
  }
  return nullptr;
}

MemoryOperand& OperandList::add(const MemoryOperand& operand) {
  CITCAT_ASSERT(info_.operand_count < kMaxOperands);
  MemoryOperand& slot = info_.operands[info_.operand_count++];
  slot = operand;
  return slot;
}

std::optional<MemoryOperand> OperandList::make_explicit() const {
  const ZydisDecodedOperand* source = explicit_memory();
  if (source == nullptr || source->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return std::nullopt;
  MemoryOperand operand;
  operand.kind = info_.has_modrm ? OperandKind::address : OperandKind::absolute;
  operand.width = address_width();
  operand.segment = segment_number(source->mem.segment);
  operand.base = gpr_number(source->mem.base);
  operand.index = gpr_number(source->mem.index);
  operand.shift = scale_shift(source->mem.scale);
  operand.displacement = static_cast<std::int32_t>(source->mem.disp.value);
  operand.size = static_cast<std::uint16_t>(source->size / 8);
  operand.read = (source->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  operand.write = (source->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  return operand;
}

MemoryOperand* OperandList::add_explicit() {
  const std::optional<MemoryOperand> operand = make_explicit();
  if (!operand || operand->size == 0) return nullptr;
  return &add(*operand);
}

MemoryOperand* OperandList::add_explicit(unsigned size, bool read, bool write) {
  std::optional<MemoryOperand> operand = make_explicit();
  if (!operand) return nullptr;
  operand->size = static_cast<std::uint16_t>(size);
  operand->read = read;
  operand->write = write;
  return &add(*operand);
}

void OperandList::add_far_pointer(bool selector_first) {
  std::optional<MemoryOperand> offset = make_explicit();
  if (!offset) return;
  offset->size = word_;
  offset->read = true;
  MemoryOperand selector = *offset;
  selector.displacement += word_;
  selector.size = 2;
  add(selector_first ? selector : *offset);
  add(selector_first ? *offset : selector);
}

/// `count` slots of `slot` bytes each, of which `size` are accessed (0: all); the first one `above`
/// the stack pointer.
MemoryOperand& OperandList::add_slots(OperandKind kind, int above, unsigned slot, unsigned count,
                                      unsigned size) {
  MemoryOperand operand;
  operand.kind = kind;
  operand.width = AddressWidth::stack;
  operand.segment = kSs;
  operand.base = kEsp;
  operand.displacement = above;
  operand.size = static_cast<std::uint16_t>(size == 0 ? slot : size);
  operand.count = static_cast<std::uint8_t>(count);
  return add(operand);
}

void OperandList::add_push(unsigned slot, unsigned count, unsigned size) {
  const auto step = static_cast<int>(slot);
  MemoryOperand& pushes =
      add_slots(OperandKind::stack_push, info_.stack_delta - step, slot, count, size);
  pushes.stride = static_cast<std::int8_t>(-step);
  pushes.write = true;
  info_.stack_delta -= static_cast<std::int32_t>(slot * count);
}

void OperandList::add_pop(unsigned slot, unsigned count, unsigned size) {
  MemoryOperand& pops = add_slots(OperandKind::stack_pop, info_.stack_delta, slot, count, size);
  pops.stride = static_cast<std::int8_t>(slot);
  pops.read = true;
  info_.stack_delta += static_cast<std::int32_t>(slot * count);
}

void OperandList::add_string(bool source, unsigned size, bool write) {
  MemoryOperand operand;
  operand.kind = source ? OperandKind::string_source : OperandKind::string_destination;
  operand.width = address_width();
  operand.segment = kEs;
  if (source) operand.segment = override_or(kDs);
  operand.base = source ? kEsi : kEdi;
  operand.size = static_cast<std::uint16_t>(size);
  operand.read = !write;
  operand.write = write;
  add(operand);
}

void OperandList::add_ea(EaSource source, unsigned argument) {
  CITCAT_ASSERT(info_.ea_count < info_.ea.size());
  info_.ea[info_.ea_count++] = EaSlot{source, static_cast<std::uint8_t>(argument)};
}

SegmentRegister segment_number(ZydisRegister reg) {
  switch (reg) {
    case ZYDIS_REGISTER_ES:
      return kEs;
    case ZYDIS_REGISTER_CS:
      return kCs;
    case ZYDIS_REGISTER_SS:
      return kSs;
    case ZYDIS_REGISTER_FS:
      return kFs;
    case ZYDIS_REGISTER_GS:
      return kGs;
    default:
      return kDs;
  }
}

}  // namespace citcat
