#include "x86/value_flow.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "x86/x87_flow.h"
#include "x86/zydis_mode.h"

namespace citcat {
namespace {

using Of = ValueSpan::Of;
constexpr ValueSpan kLoads{Of::loads, 0, ValueSpan::kAll};
constexpr ValueSpan kStores{Of::stores, 0, ValueSpan::kAll};
constexpr ValueSpan kInput{Of::input, 0, 1};
constexpr std::uint32_t kCalculated = 0x8d5;  ///< CF PF AF ZF SF OF

ValueSpan at_place(PlaceRange range) { return {Of::places, range.first, range.count}; }
ValueSpan at_gpr(unsigned number, unsigned first, unsigned count) {
  return at_place(place::gpr(number, first, count));
}
ValueSpan loads(unsigned first, unsigned count) {
  return {Of::loads, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
}
ValueSpan stores(unsigned first, unsigned count) {
  return {Of::stores, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
}
/// Byte `i` of a span; nothing where it has fewer.
ValueSpan byte_of(const ValueSpan& span, unsigned i) {
  return {span.of, static_cast<std::uint16_t>(span.first + i), 1};
}

void add_flags(std::uint32_t mask, std::vector<ValueSpan>& to) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((mask >> bit & 1) != 0) to.push_back(at_place(place::flag(bit)));
  }
}

/// The places of a register of Zydis'; nothing for what holds no value.
std::optional<PlaceRange> places_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  const auto number = static_cast<unsigned>(std::max<int>(ZydisRegisterGetId(whole), 0));
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_GPR8:
      return place::gpr(number, reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? 1 : 0, 1);
    case ZYDIS_REGCLASS_GPR16:
      return place::gpr(number, 0, 2);
    case ZYDIS_REGCLASS_GPR32:
      return place::gpr(number, 0, 4);
    case ZYDIS_REGCLASS_GPR64:
      return place::gpr(number, 0, 8);
    case ZYDIS_REGCLASS_XMM:
      if (number >= 16) return std::nullopt;
      return place::vector(number);
    case ZYDIS_REGCLASS_MMX:
      return place::stack(number, 8);
    case ZYDIS_REGCLASS_SEGMENT:
      return place::segment(static_cast<unsigned>(ZydisRegisterGetId(reg)));
    case ZYDIS_REGCLASS_CONTROL: {
      const auto control = static_cast<unsigned>(ZydisRegisterGetId(reg));
      const unsigned place = control == 0 ? 0 : control == 8 ? 4 : control - 1;
      return place::one(place::kControl + std::min(place, 4u));
    }
    case ZYDIS_REGCLASS_DEBUG:
      return place::one(place::kDebug);
    default:
      break;
  }
  switch (reg) {
    case ZYDIS_REGISTER_GDTR:
      return place::one(place::kTables);
    case ZYDIS_REGISTER_IDTR:
      return place::one(place::kTables + 1);
    case ZYDIS_REGISTER_LDTR:
      return place::one(place::kTables + 2);
    case ZYDIS_REGISTER_TR:
      return place::one(place::kTables + 3);
    case ZYDIS_REGISTER_MXCSR:
      return place::one(place::kMxcsr);
    case ZYDIS_REGISTER_XCR0:
      return place::one(place::kXcr0);
    default:
      return std::nullopt;
  }
}

bool is_of_sse(ZydisRegister reg) { return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_XMM; }

/// Byte i of what it writes is made of byte i of what it reads alone.
bool is_bytewise(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_LODSB:
    case ZYDIS_MNEMONIC_LODSW:
    case ZYDIS_MNEMONIC_LODSD:
    case ZYDIS_MNEMONIC_LODSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVNTQ:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_LDDQU:
    case ZYDIS_MNEMONIC_PAND:
    case ZYDIS_MNEMONIC_PANDN:
    case ZYDIS_MNEMONIC_POR:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_ANDPS:
    case ZYDIS_MNEMONIC_ANDPD:
    case ZYDIS_MNEMONIC_ANDNPS:
    case ZYDIS_MNEMONIC_ANDNPD:
    case ZYDIS_MNEMONIC_ORPS:
    case ZYDIS_MNEMONIC_ORPD:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
      return true;
    default:
      return false;
  }
}

/// With both operands the same register the result is a constant.
bool clears_register(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_PANDN:
    case ZYDIS_MNEMONIC_ANDNPS:
    case ZYDIS_MNEMONIC_ANDNPD:
    case ZYDIS_MNEMONIC_PSUBB:
    case ZYDIS_MNEMONIC_PSUBW:
    case ZYDIS_MNEMONIC_PSUBD:
    case ZYDIS_MNEMONIC_PSUBQ:
    case ZYDIS_MNEMONIC_PCMPEQB:
    case ZYDIS_MNEMONIC_PCMPEQW:
    case ZYDIS_MNEMONIC_PCMPEQD:
    case ZYDIS_MNEMONIC_PCMPGTB:
    case ZYDIS_MNEMONIC_PCMPGTW:
    case ZYDIS_MNEMONIC_PCMPGTD:
      return true;
    default:
      return false;
  }
}

bool is_string(InstructionClass kind) {
  return kind == InstructionClass::string || kind == InstructionClass::ins ||
         kind == InstructionClass::outs;
}

class FlowMaker {
 public:
  explicit FlowMaker(const DecodedInstruction& info) : info_(info) {}

  ValueFlow make() {
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
    summarise();
    return std::move(flow_);
  }

 private:
  ZydisMnemonic mnemonic() const { return instruction_.mnemonic; }
  std::span<const ZydisDecodedOperand> all_operands() const {
    return {operands_.data(), instruction_.operand_count};
  }
  const ZydisDecodedOperand& operand(unsigned i) const { return operands_[i]; }
  unsigned word() const { return std::max<unsigned>(info_.operand_bytes, 1); }

  bool decode() {
    const ZydisMode mode = zydis_mode(code_segment_bits(info_));
    ZydisDecoder decoder;
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode.machine, mode.stack))) return false;
    // Those of old processors decode only without what came later: their prefixes mean nothing.
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, info_.canonical.data(), info_.length,
                                               &instruction_, operands_.data())) &&
           instruction_.length == info_.length && info_.opcode_map != 0xff;
  }

  // ---- parts of operands

  static bool reads(const ZydisDecodedOperand& o) {
    return (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  }
  static bool writes(const ZydisDecodedOperand& o) {
    return (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  }
  bool touches_mmx() const {
    return std::any_of(all_operands().begin(), all_operands().end(), [](const auto& o) {
      return o.type == ZYDIS_OPERAND_TYPE_REGISTER &&
             ZydisRegisterGetClass(o.reg.value) == ZYDIS_REGCLASS_MMX;
    });
  }
  /// What an operand reads; nothing for a constant.
  std::optional<ValueSpan> source(const ZydisDecodedOperand& o) const {
    if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      if (o.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return std::nullopt;
      return kLoads;
    }
    if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
    const auto range = places_of(o.reg.value);
    return range ? std::optional(at_place(*range)) : std::nullopt;
  }
  /// What an operand writes. A write of 32 bits of a register of 64 clears the others.
  std::optional<ValueSpan> target(const ZydisDecodedOperand& o) const {
    if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) return kStores;
    if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
    auto range = places_of(o.reg.value);
    if (!range) return std::nullopt;
    const ZydisRegisterClass kind = ZydisRegisterGetClass(o.reg.value);
    if (kind == ZYDIS_REGCLASS_GPR32) range->count = 8;
    if (kind == ZYDIS_REGCLASS_MMX) range->count = place::kStackBytes;
    return at_place(*range);
  }
  bool is_hidden_stack_pointer(const ZydisDecodedOperand& o) const {
    return o.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           o.type == ZYDIS_OPERAND_TYPE_REGISTER && is_stack_pointer(o.reg.value);
  }
  static bool is_stack_pointer(ZydisRegister reg) {
    return reg == ZYDIS_REGISTER_SP || reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_RSP;
  }
  void effect(std::vector<ValueSpan> to, std::vector<ValueSpan> lanes,
              std::vector<ValueSpan> whole = {}) {
    if (!to.empty()) flow_.effects.push_back({std::move(to), std::move(lanes), std::move(whole)});
  }
  /// Only where so much is popped.
  void popped_only(std::vector<ValueSpan> to, ValueSpan from) {
    flow_.effects.push_back({std::move(to), {}, {from}, true});
  }
  void step_stack_pointer() { effect({at_gpr(kEsp, 0, 8)}, {}, {at_gpr(kEsp, 0, 8)}); }

  // ---- flags

  std::uint32_t flags_tested() const {
    return instruction_.cpu_flags == nullptr ? 0 : instruction_.cpu_flags->tested;
  }
  /// Flags that it gives a value that is none of the instruction's own.
  std::uint32_t flags_computed() const {
    if (instruction_.cpu_flags == nullptr) return 0;
    const ZydisAccessedFlags& f = *instruction_.cpu_flags;
    return (f.modified | f.undefined) & ~(f.set_0 | f.set_1);
  }
  std::uint32_t flags_set() const {
    if (instruction_.cpu_flags == nullptr) return 0;
    return instruction_.cpu_flags->set_0 | instruction_.cpu_flags->set_1;
  }
  void add_flag_effects(std::vector<ValueSpan> from) {
    std::vector<ValueSpan> to;
    add_flags(flags_set(), to);
    effect(to, {});
    to.clear();
    add_flags(flags_computed(), to);
    // A count of 0 leaves all flags alone, and of one in CL only the run knows it.
    if (may_shift_by_none()) add_flags(flags_computed(), from);
    effect(to, {}, std::move(from));
  }
  /// It shifts, and by a count that may be 0.
  bool may_shift_by_none() const {
    const bool shifts =
        (info_.flag_rule >= FlagRule::shift_left && info_.flag_rule <= FlagRule::double_shift);
    return shifts && (shift_count(info_, 0) & shift_count_bits(info_)) == 0;
  }

  // ---- instructions with rules of their own

  bool special();
  bool special_stack();
  bool special_moves();
  bool special_flags();
  bool special_system();
  void ordinary();
  void push_all();
  void pop_all();
  void far_return(bool interrupt);
  void exchange();
  void swap_bytes();
  void extend();
  void widen_accumulator();
  void push_flags();
  void pop_flags();
  void add_image(bool saves);
  void call();
  void masked_logic(const ZydisDecodedOperand& to, std::uint64_t mask, bool is_and);
  void port_string();
  std::vector<ValueSpan> read_spans(bool with_hidden_pointers) const;
  bool is_pointer_of_string(const ZydisDecodedOperand& o) const;
  void branch_on(std::vector<PlaceRange> decides) {
    flow_.branch = true;
    flow_.decides = std::move(decides);
  }

  void add_addresses();
  void add_address(ZydisRegister reg);
  void approximate();
  void summarise();

  const DecodedInstruction& info_;
  ValueFlow flow_;
  ZydisDecodedInstruction instruction_{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
};

// ---------------------------------------------------------------------------------------------
// The stack

void FlowMaker::push_all() {
  constexpr std::array<unsigned, 8> kOrder{kEax, kEcx, kEdx, kEbx, kEsp, kEbp, kEsi, kEdi};
  for (unsigned i = 0; i < 8; ++i) {
    effect({stores(i * word(), word())}, {at_gpr(kOrder[i], 0, word())});
  }
  step_stack_pointer();
}

void FlowMaker::pop_all() {
  constexpr std::array<unsigned, 8> kOrder{kEdi, kEsi, kEbp, kEsp, kEbx, kEdx, kEcx, kEax};
  for (unsigned i = 0; i < 8; ++i) {
    if (kOrder[i] != kEsp) effect({at_gpr(kOrder[i], 0, word())}, {loads(i * word(), word())});
  }
  step_stack_pointer();
}

/// RETF and IRET: offset, selector, and of IRET flags lie in this order; then perhaps another
/// stack.
void FlowMaker::far_return(bool interrupt) {
  const unsigned size = word();
  effect({at_place(place::segment(kCs))}, {}, {loads(size, 2)});
  unsigned next = 2;
  if (interrupt) {
    for (unsigned bit = 0; bit < std::min(32u, 8 * size); ++bit) {
      effect({at_place(place::flag(bit))}, {loads(2 * size + bit / 8, 1)});
    }
    next = 3;
  }
  popped_only({at_place(place::segment(kSs))}, loads((next + 1) * size, 2));
  // It goes on from where it was, unless another one is popped.
  effect({at_gpr(kEsp, 0, 8)}, {}, {loads(next * size, size), at_gpr(kEsp, 0, 8)});
  if (!interrupt) return;
  constexpr std::array<unsigned, 4> kVirtual{kEs, kDs, kFs, kGs};
  for (unsigned i = 0; i < kVirtual.size(); ++i) {
    popped_only({at_place(place::segment(kVirtual[i]))}, loads((5 + i) * size, 2));
  }
}

void FlowMaker::call() {
  // The place that is returned to is no input.
  effect({kStores}, {},
         info_.kind == InstructionClass::far_call ? std::vector{at_place(place::segment(kCs))}
                                                  : std::vector<ValueSpan>{});
  step_stack_pointer();
  if (!info_.indirect) return;
  std::vector<PlaceRange> decides;
  if (operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER) {
    if (const auto range = places_of(operand(0).reg.value)) decides.push_back(*range);
  }
  branch_on(std::move(decides));
}

void FlowMaker::push_flags() {
  for (unsigned byte = 0; byte < word(); ++byte) {
    std::vector<ValueSpan> bits;
    if (byte < 4) add_flags(0xffu << 8 * byte, bits);
    effect({stores(byte, 1)}, {}, bits);
  }
  step_stack_pointer();
}

void FlowMaker::pop_flags() {
  for (unsigned bit = 0; bit < std::min(32u, 8 * word()); ++bit) {
    // Whether the system flags change is a matter of privilege.
    const bool system = (kCalculated >> bit & 1) == 0;
    std::vector<ValueSpan> kept;
    if (system) kept.push_back(at_place(place::flag(bit)));
    effect({at_place(place::flag(bit))}, {loads(bit / 8, 1)}, kept);
  }
  step_stack_pointer();
}

bool FlowMaker::special_stack() {
  switch (info_.kind) {
    case InstructionClass::call:
    case InstructionClass::far_call:
      call();
      return true;
    case InstructionClass::ret:
      branch_on({});
      step_stack_pointer();
      return true;
    case InstructionClass::far_return:
      branch_on({});
      far_return(false);
      return true;
    case InstructionClass::iret:
      branch_on({});
      far_return(true);
      return true;
    case InstructionClass::pushf:
      push_flags();
      return true;
    case InstructionClass::popf:
      pop_flags();
      return true;
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::icebp:
      return true;  // what is delivered does it
    default:
      break;
  }
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_PUSHA:
    case ZYDIS_MNEMONIC_PUSHAD:
      push_all();
      return true;
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD:
      pop_all();
      return true;
    case ZYDIS_MNEMONIC_LEAVE:
      effect({at_gpr(kEsp, 0, 8)}, {}, {at_gpr(kEbp, 0, 8)});
      effect({at_gpr(kEbp, 0, word())}, {kLoads});
      flow_.addresses.push_back(place::gpr(kEbp, 0, 8));
      return true;
    case ZYDIS_MNEMONIC_ENTER:
      effect({stores(0, word())}, {at_gpr(kEbp, 0, word())});
      // Frames of outer levels, and this one's own address.
      effect({stores(word(), ValueSpan::kAll)}, {}, {kLoads, at_gpr(kEsp, 0, 8)});
      effect({at_gpr(kEbp, 0, word())}, {}, {at_gpr(kEsp, 0, 8)});
      step_stack_pointer();
      return true;
    default:
      return false;
  }
}

// ---------------------------------------------------------------------------------------------
// Moves and what is nearly one

void FlowMaker::exchange() {
  const auto a = source(operand(0)), b = source(operand(1));
  const auto to_a = target(operand(0)), to_b = target(operand(1));
  if (!a || !b || !to_a || !to_b) return;
  if (mnemonic() == ZYDIS_MNEMONIC_XADD) {
    effect({*to_b}, {*a});
    effect({*to_a}, {}, {*a, *b});
    add_flag_effects({*a, *b});
    return;
  }
  effect({*to_a}, {*b});
  effect({*to_b}, {*a});
}

void FlowMaker::swap_bytes() {
  const auto from = source(operand(0));
  if (!from) return;
  for (unsigned i = 0; i < from->count; ++i) {
    effect({byte_of(*from, i)}, {byte_of(*from, from->count - 1u - i)});
  }
  if (from->count == 4) effect({{from->of, static_cast<std::uint16_t>(from->first + 4), 4}}, {});
}

/// MOVSX: the bytes above are copies of the sign.
void FlowMaker::extend() {
  const auto to = target(operand(0));
  const auto from = source(operand(1));
  if (!to || !from) return;
  const unsigned extended = std::min<unsigned>(operand(0).size / 8, to->count);
  const unsigned count = std::min<unsigned>(operand(1).size / 8, extended);
  effect({{to->of, to->first, static_cast<std::uint16_t>(count)}}, {*from});
  effect({{to->of, static_cast<std::uint16_t>(to->first + count),
           static_cast<std::uint16_t>(extended - count)}},
         {}, {byte_of(*from, count - 1)});
  if (to->count > extended) {
    effect({{to->of, static_cast<std::uint16_t>(to->first + extended),
             static_cast<std::uint16_t>(to->count - extended)}},
           {});
  }
}

/// CBW and CWD, and their like.
void FlowMaker::widen_accumulator() {
  const unsigned size = word();
  if (info_.opcode == 0x98) {
    effect({at_gpr(kEax, size / 2, size / 2)}, {}, {at_gpr(kEax, size / 2 - 1, 1)});
    if (size == 4) effect({at_gpr(kEax, 4, 4)}, {});
    return;
  }
  effect({at_gpr(kEdx, 0, size)}, {}, {at_gpr(kEax, size - 1, 1)});
  if (size == 4) effect({at_gpr(kEdx, 4, 4)}, {});
}

/// AND and OR with a constant: bytes that it decides alone depend on nothing.
void FlowMaker::masked_logic(const ZydisDecodedOperand& to, std::uint64_t mask, bool is_and) {
  const auto from = source(to);
  const auto out = target(to);
  if (!from || !out) return;
  std::vector<ValueSpan> kept;
  const unsigned bytes = to.size / 8;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto part = static_cast<std::uint8_t>(mask >> 8 * i);
    const bool constant = part == (is_and ? 0x00 : 0xff);
    if (!constant) kept.push_back(byte_of(*from, i));
    effect({byte_of(*out, i)},
           constant ? std::vector<ValueSpan>{} : std::vector{byte_of(*from, i)});
  }
  if (out->of == Of::places && out->count > bytes) {
    effect({{out->of, static_cast<std::uint16_t>(out->first + bytes),
             static_cast<std::uint16_t>(out->count - bytes)}},
           {});
  }
  add_flag_effects(kept);
}

void FlowMaker::port_string() {
  if (info_.kind == InstructionClass::ins) effect({kStores}, {}, {kInput});
  for (const ZydisDecodedOperand& o : all_operands()) {
    if (!is_pointer_of_string(o)) continue;
    const auto range = at_place(*places_of(o.reg.value));
    effect({range}, {}, {range, at_place(place::flag(10))});
  }
  flow_.addresses.push_back(place::gpr(kEdx, 0, 2));
}

bool FlowMaker::special_moves() {
  if (info_.kind == InstructionClass::ins || info_.kind == InstructionClass::outs) {
    port_string();
    return true;
  }
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_PAUSE:
      return true;
    case ZYDIS_MNEMONIC_XCHG:
    case ZYDIS_MNEMONIC_XADD:
      exchange();
      return true;
    case ZYDIS_MNEMONIC_BSWAP:
      swap_bytes();
      return true;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      extend();
      return true;
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWD:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
      widen_accumulator();
      return true;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
      if (operand(1).type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
      masked_logic(operand(0), operand(1).imm.value.u, mnemonic() == ZYDIS_MNEMONIC_AND);
      return true;
    case ZYDIS_MNEMONIC_IN:
      effect({*target(operand(0))}, {}, {kInput});
      flow_.addresses.push_back(
          place::gpr(kEdx, 0, operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER ? 2 : 0));
      return true;
    case ZYDIS_MNEMONIC_OUT:
      return true;
    case ZYDIS_MNEMONIC_LEA: {
      // Compilers fill gaps with it.
      const bool fills = operand(1).mem.base == operand(0).reg.value &&
                         operand(1).mem.index == ZYDIS_REGISTER_NONE &&
                         operand(1).mem.disp.value == 0 && !info_.bits64;
      if (fills) return true;
      std::vector<ValueSpan> from;
      for (const ZydisRegister reg : {operand(1).mem.base, operand(1).mem.index}) {
        if (const auto range = places_of(reg)) from.push_back(at_place(*range));
      }
      effect({*target(operand(0))}, {}, from);
      return true;
    }
    default:
      return false;
  }
}

// ---------------------------------------------------------------------------------------------
// Flags and the system

bool FlowMaker::special_flags() {
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_LAHF: {
      std::vector<ValueSpan> bits;
      add_flags(0xd5, bits);
      effect({at_gpr(kEax, 1, 1)}, {}, bits);
      return true;
    }
    case ZYDIS_MNEMONIC_SAHF:
      for (const unsigned bit : {0u, 2u, 4u, 6u, 7u}) {
        effect({at_place(place::flag(bit))}, {at_gpr(kEax, 1, 1)});
      }
      return true;
    case ZYDIS_MNEMONIC_SALC:
      effect({at_gpr(kEax, 0, 1)}, {}, {at_place(place::flag(0))});
      return true;
    case ZYDIS_MNEMONIC_SBB: {
      const bool same = operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        operand(0).reg.value == operand(1).reg.value;
      if (!same) return false;
      effect({*target(operand(0))}, {}, {at_place(place::flag(0))});
      add_flag_effects({at_place(place::flag(0))});
      return true;
    }
    default:
      break;
  }
  if (info_.kind == InstructionClass::jcc || info_.kind == InstructionClass::loop) {
    std::vector<ValueSpan> flags;
    add_flags(flags_tested(), flags);
    std::vector<PlaceRange> decides;
    for (const ValueSpan& f : flags) decides.push_back({f.first, f.count});
    if (info_.kind == InstructionClass::loop) {
      const PlaceRange count = place::gpr(kEcx, 0, info_.address_bits / 8u);
      decides.push_back(count);
      if (info_.opcode != 0xe3) effect({at_place(count)}, {}, {at_place(count)});
    }
    branch_on(std::move(decides));
    return true;
  }
  if (info_.kind == InstructionClass::jump || info_.kind == InstructionClass::far_jump) {
    if (info_.kind == InstructionClass::far_jump) {
      effect({at_place(place::segment(kCs))}, {},
             info_.indirect ? std::vector{kLoads} : std::vector<ValueSpan>{});
    }
    if (!info_.indirect) return true;
    std::vector<PlaceRange> decides;
    if (operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER) {
      if (const auto range = places_of(operand(0).reg.value)) decides.push_back(*range);
    }
    branch_on(std::move(decides));
    return true;
  }
  return false;
}

/// FXSAVE and FXRSTOR, and the part of XSAVE that is the same (SDM vol. 1, 10.5.1).
void FlowMaker::add_image(bool saves) {
  flow_.uses_stack = true;
  const auto part = [&](PlaceRange range, unsigned offset) {
    const ValueSpan memory = saves ? stores(offset, range.count) : loads(offset, range.count);
    if (saves) {
      effect({memory}, {at_place(range)});
    } else {
      effect({at_place(range)}, {memory},
             info_.kind == InstructionClass::xrstor ? std::vector{at_place(range)}
                                                    : std::vector<ValueSpan>{});
    }
  };
  part(place::one(place::kFpuControl), 0);
  part({place::kFpuStatus, 2}, 2);
  part(place::one(place::kFpuTags), 4);
  part(place::one(place::kMxcsr), 24);
  for (unsigned i = 0; i < 8; ++i) part(place::stack(i), 32 + 16 * i);
  for (unsigned i = 0; i < (info_.bits64 ? 16u : 8u); ++i) part(place::vector(i), 160 + 16 * i);
}

bool FlowMaker::special_system() {
  const ValueSpan fs = at_place(place::segment(kFs)), gs = at_place(place::segment(kGs));
  const ValueSpan msrs = at_place(place::one(place::kMsrs));
  switch (info_.kind) {
    case InstructionClass::fxsave:
    case InstructionClass::xsave:
      add_image(true);
      return true;
    case InstructionClass::fxrstor:
    case InstructionClass::xrstor:
      add_image(false);
      return true;
    case InstructionClass::load_far_pointer:
      effect({*target(operand(0))}, {loads(0, word())});
      effect({at_place(place::segment(info_.reg_field))}, {}, {loads(word(), 2)});
      return true;
    case InstructionClass::syscall: {
      std::vector<ValueSpan> flags;
      add_flags(0xffffffff, flags);
      effect({at_gpr(kEcx, 0, 8)}, {});
      if (info_.bits64) effect({at_gpr(11, 0, 8)}, {}, flags);
      for (const ValueSpan& f : flags) effect({f}, {f}, {msrs});
      return true;
    }
    case InstructionClass::sysret:
      for (unsigned bit = 0; bit < 32; ++bit) {
        effect({at_place(place::flag(bit))}, {}, {at_gpr(11, bit / 8, 1)});
      }
      branch_on({place::gpr(kEcx, 0, 8)});
      return true;
    case InstructionClass::sysenter:
      effect({at_gpr(kEsp, 0, 8)}, {}, {msrs});
      return true;
    case InstructionClass::sysexit:
      effect({at_gpr(kEsp, 0, 8)}, {at_gpr(kEcx, 0, 8)});
      branch_on({place::gpr(kEdx, 0, 8)});
      return true;
    case InstructionClass::swapgs:
      effect({gs}, {}, {msrs, gs});
      effect({msrs}, {}, {msrs, gs});
      return true;
    case InstructionClass::wrmsr:
      for (const ValueSpan& to : {msrs, fs, gs}) {
        effect({to}, {}, {to, at_gpr(kEax, 0, 4), at_gpr(kEdx, 0, 4), at_gpr(kEcx, 0, 4)});
      }
      return true;
    case InstructionClass::rdmsr:
      for (const unsigned reg : {kEax, kEdx}) {
        effect({at_gpr(reg, 0, 8)}, {}, {msrs, fs, gs, at_gpr(kEcx, 0, 4), kInput});
      }
      return true;
    case InstructionClass::rdtsc:
    case InstructionClass::rdtscp:
    case InstructionClass::rdpmc:
      effect({at_gpr(kEax, 0, 8)}, {}, {kInput});
      effect({at_gpr(kEdx, 0, 8)}, {}, {kInput});
      if (info_.kind == InstructionClass::rdtscp) effect({at_gpr(kEcx, 0, 8)}, {}, {msrs});
      return true;
    case InstructionClass::random:
      effect({*target(operand(0))}, {}, {kInput});
      add_flag_effects({kInput});
      return true;
    case InstructionClass::cpuid:
      for (const unsigned reg : {kEax, kEbx, kEcx, kEdx}) {
        effect({at_gpr(reg, 0, 8)}, {}, {at_gpr(kEax, 0, 4), at_gpr(kEcx, 0, 4), kInput});
      }
      return true;
    case InstructionClass::rsm:
    case InstructionClass::loadall: {
      // All registers, from an image whose layout is the processor's own.
      std::vector<ValueSpan> to{{Of::places, 0, place::kVectors},
                                {Of::places, place::kFlags, place::kCount - place::kFlags}};
      effect(to, {}, {kLoads});
      return true;
    }
    default:
      return false;
  }
}

bool FlowMaker::special() {
  return special_stack() || special_moves() || special_flags() || special_system();
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
  const bool bytewise = is_bytewise(mnemonic());
  for (const ZydisDecodedOperand& o : all_operands()) {
    if (!writes(o)) continue;
    const auto to = target(o);
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
    std::vector<ValueSpan> lanes = bytewise ? from : std::vector<ValueSpan>{};
    std::vector<ValueSpan> all = whole;
    if (!bytewise) all.insert(all.end(), from.begin(), from.end());
    // A write that may not happen leaves what was there; so does one to part of a vector.
    const bool conditional = (o.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0;
    const bool vector = o.type == ZYDIS_OPERAND_TYPE_REGISTER && is_of_sse(o.reg.value);
    const bool part_of_vector =
        vector && !reads(o) && !constant &&
        (!bytewise || (mnemonic() == ZYDIS_MNEMONIC_MOVSS || mnemonic() == ZYDIS_MNEMONIC_MOVSD));
    if (conditional || part_of_vector) {
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
  std::vector<ValueSpan> all{{Of::places, 0, place::kVectors}, kLoads};
  add_flags(kCalculated, all);
  std::vector<ValueSpan> to{kStores};
  add_flags(kCalculated, to);
  for (unsigned r = 0; r < 8; ++r) to.push_back(at_gpr(r, 0, 8));
  effect(to, {}, all);
}

void FlowMaker::summarise() {
  for (const ValueEffect& e : flow_.effects) {
    for (const ValueSpan& span : e.to) {
      if (span.of == Of::stores) flow_.stores = true;
      if (span.of != Of::places) continue;
      for (unsigned i = 0; i < span.count; ++i) flow_.written.set(span.first + i);
    }
  }
}

}  // namespace

ValueFlow value_flow(const DecodedInstruction& info) { return FlowMaker(info).make(); }

int code_segment_bits(const DecodedInstruction& info) {
  if (info.bits64) return 64;
  return (info.address_bits == 32) != info.address_prefix ? 32 : 16;
}

}  // namespace citcat
