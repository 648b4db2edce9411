#pragma once
// Everything inside the processor that decides what it does next: the part of the initial machine
// state (IMS) that is not memory.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/machine/long_mode_state.h"

namespace citcat {

/// General registers in encoding order (Intel SDM vol. 2, 2.1.5).
enum Gpr { kEax, kEcx, kEdx, kEbx, kEsp, kEbp, kEsi, kEdi };
/// Segment registers in encoding order.
enum SegmentRegister { kEs, kCs, kSs, kDs, kFs, kGs };

/// A segment register with its hidden descriptor cache.
struct Segment {
  std::uint16_t selector = 0;
  std::uint32_t base = 0;
  std::uint32_t limit = 0xffff;  ///< byte granular: already scaled by G
  /// Descriptor bits 40..55 shifted down: 0-3 type, 4 S, 5-6 DPL, 7 P, 12 AVL, 14 D/B, 15 G.
  std::uint16_t attributes = 0x93;
  bool unusable = false;  ///< null selector was loaded in protected mode
  bool operator==(const Segment&) const = default;
};

/// GDTR or IDTR.
struct TableRegister {
  std::uint32_t base = 0;
  std::uint16_t limit = 0xffff;
  bool operator==(const TableRegister&) const = default;
};

struct Msr {
  std::uint32_t index = 0;
  std::uint64_t value = 0;
  bool operator==(const Msr&) const = default;
};

struct CpuidLeaf {
  std::uint32_t leaf = 0;
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  bool operator==(const CpuidLeaf&) const = default;
};

/// The table of processors, oldest first: ROW(enumerator, number, name, traits, buses). The numbers
/// are those in archives and native captures, from 1 on without gaps; `citcat_cpu` in
/// capture/writer/citcat_capture.h has the same. The names are for the command line and JSON.
/// `traits` is a row of cpu_traits.h. `buses` names the buses of other processors that have the
/// same pins (capture/bus/bus_list.cc), with a space between them.
#define CITCAT_PROCESSORS(ROW)                   \
  ROW(i8086, 8, "8086", k8088, "")               \
  ROW(i8088, 1, "8088", k8088, "")               \
  ROW(i80186, 9, "80186", k186, "8086-max")      \
  ROW(i80188, 10, "80188", k186, "8088-max")     \
  ROW(v20, 11, "v20", kV20, "8088-max 8088-min") \
  ROW(v30, 12, "v30", kV20, "8086-max 8086-min") \
  ROW(i286, 2, "286", k286, "")                  \
  ROW(i386, 3, "386", k386, "")                  \
  ROW(i486, 4, "486", k486, "")                  \
  ROW(pentium, 5, "pentium", kPentium, "")       \
  ROW(p6, 6, "p6", kP6, "")                      \
  ROW(x86_64, 7, "x86-64", kX8664, "")

/// The captured processor, which decides undefined results, faults and features
/// (docs/fidelity.md).
enum class CpuModel : std::uint8_t {
  unknown,
#define CITCAT_MODEL(MODEL, NUMBER, NAME, TRAITS, BUSES) MODEL = NUMBER,
  CITCAT_PROCESSORS(CITCAT_MODEL)
#undef CITCAT_MODEL
};
#define CITCAT_ONE_MORE(...) +1
/// The model with the greatest number.
inline constexpr auto kLastCpuModel = static_cast<CpuModel>(0 CITCAT_PROCESSORS(CITCAT_ONE_MORE));
#undef CITCAT_ONE_MORE

/// "8086", "8088", "286", ...; nullopt for a name that is not among cpu_model_names().
std::optional<CpuModel> parse_cpu_model(std::string_view name);
std::string_view cpu_model_name(CpuModel model);
/// The names of all processors, oldest first.
std::vector<std::string> cpu_model_names();
/// The same for messages: "8086, 8088, 286 or 386".
std::string cpu_model_names_text();

/// Bit EM of CpuState::cr0: no coprocessor takes ESC instructions. Processors before the 286 have
/// no CR0; here the bit says the same for them.
inline constexpr std::uint32_t kNoCoprocessor = 1u << 2;

/// SMBASE after a reset (SDM vol. 3, 34.4).
inline constexpr std::uint32_t kResetSmbase = 0x30000;

/// State of the processor at one instruction boundary. 16-bit processors use the low halves.
struct CpuState {
  CpuModel model = CpuModel::unknown;
  std::array<std::uint32_t, 8> gpr{};
  std::uint32_t eip = 0;
  std::uint32_t eflags = 2;
  std::array<Segment, 6> segment{};
  Segment ldtr{0, 0, 0xffff, 0x82, false};
  Segment tr{0, 0, 0xffff, 0x8b, false};
  TableRegister gdtr;
  TableRegister idtr{0, 0x3ff};
  std::uint32_t cr0 = 0x10, cr2 = 0, cr3 = 0, cr4 = 0;
  std::array<std::uint32_t, 8> dr{0, 0, 0, 0, 0, 0, 0xffff0ff0, 0x400};
  std::uint32_t a20_mask = 0xffffffff;
  bool halted = false;
  bool in_smm = false;
  std::uint32_t smbase = kResetSmbase;
  std::uint64_t tsc = 0;
  /// FXSAVE image (Intel SDM vol. 1, 10.5.1): x87, MMX, SSE, MXCSR. Also used for processors that
  /// have no FXSAVE; the SSE part is then zero.
  std::array<std::uint8_t, 512> fx = default_fx();
  std::vector<Msr> msrs;         ///< sorted by index
  std::vector<CpuidLeaf> cpuid;  ///< sorted by leaf
  std::uint32_t ram_bytes = 0;   ///< 0 when the dump does not say
  bool ignore_cr0_cd = false;    ///< the monitor's cache model ignored CR0.CD
  /// Present exactly for processors with long mode (CpuTraits::has_long_mode), whatever mode they
  /// are in. The FXSAVE image is then that of 64-bit mode, with XMM0 to XMM15.
  std::optional<LongModeState> long_mode;

  /// Names of registers that the dump lacks ("ebx", "ss.limit", ...), in the order of
  /// register_names(). The replay assumes their values after a reset.
  std::vector<std::string> unknown;

  bool operator==(const CpuState&) const = default;
  static std::array<std::uint8_t, 512> default_fx();
};

/// The names under which registers are listed in CpuState::unknown, in this order: general
/// registers, eip, eflags, segments with .base .limit .attributes, tables, control and debug
/// registers, a20_mask, smbase, tsc, fx (the whole FXSAVE image). Only registers that `model` has;
/// for an unknown model, all of those with 32 bits. For processors with long mode the names are
/// rax..rdi, r8..r15, rip and rflags, and cr8, efer and xcr0 follow cr4.
std::vector<std::string> register_names(CpuModel model);

/// Sets or reads a register by its name in lower case: eax..edi, ax..di, ip/eip, flags/eflags,
/// cs..gs (selector; in real mode also sets the base), cs.base, cs.limit, cs.attributes, cr0..cr4,
/// dr0..dr7, gdtr.base, gdtr.limit, idtr.*, ldtr.*, tr.*, a20_mask, smbase, tsc.
/// 16-bit names set the low half and leave the upper one. Values are cut to the register's width.
/// A state with CpuState::long_mode has only the names of register_names(), each for the whole
/// register.
/// Returns false (set) or nullopt (get) for any other name.
bool set_register(CpuState& state, std::string_view name, std::uint64_t value);
std::optional<std::uint64_t> get_register(const CpuState& state, std::string_view name);

/// True for a register that the dump lacks.
bool is_unknown(const CpuState& state, std::string_view name);

/// Sets SMBASE if it is known. (Firmware changes it, and no instruction outside system management
/// mode reads it.) It is known if `state` already has it, as a register or as IA32_SMBASE (MSR
/// 9Eh); or else if the first SMI `shows` it; or else if the processor has just been reset (SDM
/// vol. 3, table 9-1: CS base FFFF0000, EIP FFF0). Otherwise "smbase" is listed in `unknown`.
void settle_smbase(CpuState& state, std::optional<std::uint32_t> shows);

/// Reads an initial-state file: {"cpu":"8088","registers":{"cs":"0x0f23",...}}, optionally with
/// "msrs":{"0x174":"0x60"}, "cpuid" (docs/cli.md), "ram_bytes":N and "comment". Numbers are JSON
/// integers or texts, decimal or with 0x. Registers not named keep their defaults and are listed in
/// `unknown`, except those that follow from named ones: the upper half of a register named by its
/// 16-bit name is zero, and in real mode a named selector gives base, limit and attributes. Throws
/// FormatError with the file name, the byte offset and the offending key.
CpuState load_state_json(const std::string& path);

}  // namespace citcat
