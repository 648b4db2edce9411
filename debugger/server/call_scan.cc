#include "debugger/server/call_scan.h"

#include <algorithm>

#include "events/machine/cpu_place.h"
#include "replay/machine/code_place.h"
#include "replay/machine/executed_block.h"

namespace citcat {

namespace {

/// Calls kept, the outermost of which go first.
constexpr std::size_t kMostOpen = 4096;
/// Addresses this near to one another are of one stack.
constexpr std::uint64_t kOneStack = 1 << 16;

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

}  // namespace

LinearAddr stack_pointer(const Machine& machine) {
  const CpuState cpu = machine.save();
  if (is_in_64_bit_mode(cpu)) {
    return LinearAddr{std::uint64_t{cpu.long_mode->gpr_high[kEsp]} << 32 | cpu.gpr[kEsp]};
  }
  const bool wide = (machine.engine().hflags() & kHfSs32) != 0;
  return linear32(cpu.segment[kSs].base, wide ? cpu.gpr[kEsp] : cpu.gpr[kEsp] & 0xffff);
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

void CallScan::arrive(LinearAddr at) {
  if (!arrives_) return;
  arrives_ = false;
  if (!calls_.empty()) calls_.back().target = at;
}

void CallScan::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    look_at(block, first);
    first.instruction += block.count();
  }
}

void CallScan::look_at(const ExecutedBlock& block, Position first) {
  arrive(block.linear(0));
  const std::uint32_t last = block.count() - 1;
  const InstructionClass kind = block.decoded(last).kind;
  // Instructions that leave or enter a level never are in blocks.
  if (!is_call(kind) && !is_return(kind)) return;
  look_at(block.instruction(last), {first.instruction + last, 0});
}

void CallScan::instruction(const ExecutedInstruction& e, Position now) {
  arrive(e.linear);
  nest_.instruction(e, now);
  look_at(e, now);
}

void CallScan::iterations(const ExecutedInstruction& first, std::uint32_t, std::uint32_t,
                          Position) {
  arrive(first.linear);
}

void CallScan::look_at(const ExecutedInstruction& e, Position now) {
  const DecodedInstruction& info = *e.info;
  if (is_return(info.kind) && e.ea_count > 0) returned_from(e.ea[0]);
  if (!is_call(info.kind) || e.ea_count <= slot_address(info)) return;
  OpenCall call;
  call.at = now;
  call.call = e.linear;
  call.slot = e.ea[slot_address(info)];
  call.slot_bytes = info.bits64 ? 8 : info.operand_bytes;
  if (info.kind == InstructionClass::far_call) {
    // CS is pushed first, and the offset below it.
    call.slot = LinearAddr{call.slot.value - call.slot_bytes};
  }
  call.return_to =
      info.bits64 ? LinearAddr{e.linear.value + info.length} : e.linear.plus32(info.length);
  call.return_offset = e.offset + info.length;
  calls_.push_back(call);
  arrives_ = true;
  if (calls_.size() > kMostOpen) calls_.pop_front();
}

/// That call has ended, and all that were made above it on its stack.
void CallScan::returned_from(LinearAddr slot) {
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const std::uint64_t there = calls_[i].slot.value;
    const bool above = there <= slot.value && slot.value - there < kOneStack;
    if (above) calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
    if (there == slot.value || (!above && slot.value - there >= kOneStack)) return;
    if (there > slot.value && there - slot.value < kOneStack) return;
  }
}

bool CallScan::stack_holds(const OpenCall& call) const {
  const std::uint64_t mask = low_bytes(call.slot_bytes);
  const auto held = number_at(machine_, call.slot, call.slot_bytes);
  return held && (*held & mask) == (call.return_offset & mask);
}

std::vector<OpenCall> CallScan::open_calls() const {
  std::vector<OpenCall> open;
  std::uint64_t top = stack_pointer(machine_).value;
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const std::uint64_t slot = call->slot.value;
    const bool one_stack = (slot > top ? slot - top : top - slot) < kOneStack;
    if (one_stack && slot < top) continue;  // the stack was cut back
    if (!stack_holds(*call)) continue;
    open.push_back(*call);
    // Its first instruction is the next one, and has not been told of.
    if (arrives_ && call == calls_.rbegin()) open.back().target = machine_.next_linear();
    top = slot;
  }
  return open;
}

}  // namespace citcat
