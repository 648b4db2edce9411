// Real mode: interrupts and exceptions through the vector table at its base. The emulator logs
// their vectors alone, and of INT n not even that: what else there is to know is in the frame that
// they have pushed.

#include <cstring>

#include "monitor/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kProtectedMode = 1;  // CR0.PE
constexpr unsigned kFrameBytes = 6, kVectorBytes = 4;

/// The vector of INT3, INT n or INTO.
unsigned software_vector(const Insn& insn) {
  constexpr std::uint8_t kInt3 = 0xcc, kInto = 0xce;
  const std::uint8_t* const opcode = insn.bytes.data() + insn.what.modrm_offset - 1;
  return *opcode == kInt3 ? 3 : *opcode == kInto ? 4 : opcode[1];
}

/// The bits of ESP that are the stack's (D/B of SS, which outlives protected mode).
std::uint32_t stack_mask(const LoggedState& state) {
  return (state.segment[2].flags & 0x400000) != 0 ? 0xffffffff : 0xffff;
}

}  // namespace

bool Recorder::in_real_mode() const { return (walker_.cr0() & kProtectedMode) == 0; }

/// CR0.PE has changed, or a recording begins. Segments stay as they are until they are loaded.
void Recorder::change_mode() {
  known_base_ = {};
  tables_.reset();
  code_base_known_ = false;
  code_base_hidden_ = true;
  registers_.forget_segments();
}

/// Whether the INT n in flight has gone to its handler; `later_events` have been delivered since it
/// started. INTO may go on, and an INT n whose vector lies beyond the table's limit has faulted.
bool Recorder::software_interrupt_taken(std::size_t later_events) {
  const std::uint64_t pushed = (stack_pointer_ - registers_.gpr(4)) & 0xffff;
  return pushed == kFrameBytes * (later_events + 1);
}

/// Everything that real mode has delivered since the instruction in flight started, the oldest
/// first.
void Recorder::take_real_events(std::span<LoggedEvent> events) {
  std::size_t frames = events.size();
  if (in_flight_ != nullptr && in_flight_->what.kind == InsnKind::software_interrupt &&
      software_interrupt_taken(frames)) {
    LoggedEvent event;
    event.vector = software_vector(*in_flight_);
    event.software = event.real_mode = true;
    complete_real_event(event, static_cast<unsigned>(frames));
    event.pc = in_flight_linear_;
    deliver(event, true);
  }
  for (LoggedEvent& event : events) {
    complete_real_event(event, static_cast<unsigned>(--frames));
    deliver(event, true);
  }
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
  const std::uint64_t base = cs == code_selector_ ? code_base_ : std::uint32_t{cs} << 4;
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
    const auto bytes = bytes_of(frame[n]);
    const auto physical = walker_.translate(base + top, true);
    if (n == 2 && passed_bytes != 0)
      write_corrected(*physical, bytes);
    else
      bus_.write(*physical, bytes);
  }
  bus_.expect_writes({}, {});
}

}  // namespace citcat::monitor
