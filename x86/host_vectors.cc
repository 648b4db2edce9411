#include "x86/host_vectors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "formats/io/error.h"

namespace citcat {

namespace {

using Part = VectorForm::Part;

constexpr std::uint32_t kControlMasks = 0x1f80,
                        kExceptionFlags = 0x3f;  // of MXCSR (SDM vol. 1, 10.2.3)

// rdi: memory, rsi: VectorOperands.
constexpr std::uint8_t kTakeIn[] = {
    0x0f, 0x10, 0x06,        // movups xmm0, [rsi]
    0x0f, 0x10, 0x4e, 0x10,  // movups xmm1, [rsi+16]
    0x48, 0x8b, 0x46, 0x20,  // mov    rax, [rsi+32]
};
constexpr std::uint8_t kTakeControl[] = {
    0x0f, 0xae, 0x5e, 0x38,  // stmxcsr [rsi+56]
    0x0f, 0xae, 0x56, 0x30,  // ldmxcsr [rsi+48]
};
constexpr std::uint8_t kGiveControl[] = {
    0x9c,                    // pushfq
    0x8f, 0x46, 0x28,        // pop     qword [rsi+40]
    0x0f, 0xae, 0x5e, 0x34,  // stmxcsr [rsi+52]
    0x0f, 0xae, 0x56, 0x38,  // ldmxcsr [rsi+56]
};
constexpr std::uint8_t kGiveBack[] = {
    0x48, 0x89, 0x46, 0x20,  // mov    [rsi+32], rax
    0x0f, 0x11, 0x06,        // movups [rsi], xmm0
    0xc3,                    // ret
};
static_assert(offsetof(VectorOperands, second) == 16 && offsetof(VectorOperands, gpr) == 32 &&
              offsetof(VectorOperands, flags) == 40 && offsetof(VectorOperands, mxcsr) == 48 &&
              offsetof(VectorOperands, raised) == 52 && offsetof(VectorOperands, own) == 56);

/// No other has MMX registers, or registers that no operand names; RCPPS, RSQRTPS and their like
/// differ between processors.
bool has_two_operands(const DecodedInstruction& info) {
  const bool vector = info.kind == InstructionClass::sse || info.kind == InstructionClass::sse_fp;
  if (!vector || !info.has_modrm || info.opcode_map != 1) return false;
  const auto is_mmx = [](OperandForm form) {
    return form == OperandForm::Pq || form == OperandForm::Qd || form == OperandForm::Qq;
  };
  const auto& operands = info.row->operands;
  const bool approximates = info.opcode == 0x52 || info.opcode == 0x53;
  return !approximates && !info.is(Operation::maskmovdqu) &&
         std::none_of(operands.begin(), operands.end(), is_mmx);
}

/// Shifts by an immediate, whose ModRM.reg is part of the opcode.
bool shifts_by_immediate(const DecodedInstruction& info) {
  return info.opcode >= 0x71 && info.opcode <= 0x73;
}

/// Whether the operand that the instruction changes is in ModRM.rm.
bool changes_rm(const DecodedInstruction& info) {
  switch (info.opcode) {
    case 0x11:
    case 0x29:
    case 0x7f:
    case 0xd6:
      return info.register_form;
    default:
      return shifts_by_immediate(info);
  }
}

/// The same of the first two registers: what is changed is in the first.
DecodedInstruction of_first_registers(const DecodedInstruction& info) {
  DecodedInstruction plain = info;
  plain.rex = static_cast<std::uint8_t>(info.rex & ~(kRexR | kRexX | kRexB));
  const unsigned kept = shifts_by_immediate(info) ? 0xf8 : 0xc0;
  const unsigned registers = shifts_by_immediate(info) || !info.register_form ? 0
                             : changes_rm(info)                               ? 8
                                                                              : 1;
  plain.modrm = static_cast<std::uint8_t>((info.modrm & kept) | registers);
  return plain;
}

VectorForm vector_form(const DecodedInstruction& info, GprPlace place) {
  VectorForm form;
  form.reg = shifts_by_immediate(info)        ? Part::none
             : place == GprPlace::reg_written ? Part::gpr
                                              : Part::vector;
  const bool in_rm = place == GprPlace::rm_read || place == GprPlace::rm_written;
  form.rm = !info.register_form ? Part::none : in_rm ? Part::gpr : Part::vector;
  form.reg_is_second = changes_rm(info);
  form.writes_gpr = place == GprPlace::reg_written || place == GprPlace::rm_written;
  form.writes_memory = !info.register_form && info.operands[0].write;
  form.writes_flags = info.opcode == 0x2e || info.opcode == 0x2f;
  form.writes_vector = !form.writes_gpr && !form.writes_memory && !form.writes_flags;
  form.floating = info.kind == InstructionClass::sse_fp;
  form.misaligned = wants_aligned_operand(info) ? 15 : 0;
  return form;
}

}  // namespace

const VectorForm* HostVectors::prepare(const DecodedInstruction& info) {
  if (!has_two_operands(info)) return nullptr;
  const GprPlace place = gpr_place(info);
  const std::vector<std::uint8_t> code = vector_code(of_first_registers(info), place);
  CITCAT_ASSERT(code.size() <= 7);
  std::uint64_t key = code.size();
  for (const std::uint8_t byte : code) key = key << 8 | byte;
  std::unique_ptr<VectorForm>& form = forms_[key];
  if (form != nullptr) return form.get();
  VectorForm made = vector_form(info, place);
  using Bytes = std::span<const std::uint8_t>;
  const void* const stub = made.floating
                               ? code_.add({kTakeIn, kTakeControl, code, kGiveControl, kGiveBack})
                               : code_.add({Bytes(kTakeIn), code, kGiveBack});
  std::memcpy(&made.code, &stub, sizeof stub);
  form = std::make_unique<VectorForm>(made);
  return form.get();
}

bool run_vector(const VectorForm& form, void* memory, VectorOperands& operands,
                std::uint32_t& mxcsr) {
  if (!form.floating) {
    form.code(memory, &operands);
    return true;
  }
  operands.mxcsr = (mxcsr | kControlMasks) & ~kExceptionFlags & 0xffff;
  form.code(memory, &operands);
  const std::uint32_t raised = operands.raised & kExceptionFlags;
  if ((raised & ~(mxcsr >> 7)) != 0) return false;
  mxcsr |= raised;
  return true;
}

}  // namespace citcat
