// Instructions that push and pop.

#include <algorithm>
#include <array>

#include "x86/flow/flow_maker.h"
#include "x86/flow/register_places.h"

namespace citcat::flow {

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

/// RETF and IRET: offset, selector, and of IRET flags lie in this order; then another stack, where
/// the level becomes an outer one or 64-bit mode is left; then, of virtual-8086 mode, four more
/// segments (SDM vol. 2, RET and IRET).
void FlowMaker::far_return(bool interrupt) {
  const unsigned size = word();
  effect({at_place(place::segment(kCs))}, {}, {loads(size, 2)});
  if (interrupt) pop_returned_flags(2 * size);
  const unsigned next = interrupt ? 3 * size : 2 * size;
  const ValueSpan pointer = loads(next, size), selector = loads(next + size, 2);
  using When = ValueEffect::When;
  effect_when(When::loaded, selector, {{at_place(place::segment(kSs))}, {}, {selector}});
  // Parameters are taken away from the outer stack, too.
  const bool takes = info_.immediate != 0 && !interrupt;
  const std::vector<ValueSpan> popped{pointer}, none;
  effect_when(When::loaded, selector,
              {{at_gpr(kEsp, 0, size)}, takes ? none : popped, takes ? popped : none});
  // A stack of 16 bits keeps what is above.
  if (size < 8) {
    effect_when(When::loaded, selector,
                {{at_gpr(kEsp, size, 8 - size)}, {at_gpr(kEsp, size, 8 - size)}, {pointer}});
  }
  effect_when(When::not_loaded, selector, {{at_gpr(kEsp, 0, 8)}, {}, {at_gpr(kEsp, 0, 8)}});
  constexpr std::array<unsigned, 4> kVirtual{kEs, kDs, kFs, kGs};
  for (unsigned i = 0; i < kVirtual.size(); ++i) {
    const ValueSpan segment = at_place(place::segment(kVirtual[i]));
    const ValueSpan given = loads(next + (2 + i) * size, 2);
    if (interrupt) effect_when(When::loaded, given, {{segment}, {}, {given}});
    // The outer level may not have it: then it is taken away.
    effect_when(When::loaded, selector, {{segment}, {segment}, {loads(size, 2)}});
  }
}

/// Those of the system change as far as the level allows.
void FlowMaker::pop_returned_flags(unsigned from) {
  for (unsigned bit = 0; bit < std::min(32u, 8 * word()); ++bit) {
    const bool system = (kCalculated >> bit & 1) == 0;
    take_flag(bit, loads(from + bit / 8, 1), system);
  }
}

void FlowMaker::call() {
  // The place that is returned to is no input.
  const unsigned size = word();
  if (info_.kind == InstructionClass::far_call) {
    effect({stores(0, size)}, {at_place(place::segment(kCs))});
    effect({stores(size, size)}, {});
    effect({at_place(place::segment(kCs))}, {},
           info_.indirect ? std::vector{loads(size, 2)} : std::vector<ValueSpan>{});
  } else {
    effect({kStores}, {});
  }
  step_stack_pointer();
  if (!info_.indirect) return;
  std::vector<PlaceRange> decides;
  if (operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER) {
    if (const auto range = places_of(operand(0).reg.value)) decides.push_back(*range);
  }
  branch_on(std::move(decides));
}

void FlowMaker::push_flags() {
  for (unsigned bit = 0; bit < std::min(32u, 8 * word()); ++bit) {
    put_flag(stores(bit / 8, 1), bit);
  }
  if (word() > 4) effect({stores(4, 4)}, {});
  step_stack_pointer();
}

void FlowMaker::pop_flags() {
  pop_returned_flags(0);
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

}  // namespace citcat::flow
