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

/// Where the return address of a call lies. The trace has that of a near call (docs/formats/kt.md,
/// "Addresses"), of a far one that of CS, above it, and on the stack of the caller. A far call is
/// told when the machine has made it.
LinearAddr slot_of(const DecodedInstruction& call, const Execution& execution, std::uint32_t number,
                   const Context& context) {
  if (call.kind == InstructionClass::far_call) return stack_address(context.machine().engine());
  return execution.address(number, call.indirect ? 0 : 1);
}

/// ENDBR64 and ENDBR32: FA or FB after these bytes.
bool is_mark(const DecodedInstruction& i) {
  constexpr std::uint8_t kEndbranch[] = {0xf3, 0x0f, 0x1e};
  return i.length == 4 && std::equal(std::begin(kEndbranch), std::end(kEndbranch), i.bytes.begin());
}

/// Nothing but a jump out of the procedure, after a mark for indirect branches or not: to where
/// memory or a register says, or farther than what compilers make of one procedure.
bool jumps_on(std::span<const StaticInstruction> code) {
  constexpr std::int64_t kFar = 1 << 16;
  const DecodedInstruction& last = code.back().info;
  if (last.kind != InstructionClass::jump) return false;
  const std::int64_t distance = last.target_displacement;
  if (!last.indirect && distance < kFar && distance > -kFar) return false;
  return code.size() == 1 || (code.size() == 2 && is_mark(code.front().info));
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

AddressSpaceId space_of(const Context& context) {
  return context.level() == Context::kUserLevel ? context.address_space() : CallStacks::kKernel;
}

/// What is told has made the machine go on at another level.
bool changes_level(const Context& context) {
  return (context.machine().engine().hflags() & kHfCpl) != context.level();
}

}  // namespace

void* CallFollower::code(const StaticBlock& block) {
  return &make_part(block.instructions(), {0, block.count()});
}

CallFollower::Code& CallFollower::make_part(std::span<const StaticInstruction> all, Part here) {
  Code& code = code_.emplace_back();
  code.all = all;
  code.here = here;
  const auto mine = all.subspan(here.first, here.end - here.first);
  code.last = &mine.back().info;
  code.is_mark = mine.size() == 1 && is_mark(mine.front().info);
  code.jumps_on = jumps_on(mine);
  code.enters = asks_for_interrupt(code.last->kind);
  code.begin = mine.front().linear;
  for (const StaticInstruction& i : mine) {
    code.loads_stack = code.loads_stack || loads_stack_pointer(i.info);
  }
  code.stays = !code.loads_stack && !is_call(code.last->kind) && !is_return(code.last->kind) &&
               !code.jumps_on && !code.enters;
  return code;
}

/// Into parts that each lie in one procedure: how the machine cuts a run into blocks must not show.
void CallFollower::cut(Code& code, const Context& context) {
  if (code.cut_for == 0) {
    for (const StaticInstruction& i : code.all) {
      code.places.push_back(procedures_.at(i.linear, context));
    }
  } else if (!may_lie_in_other_parts(code)) {
    code.cut_for = called_.size() + 1;
    return;
  }
  code.cut_for = called_.size() + 1;
  std::vector<Part> parts;
  for (std::uint32_t i = 0; i < code.all.size(); ++i) {
    if (i != 0 && !begins_part(code, i)) continue;
    if (i != 0) parts.back().end = i;
    parts.push_back({i, code.here.end});
  }
  if (parts.size() == 1) return settle(code, code.places);
  // They only become more.
  if (parts.size() != code.parts.size()) {
    code.parts.clear();
    for (const Part& part : parts) code.parts.push_back(&make_part(code.all, part));
  }
  for (Code* const part : code.parts) settle(*part, code.places);
}

/// A call has gone to some address in it since it was cut last.
bool CallFollower::may_lie_in_other_parts(const Code& code) const {
  const LinearAddr first = code.all.front().linear, last = code.all.back().linear;
  return std::any_of(called_at_.begin() + static_cast<std::ptrdiff_t>(code.cut_for - 1),
                     called_at_.end(),
                     [&](LinearAddr a) { return last < first || (first <= a && a <= last); });
}

/// Instruction `i` belongs to another procedure than those before it.
bool CallFollower::begins_part(const Code& code, std::uint32_t i) const {
  const ProcedureTable::Place &here = code.places[i], &before = code.places[i - 1];
  if (here.named) return here.begins || here.procedure != before.procedure;
  return before.named || called_.contains(place_of(code.all[i]));
}

void CallFollower::settle(Code& part, const std::vector<ProcedureTable::Place>& places) {
  part.place = places[part.here.first];
  if (part.place.named || part.called) return;
  const auto known = called_.find(place_of(part.all[part.here.first]));
  if (known != called_.end()) part.called = known->second;
}

/// Calls go to the beginning of the code, which has no name.
void CallFollower::becomes_called(Code& code, const Context& context) {
  if (code.called) return;
  code.called = procedures_.called(code.begin, context);
  if (called_.emplace(place_of(code.all[code.here.first]), *code.called).second) {
    called_at_.push_back(code.begin);
  }
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
  if (!code.place.named) becomes_called(code, context);
  const ProcedureNumber procedure = code.place.named ? code.place.procedure : *code.called;
  stacks_.call(slot_space_, slot_, caller_, procedure);
  listener_.called(caller_, procedure);
  return procedure;
}

/// The procedure that the code belongs to; a call that was made arrives, a jump to the beginning of
/// another procedure goes on as that one.
ProcedureNumber CallFollower::arrive(Code& code, const Context& context) {
  const bool is_lost = lost_;
  if (is_lost) [[unlikely]]
    find_again(code);
  const Arrival arrival = std::exchange(arrival_, Arrival::other);
  if (arrival == Arrival::call) return arrive_by_call(code, context);
  stacks_.runs_in(space_of(context));
  const bool is_entry = arrival == Arrival::entry || arrival == Arrival::on;
  if (is_entry && !code.place.named) becomes_called(code, context);
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
  after_mark_ = false;
  arrival_ = Arrival::other;
}

/// A handler that is not told ends where nobody tells it, and a call to what is not told is none.
void CallFollower::left_scope(const Context& context) {
  if (arrival_ == Arrival::entry) {
    stacks_.resumed(context.machine().engine().address_space());
  }
  arrival_ = Arrival::back;
  stays_ = false;
  after_mark_ = false;
}

/// After a gap: of the calls that were open those may still be within which this code runs. It
/// runs as what it ran as before.
void CallFollower::find_again(const Code& code) {
  lost_ = false;
  stacks_.leave_within(code.place.named ? code.place.procedure : code.ran_as);
}

void CallFollower::depart(const Code& code, const Execution& execution, const Context& context,
                          ProcedureNumber procedure, bool is_called) {
  const DecodedInstruction& last = *code.last;
  const std::uint32_t number = code.here.end - 1;
  after_mark_ = is_called && code.is_mark;
  if (is_call(last.kind)) {
    slot_ = slot_of(last, execution, number, context);
    slot_space_ = space_of(context);
    caller_ = procedure;
    arrival_ = Arrival::call;
    if (last.kind == InstructionClass::far_call && changes_level(context)) {  // by a call gate
      slot_space_ = CallStacks::kKernel;
      stacks_.interrupted({KernelEntry::Kind::call, 0});
    }
  } else if (is_return(last.kind)) {
    stacks_.returned(space_of(context), execution.address(number));
    arrival_ = Arrival::back;
    if (last.kind == InstructionClass::far_return && changes_level(context)) {
      stacks_.resumed(context.machine().engine().address_space());
    }
  } else if (last.kind == InstructionClass::iret) {
    frame_ = execution.address(number);
  } else if (code.jumps_on && is_called) {
    arrival_ = Arrival::on;
  }
}

/// It belongs to the procedure that runs, opens no call and ends none.
bool CallFollower::goes_on(const Code& code) const {
  if (!stays_ || !code.stays) return false;
  if (!code.place.named)
    return running_ == innermost_ && code.called.value_or(running_) == running_;
  return code.place.procedure == running_ && (!code.place.begins || running_ == innermost_);
}

void CallFollower::run(void* mine, const Execution& execution, const Context& context) {
  Code& code = *static_cast<Code*>(mine);
  if (code.cut_for != called_.size() + 1) [[unlikely]]
    cut(code, context);
  // A software interrupt's delivery is reported before its instruction.
  if (enters_ && !code.enters) enter({KernelEntry::Kind::call, 0});
  if (code.parts.empty()) [[likely]]
    return follow(code, execution, context);
  for (Code* const part : code.parts) follow(*part, execution, context);
  part_ = {};
}

void CallFollower::follow(Code& code, const Execution& execution, const Context& context) {
  part_ = code.here;
  // A REP is one instruction, however many iterations.
  const std::uint64_t instructions =
      execution.first().iteration != 0 || warming_ ? 0 : part_.end - part_.first;
  last_instruction_ = execution.first().instruction + part_.first;
  if (goes_on(code)) [[likely]] {
    after_mark_ = false;
    stacks_.executed(instructions);
    listener_.executed_further(running_, instructions);
    return;
  }
  const bool is_called =
      arrival_ == Arrival::call || arrival_ == Arrival::on || std::exchange(after_mark_, false);
  const ProcedureNumber procedure = arrive(code, context);
  running_ = procedure;
  stacks_.executed(instructions);
  listener_.executed(procedure, instructions);
  if (code.loads_stack) stacks_.moved();
  depart(code, execution, context, procedure, is_called);
  if (enters_ && code.enters) enter({KernelEntry::Kind::call, 0});
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
  after_mark_ = false;
  arrival_ = Arrival::entry;
  stacks_.interrupted(entry);
}

void CallFollower::unfinished(Position at) {
  if (warming_ || last_instruction_ != at.instruction) return;
  stacks_.taken_back();
  listener_.taken_back(running_);
}

void CallFollower::event(const MachineEvent& event, const Context& context) {
  stays_ = false;
  part_ = {};
  switch (event.kind) {
    case MachineEvent::Kind::delivered: {
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
      // The handler's own frame, which a far call may have completed.
      if (event.value == 0) {
        arrival_ = Arrival::back;
        return stacks_.returned(space_of(context), frame_);
      }
      [[fallthrough]];
    case MachineEvent::Kind::fast_return:
      arrival_ = Arrival::back;
      // To a program where that is in memory: its level is known before the next instruction only.
      return stacks_.resumed(context.machine().engine().address_space());
    default:
      return;
  }
}

}  // namespace citcat::tools
