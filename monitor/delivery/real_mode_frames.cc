#include "monitor/delivery/real_mode_frames.h"

#include <cstdio>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kFrameBytes = 6, kVectorBytes = 4;

/// The vector of INT3, INT n, INTO or ICEBP.
unsigned software_vector(const Insn& insn) {
  constexpr std::uint8_t kInt3 = 0xcc, kInto = 0xce;
  if (insn.what.kind == InsnKind::icebp) return 1;
  return insn.opcode() == kInt3 ? 3 : insn.opcode() == kInto ? 4 : insn.modrm();
}

/// CALL, near or far.
bool is_call(const Insn& insn) {
  const std::uint8_t opcode = insn.opcode();
  const unsigned reg = insn.modrm_reg();
  return opcode == 0xe8 || opcode == 0x9a || (opcode == 0xff && (reg == 2 || reg == 3));
}

/// A far pointer of real mode as it lies in memory.
std::uint32_t far_pointer(std::uint16_t selector, std::uint64_t ip) {
  return std::uint32_t{selector} << 16 | static_cast<std::uint16_t>(ip);
}

/// The bits of ESP that are the stack's (D/B of SS, which outlives protected mode).
std::uint32_t stack_mask(const LoggedState& state) {
  return (state.segment[2].flags & 0x400000) != 0 ? 0xffffffff : 0xffff;
}

}  // namespace

std::optional<LoggedEvent> RealModeFrames::of_software(std::size_t later_events) {
  if (!flight_.delivers_itself() || !software_interrupt_taken(later_events)) return std::nullopt;
  LoggedEvent event;
  event.vector = software_vector(*flight_.insn);
  event.software = event.real_mode = true;
  complete(event, static_cast<unsigned>(later_events));
  event.pc = flight_.linear;
  return event;
}

bool RealModeFrames::software_interrupt_taken(std::size_t later_events) {
  const std::uint64_t pushed = (flight_.stack_pointer - cpu_.registers.gpr(4)) & 0xffff;
  return pushed == kFrameBytes * (later_events + 1);
}

/// The far pointer of interrupt `number`.
std::uint32_t RealModeFrames::vector(unsigned number) {
  return seen_.linear.read32(seen_.tables.places().idt + kVectorBytes * number);
}

/// Whether the instruction in flight goes on at this far pointer when nothing interrupts it, as far
/// as that can be known: where a jump goes to may be anywhere.
bool RealModeFrames::goes_on_at(std::uint32_t place) {
  const Insn& insn = *flight_.insn;
  const bool in_segment = place >> 16 == seen_.code.selector();
  const auto is = [&](std::uint64_t linear) {
    return in_segment && static_cast<std::uint16_t>(linear - seen_.code.base()) == (place & 0xffff);
  };
  if (insn.what.kind == InsnKind::iret) {
    // It may have been overwritten since, with the same: NMIs wait for it.
    const bool dwords = insn.what.stack_segment_at > 8;
    return far_pointer(seen_.linear.read16(units_.far_transfer.first_access() + (dwords ? 4 : 2)),
                       seen_.linear.read16(units_.far_transfer.first_access())) == place;
  }
  if (!insn.what.branch || delivers_itself(insn.what.kind))
    return is(seen_.code.next()) || (insn.what.repeated && is(flight_.linear));
  if (is_call(insn)) return !is(seen_.code.next());
  return in_segment || loads_code_segment(insn.what.kind);
}

bool RealModeFrames::nmi_taken(std::span<const LoggedEvent> events) {
  constexpr std::uint32_t kInterruptAndTrap = 0x300;  // EFLAGS.IF and TF, which a delivery clears
  if (flight_.insn == nullptr) return false;
  if (flight_.insn->what.kind == InsnKind::descriptor_table) seen_.tables.forget();
  if (vector(kNmi) != far_pointer(cpu_.registers.selector(1), cpu_.registers.ip())) return false;
  const LoggedState state = cpu_.registers.state();
  const auto word = [&](unsigned n) {
    const auto sp = static_cast<std::uint32_t>(state.gpr[4] + 2 * n) & stack_mask(state);
    return seen_.linear.read16(state.segment[2].base + sp);
  };
  const std::uint32_t changed = (word(2) ^ state.eflags) & 0xffff;
  if ((state.eflags & kInterruptAndTrap) != 0 || (changed & ~kInterruptAndTrap) != 0) return false;
  const std::uint32_t place = far_pointer(word(1), word(0));
  if (!events.empty()) return place == vector(events.back().vector);
  if (!delivers_itself(flight_.insn->what.kind)) return goes_on_at(place);
  const std::uint32_t handler = vector(software_vector(*flight_.insn));
  if (software_interrupt_taken(1)) return place == handler;
  return handler != vector(kNmi) && goes_on_at(place);
}

void RealModeFrames::refuse_unexplained() {
  if (flight_.insn == nullptr || flight_.insn->what.branch) return;
  const std::uint32_t place = far_pointer(cpu_.registers.selector(1), cpu_.registers.ip());
  const std::uint32_t again =
      far_pointer(seen_.code.selector(), flight_.linear - seen_.code.base());
  if (cpu_.registers.ip() > 0xffff || place == again || goes_on_at(place)) return;
  char text[128];
  std::snprintf(text, sizeof text,
                "the emulator went on at %04x:%04x for a reason that it does not show", place >> 16,
                place & 0xffff);
  seen_.recording.give_up(text);
}

void RealModeFrames::complete(LoggedEvent& event, unsigned frames_above) {
  LoggedState& state = event.before;
  state = cpu_.registers.state();
  const std::uint32_t mask = stack_mask(state);
  const auto sp = [&](unsigned bytes) {
    return static_cast<std::uint32_t>(state.gpr[4] + kFrameBytes * frames_above + bytes) & mask;
  };
  const std::uint64_t stack = state.segment[2].base;
  const std::uint16_t ip = seen_.linear.read16(stack + sp(0)),
                      cs = seen_.linear.read16(stack + sp(2));
  state.eflags = (state.eflags & 0xffff0000) | seen_.linear.read16(stack + sp(4));
  state.gpr[4] = (static_cast<std::uint32_t>(state.gpr[4]) & ~mask) | sp(kFrameBytes);
  const std::uint64_t base =
      cs == seen_.code.selector() ? seen_.code.base() : std::uint32_t{cs} << 4;
  state.segment[1].selector = cs;
  state.segment[1].base = base;
  event.pc = static_cast<std::uint32_t>(base + ip);
}

void RealModeFrames::push(const LoggedEvent& event, unsigned passed_bytes) {
  const LoggedState& state = event.before;
  const unsigned behind = event.software ? flight_.insn->size : passed_bytes;
  seen_.linear.show(state.idt_base + kVectorBytes * event.vector, kVectorBytes, false);
  const std::uint32_t mask = stack_mask(state);
  const std::uint64_t base = state.segment[2].base;
  const std::uint16_t frame[3] = {
      static_cast<std::uint16_t>(state.eflags),
      static_cast<std::uint16_t>(state.segment[1].selector),
      static_cast<std::uint16_t>(event.pc - state.segment[1].base + behind)};
  auto top = static_cast<std::uint32_t>(state.gpr[4]);
  seen_.linear.expect_stores(base + ((top - kFrameBytes) & mask), kFrameBytes);
  for (unsigned n = 0; n < 3; ++n) {
    top = (top - 2) & mask;
    seen_.linear.store(base + top, bytes_of(frame[n]),
                       n == 2 && passed_bytes != 0 ? std::optional(Notice::taken) : std::nullopt);
  }
  seen_.linear.expect_no_stores();
}

}  // namespace citcat::monitor
