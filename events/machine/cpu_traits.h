#pragma once
// The differences between processors, a row for each processor. Code that treats processors
// differently reads these rows and compares no CpuModel. The file is in `events` because the bus
// and the derivation of recordings also depend on the processor. Documents: [1] 8086 Family User's
// Manual (1979), [2] 80286 Hardware Reference and Programmer's Reference Manual, [3] 386 DX
// Programmer's Reference Manual and data sheets of SX, DX and EX, [4] i486 data sheet, [5] Intel
// SDM, [6] iAPX 86/88, 186/188 User's Manual (1985) and application note AP-186, [7] NEC V20/V30
// User's Manual and what the README of SingleStepTests/v20 says about a V20. "Seen" means seen in
// the single-step suites (docs/silicon.md).

#include <array>
#include <cstddef>
#include <cstdint>

#include "events/machine/cpu_state.h"

namespace citcat {

/// The sets of instructions that the table of opcodes distinguishes.
enum class InstructionSet : std::uint8_t { i8088, i186, v20, i286, i386, i486, pentium, p6 };

/// The default values are those of a Pentium II or III.
struct CpuTraits {
  InstructionSet instructions = InstructionSet::p6;

  // The bus.
  std::uint8_t address_pins = 32;
  std::uint8_t port_bytes = 4;  ///< the widest transfer to a port
  bool sizes_bus = false;       ///< devices may ask for narrower transfers: BS8, BS16 [3][4]
  bool has_shutdown = true;     ///< a bus cycle shows a third fault; not on the 8088
  /// A20 is masked outside the processor, so the pins show the bit. From the 486 on A20M# is a pin
  /// [4].
  bool a20_outside = false;

  /// False with twenty pins: the last one is A19, and addresses wrap by themselves.
  constexpr bool has_a20() const { return address_pins > 20; }

  // Registers, segments and paging.
  bool sixteen_bit = false;    ///< no 32-bit operands, no FS or GS; any instruction takes LOCK
  bool has_limits = true;      ///< segments have limits and types; not on the 8088 [1]
  bool one_tlb = false;        ///< for code and data: 386, 486 [3][4]
  bool has_cr0_wp = true;      ///< NE, WP and AM too: from the 486 on [5, vol. 3, 2.5]
  bool has_cr4 = true;         ///< from the Pentium on [5, vol. 3, 2.5]
  bool has_sysenter = true;    ///< and its MSRs: from the P6 on
  bool has_long_mode = false;  ///< registers of 64 bits, EFER, CR8: CpuState::long_mode
  std::uint32_t loads_flags = 0xffffffff, sets_flags = 0;  ///< by POPF and IRET in real mode

  // Instructions.
  std::uint8_t longest = 15;  ///< bytes beyond which #GP is raised: 10 on the 80286 [2, int. 13]
  std::uint8_t shift_mask = 0x1f;   ///< for counts in CL; the 8088 uses all bits [1]
  bool has_invalid_opcodes = true;  ///< false on the 8088, which executes every opcode
  bool has_80286_loadall = false, has_80386_loadall = false;
  bool has_pop_cs = false;                  ///< 0F is POP CS [1], and 8E may load CS
  bool has_opcode_aliases = false;          ///< 60 to 6F and others are aliases (seen on the 8088)
  bool pushes_sp_after = false;             ///< PUSH SP stores what SP is afterwards [1]
  bool segment_loads_shadow = false;        ///< also of segments other than SS [1, 2.6]
  bool shift_6_sets_bits = false;           ///< D0/6 to D3/6 set all bits (seen)
  bool keeps_one_prefix = false;            ///< after an interrupted REP: the last [1, 2.7]
  bool wraps_words = false;                 ///< a word at FFFF has its second byte at 0 [1]
  bool divide_error_points_past = false;    ///< #DE returns after the instruction [1]
  bool aam_zero_keeps_parity = false;       ///< AAM 0 clears all flags but PF (seen)
  bool coprocessor_by_ports = false;        ///< operands pass by I/O cycles at F8h to FEh [2]
  bool pushes_all_upward = false;           ///< PUSHA stores from DI up to AX (seen)
  bool pops_ax_first = false;               ///< POPA reads its last word before the others (seen)
  bool returns_flags_first = false;         ///< IRET reads FLAGS before IP and CS (seen)
  bool compares_destination_first = false;  ///< CMPS reads ES:DI before DS:SI (seen)
  bool checks_segment_end = false;          ///< before anything else (seen on the 80286)
  /// The values of flags that the manuals leave undefined: the engine's, the 80286's, or those of
  /// later processors.
  enum class UndefinedFlags : std::uint8_t {
    none,
    i286,
    later
  } undefined_flags = UndefinedFlags::later;

  // More of processors before the 286.
  bool stores_unshifted = false;        ///< a shift by 0 writes its operand back (seen)
  bool has_microcode_8086 = false;      ///< x86/microcode_8086.h
  bool reads_for_coprocessor = false;   ///< ESC without a coprocessor only reads a word (seen)
  bool shifts_by_steps = false;         ///< only shifts follow the microcode, by whole counts [7]
  bool refuses_least_quotient = false;  ///< IDIV refuses quotients 80h and 8000h [7]
  bool has_nec_opcodes = false;         ///< after 0F; prefixes 64, 65; ESC 66, 67 [7]
  bool ignores_reg_field = false;       ///< the upper bit in 8C and 8E, all in C6, C7 [7]
  bool has_f1_prefix = false;           ///< F1 is F0, or without effect (seen)
};

namespace cpu_traits_rows {

inline constexpr CpuTraits kP6{};

/// Executes 32-bit code as a P6 does. Its pins carry 52 address bits at most [5, vol. 3, 4.1.4];
/// captures have the lower 32.
constexpr CpuTraits make_x86_64() {
  CpuTraits t = kP6;
  t.has_long_mode = true;
  return t;
}

constexpr CpuTraits make_pentium() {
  CpuTraits t = kP6;
  t.instructions = InstructionSet::pentium;
  t.has_sysenter = false;
  return t;
}

constexpr CpuTraits make_486() {
  CpuTraits t = make_pentium();
  t.instructions = InstructionSet::i486;
  t.sizes_bus = true;
  t.one_tlb = true;
  t.has_cr4 = false;
  return t;
}

constexpr CpuTraits make_386() {
  CpuTraits t = make_486();
  t.instructions = InstructionSet::i386;
  t.a20_outside = true;
  t.has_cr0_wp = false;
  t.has_80386_loadall = true;
  return t;
}

constexpr CpuTraits make_286() {
  CpuTraits t = kP6;
  t.instructions = InstructionSet::i286;
  t.address_pins = 24;
  t.port_bytes = 2;
  t.a20_outside = true;
  t.sixteen_bit = true;
  t.has_cr0_wp = t.has_cr4 = t.has_sysenter = false;
  t.loads_flags = 0x0fd5;
  t.sets_flags = 0x0002;
  t.longest = 10;
  t.has_80286_loadall = true;
  t.has_f1_prefix = true;
  t.aam_zero_keeps_parity = true;
  t.coprocessor_by_ports = true;
  t.pushes_all_upward = t.pops_ax_first = t.returns_flags_first = true;
  t.compares_destination_first = true;
  t.checks_segment_end = true;
  t.undefined_flags = CpuTraits::UndefinedFlags::i286;
  return t;
}

constexpr CpuTraits make_8088() {
  CpuTraits t = kP6;
  t.instructions = InstructionSet::i8088;
  t.address_pins = 20;
  t.port_bytes = 2;
  t.sixteen_bit = true;
  t.has_limits = t.has_shutdown = false;
  t.has_cr0_wp = t.has_cr4 = t.has_sysenter = false;
  t.loads_flags = 0x0fd5;
  t.sets_flags = 0xf002;
  t.shift_mask = 0xff;
  t.has_invalid_opcodes = false;
  t.has_pop_cs = t.has_opcode_aliases = t.pushes_sp_after = t.segment_loads_shadow = true;
  t.has_f1_prefix = true;
  t.stores_unshifted = t.has_microcode_8086 = t.reads_for_coprocessor = true;
  t.shift_6_sets_bits = t.keeps_one_prefix = t.wraps_words = t.divide_error_points_past = true;
  t.undefined_flags = CpuTraits::UndefinedFlags::none;
  return t;
}

/// Among the differences from the 8086 that [6] lists: invalid opcodes raise interrupt 6, shifts
/// use five bits of their count, IDIV accepts the quotients 80h and 8000h, an interrupted string
/// instruction keeps its prefixes, and a word at FFFF has its second byte at 10000.
constexpr CpuTraits make_186() {
  CpuTraits t = make_8088();
  t.instructions = InstructionSet::i186;
  t.shift_mask = 0x1f;
  t.has_invalid_opcodes = true;
  t.has_pop_cs = t.has_opcode_aliases = t.shift_6_sets_bits = t.keeps_one_prefix = false;
  t.stores_unshifted = t.has_microcode_8086 = t.wraps_words = t.has_f1_prefix = false;
  return t;
}

/// Has the opcodes of the 186, and shifts by whole counts as the 8086 does [7].
constexpr CpuTraits make_v20() {
  CpuTraits t = make_8088();
  t.instructions = InstructionSet::v20;
  t.has_pop_cs = t.has_opcode_aliases = t.shift_6_sets_bits = t.keeps_one_prefix = false;
  t.has_microcode_8086 = t.has_f1_prefix = t.stores_unshifted = false;
  t.has_nec_opcodes = t.ignores_reg_field = true;
  t.shifts_by_steps = t.refuses_least_quotient = true;
  return t;
}

/// An unknown processor decodes and executes as a P6, but may have any bus.
constexpr CpuTraits make_unknown() {
  CpuTraits t = kP6;
  t.sizes_bus = true;
  return t;
}

inline constexpr CpuTraits kUnknown = make_unknown(), k8088 = make_8088(), k186 = make_186(),
                           kV20 = make_v20(), k286 = make_286(), k386 = make_386(),
                           k486 = make_486(), kPentium = make_pentium(), kX8664 = make_x86_64();

}  // namespace cpu_traits_rows

constexpr const CpuTraits& cpu_traits(CpuModel model) {
  switch (model) {
#define CITCAT_TRAITS(MODEL, NUMBER, NAME, TRAITS, BUSES) \
  case CpuModel::MODEL:                                   \
    return cpu_traits_rows::TRAITS;
    CITCAT_PROCESSORS(CITCAT_TRAITS)
#undef CITCAT_TRAITS
    case CpuModel::unknown:
      break;
  }
  return cpu_traits_rows::kUnknown;
}

/// True if the processor is known.
constexpr bool is_known(CpuModel model) { return model != CpuModel::unknown; }

}  // namespace citcat
