#pragma once
// The processor as QEMU prints it, in its log and by cpu_dump_state().

#include <cstdint>
#include <string_view>

namespace citcat::monitor {

// Flags of EFLAGS: TF, NT, RF and VM.
inline constexpr std::uint32_t kStepping = 0x100, kNestedTask = 0x4000, kResume = 0x10000,
                               kVirtual8086 = 0x20000;

/// A segment register with its hidden part, as QEMU prints it: `flags` is the high dword of the
/// descriptor.
struct LoggedSegment {
  std::uint32_t selector = 0;
  std::uint64_t base = 0;
  std::uint32_t limit = 0, flags = 0;
};

/// Outside 64-bit mode that is 32 bits of each register and of each segment's base, and nothing of
/// R8 to R15.
struct LoggedState {
  std::uint64_t gpr[16] = {};  ///< RAX RCX RDX RBX RSP RBP RSI RDI R8 … R15
  std::uint64_t ip = 0;
  std::uint32_t eflags = 0;
  LoggedSegment segment[6];  ///< ES CS SS DS FS GS
  LoggedSegment ldtr, tr;
  std::uint64_t gdt_base = 0, idt_base = 0;
  std::uint32_t gdt_limit = 0, idt_limit = 0;
  std::uint32_t cr0 = 0, cr4 = 0;
  std::uint64_t cr2 = 0, cr3 = 0, efer = 0;
  std::uint64_t dr[8] = {};
  bool smm = false, a20 = true;
  bool code64 = false;         ///< 64-bit code runs
  std::uint32_t fx[128] = {};  ///< FXSAVE image, from dumps that show the FPU

  bool long_mode() const { return (efer & 0x400) != 0; }  ///< EFER.LMA
};

/// Takes one line of a state dump; returns false when it is none. The dump of the processor ends
/// with its EFER line.
bool parse_state_line(std::string_view line, LoggedState& state);

}  // namespace citcat::monitor
