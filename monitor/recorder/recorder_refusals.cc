// Ends the recording, and names the reason, where the emulator does what no processor does and the
// monitor cannot show what a processor would do. The emulator's behaviour is that of QEMU 10.0,
// target/i386/tcg/seg_helper.c and emit.c.inc.

#include <cstdio>
#include <optional>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kInvalidOpcode = 6, kTaskSegment = 10, kNotPresent = 11, kStackFault = 12,
                   kProtection = 13;
constexpr unsigned kGate16 = 4;  // a call gate of the 286

/// "interrupt 22h" as text would be too long for some callers' sentences: the name of an exception.
const char* name_of(unsigned vector) {
  switch (vector) {
    case 8:
      return "#DF";
    case kTaskSegment:
      return "#TS";
    case kNotPresent:
      return "#NP";
    case kStackFault:
      return "#SS";
    case kProtection:
      return "#GP";
    case 14:
      return "#PF";
    default:
      return "another exception";
  }
}

/// CALL to another segment, and not JMP.
bool is_far_call(const Insn& insn) {
  const std::uint8_t opcode = insn.bytes[insn.what.modrm_offset - 1u];
  return opcode == 0x9a || (opcode == 0xff && (insn.bytes[insn.what.modrm_offset] >> 3 & 7) == 3);
}

}  // namespace

/// In real and in virtual-8086 mode the emulator takes CS from after the stack segment where a
/// processor takes it from its beginning (QEMU 10, target/i386/tcg/emit.c.inc, gen_RETF()).
void Recorder::refuse_wrapped_return(const Insn& insn) {
  if (!in_real_mode() && !registers_.in_virtual8086()) return;
  constexpr std::uint64_t kEnd = 0x10000;
  if ((registers_.gpr(4) & (kEnd - 1)) + insn.what.operand_bytes < kEnd) return;
  give_up("a far return reads over the end of its stack segment, which this emulator gets wrong");
}

/// An access of the instruction in flight has been made: whether a processor refuses it by its
/// segment with #GP or #SS (Intel SDM vol. 3, 5.3 to 5.5), which the emulator does not look at.
bool Recorder::is_refused(const Insn& insn, bool store, std::uint64_t linear, std::size_t size) {
  const int segment = store ? insn.what.stores_to : insn.what.loads_from;
  if (insn.code == CodeSize::bits64 || segment < 0 ||
      segments_.allows(static_cast<unsigned>(segment), static_cast<std::uint32_t>(linear),
                       static_cast<std::uint32_t>(size), store))
    return false;
  static constexpr const char* kNames[SegmentLimits::kSegments] = {"ES", "CS", "SS",
                                                                   "DS", "FS", "GS"};
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%zu bytes at %08llx were %s through %s, whose limit or type makes processors refuse "
      "it with %s",
      size, static_cast<unsigned long long>(linear), store ? "written" : "read", kNames[segment],
      segment == 2 ? "#SS" : "#GP");
  give_up(text);
  return true;
}

/// DR6 is about to be read (as DR4 too, Intel SDM vol. 3, 17.2.2), in which the emulator may have
/// other breakpoints than a processor.
void Recorder::refuse_wrong_debug_status(const Insn& insn) {
  constexpr std::uint8_t kFromRegister = 0x21;
  const unsigned number = insn.bytes[insn.what.modrm_offset] >> 3 & 7;
  const bool reads = insn.bytes[insn.what.modrm_offset - 1u] == kFromRegister;
  if (!reads || (number != 4 && number != 6)) return;
  if ((registers_.state().dr[6] & 0xf) != breakpoints_.bits())
    give_up("DR6 was read, in which this emulator names other breakpoints than a processor");
}

/// Two #DB, of which the second comes before an instruction of the first one's handler: a processor
/// has one for all traps of an instruction (Intel SDM vol. 3, 17.2.3). But for a code breakpoint at
/// the handler.
void Recorder::refuse_two_traps(const LoggedEvent& first, const LoggedEvent& second) {
  constexpr unsigned kDebug = 1;
  const auto is_trap = [](const LoggedEvent& e) {
    return e.vector == kDebug && !e.software && !e.interrupts();
  };
  if (!is_trap(first) || !is_trap(second)) return;
  const LoggedState state = registers_.state();
  const std::uint64_t place = second.real_mode ? state.ip + state.segment[1].base : second.pc;
  for (unsigned n = 0; n < 4; ++n) {
    const bool enabled = (state.dr[7] >> (2 * n) & 3) != 0;
    const bool of_code = (state.dr[7] >> (16 + 4 * n) & 3) == 0;
    if (enabled && of_code && state.dr[n] == place) return;
  }
  give_up("one instruction raised two #DB, of which a processor makes one");
}

/// An interrupt, an exception or INT n went on differently from by what a processor refuses it
/// with.
void Recorder::refuse_wrong_delivery(const LoggedEvent& event, const Refusal& refusal) {
  char text[160];
  std::snprintf(text, sizeof text,
                "vector %02xh was delivered otherwise than by processors, which refuse it with "
                "%s(%x)",
                event.vector, name_of(refusal.vector), refusal.error_code);
  give_up(text);
}

/// The offset of a gate of the 286 has 16 bits; the emulator takes 32 (80386 Programmer's Reference
/// Manual, 9.5).
void Recorder::refuse_wrong_gate(const WayIn& way) {
  if (!way.is_wide() && way.gate.upper_offset() != 0)
    give_up(
        "a gate of the 286 was used whose last word is not zero, which this emulator takes for a "
        "part of the offset");
}

/// An entry of the GDT or LDT as it is, without a trace on the bus. Not present where there is
/// none.
TableEntry Recorder::peek_entry(unsigned selector) {
  const bool local = (selector & 4) != 0;
  const std::uint32_t at = selector & 0xfff8;
  TableEntry entry;
  std::array<std::uint8_t, 8> bytes{};
  if (at + 7 > (local ? tables().ldt_limit : tables().gdt_limit)) return entry;
  entry.linear = (local ? tables().ldt : tables().gdt) + at;
  if (!peek(entry.linear, bytes)) return entry;
  entry.low = dword_of(bytes);
  entry.high = dword_of(std::span(bytes).subspan(4));
  return entry;
}

/// The instruction in flight raised another exception than a processor would have.
void Recorder::refuse_wrong_exception(const LoggedEvent& event) {
  const InsnClass& what = in_flight_->what;
  if (event.vector == kInvalidOpcode && what.unknown != nullptr) return give_up(what.unknown);
  if (!loads_code_segment(what.kind) || in_real_mode()) return;
  const TableEntry named = peek_entry(event.error_code);
  if (named.linear == 0 || named.present()) return;
  // A stack that is not present is #SS (Intel SDM vol. 2, IRET and CALL).
  if (named.is_writable_data() && (event.vector == kTaskSegment || event.vector == kNotPresent))
    give_up("a stack segment that is not present raised an exception other than #SS");
  // So is a code segment after the gate of a JMP #NP.
  if (named.is_code() && event.vector == kProtection && transfer_.gate)
    give_up("a code segment that is not present, named by a call gate, did not raise #NP");
}

/// The far transfer in flight has ended where on a processor it would not have, or elsewhere.
void Recorder::refuse_wrong_transfer(const LoggedState* after) {
  if (to_virtual8086_ && !from_virtual8086_ && level_ != 0)
    return give_up("IRET went to virtual-8086 mode from another privilege level than 0");
  if (!transfer_.code) return;
  const TableEntry& code = *transfer_.code;
  if (transfer_.gate && is_far_call(*in_flight_)) {
    if (transfer_.gate->type() == kGate16 && transfer_.gate->upper_offset() != 0)
      return give_up(
          "a call gate of the 286 was used whose last word is not zero, which this emulator takes "
          "for a part of the offset");
    if (code.conforming() && code.dpl() < level_)
      return give_up(
          "a call gate led to a conforming segment, with which this emulator changes the privilege "
          "level");
  }
  const std::uint64_t ip = after != nullptr ? after->ip : registers_.ip();
  if (ip > code.limit())
    give_up("a far transfer went beyond the end of its code segment, which processors refuse");
}

}  // namespace citcat::monitor
