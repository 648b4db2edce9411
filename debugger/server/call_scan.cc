#include "debugger/server/call_scan.h"

#include <algorithm>

#include "replay/machine/code_place.h"
#include "replay/machine/executed_block.h"

namespace citcat {

namespace {

/// The frame of an interrupt lies this near to a stack pointer of the same stack.
constexpr std::uint64_t kFrame = 256;

bool is_call(InstructionClass kind) {
  return kind == InstructionClass::call || kind == InstructionClass::far_call;
}
bool is_return(InstructionClass kind) {
  return kind == InstructionClass::ret || kind == InstructionClass::far_return;
}

std::uint64_t low_bytes(unsigned bytes) {
  return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
}

/// Which of a call's addresses is that of the first item it pushes (docs/formats/kt.md).
unsigned slot_address(const DecodedInstruction& call) {
  return call.kind == InstructionClass::call && call.indirect ? 0 : 1;
}

AddressSpaceId stack_space(const Machine& machine) {
  const Engine& engine = machine.engine();
  const bool is_program = (engine.hflags() & kHfCpl) == 3;
  return is_program ? engine.address_space() : OpenStacks::kSupervisor;
}

/// How the stack pointer is loaded, if it is: what takes it from memory switches tasks; what takes
/// it from a register may come back.
std::optional<OpenStacks::Leave> load_of_stack(const DecodedInstruction& i) {
  using Leave = OpenStacks::Leave;
  const bool of_ss = i.kind == InstructionClass::mov_to_segment ||
                     i.kind == InstructionClass::pop_segment ||
                     i.kind == InstructionClass::load_far_pointer;
  if (of_ss) return i.reg_field == kSs ? std::optional(Leave::lend) : std::nullopt;
  if (i.kind == InstructionClass::far_jump) return Leave::task;
  if (i.kind != InstructionClass::plain || i.opcode_map != 0) return std::nullopt;
  const bool to_register = i.reg_field == kEsp;
  // A frame that ends leaves the stack what it is.
  const auto other = [](std::uint8_t reg) { return reg != kEbp && reg != kEsp; };
  bool loads = false;
  switch (i.opcode) {
    case 0x8b:  // MOV r, r/m
      if (to_register && !i.register_form) return Leave::task;
      loads = to_register && other(i.rm_field);
      break;
    case 0x89:  // MOV r/m, r
      loads = i.register_form && i.rm_field == kEsp && other(i.reg_field);
      break;
    case 0x87:  // XCHG
      loads = to_register || (i.register_form && i.rm_field == kEsp);
      break;
    case 0x8d:  // LEA
      loads = to_register && other(i.modrm & 7);
      break;
    case 0x5c:
    case 0x94:
    case 0xbc:  // POP, XCHG with EAX, MOV of a constant
      loads = i.rm_field == kEsp;
      break;
    default:
      break;
  }
  return loads ? std::optional(Leave::lend) : std::nullopt;
}

/// The stack pointer before and after an instruction that pushes or pops one item and nothing else.
struct StackMove {
  LinearAddr before, after;
};
std::optional<StackMove> stack_move(const ExecutedInstruction& e) {
  const DecodedInstruction& i = *e.info;
  if (i.opcode_map != 0 || e.ea_count == 0 || i.rm_field == kEsp) return std::nullopt;
  const LinearAddr at = e.ea[0], above{at.value + i.operand_bytes};
  const bool pushes = (i.opcode >= 0x50 && i.opcode <= 0x57) || i.opcode == 0x68 ||
                      i.opcode == 0x6a || i.opcode == 0x9c;
  if (pushes) return StackMove{above, at};
  const bool pops = (i.opcode >= 0x58 && i.opcode <= 0x5f) || i.opcode == 0x9d;
  return pops ? std::optional(StackMove{at, above}) : std::nullopt;
}

}  // namespace

LinearAddr stack_pointer(const Machine& machine) { return stack_address(machine.engine()); }

StackPlace stack_place(const Machine& machine) {
  return {stack_space(machine), stack_pointer(machine)};
}

bool has_come_back(const StackPlace& now, const StackPlace& there) {
  // The stacks of two tasks lie farther from each other than this.
  constexpr std::uint64_t kMostTaken = 4096;
  return now.space == there.space && now.top.value - there.top.value < kMostTaken;
}

std::optional<std::uint64_t> number_at(const Machine& machine, LinearAddr at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto found = machine.find(LinearAddr{at.value + i});
    const auto byte = found ? machine.memory().defined_byte(*found) : std::nullopt;
    if (!byte) return std::nullopt;
    value |= std::uint64_t{*byte} << 8 * i;
  }
  return value;
}

AddressSpaceId CallScan::space() const { return stack_space(machine_); }

void CallScan::arrive(LinearAddr at) {
  if (!arrives_) return;
  arrives_.reset();
  stacks_.arrive(at);
}

void CallScan::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    look_at(block, first);
    first.instruction += block.count();
  }
}

void CallScan::look_at(const ExecutedBlock& block, Position first) {
  arrive(block.linear(0));
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    if (settles_) settle_by(block.instruction(i));
    if (load_of_stack(block.decoded(i))) stack_loaded(block, i);
  }
  const std::uint32_t last = block.count() - 1;
  const InstructionClass kind = block.decoded(last).kind;
  // Instructions that leave or enter a level never are in blocks.
  if (!is_call(kind) && !is_return(kind)) return;
  look_at(block.instruction(last), {first.instruction + last, 0});
}

/// Earlier pushes and pops show the value that it had before.
void CallScan::stack_loaded(const ExecutedBlock& block, std::uint32_t i) {
  std::optional<StackMove> before;
  for (std::uint32_t j = i; j-- > 0 && !before;) before = stack_move(block.instruction(j));
  stacks_.leave(*load_of_stack(block.decoded(i)),
                before ? std::optional(before->after) : std::nullopt);
  settles_ = true;
}

/// The next push or pop shows the value of the stack pointer.
void CallScan::settle_by(const ExecutedInstruction& e) {
  const auto move = stack_move(e);
  if (!move) return;
  settles_ = false;
  stacks_.settle(space(), move->before);
  ++changes_;
}

void CallScan::instruction(const ExecutedInstruction& e, Position now) {
  arrive(e.linear);
  nest_.instruction(e, now);
  if (settles_) settle_by(e);
  const auto how = load_of_stack(*e.info);
  if (how) stacks_.leave(*how, std::nullopt);
  settles_ = settles_ || how.has_value();
  // Kinds that are listed before `call` neither call nor return, nor leave their stack.
  if (how || e.info->kind >= InstructionClass::call) ++changes_;
  look_at(e, now);
  changed_level(e, now);
}

void CallScan::iterations(const ExecutedInstruction& first, std::uint32_t, std::uint32_t,
                          Position) {
  arrive(first.linear);
}

void CallScan::look_at(const ExecutedInstruction& e, Position now) {
  const DecodedInstruction& info = *e.info;
  if (is_return(info.kind) && e.ea_count > 0) stacks_.returned(space(), e.ea[0]);
  if (!is_call(info.kind) || e.ea_count <= slot_address(info)) return;
  settles_ = false;
  OpenCall call;
  call.at = now;
  call.call = e.linear;
  call.slot = e.ea[slot_address(info)];
  call.slot_bytes = info.bits64 ? 8 : info.operand_bytes;
  call.space = space();
  if (info.kind == InstructionClass::far_call) {
    // CS is pushed first, and the offset below it.
    call.slot = LinearAddr{call.slot.value - call.slot_bytes};
  }
  call.return_to =
      info.bits64 ? LinearAddr{e.linear.value + info.length} : e.linear.plus32(info.length);
  call.return_offset = e.offset + info.length;
  stacks_.call(call);
  arrives_ = now;
}

/// SYSENTER and its like are told of while the registers are those of the level that is left.
void CallScan::changed_level(const ExecutedInstruction& e, Position now) {
  switch (e.info->kind) {
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      stacks_.settle(space(), stack_pointer(machine_));
      return stacks_.enter(stack_pointer(machine_), now);
    case InstructionClass::sysexit:
      return stacks_.resume(machine_.engine().address_space(),
                            LinearAddr{whole_gpr(machine_.engine(), kEcx)});
    case InstructionClass::sysret:
      return stacks_.resume(machine_.engine().address_space(),
                            LinearAddr{whole_gpr(machine_.engine(), kEsp)});
    case InstructionClass::iret:
      return interrupt_returned(e);
    case InstructionClass::rsm:
      return stacks_.leave(OpenStacks::Leave::task, std::nullopt);
    default:
      return;
  }
}

/// It has gone back already, and the frame is still there.
void CallScan::interrupt_returned(const ExecutedInstruction& iret) {
  constexpr unsigned kWords = 3, kVirtual8086Bit = 17;
  if (iret.ea_count == 0) return stacks_.leave(OpenStacks::Leave::task, std::nullopt);
  const unsigned size = iret.info->operand_bytes;
  const LinearAddr frame = iret.ea[0];
  const auto word = [&](unsigned number) {
    return number_at(machine_, LinearAddr{frame.value + number * size}, size).value_or(0);
  };
  const bool is_virtual = !iret.info->real_or_v86 && size == 4 && word(2) >> kVirtual8086Bit & 1;
  if (is_virtual) return stacks_.leave(OpenStacks::Leave::task, std::nullopt);
  const auto programs = iret.info->real_or_v86 ? std::nullopt : nest_.programs_stack(iret);
  const AddressSpaceId program = machine_.engine().address_space();
  if (programs && !stacks_.runs_in(program)) {
    return stacks_.resume(program, LinearAddr{*programs});
  }
  LinearAddr behind{frame.value + kWords * size};
  if (iret.info->bits64) {
    // It takes the stack pointer from the frame at any level.
    behind = LinearAddr{word(kWords)};
    const bool same = behind.value - frame.value < kFrame;
    if (!same) stacks_.leave(OpenStacks::Leave::resume, frame);
  }
  stacks_.settle(space(), behind);
}

void CallScan::delivered(const DeliveredEvent& event, Position now) {
  settles_ = false;
  nest_.delivered(event, now);
  ++changes_;
  // A call that leads to where nothing can run was one of that place.
  arrive(machine_.next_linear());
  const LinearAddr top = stack_pointer(machine_), frame = nest_.last_frame();
  const AddressSpaceId before = space();
  stacks_.settle(before, top);
  if (event.kind == DeliveredEvent::Kind::smi) return stacks_.enter(top, now);
  if (top.value - frame.value < kFrame) return stacks_.enter_above(frame, now);
  stacks_.enter(top, now);
  if (before != OpenStacks::kSupervisor) return stacks_.begin(frame);
  stacks_.settle(OpenStacks::kSupervisor, frame);
}

bool CallScan::stack_holds(const OpenCall& call) const {
  const std::uint64_t mask = low_bytes(call.slot_bytes);
  const auto held = number_at(machine_, call.slot, call.slot_bytes);
  return held && (*held & mask) == (call.return_offset & mask);
}

OpenNest CallScan::open() const {
  OpenStacks::Open open = stacks_.open(space(), stack_pointer(machine_));
  OpenNest nest;
  for (OpenCall& call : open.calls) {
    // Its first instruction is the next one, and has not been told of.
    if (arrives_ == call.at) call.target = machine_.next_linear();
    if (stack_holds(call)) nest.calls.push_back(call);
  }
  nest.entered = nest_.entered();
  std::erase_if(nest.entered, [&](const InterruptNest::Entered& entered) {
    return std::find(open.entries.begin(), open.entries.end(), entered.at) == open.entries.end();
  });
  return nest;
}

}  // namespace citcat
