#include "debugger/adapter/debuggee.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "events/machine/cpu_place.h"
#include "x86/disassembler.h"

namespace citcat::dap {

std::string memory_reference(LinearAddr at) { return fmt::format("{:#x}", at.value); }

Debuggee::Debuggee(const RecordingFile& file, ComparisonPolicy policy, bool check,
                   const Symbols& symbols, const SourceLines& lines,
                   Monitor::TransactionText transaction_text)
    : symbols_(symbols),
      lines_(lines),
      target_(file, std::move(policy), check, &observer_),
      monitor_(target_, std::move(transaction_text)) {}

DecodedInstruction Debuggee::instruction_at(LinearAddr at) const {
  constexpr std::uint32_t kVirtual8086 = 1u << 17;
  const std::vector<std::uint8_t> bytes = target_.read(at, kMaxInstructionBytes);
  DecodedInstruction none;
  if (bytes.empty()) return none;
  const CpuState cpu = target_.machine().save();
  const int bits = target_.code_bits();
  CodeMode mode;
  mode.bits64 = bits == 64;
  mode.bits32 = bits == 32;
  mode.real_or_v86 = (cpu.cr0 & 1) == 0 || (cpu.eflags & kVirtual8086) != 0;
  DecodedInstruction info = decode_instruction(bytes, mode, cpu.model);
  return info.state == DecodeState::ok ? info : none;
}

std::string Debuggee::text_at(LinearAddr at, const DecodedInstruction& info) const {
  return Disassembler(target_.code_bits()).text({info.bytes.data(), info.length}, at.value);
}

std::string Debuggee::symbol_text(LinearAddr at) const {
  const auto found = symbols_.find(at);
  return found ? place_name(*found) : "";
}

OpenNest Debuggee::scan_calls(const DebugTarget::Interrupt& interrupt) {
  ReplayTimeline& timeline = target_.timeline();
  const Moment here = timeline.moment();
  const std::size_t mark = timeline.mark();
  const std::uint64_t at = here.position.instruction;
  if (at > kReach) {
    timeline.seek({at - kReach, 0}, interrupt);
  } else {
    timeline.rewind();
  }
  CallScan scan(target_.machine());
  Observer nobody;
  observer_.set_listener(&scan, Detail::blocks);
  timeline.tell_on(here, nobody, false, interrupt);
  observer_.set_listener(nullptr, Detail::nothing);
  OpenNest nest = scan.open();
  timeline.return_to(mark);
  timeline.forget(mark);
  return nest;
}

const std::vector<StackLevel>& Debuggee::stack_levels(const DebugTarget::Interrupt& interrupt) {
  const Moment here = target_.timeline().moment();
  if (levels_at_ == here && !target_.forked()) return levels_;
  levels_.clear();
  levels_.push_back({.at = pc()});
  if (!target_.forked()) {
    const OpenNest nest = scan_calls(interrupt);
    // Both are in the order of time; what was entered last is the innermost.
    auto entered = nest.entered.rbegin();
    const auto add_entered = [&] {
      levels_.back().called = entered->at;
      levels_.back().is_interrupt = true;
      levels_.back().interrupted = entered->stack;
      levels_.push_back({.at = entered->from});
      ++entered;
    };
    for (const OpenCall& call : nest.calls) {
      while (entered != nest.entered.rend() && call.at < entered->at) add_entered();
      levels_.back().slot = ReturnSlot{call.slot, call.slot_bytes,
                                       LinearAddr{call.return_to.value - call.return_offset}};
      levels_.back().space = call.space;
      levels_.back().returns = call.return_to;
      levels_.back().called = call.at;
      levels_.push_back({.at = call.call});
    }
    while (entered != nest.entered.rend()) add_entered();
  }
  levels_at_ = here;
  return levels_;
}

}  // namespace citcat::dap
