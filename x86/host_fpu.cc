// See the header for the idea. Two facts make unmasked exceptions safe to run:
//   * x87 exceptions are reported by the *next* waiting instruction (SDM vol. 1, 8.7). The stub
//     runs with the guest's own masks, saves with FXSAVE and initialises, neither of which waits:
//     the host's unit has then done exactly what an unmasked exception does, without a trap.
//   * SSE exceptions trap at once (SDM vol. 1, 11.5.3), so those run masked with cleared flags, and
//     what they raised is compared with the guest's masks afterwards.

#include "x86/host_fpu.h"

#include <algorithm>
#include <cstring>

#include "formats/io/error.h"
#include "x86/fx_image.h"

namespace citcat {

using namespace fx_image;

namespace {

constexpr std::uint32_t kMxcsrMasks = 0x1f80, kMxcsrFlags = 0x3f;

/// What the stub exchanges besides memory operand and state; offsets are in the stub's code.
struct RegisterBlock {
  std::uint64_t gpr = 0;
  std::uint64_t flags = 0;
};
static_assert(offsetof(RegisterBlock, flags) == 8);

using Stub = void (*)(void* memory, void* state, RegisterBlock* registers);

/// rdi: memory operand, rsi: state, rdx: RegisterBlock. Saves and restores what the ABI wants kept.
constexpr std::array<std::uint8_t, 23> kProlog = {
    0x48, 0x83, 0xec, 0x18,        // sub     rsp, 24
    0x0f, 0xae, 0x5c, 0x24, 0x08,  // stmxcsr [rsp+8]
    0xd9, 0x7c, 0x24, 0x0c,        // fnstcw  [rsp+12]
    0x0f, 0xae, 0x0e,              // fxrstor [rsi]
    0xff, 0x72, 0x08,              // push    qword [rdx+8]
    0x9d,                          // popfq
    0x48, 0x8b, 0x02,              // mov     rax, [rdx]
};
constexpr std::array<std::uint8_t, 26> kEpilog = {
    0x48, 0x89, 0x02,              // mov     [rdx], rax
    0x9c,                          // pushfq
    0x8f, 0x42, 0x08,              // pop     qword [rdx+8]
    0x0f, 0xae, 0x06,              // fxsave  [rsi]
    0xdb, 0xe3,                    // fninit
    0xd9, 0x6c, 0x24, 0x0c,        // fldcw   [rsp+12]
    0x0f, 0xae, 0x54, 0x24, 0x08,  // ldmxcsr [rsp+8]
    0x48, 0x83, 0xc4, 0x18,        // add     rsp, 24
    0xc3,                          // ret
};

// --- which form is it ---------------------------------------------------------------------------

/// Register forms with a documented twin: not every processor executes the undocumented encoding.
std::vector<std::uint8_t> x87_register_code(std::uint8_t opcode, std::uint8_t modrm) {
  const auto row = static_cast<std::uint8_t>(modrm & 0xf8);
  const auto twin = [&](std::uint8_t other_opcode, std::uint8_t other_row) {
    return std::vector<std::uint8_t>{other_opcode,
                                     static_cast<std::uint8_t>(other_row | (modrm & 7))};
  };
  if (opcode == 0xdc && row == 0xd0) return twin(0xd8, 0xd0);  // FCOM
  if (opcode == 0xdc && row == 0xd8) return twin(0xd8, 0xd8);  // FCOMP
  if (opcode == 0xde && row == 0xd0) return twin(0xd8, 0xd8);
  if ((opcode == 0xdd || opcode == 0xdf) && row == 0xc8) return twin(0xd9, 0xc8);  // FXCH
  if (opcode == 0xdf && (row == 0xd0 || row == 0xd8)) return twin(0xdd, 0xd8);     // FSTP
  if (opcode == 0xd9 && row == 0xd8) return twin(0xdd, 0xd8);
  std::vector<std::uint8_t> code = {opcode, modrm};
  if (opcode == 0xdf && row == 0xc0) code = {0xdd, modrm, 0xd9, 0xf7};  // FFREEP: FFREE, FINCSTP
  return code;
}

/// FNINIT, FNCLEX, FNSTSW AX and the like: no check for pending exceptions, not remembered as the
/// last instruction.
bool is_x87_control(const DecodedInstruction& info) {
  if (info.register_form) {
    const bool no_operand_row = info.opcode == 0xdb && (info.modrm & 0xf8) == 0xe0;
    return no_operand_row || (info.opcode == 0xdf && info.modrm == 0xe0);
  }
  if (info.opcode == 0xd9) return info.reg_field >= 4;
  return info.opcode == 0xdd && (info.reg_field == 4 || info.reg_field >= 6);
}

/// FLDCW, FLDENV and FRSTOR are control instructions that wait.
bool x87_waits(const DecodedInstruction& info) {
  if (!is_x87_control(info)) return true;
  if (info.register_form) return false;
  return info.reg_field == 4 || (info.opcode == 0xd9 && info.reg_field == 5);
}

FpuForm::Action x87_action(const DecodedInstruction& info) {
  using Action = FpuForm::Action;
  if (info.register_form) {
    const bool early_control =
        info.opcode == 0xdb && (info.modrm == 0xe0 || info.modrm == 0xe1 || info.modrm == 0xe4);
    return early_control ? Action::nothing : Action::host;
  }
  if (info.opcode == 0xd9 && info.reg_field == 4) return Action::load_environment;
  if (info.opcode == 0xd9 && info.reg_field == 6) return Action::store_environment;
  if (info.opcode == 0xdd && info.reg_field == 4) return Action::restore;
  if (info.opcode == 0xdd && info.reg_field == 6) return Action::save;
  return Action::host;
}

/// F2XM1 FYL2X FPTAN FPATAN, FYL2XP1, FSINCOS, FSIN FCOS: each processor has its own approximation.
bool is_transcendental(const DecodedInstruction& info) {
  if (info.opcode != 0xd9 || !info.register_form) return false;
  const std::uint8_t m = info.modrm;
  return (m >= 0xf0 && m <= 0xf3) || m == 0xf9 || m == 0xfb || m == 0xfe || m == 0xff;
}

/// All of an x87 form but its stub. What it has in memory is known.
void decode_x87(const DecodedInstruction& info, FpuForm& form) {
  form.action = x87_action(info);
  form.waits = x87_waits(info);
  form.sets_pointers = !is_x87_control(info);
  form.model_specific = is_transcendental(info);
  form.fop = static_cast<std::uint16_t>((info.opcode & 7) << 8 | info.modrm);
  form.wide_image = form.memory_bytes == 28 || form.memory_bytes == 108;
  form.real_image = info.real_or_v86;
  form.clears_pointers = info.opcode == 0xdb && info.modrm == 0xe3;
  if (info.register_form && info.opcode == 0xdf && info.modrm == 0xe0) {
    form.gpr = kEax;
    form.writes_gpr = true;
  }
  // FCOMI, FUCOMI and their popping forms: DB E8..F7, DF E8..F7.
  const bool compares = (info.opcode | 4) == 0xdf && info.modrm >= 0xe8 && info.modrm <= 0xf7;
  form.writes_eflags = info.register_form && compares;
}

/// With its memory operand at [rdi].
std::vector<std::uint8_t> x87_code(const DecodedInstruction& info) {
  if (info.register_form) return x87_register_code(info.opcode, info.modrm);
  return {info.opcode, static_cast<std::uint8_t>((info.modrm & 0x38) | kModRmRdi)};
}

/// CVTPI2PS, CVTTPS2PI, CVTPS2PI and the same of doubles wait for the x87 unit as MMX instructions
/// do; CVTPI2PD only where its operand is an MMX register (SDM vol. 2).
bool converts_mmx(const DecodedInstruction& info) {
  if (info.mandatory_prefix == 0xf2 || info.mandatory_prefix == 0xf3) return false;
  const bool doubles = info.mandatory_prefix == 0x66;
  if (info.opcode == 0x2a) return info.register_form || !doubles;
  return info.opcode == 0x2c || info.opcode == 0x2d;
}

/// Copies the x87 part that an instruction may change. The six bytes above each register are
/// reserved and stay zero.
void copy_x87(const FxImage& from, FxImage& to) {
  std::copy_n(from.begin() + kControl, 5, to.begin() + kControl);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(kRegisters + kSlot * i);
    std::copy_n(from.begin() + at, kRegisterBytes, to.begin() + at);
  }
}

}  // namespace

HostFpu::HostFpu() {
  initialize();
  set_dword(kMxcsr, kMxcsrMasks);
}

HostFpu::~HostFpu() = default;

const void* HostFpu::stub_for(const std::vector<std::uint8_t>& code) {
  CITCAT_ASSERT(code.size() <= 7);
  std::uint64_t key = code.size();
  for (const std::uint8_t byte : code) key = key << 8 | byte;
  const auto found = stubs_.find(key);
  if (found != stubs_.end()) return found->second;
  const void* stub = code_.add({kProlog, code, kEpilog});
  stubs_.emplace(key, stub);
  return stub;
}

// --- preparing ----------------------------------------------------------------------------------

FpuForm HostFpu::prepare(const DecodedInstruction& info) {
  using Action = FpuForm::Action;
  CITCAT_ASSERT(info.state == DecodeState::ok);
  FpuForm form;
  if (info.operand_count > 0) {
    form.memory_bytes = info.operands[0].size;
    form.reads_memory = info.operands[0].read;
    form.writes_memory = info.operands[0].write;
  }
  switch (info.kind) {
    case InstructionClass::x87:
      decode_x87(info, form);
      if (form.action == Action::host) form.stub = stub_for(x87_code(info));
      return form;
    case InstructionClass::fwait:
      form.action = Action::nothing;
      form.waits = true;
      return form;
    case InstructionClass::fxsave:
      form.action = Action::fxsave;
      form.wide_image = (info.rex & kRexW) != 0;
      return form;
    case InstructionClass::fxrstor:
      form.action = Action::fxrstor;
      form.wide_image = (info.rex & kRexW) != 0;
      return form;
    case InstructionClass::ldmxcsr:
      form.action = Action::ldmxcsr;
      return form;
    case InstructionClass::stmxcsr:
      form.action = Action::stmxcsr;
      return form;
    case InstructionClass::mmx:
    case InstructionClass::emms:
    case InstructionClass::sse:
    case InstructionClass::sse_fp:
      break;
    default:
      return form;
  }
  const bool first_map = info.opcode_map == 1;
  // 0F 78 and 79 are vendor extensions.
  if (first_map && (info.opcode == 0x78 || info.opcode == 0x79)) return form;
  if (!first_map && !host_has(info)) return form;
  const GprPlace place = gpr_place(info);
  form.action = Action::host;
  form.sse = info.kind == InstructionClass::sse_fp || info.kind == InstructionClass::sse;
  form.waits = info.kind == InstructionClass::mmx || info.kind == InstructionClass::emms ||
               (first_map && converts_mmx(info));
  form.writes_gpr = place == GprPlace::reg_written || place == GprPlace::rm_written;
  if (place == GprPlace::reg_written) form.gpr = static_cast<std::int8_t>(info.reg_field);
  if (place == GprPlace::rm_read || place == GprPlace::rm_written) {
    form.gpr = static_cast<std::int8_t>(info.rm_field);
  }
  form.writes_eflags = form.sse && first_map && (info.opcode == 0x2e || info.opcode == 0x2f);
  form.model_specific = form.sse && first_map && (info.opcode == 0x52 || info.opcode == 0x53);
  form.stub = stub_for(vector_code(info, place));
  return form;
}

// --- executing ----------------------------------------------------------------------------------

FpuResult HostFpu::execute(const FpuForm& form, FpuOperands& operands) {
  using Action = FpuForm::Action;
  FpuResult result;
  if (form.waits && exception_pending()) {
    result.fault = FpuResult::Fault::pending;
    return result;
  }
  switch (form.action) {
    case Action::unsupported:
      throw InternalError("floating-point form that was not prepared");
    case Action::nothing:
      return result;
    case Action::host:
      return form.sse ? run_sse(form, operands) : run_x87(form, operands);
    case Action::store_environment:
      store_environment(form, operands);
      set_word(kControl, control_word() | kFpuExceptions);
      update_summary();
      result.store_bytes = form.memory_bytes;
      return result;
    case Action::save:
      return save(form, operands);
    case Action::load_environment:
      load_environment(form, operands);
      return result;
    case Action::restore:
      restore(form, operands);
      return result;
    case Action::fxsave:
      return fxsave(form, operands);
    case Action::fxrstor:
      return fxrstor(form, operands);
    case Action::ldmxcsr:
      return ldmxcsr(operands);
    case Action::stmxcsr:
      store32(operands.memory.data(), mxcsr());
      result.store_bytes = 4;
      return result;
  }
  return result;
}

namespace {

/// Calls the stub on `state`, passing register operand and flags both ways.
void call_stub(const FpuForm& form, FpuOperands& operands, FxImage& state) {
  RegisterBlock registers;
  registers.gpr = operands.gpr;
  registers.flags = (operands.eflags & kArithmeticFlags) | 0x202;
  Stub stub;
  static_assert(sizeof stub == sizeof form.stub);
  std::memcpy(&stub, &form.stub, sizeof stub);
  stub(operands.memory.data(), state.data(), &registers);
  if (form.writes_gpr) operands.gpr = registers.gpr;
  if (form.writes_eflags) {
    operands.eflags = (operands.eflags & ~kArithmeticFlags) |
                      (static_cast<std::uint32_t>(registers.flags) & kArithmeticFlags);
  }
}

}  // namespace

FpuResult HostFpu::run_x87(const FpuForm& form, FpuOperands& operands) {
  alignas(16) FxImage work = image_;
  store32(work.data() + kMxcsr, kMxcsrMasks);
  store32(work.data() + kMxcsrMask, 0);
  call_stub(form, operands, work);
  copy_x87(work, image_);
  std::copy(work.begin() + kXmm, work.begin() + kEnd64, image_.begin() + kXmm);
  FpuResult result;
  result.model_specific = form.model_specific;
  if (form.sets_pointers) {
    set_word(kOpcode, form.fop);
    set_code_pointer(operands.code_offset, operands.code_selector);
    if (form.memory_bytes != 0) {
      set_data_pointer(operands.data_offset, operands.data_selector);
    }
  }
  if (form.clears_pointers) clear_pointers();
  update_summary();
  // A store with an unmasked exception other than precision does not happen (SDM vol. 1, 8.5).
  const unsigned unmasked = status_word() & ~control_word() & kFpuExceptions;
  const bool suppressed = form.sets_pointers && (unmasked & 0x1f) != 0;
  if (form.writes_memory && !suppressed) result.store_bytes = form.memory_bytes;
  return result;
}

FpuResult HostFpu::run_sse(const FpuForm& form, FpuOperands& operands) {
  alignas(16) FxImage work = image_;
  const std::uint32_t before = mxcsr();
  const FpuOperands operands_before = operands;
  // What does not wait must not meet an exception that the guest's x87 unit has pending.
  work[kControl] |= kFpuExceptions;
  store32(work.data() + kMxcsr, (before | kMxcsrMasks) & ~kMxcsrFlags & 0xffff);
  store32(work.data() + kMxcsrMask, 0);
  call_stub(form, operands, work);
  std::uint32_t raised = load32(work.data() + kMxcsr) & kMxcsrFlags;
  const std::uint32_t masks = before >> 7 & kMxcsrFlags;
  FpuResult result;
  if ((raised & ~masks) != 0) {
    // Invalid, denormal and divide-by-zero are found before the result is computed: when one of
    // them is unmasked the others never come up (SDM vol. 1, 11.5.2).
    if ((raised & ~masks & 7) != 0) raised &= 7;
    set_dword(kMxcsr, before | raised);
    operands = operands_before;
    result.fault = FpuResult::Fault::simd;
    return result;
  }
  const std::uint16_t control = control_word();
  copy_x87(work, image_);
  set_word(kControl, control);
  update_summary();
  std::copy(work.begin() + kXmm, work.begin() + kEnd64, image_.begin() + kXmm);
  set_dword(kMxcsr, before | raised);
  result.model_specific = form.model_specific;
  if (form.writes_memory) result.store_bytes = form.memory_bytes;
  return result;
}

}  // namespace citcat
