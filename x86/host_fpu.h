#pragma once
// Floating point on the processor we run on.
//
// The engine computes x87 and SSE values but not what comes with them: it sets no exception flags,
// leaves C1 alone, truncates FPREM and rounds constants in one way only (docs/fidelity.md).
// Programs read those bits back, and save images carry them to memory. The host is an x86 too, so
// each instruction runs on its own unit: state in by FXRSTOR, the same bytes with the memory
// operand redirected into a buffer, state out by FXSAVE.
//
// What the host cannot know is kept here: the instruction and data pointers of the guest, the
// layout of the environment images in each mode, and MXCSR's supported bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "x86/decode/decoded_instruction.h"
#include "x86/fx_image.h"
#include "x86/host_code.h"

namespace citcat {

/// x87 status word bits (SDM vol. 1, 8.1.3).
inline constexpr std::uint16_t kFpuExceptions = 0x3f;
inline constexpr std::uint16_t kFpuErrorSummary = 0x80;
inline constexpr std::uint16_t kFpuBusy = 0x8000;

/// How one instruction form is carried out. Made once by HostFpu::prepare(), valid as long as it.
struct FpuForm {
  enum class Action : std::uint8_t {
    unsupported,  ///< leave it to the engine
    host,
    nothing,  ///< FWAIT, and FENI, FDISI, FSETPM, which do nothing from the 387 on
    store_environment,
    save,
    load_environment,
    restore,
    fxsave,
    fxrstor,
    ldmxcsr,
    stmxcsr,
  };
  Action action = Action::unsupported;
  bool waits = false;          ///< a pending x87 exception is reported before it (#MF)
  bool sets_pointers = false;  ///< becomes the last x87 instruction
  bool sse = false;            ///< exceptions are MXCSR's
  bool reads_memory = false;
  bool writes_memory = false;
  bool writes_gpr = false;
  bool writes_eflags = false;     ///< ZF PF CF, and OF SF AF cleared
  bool clears_pointers = false;   ///< FNINIT
  bool wide_image = false;        ///< environment in its 32-bit layout; FXSAVE and FXRSTOR with
                                  ///< pointers of 64 bits
  bool real_image = false;        ///< environment in its real-mode layout
  bool model_specific = false;    ///< the result differs between processors in its last bits
  std::int8_t gpr = kNoRegister;  ///< general register read or written
  std::uint16_t memory_bytes = 0;
  std::uint16_t fop = 0;
  const void* stub = nullptr;
};

/// Inputs and outputs of one execution besides the state image.
struct FpuOperands {
  /// In: the memory operand, filled whenever the form has one (MASKMOVQ merges into it). Out: what
  /// to store.
  alignas(16) std::array<std::uint8_t, 512> memory{};
  std::uint64_t gpr = 0;     ///< in and out: the whole of register FpuForm::gpr
  std::uint32_t eflags = 2;  ///< in and out; only OF SF ZF AF PF CF are looked at and changed
  std::uint16_t code_selector = 0;
  std::uint64_t code_offset = 0;
  std::uint16_t data_selector = 0;  ///< of the memory operand
  std::uint64_t data_offset = 0;
  bool save_sse = true;  ///< CR4.OSFXSR: FXSAVE and FXRSTOR include XMM registers
};

struct FpuResult {
  enum class Fault : std::uint8_t {
    none,
    pending,     ///< #MF (or FERR# when CR0.NE is clear) before the instruction, which did not run
    simd,        ///< #XM; MXCSR tells the cause, nothing else changed
    protection,  ///< #GP(0): reserved bits of MXCSR; nothing changed
  };
  Fault fault = Fault::none;
  std::uint16_t store_bytes = 0;  ///< of FpuOperands::memory, to be written to the operand
  bool model_specific = false;
};

class HostFpu {
 public:
  HostFpu();
  ~HostFpu();
  HostFpu(const HostFpu&) = delete;
  HostFpu& operator=(const HostFpu&) = delete;

  /// The guest's state. After changing control or status by hand call update_summary().
  FxImage& image() { return image_; }
  const FxImage& image() const { return image_; }

  /// Bits that LDMXCSR and FXRSTOR accept and FXSAVE reports (SDM vol. 1, 11.6.6). Zero means the
  /// processor reports none, which stands for FFBF.
  void set_mxcsr_mask(std::uint32_t mask) { mxcsr_mask_ = mask; }

  /// For a processor with long mode: the image has 64-bit pointers, and XMM8 to XMM15. Their
  /// selectors are kept beside it.
  void set_wide(bool wide) { wide_ = wide; }

  /// Chooses how to run `info`, which must be decoded. Builds code on first use of a form; throws
  /// IoError when the system refuses executable memory.
  FpuForm prepare(const DecodedInstruction& info);

  /// Runs one instruction on the guest's state.
  FpuResult execute(const FpuForm& form, FpuOperands& operands);

  std::uint16_t control_word() const { return word(0); }
  std::uint16_t status_word() const { return word(2); }
  /// The 16-bit tag word, from the abridged one and the register contents (SDM vol. 1, 8.1.7).
  std::uint16_t tag_word() const;
  std::uint32_t mxcsr() const;
  /// True when a waiting instruction would report an exception now.
  bool exception_pending() const { return (status_word() & kFpuErrorSummary) != 0; }
  /// Sets ES and B from the flags and masks.
  void update_summary();

  /// The state as FXSAVE shows it, all of it; `wide_pointers`: of 64 bits, without selectors.
  FxImage shown(bool wide_pointers) const;
  /// Takes the state from such an image, whose MXCSR is one that the processor accepts.
  void take(const FxImage& shown, bool wide_pointers);
  /// Bits of MXCSR that it accepts.
  std::uint32_t accepted_mxcsr() const { return mxcsr_mask_ != 0 ? mxcsr_mask_ : 0xffbf; }

  /// What an MMX instruction leaves of the x87 state: TOP = 0, every register in use, and FFFF in
  /// sign and exponent of the register it wrote (SDM vol. 1, 9.5.1). For callers whose engine runs
  /// MMX itself; `written` is the MMX register or -1.
  void note_mmx(int written);

 private:
  std::uint16_t word(std::size_t at) const {
    return static_cast<std::uint16_t>(image_[at] | image_[at + 1] << 8);
  }
  std::uint32_t dword(std::size_t at) const {
    return static_cast<std::uint32_t>(word(at)) | static_cast<std::uint32_t>(word(at + 2)) << 16;
  }
  void set_word(std::size_t at, std::uint16_t value);
  void set_dword(std::size_t at, std::uint32_t value);
  unsigned top() const { return status_word() >> 11 & 7; }

  const void* stub_for(const std::vector<std::uint8_t>& code);
  FpuResult run_x87(const FpuForm& form, FpuOperands& operands);
  FpuResult run_sse(const FpuForm& form, FpuOperands& operands);
  void store_environment(const FpuForm& form, FpuOperands& operands) const;
  void load_environment(const FpuForm& form, const FpuOperands& operands);
  void set_tag_word(std::uint16_t tags);
  void set_top(unsigned top);
  void initialize();
  void clear_pointers();
  FpuResult save(const FpuForm& form, FpuOperands& operands);
  void restore(const FpuForm& form, const FpuOperands& operands);
  std::uint32_t code_selector() const { return wide_ ? code_selector_ : word(12); }
  std::uint32_t data_selector() const { return wide_ ? data_selector_ : word(20); }
  void set_code_pointer(std::uint64_t offset, std::uint16_t selector);
  void set_data_pointer(std::uint64_t offset, std::uint16_t selector);
  void set_pointer(std::size_t at, std::uint64_t offset, std::uint16_t selector);
  FpuResult fxsave(const FpuForm& form, FpuOperands& operands) const;
  FpuResult fxrstor(const FpuForm& form, const FpuOperands& operands);
  FpuResult ldmxcsr(const FpuOperands& operands);

  FxImage image_{};
  std::uint32_t mxcsr_mask_ = 0xffff;
  bool wide_ = false;
  std::uint16_t code_selector_ = 0, data_selector_ = 0;  ///< of the pointers, where `wide_`
  HostCode code_;
  std::unordered_map<std::uint64_t, const void*> stubs_;  ///< by instruction bytes
};

}  // namespace citcat
