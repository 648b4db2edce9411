#include "x86/flow/flow_maker.h"

#include <algorithm>
#include <utility>

#include "x86/flag_effects.h"
#include "x86/flow/mnemonic_facts.h"
#include "x86/flow/register_places.h"
#include "x86/flow/whole_registers.h"
#include "x86/flow/x87_flow.h"
#include "x86/zydis_mode.h"

namespace citcat::flow {
namespace {

bool is_string(InstructionClass kind) {
  return kind == InstructionClass::string || kind == InstructionClass::ins ||
         kind == InstructionClass::outs;
}

}  // namespace

ValueFlow FlowMaker::make() {
  if (!decode()) {
    approximate();
  } else if (info_.kind == InstructionClass::x87) {
    add_x87_flow(info_, flow_);
    add_addresses();
  } else {
    flow_.uses_mmx = touches_mmx() && mnemonic() != ZYDIS_MNEMONIC_EMMS;
    if (!special()) ordinary();
    add_addresses();
  }
  join_whole_registers(info_.bits64, flow_.effects);
  summarise();
  return std::move(flow_);
}

bool FlowMaker::decode() {
  const ZydisMode mode = zydis_mode(code_segment_bits(info_));
  ZydisDecoder decoder;
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode.machine, mode.stack))) return false;
  // Those of old processors decode only without what came later: their prefixes mean nothing.
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, info_.canonical.data(), info_.length,
                                             &instruction_, operands_.data())) &&
         instruction_.length == info_.length && info_.opcode_map != 0xff;
}

bool FlowMaker::touches_mmx() const {
  return std::any_of(all_operands().begin(), all_operands().end(), [](const auto& o) {
    return o.type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ZydisRegisterGetClass(o.reg.value) == ZYDIS_REGCLASS_MMX;
  });
}

std::optional<ValueSpan> FlowMaker::source(const ZydisDecodedOperand& o) const {
  if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    if (o.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return std::nullopt;
    return kLoads;
  }
  if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  const auto range = places_of(o.reg.value);
  return range ? std::optional(at_place(*range)) : std::nullopt;
}

std::optional<ValueSpan> FlowMaker::target(const ZydisDecodedOperand& o) const {
  if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) return kStores;
  if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  auto range = places_of(o.reg.value);
  if (!range) return std::nullopt;
  const ZydisRegisterClass kind = ZydisRegisterGetClass(o.reg.value);
  if (kind == ZYDIS_REGCLASS_GPR32) range->count = 8;
  if (kind == ZYDIS_REGCLASS_MMX) range->count = place::kStackBytes;
  return at_place(*range);
}

/// Those whose value no manual defines, of a count in CL whatever it is.
std::uint32_t FlowMaker::flags_left_undefined() const {
  const std::optional<unsigned> count =
      shifts_by_cl(info_) ? std::nullopt
                          : std::optional(shift_count(info_, 0) & shift_count_bits(info_));
  return flag_effect(info_, count).undefined & ~flags_set();
}

void FlowMaker::add_flag_effects(std::vector<ValueSpan> from) {
  std::vector<ValueSpan> to;
  add_flags(flags_set(), to);
  effect(to, {});
  to.clear();
  flow_.undefined_flags = flags_left_undefined();
  const std::uint32_t computed = flags_computed() | flow_.undefined_flags;
  // A count of 0 leaves all flags alone, and of one in CL only the run knows it.
  if (may_shift_by_none()) add_flags(computed, from);
  add_flags(computed & ~flow_.undefined_flags, to);
  effect(to, {}, from);
  // One that is undefined may also be left as it was.
  for (unsigned bit = 0; bit < 32; ++bit) {
    const ValueSpan flag = at_place(place::flag(bit));
    if ((flow_.undefined_flags >> bit & 1) != 0) effect({flag}, {flag}, from);
  }
}

bool FlowMaker::special() {
  return special_stack() || special_vectors() || special_shifts() || special_moves() ||
         special_flags() || special_system();
}

// ---------------------------------------------------------------------------------------------
// All others, by their operands

/// RSI, RDI and, of a repeated one, RCX of a string instruction: each goes on by itself.
bool FlowMaker::is_pointer_of_string(const ZydisDecodedOperand& o) const {
  if (o.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_string(info_.kind)) return false;
  const ZydisRegister whole =
      ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o.reg.value);
  return whole == ZYDIS_REGISTER_RSI || whole == ZYDIS_REGISTER_RDI ||
         (whole == ZYDIS_REGISTER_RCX && info_.is_repeated());
}

std::vector<ValueSpan> FlowMaker::read_spans(bool with_hidden_pointers) const {
  std::vector<ValueSpan> from;
  for (const ZydisDecodedOperand& o : all_operands()) {
    const bool pointer = is_hidden_stack_pointer(o) || is_pointer_of_string(o);
    const auto span = source(o);
    if (!span || !reads(o) || (pointer && !with_hidden_pointers)) continue;
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER && o.reg.value == ZYDIS_REGISTER_MXCSR) continue;
    from.push_back(*span);
  }
  return from;
}

/// Sums and products of `bytes` bytes: a byte is made of the bytes at its place and below.
void FlowMaker::carry(const ValueSpan& to, unsigned bytes, const std::vector<ValueSpan>& from,
                      const std::vector<ValueSpan>& flags) {
  for (unsigned i = 0; i < bytes; ++i) {
    std::vector<ValueSpan> parts = flags;
    for (ValueSpan source : from) {
      source.count = std::min(source.count, static_cast<std::uint16_t>(i + 1));
      parts.push_back(source);
    }
    effect({byte_of(to, i)}, {}, std::move(parts));
  }
}

/// Clears the bytes of a register above the `bytes` that a result has.
void FlowMaker::clear_above(const ValueSpan& to, unsigned bytes) {
  if (to.of != ValueSpan::Of::places || to.count <= bytes) return;
  effect({{to.of, static_cast<std::uint16_t>(to.first + bytes),
           static_cast<std::uint16_t>(to.count - bytes)}},
         {});
}

void FlowMaker::ordinary() {
  const bool same = instruction_.operand_count >= 2 &&
                    operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                    operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                    operand(0).reg.value == operand(1).reg.value;
  const bool constant = same && clears_register(mnemonic());
  std::vector<ValueSpan> from, flags;
  if (!constant) from = read_spans(false);
  add_flags(flags_tested() & ~(is_string(info_.kind) ? 0x400u : 0u), flags);
  // A condition decides; carries are part of the value.
  std::vector<ValueSpan> whole = flags;
  const bool moves = instruction_.meta.category == ZYDIS_CATEGORY_CMOV;
  const bool bytewise = is_bytewise(mnemonic()) || moves;
  // If the source is 0, these leave their target unchanged on all processors.
  const bool searches = mnemonic() == ZYDIS_MNEMONIC_BSF || mnemonic() == ZYDIS_MNEMONIC_BSR;
  for (const ZydisDecodedOperand& o : all_operands()) {
    if (!writes(o)) continue;
    auto to = target(o);
    if (!to) continue;
    if (is_hidden_stack_pointer(o)) {
      step_stack_pointer();
      continue;
    }
    if (is_pointer_of_string(o)) {
      const ValueSpan pointer = at_place(*places_of(o.reg.value));
      effect({*to}, {}, {pointer, at_place(place::flag(10))});
      continue;
    }
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER && o.reg.value == ZYDIS_REGISTER_MXCSR) continue;
    // A write that may not happen leaves what was there.
    const bool conditional = (o.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0 || searches;
    const bool has_32_bits = o.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                             ZydisRegisterGetClass(o.reg.value) == ZYDIS_REGCLASS_GPR32;
    if (has_32_bits && (!conditional || moves)) {
      clear_above(*to, 4);
      to->count = 4;
    }
    // Every byte of the high half of a product, which no operand names, depends on all of both.
    const bool low = o.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
                     to->first == place::gpr(kEax, 0, 1).first;
    if (carries(mnemonic()) && low) {
      carry(*to, o.size / 8, from, whole);
      continue;
    }
    std::vector<ValueSpan> lanes = bytewise ? from : std::vector<ValueSpan>{};
    std::vector<ValueSpan> all = whole;
    if (!bytewise) all.insert(all.end(), from.begin(), from.end());
    // The debug registers are one place, and LMSW loads four bits of CR0.
    const bool part_of_place = to->first == place::kDebug || mnemonic() == ZYDIS_MNEMONIC_LMSW;
    if (conditional || part_of_place) {
      lanes.push_back(o.type == ZYDIS_OPERAND_TYPE_MEMORY ? kLoads : *to);
    }
    effect({*to}, std::move(lanes), std::move(all));
  }
  std::vector<ValueSpan> flag_sources = from;
  flag_sources.insert(flag_sources.end(), flags.begin(), flags.end());
  add_flag_effects(std::move(flag_sources));
  // LDMXCSR and its like name it as their operand.
  if (info_.kind == InstructionClass::ldmxcsr) {
    effect({at_place(place::one(place::kMxcsr))}, {}, {kLoads});
  } else if (info_.kind == InstructionClass::stmxcsr) {
    effect({kStores}, {}, {at_place(place::one(place::kMxcsr))});
  }
}

// ---------------------------------------------------------------------------------------------

void FlowMaker::add_address(ZydisRegister reg) {
  if (const auto range = places_of(reg)) flow_.addresses.push_back(*range);
}

void FlowMaker::add_addresses() {
  for (const ZydisDecodedOperand& o : all_operands()) {
    if (o.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    if (o.mem.type == ZYDIS_MEMOP_TYPE_AGEN) continue;
    add_address(o.mem.base);
    add_address(o.mem.index);
    // Where segments begin is taken as given but where programs work with it.
    if (info_.real_or_v86) add_address(o.mem.segment);
  }
}

/// Every register may be read and written, but for what never is.
void FlowMaker::approximate() {
  flow_.approximate = true;
  std::vector<ValueSpan> all{{ValueSpan::Of::places, 0, place::kVectors}, kLoads};
  add_flags(kCalculated, all);
  std::vector<ValueSpan> to{kStores};
  add_flags(kCalculated, to);
  for (unsigned r = 0; r < 8; ++r) to.push_back(at_gpr(r, 0, 8));
  effect(to, {}, all);
}

void FlowMaker::summarise() {
  for (const ValueEffect& e : flow_.effects) {
    for (const ValueSpan& span : e.to) {
      if (span.of == ValueSpan::Of::stores) flow_.stores = true;
      if (span.of != ValueSpan::Of::places) continue;
      for (unsigned i = 0; i < span.count; ++i) flow_.written.set(span.first + i);
    }
  }
}

}  // namespace citcat::flow
