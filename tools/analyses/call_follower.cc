#include "tools/analyses/call_follower.h"

#include <algorithm>
#include <iterator>

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {

namespace {

constexpr std::uint8_t kMovRegister = 0x8b;  ///< MOV r, r/m

bool is_call(InstructionClass kind) {
  return kind == InstructionClass::call || kind == InstructionClass::far_call;
}
bool is_return(InstructionClass kind) {
  return kind == InstructionClass::ret || kind == InstructionClass::far_return;
}

bool asks_for_interrupt(InstructionClass kind) {
  return kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
         kind == InstructionClass::into || kind == InstructionClass::icebp;
}

/// Which of a call's addresses is that of its return address (docs/formats/kt.md, "Addresses").
unsigned slot_address(const DecodedInstruction& call) {
  const bool near_indirect = call.kind == InstructionClass::call && call.indirect;
  return near_indirect ? 0 : 1;
}

/// Nothing but a jump out of the procedure, after a mark for indirect branches or not: to where
/// memory or a register says, or farther than what compilers make of one procedure.
bool jumps_on(const StaticBlock& block) {
  constexpr std::int64_t kFar = 1 << 16;
  const auto is_mark = [](const DecodedInstruction& i) {
    constexpr std::uint8_t kEndbranch[] = {0xf3, 0x0f,
                                           0x1e};  // ENDBR64 and ENDBR32: FA or FB after it
    return i.length == 4 &&
           std::equal(std::begin(kEndbranch), std::end(kEndbranch), i.bytes.begin());
  };
  const DecodedInstruction& last = block.back().info;
  if (last.kind != InstructionClass::jump) return false;
  const std::int64_t distance = last.target_displacement;
  if (!last.indirect && distance < kFar && distance > -kFar) return false;
  return block.count() == 1 || (block.count() == 2 && is_mark(block.front().info));
}

/// It goes on with another stack, as a switch of tasks does. POP and LEAVE stay on the same one.
bool loads_stack_pointer(const DecodedInstruction& info) {
  return info.opcode_map == 0 && info.opcode == kMovRegister && info.has_modrm &&
         !info.register_form && info.reg_field == kEsp;
}

KernelEntry entry_by(const DeliveredEvent& delivery) {
  const bool exception = delivery.kind == DeliveredEvent::Kind::exception;
  return {exception ? KernelEntry::Kind::exception : KernelEntry::Kind::interrupt, delivery.vector};
}

std::uint32_t space_of(const Context& context) {
  return context.level() == Context::kUserLevel ? context.address_space() : CallStacks::kKernel;
}

}  // namespace

void* CallFollower::code(const StaticBlock& block) {
  Code& code = code_.emplace_back();
  code.last = &block.back().info;
  code.jumps_on = jumps_on(block);
  code.enters = asks_for_interrupt(code.last->kind);
  code.last_number = block.count() - 1;
  code.begin = block.front().linear;
  for (const StaticInstruction& i : block.instructions()) {
    code.loads_stack = code.loads_stack || loads_stack_pointer(i.info);
  }
  code.stays = !code.loads_stack && !is_call(code.last->kind) && !is_return(code.last->kind) &&
               !code.jumps_on && !code.enters;
  return &code;
}

/// That of code which nobody called within what is told.
ProcedureNumber CallFollower::procedure_met(const Code& code, bool is_lost,
                                            const Context& context) {
  if (code.called) return *code.called;
  // After a gap it may be anywhere in one that is known: as it ran before.
  if (is_lost && !code.place.named) return code.ran_as;
  return procedures_.called(code.begin, context);
}

ProcedureNumber CallFollower::arrive_by_call(Code& code, const Context& context) {
  if (!code.place.named && !code.called) code.called = procedures_.called(code.begin, context);
  const ProcedureNumber procedure = code.place.named ? code.place.procedure : *code.called;
  stacks_.call(slot_space_, slot_, caller_, procedure);
  listener_.called(caller_, procedure);
  return procedure;
}

/// The procedure that the code belongs to; a call that was made arrives, a jump to the beginning of
/// another procedure goes on as that one.
ProcedureNumber CallFollower::arrive(Code& code, const Context& context) {
  if (!code.looked_up) {
    code.looked_up = true;
    code.place = procedures_.at(code.begin, context);
  }
  const bool is_lost = lost_;
  if (is_lost) [[unlikely]]
    find_again(code);
  const Arrival arrival = std::exchange(arrival_, Arrival::other);
  if (arrival == Arrival::call) return arrive_by_call(code, context);
  stacks_.runs_in(space_of(context));
  const bool is_entry = arrival == Arrival::entry || arrival == Arrival::on;
  if (is_entry && !code.place.named && !code.called) {
    code.called = procedures_.called(code.begin, context);
  }
  if (stacks_.innermost() == nullptr) stacks_.begin(procedure_met(code, is_lost, context));
  const ProcedureNumber open = stacks_.innermost()->procedure;
  const ProcedureNumber begun =
      code.place.named ? (code.place.begins ? code.place.procedure : open)
                       : (code.called && arrival != Arrival::back ? *code.called : open);
  if (begun != open) {
    if (code.place.named) {
      listener_.called(open, begun);
    } else {
      listener_.went_on(begun);
    }
    stacks_.becomes(begun);
  }
  return code.place.named ? code.place.procedure : code.ran_as = begun;
}

void CallFollower::gap() {
  lost_ = true;
  stays_ = false;
  arrival_ = Arrival::other;
}

/// After a gap: of the calls that were open those may still be within which this code runs. It
/// runs as what it ran as before.
void CallFollower::find_again(const Code& code) {
  lost_ = false;
  stacks_.leave_within(code.place.named ? code.place.procedure : code.ran_as);
}

void CallFollower::depart(const Code& code, const Execution& execution, const Context& context,
                          ProcedureNumber procedure, Arrival arrived) {
  const DecodedInstruction& last = *code.last;
  if (is_call(last.kind)) {
    slot_ = execution.address(code.last_number, slot_address(last));
    slot_space_ = space_of(context);
    caller_ = procedure;
    arrival_ = Arrival::call;
  } else if (is_return(last.kind)) {
    stacks_.returned(space_of(context), execution.address(code.last_number));
    arrival_ = Arrival::back;
  } else if (code.jumps_on && (arrived == Arrival::call || arrived == Arrival::on)) {
    arrival_ = Arrival::on;
  }
}

/// It belongs to the procedure that runs, opens no call and ends none.
bool CallFollower::goes_on(const Code& code) const {
  if (!stays_ || !code.stays || !code.looked_up) return false;
  if (!code.place.named)
    return running_ == innermost_ && code.called.value_or(running_) == running_;
  return code.place.procedure == running_ && (!code.place.begins || running_ == innermost_);
}

void CallFollower::run(void* mine, const Execution& execution, const Context& context) {
  Code& code = *static_cast<Code*>(mine);
  // A REP is one instruction, however many iterations.
  const std::uint64_t instructions =
      execution.first().iteration != 0 || warming_ ? 0 : execution.block().count();
  last_instruction_ = execution.first().instruction;
  if (goes_on(code)) [[likely]] {
    stacks_.executed(instructions);
    listener_.executed_further(running_, instructions);
    return;
  }
  // What was delivered is told before the instruction that asked for it.
  if (enters_ && !code.enters) enter({KernelEntry::Kind::call, 0});
  const Arrival arrived = arrival_;
  const ProcedureNumber procedure = arrive(code, context);
  running_ = procedure;
  stacks_.executed(instructions);
  listener_.executed(procedure, instructions);
  if (code.loads_stack) stacks_.moved();
  depart(code, execution, context, procedure, arrived);
  if (enters_) enter({KernelEntry::Kind::call, 0});
  stays_ = code.stays;
  const CallFrame* const frame = stacks_.innermost();
  innermost_ = frame != nullptr ? frame->procedure : ProcedureTable::kUnknown;
}

void CallFollower::make_call(const DeliveredEvent& before, const Context& context) {
  arrival_ = Arrival::other;
  const Engine& engine = context.machine().engine();
  const LinearAddr next =
      code_bits(engine) == 64
          ? LinearAddr{before.eip}
          : linear32(engine.segment_base(kCs), static_cast<std::uint32_t>(before.eip));
  const ProcedureNumber procedure = procedures_.called(next, context);
  stacks_.call(slot_space_, slot_, caller_, procedure);
  listener_.called(caller_, procedure);
}

void CallFollower::enter(const KernelEntry& entry) {
  enters_ = false;
  stays_ = false;
  arrival_ = Arrival::entry;
  stacks_.interrupted(entry);
}

void CallFollower::event(const MachineEvent& event, const Context& context) {
  stays_ = false;
  switch (event.kind) {
    case MachineEvent::Kind::delivered: {
      // Between two iterations of a REP, which begins anew later, and was told.
      if (event.position.iteration != 0 && !warming_ &&
          last_instruction_ == event.position.instruction) {
        stacks_.taken_back();
        listener_.taken_back(running_);
      }
      // The call itself completed; its procedure begins when this returns.
      if (event.delivery.kind == DeliveredEvent::Kind::software) {
        enters_ = true;
        return;
      }
      if (arrival_ == Arrival::call) make_call(event.delivery, context);
      return enter(entry_by(event.delivery));
    }
    case MachineEvent::Kind::fast_call:
      return enter({KernelEntry::Kind::call, 0});
    case MachineEvent::Kind::returned:
    case MachineEvent::Kind::fast_return:
      arrival_ = Arrival::back;
      // To a program where that is in memory: its level is known before the next instruction only.
      return stacks_.resumed(context.machine().engine().address_space());
    default:
      return;
  }
}

}  // namespace citcat::tools
