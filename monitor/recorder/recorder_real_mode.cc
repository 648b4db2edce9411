// Real mode: interrupts and exceptions through the vector table at its base. The emulator logs only
// their vectors, and nothing about INT n and NMIs: everything else comes from the frame that they
// have pushed.

#include <cstdio>
#include <cstring>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kFrameBytes = 6, kVectorBytes = 4, kNmi = 2;

/// The vector of INT3, INT n, INTO or ICEBP.
unsigned software_vector(const Insn& insn) {
  constexpr std::uint8_t kInt3 = 0xcc, kInto = 0xce;
  const std::uint8_t* const opcode = insn.bytes.data() + insn.what.modrm_offset - 1;
  if (insn.what.kind == InsnKind::icebp) return 1;
  return *opcode == kInt3 ? 3 : *opcode == kInto ? 4 : opcode[1];
}

/// CALL, near or far.
bool is_call(const Insn& insn) {
  const std::uint8_t opcode = insn.bytes[insn.what.modrm_offset - 1u];
  const unsigned reg = insn.bytes[insn.what.modrm_offset] >> 3 & 7;
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

/// CR0.PE has changed, or a recording begins. Segments stay as they are until they are loaded.
void Recorder::change_mode() {
  known_base_ = {};
  tables_.reset();
  code_segment_.known = false;
  code_segment_.hidden = true;
  segments_.forget_all();
  code_segment_.selector = registers_.selector(1);
  registers_.forget_segments();
}

/// Whether the INT n in flight has gone to its handler; `later_events` have been delivered since it
/// started. INTO may go on, and an INT n whose vector lies beyond the table's limit has faulted.
bool Recorder::software_interrupt_taken(std::size_t later_events) {
  const std::uint64_t pushed = (stack_pointer_ - registers_.gpr(4)) & 0xffff;
  return pushed == kFrameBytes * (later_events + 1);
}

/// The far pointer of interrupt `number`.
std::uint32_t Recorder::real_vector(unsigned number) {
  return read_linear32(tables().idt + kVectorBytes * number);
}

/// Whether the instruction in flight goes on at this far pointer when nothing interrupts it, as far
/// as that can be known: where a jump goes to may be anywhere.
bool Recorder::goes_on_at(std::uint32_t place) {
  const Insn& insn = *in_flight_;
  const bool in_segment = place >> 16 == code_segment_.selector;
  const auto is = [&](std::uint64_t linear) {
    return in_segment &&
           static_cast<std::uint16_t>(linear - code_segment_.base) == (place & 0xffff);
  };
  if (insn.what.kind == InsnKind::iret) {
    // It may have been overwritten since, with the same: NMIs wait for it.
    const bool dwords = insn.what.stack_segment_at > 8;
    return far_pointer(read_linear16(first_access_ + (dwords ? 4 : 2)),
                       read_linear16(first_access_)) == place;
  }
  if (!insn.what.branch || delivers_itself(insn.what.kind))
    return is(next_linear_) || (insn.what.repeated && is(in_flight_linear_));
  if (is_call(insn)) return !is(next_linear_);
  return in_segment || loads_code_segment(insn.what.kind);
}

/// Whether an NMI is the last that has been delivered, after `events`. Nothing tells of it: the
/// handler of vector 2 is about to run, with a frame as an NMI pushes it, which leads to where the
/// program would have gone on.
bool Recorder::nmi_taken(std::span<const LoggedEvent> events) {
  constexpr std::uint32_t kInterruptAndTrap = 0x300;  // EFLAGS.IF and TF, which a delivery clears
  if (in_flight_ == nullptr) return false;
  if (in_flight_->what.kind == InsnKind::descriptor_table) tables_.reset();
  if (real_vector(kNmi) != far_pointer(registers_.selector(1), registers_.ip())) return false;
  const LoggedState state = registers_.state();
  const auto word = [&](unsigned n) {
    const auto sp = static_cast<std::uint32_t>(state.gpr[4] + 2 * n) & stack_mask(state);
    return read_linear16(state.segment[2].base + sp);
  };
  const std::uint32_t changed = (word(2) ^ state.eflags) & 0xffff;
  if ((state.eflags & kInterruptAndTrap) != 0 || (changed & ~kInterruptAndTrap) != 0) return false;
  const std::uint32_t place = far_pointer(word(1), word(0));
  if (!events.empty()) return place == real_vector(events.back().vector);
  if (!delivers_itself(in_flight_->what.kind)) return goes_on_at(place);
  const std::uint32_t handler = real_vector(software_vector(*in_flight_));
  if (software_interrupt_taken(1)) return place == handler;
  return handler != real_vector(kNmi) && goes_on_at(place);
}

/// Ends the recording where a program goes on elsewhere and nobody has told why.
void Recorder::refuse_unexplained() {
  if (in_flight_ == nullptr || in_flight_->what.branch) return;
  const std::uint32_t place = far_pointer(registers_.selector(1), registers_.ip());
  const std::uint32_t again =
      far_pointer(code_segment_.selector, in_flight_linear_ - code_segment_.base);
  if (registers_.ip() > 0xffff || place == again || goes_on_at(place)) return;
  char text[128];
  std::snprintf(text, sizeof text,
                "the emulator went on at %04x:%04x for a reason that it does not show", place >> 16,
                place & 0xffff);
  give_up(text);
}

/// Everything that real mode has delivered since the instruction in flight started, the oldest
/// first, of which `events` have been logged. `next` is about to start.
void Recorder::take_real_events(std::vector<LoggedEvent> events, const Insn& next) {
  if (next.first_in_block && nmi_taken(events)) {
    events.emplace_back().vector = kNmi;
    events.back().real_mode = true;
  }
  std::size_t frames = events.size();
  if (in_flight_ != nullptr && delivers_itself(in_flight_->what.kind) &&
      software_interrupt_taken(frames)) {
    LoggedEvent event;
    event.vector = software_vector(*in_flight_);
    event.software = event.real_mode = true;
    complete_real_event(event, static_cast<unsigned>(frames));
    event.pc = in_flight_linear_;
    deliver(event);
  }
  for (LoggedEvent& event : events) {
    complete_real_event(event, static_cast<unsigned>(--frames));
    deliver(event);
  }
  if (next.first_in_block && events.empty()) refuse_unexplained();
}

/// The state before the delivery, by what it pushed and by what it has left alone.
/// `frames_above`: of those that have been delivered on top of it.
void Recorder::complete_real_event(LoggedEvent& event, unsigned frames_above) {
  LoggedState& state = event.before;
  state = registers_.state();
  const std::uint32_t mask = stack_mask(state);
  const auto sp = [&](unsigned bytes) {
    return static_cast<std::uint32_t>(state.gpr[4] + kFrameBytes * frames_above + bytes) & mask;
  };
  const std::uint64_t stack = state.segment[2].base;
  const std::uint16_t ip = read_linear16(stack + sp(0)), cs = read_linear16(stack + sp(2));
  state.eflags = (state.eflags & 0xffff0000) | read_linear16(stack + sp(4));
  state.gpr[4] = (static_cast<std::uint32_t>(state.gpr[4]) & ~mask) | sp(kFrameBytes);
  const std::uint64_t base =
      cs == code_segment_.selector ? code_segment_.base : std::uint32_t{cs} << 4;
  state.segment[1].selector = cs;
  state.segment[1].base = base;
  event.pc = static_cast<std::uint32_t>(base + ip);
}

/// What the processor reads and pushes (Intel SDM vol. 3, 20.1.4): a vector, then FLAGS, CS and IP.
/// `passed_bytes` as for deliver_protected().
void Recorder::deliver_real(const LoggedEvent& event, unsigned passed_bytes) {
  const LoggedState& state = event.before;
  const unsigned behind = event.software ? in_flight_->size : passed_bytes;
  block_access(state.idt_base + kVectorBytes * event.vector, kVectorBytes, false);
  const std::uint32_t mask = stack_mask(state);
  const std::uint64_t base = state.segment[2].base;
  const std::uint16_t frame[3] = {
      static_cast<std::uint16_t>(state.eflags),
      static_cast<std::uint16_t>(state.segment[1].selector),
      static_cast<std::uint16_t>(event.pc - state.segment[1].base + behind)};
  auto top = static_cast<std::uint32_t>(state.gpr[4]);
  expect_stores(base + ((top - kFrameBytes) & mask), kFrameBytes);
  for (unsigned n = 0; n < 3; ++n) {
    top = (top - 2) & mask;
    write_own(base + top, bytes_of(frame[n]),
              n == 2 && passed_bytes != 0 ? std::optional(Notice::taken) : std::nullopt);
  }
  bus_.expect_writes({}, {});
}

}  // namespace citcat::monitor
