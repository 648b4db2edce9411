#pragma once
// The processor's state inside the engine, read and written in place.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "events/machine/address_space.h"
#include "events/machine/cpu_state.h"

struct uc_struct;

namespace citcat {

/// Offsets into the engine's CPU state, as laid out by Unicorn 2.1.x for x86 (CPUX86State of
/// qemu/target/i386/cpu.h). Engine proves each of them at start-up.
namespace env_layout {
inline constexpr std::size_t kRegs = 0;  ///< 16 x u64: EAX ECX EDX EBX ESP EBP ESI EDI ...
inline constexpr std::size_t kEip = 128;
inline constexpr std::size_t kEflags = 136;
inline constexpr std::size_t kDf = 172;  ///< i32: 1, or -1 where EFLAGS.DF is set
inline constexpr std::size_t kHflags = 176;
inline constexpr std::size_t kSegments = 184;
inline constexpr std::size_t kSegmentBytes = 24;
inline constexpr std::size_t kLdt = 328;
inline constexpr std::size_t kTr = 352;
inline constexpr std::size_t kGdt = 376;
inline constexpr std::size_t kIdt = 400;
inline constexpr std::size_t kCr = 424;
inline constexpr std::size_t kA20Mask = 464;
inline constexpr std::size_t kFpTop = 572;
inline constexpr std::size_t kFpStatus = 576;
inline constexpr std::size_t kFpControl = 578;
inline constexpr std::size_t kFpTags = 580;
inline constexpr std::size_t kFpRegs = 592;
inline constexpr std::size_t kFpOpcode = 720;
inline constexpr std::size_t kFpCs = 722;
inline constexpr std::size_t kFpDs = 724;
inline constexpr std::size_t kFpIp = 728;
inline constexpr std::size_t kFpDp = 736;
inline constexpr std::size_t kMxcsr = 784;
inline constexpr std::size_t kXmm = 792;
inline constexpr std::size_t kXmmBytes = 64;
inline constexpr std::size_t kErrorCode = 5352;
inline constexpr std::size_t kExceptionIsInt = 5356;
inline constexpr std::size_t kDr = 5368;
inline constexpr std::size_t kOldException = 5464;
inline constexpr std::size_t kIntercept = 5488;
inline constexpr std::size_t kInterceptDrWrite = 5502;
inline constexpr std::size_t kInterceptExceptions = 5504;
}  // namespace env_layout

/// Bits of the engine's `hflags` word (qemu/target/i386/cpu.h, HF_*).
enum HiddenFlag : std::uint32_t {
  kHfCpl = 3,
  kHfInhibitIrq = 1u << 3,
  kHfCs32 = 1u << 4,
  kHfSs32 = 1u << 5,
  kHfAddSeg = 1u << 6,
  kHfPe = 1u << 7,
  kHfMp = 1u << 9,
  kHfEm = 1u << 10,
  kHfTs = 1u << 11,
  kHfLma = 1u << 14,
  kHfCs64 = 1u << 15,
  kHfGuest = 1u << 21,
  kHfOsFxsr = 1u << 22,
  kHfSmap = 1u << 23,
};

/// All 64 bits of the registers whose lower halves EngineRegisters has, and the registers that come
/// with long mode; as valid as the engine.
class WideRegisters {
 public:
  /// R8 to R15 are 8 to 15.
  std::uint64_t gpr(int i) const { return get(env_layout::kRegs + 8u * index(i)); }
  void set_gpr(int i, std::uint64_t v) { put(env_layout::kRegs + 8u * index(i), v); }
  std::uint64_t cr(int i) const { return get(env_layout::kCr + 8u * index(i)); }
  void set_cr(int i, std::uint64_t v) { put(env_layout::kCr + 8u * index(i), v); }
  std::uint64_t segment_base(int i) const { return get(segment_offset(i) + kBase); }
  void set_segment_base(int i, std::uint64_t v) { put(segment_offset(i) + kBase, v); }
  // Bases of the tables, and what was loaded of them before with an upper half of 0.
  std::uint64_t ldtr_base() const { return get(env_layout::kLdt + kBase); }
  void set_ldtr_base(std::uint64_t v) { put(env_layout::kLdt + kBase, v); }
  std::uint64_t tr_base() const { return get(env_layout::kTr + kBase); }
  void set_tr_base(std::uint64_t v) { put(env_layout::kTr + kBase, v); }
  std::uint64_t gdtr_base() const { return get(env_layout::kGdt + kBase); }
  void set_gdtr_base(std::uint64_t v) { put(env_layout::kGdt + kBase, v); }
  std::uint64_t idtr_base() const { return get(env_layout::kIdt + kBase); }
  void set_idtr_base(std::uint64_t v) { put(env_layout::kIdt + kBase, v); }

 private:
  friend class EngineRegisters;
  static constexpr std::size_t kBase = 8;  ///< within a segment or table
  explicit WideRegisters(char* env) : env_(env) {}
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::size_t segment_offset(int i) {
    return env_layout::kSegments + env_layout::kSegmentBytes * index(i);
  }
  std::uint64_t get(std::size_t offset) const {
    std::uint64_t v;
    std::memcpy(&v, env_ + offset, sizeof v);
    return v;
  }
  void put(std::size_t offset, std::uint64_t v) { std::memcpy(env_ + offset, &v, sizeof v); }

  char* env_;
};

/// The registers of one engine; as valid as the engine is. Between runs, and inside on_exception,
/// everything may be written; inside on_instruction reading is exact, and what is written takes
/// effect only after stop(), but for general registers. Of processors with long mode what is not
/// called wide is the lower half, and is written with an upper one of 0.
class EngineRegisters {
 public:
  WideRegisters wide() { return WideRegisters(env_); }
  const WideRegisters wide() const { return WideRegisters(env_); }
  std::uint32_t gpr(int i) const { return get<std::uint32_t>(env_layout::kRegs + 8u * index(i)); }
  void set_gpr(int i, std::uint32_t v) { put<std::uint64_t>(env_layout::kRegs + 8u * index(i), v); }
  /// The register file as the engine holds it: 8 x u64 in Gpr order, low halves valid; of
  /// processors with long mode 16 whole ones, and RIP after them.
  const std::uint64_t* gprs() const { return reinterpret_cast<const std::uint64_t*>(env_); }
  std::uint32_t eip() const { return get<std::uint32_t>(env_layout::kEip); }
  void set_eip(std::uint32_t v) { put<std::uint64_t>(env_layout::kEip, v); }
  std::uint64_t rip() const { return get<std::uint64_t>(env_layout::kEip); }
  void set_rip(std::uint64_t v) { put(env_layout::kEip, v); }
  std::uint32_t eflags() const;
  void set_eflags(std::uint32_t v);
  /// address_space_of() the control registers.
  AddressSpaceId address_space() const { return address_space_of(wide().cr(3), cr(4)); }
  /// EFLAGS without the arithmetic flags (those are computed lazily): cheap.
  std::uint32_t system_flags() const { return get<std::uint32_t>(env_layout::kEflags); }
  /// EFLAGS.DF, inside a run: string instructions go from high addresses to low ones.
  bool strings_run_down() const { return get<std::int32_t>(env_layout::kDf) < 0; }
  /// Clears EFLAGS.RF; unlike other writes at once, even inside on_instruction.
  void drop_resume_flag() { put(env_layout::kEflags, system_flags() & ~std::uint32_t{1u << 16}); }
  std::uint32_t hflags() const { return get<std::uint32_t>(env_layout::kHflags); }
  void set_hflags(std::uint32_t v) { put(env_layout::kHflags, v); }
  std::uint32_t cr(int i) const { return get<std::uint32_t>(env_layout::kCr + 8u * index(i)); }
  void set_cr(int i, std::uint32_t v) { put<std::uint64_t>(env_layout::kCr + 8u * index(i), v); }
  /// EFER (MSR C0000080h); 0 of processors without long mode.
  std::uint64_t efer() const { return efer_ == 0 ? 0 : get<std::uint64_t>(efer_); }
  /// For processors with long mode only; sync_mode() is due.
  void set_efer(std::uint64_t v) { put(efer_, v); }
  std::uint32_t segment_base(int i) const { return get<std::uint32_t>(segment_offset(i) + 8); }
  std::uint32_t segment_flags(int i) const { return get<std::uint32_t>(segment_offset(i) + 20); }
  std::uint16_t segment_selector(int i) const {
    return static_cast<std::uint16_t>(get<std::uint32_t>(segment_offset(i)));
  }
  std::uint32_t segment_limit(int i) const { return get<std::uint32_t>(segment_offset(i) + 16); }
  Segment segment(int i) const { return read_segment(segment_offset(i)); }
  void set_segment(int i, const Segment& s) { write_segment(segment_offset(i), s); }
  Segment ldtr() const { return read_segment(env_layout::kLdt); }
  void set_ldtr(const Segment& s) { write_segment(env_layout::kLdt, s); }
  Segment tr() const { return read_segment(env_layout::kTr); }
  void set_tr(const Segment& s) { write_segment(env_layout::kTr, s); }
  TableRegister gdtr() const { return read_table(env_layout::kGdt); }
  void set_gdtr(TableRegister t) { write_table(env_layout::kGdt, t); }
  TableRegister idtr() const { return read_table(env_layout::kIdt); }
  void set_idtr(TableRegister t) { write_table(env_layout::kIdt, t); }
  void set_a20_mask(std::uint32_t mask);
  std::uint32_t a20_mask() const { return get<std::uint32_t>(env_layout::kA20Mask); }
  std::uint32_t error_code() const { return get<std::uint32_t>(env_layout::kErrorCode); }
  /// x87, MMX and SSE state as an FXSAVE image (Intel SDM vol. 1, 10.5.1), of 64-bit mode where the
  /// processor has long mode.
  void read_fx(std::span<std::uint8_t, 512> image) const;
  void write_fx(std::span<const std::uint8_t, 512> image);
  /// The low halves of vector registers, 16 bytes of each kXmmBytes, and MXCSR, of which only flags
  /// may be changed there.
  std::uint8_t* vectors() { return reinterpret_cast<std::uint8_t*>(env_ + env_layout::kXmm); }
  std::uint32_t* mxcsr() { return reinterpret_cast<std::uint32_t*>(env_ + env_layout::kMxcsr); }
  std::uint64_t msr(std::uint32_t index) const;
  void set_msr(std::uint32_t index, std::uint64_t value);

  /// EFLAGS as the engine holds them inside a run, with what the arithmetic flags are computed
  /// from, and the mode bits: to be put back later, between runs.
  using RawFlags = std::array<std::uint64_t, (env_layout::kSegments - env_layout::kEflags) / 8>;
  void read_raw_flags(RawFlags& out) const {
    std::memcpy(out.data(), env_ + env_layout::kEflags, sizeof out);
  }
  void write_raw_flags(const RawFlags& flags);
  /// Puts back what the arithmetic flags are computed from; unlike other writes at once, even
  /// inside on_instruction, where that reports the first instruction of a block.
  void put_arithmetic_flags_back(const RawFlags& flags) {
    std::memcpy(env_ + env_layout::kEflags, flags.data(), env_layout::kDf - env_layout::kEflags);
  }

  /// Recomputes the derived mode bits (CPL, code and stack width, ...) after segments, CR0, CR4 or
  /// EFLAGS.VM were written.
  void sync_mode();
  /// After the next instruction the engine reports again (single-instruction blocks), as after
  /// STI: used where a block must not be translated beyond one instruction.
  void step_once() { set_hflags(hflags() | kHfInhibitIrq); }
  void clear_inhibit() { set_hflags(hflags() & ~std::uint32_t{kHfInhibitIrq}); }
  bool inhibited() const { return (hflags() & kHfInhibitIrq) != 0; }

 protected:
  explicit EngineRegisters(bool wide) : wide_(wide) {}
  ~EngineRegisters() = default;
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::size_t segment_offset(int i) {
    return env_layout::kSegments + env_layout::kSegmentBytes * index(i);
  }
  template <class T>
  T get(std::size_t offset) const {
    T v;
    std::memcpy(&v, env_ + offset, sizeof v);
    return v;
  }
  template <class T>
  void put(std::size_t offset, T v) {
    std::memcpy(env_ + offset, &v, sizeof v);
  }
  Segment read_segment(std::size_t offset) const;
  void write_segment(std::size_t offset, const Segment& s);
  TableRegister read_table(std::size_t offset) const;
  void write_table(std::size_t offset, TableRegister t);

  uc_struct* uc_ = nullptr;
  char* env_ = nullptr;   ///< the library's state of the processor
  const bool wide_;       ///< the processor has long mode
  std::size_t efer_ = 0;  ///< offset of EFER in env_, where it has
};

}  // namespace citcat
