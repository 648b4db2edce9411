#include "x86/early_cpu_quirks.h"

#include "events/machine/cpu_traits.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

constexpr std::uint32_t kLastOffset = 0xffff;

/// Segment bases do not matter to offsets.
constexpr std::array<std::uint64_t, 6> kNoBases{};

bool is_string(const DecodedInstruction& info) {
  return info.kind == Kind::string || info.kind == Kind::ins || info.kind == Kind::outs;
}

/// Number of the first operand, in access order, one of whose words starts at FFFFh.
std::optional<unsigned> operand_at_segment_end(const DecodedInstruction& info,
                                               const std::uint64_t* gpr) {
  std::optional<unsigned> found;
  for_each_access(info, gpr, kNoBases.data(), false, [&](const DataAccess& access) {
    if (!found && access.size >= 2 && access.offset == kLastOffset) found = access.operand;
  });
  return found;
}

/// Registers of a string instruction that faults at its operand number `operand`. What the
/// processor had stepped by then differs between the instructions: it reads ahead of the fault.
class StringFault {
 public:
  StringFault(const DecodedInstruction& info, bool direction_down, SegmentEndFault& fault)
      : info_(info), fault_(fault) {
    step_ = static_cast<std::uint16_t>(direction_down ? -info.operand_bytes : info.operand_bytes);
  }

  void apply(const MemoryOperand& operand) {
    const bool source = operand.kind == OperandKind::string_source;
    switch (info_.row->operation) {
      case Operation::ins:
        fault_.port_was_read = true;
        step(kEdi);
        return count(2);
      case Operation::stos:
        step(kEdi);
        return count(2);
      case Operation::outs:
      case Operation::lods:
        step(kEsi);
        return count(1);
      case Operation::scas:
        step(kEdi);
        return count(1);
      case Operation::movs:
        step(kEsi);
        if (!source) step(kEdi);
        return count(source ? 1 : 2);
      default:  // CMPS, which reads its destination first
        step(kEdi);
        if (source) step(kEsi);
        return count(source ? 1 : 0);
    }
  }

 private:
  void step(Gpr reg) { fault_.gpr[reg] = static_cast<std::uint16_t>(fault_.gpr[reg] + step_); }
  void count(unsigned n) {
    if (info_.is_repeated()) fault_.gpr[kEcx] = static_cast<std::uint16_t>(fault_.gpr[kEcx] - n);
  }

  const DecodedInstruction& info_;
  SegmentEndFault& fault_;
  std::uint16_t step_ = 0;
};

bool is_shift(FlagRule rule) {
  return rule >= FlagRule::shift_left && rule <= FlagRule::double_shift;
}

}  // namespace

std::optional<SegmentEndFault> segment_end_fault(const DecodedInstruction& info,
                                                 const std::uint64_t* gpr, bool direction_down) {
  const std::optional<unsigned> number = operand_at_segment_end(info, gpr);
  if (!number) return std::nullopt;
  const MemoryOperand& operand = info.operands[*number];
  if (operand.kind == OperandKind::stack_push && !info.is(Operation::pusha)) return std::nullopt;
  SegmentEndFault fault;
  for (std::size_t i = 0; i < 8; ++i) fault.gpr[i] = static_cast<std::uint16_t>(gpr[i]);
  if (is_string(info)) StringFault(info, direction_down, fault).apply(operand);
  // POP to memory has popped by the time it stores.
  if (info.is(Operation::pop) && *number == 1) {
    fault.gpr[kEsp] = static_cast<std::uint16_t>(fault.gpr[kEsp] + 2);
  }
  return fault;
}

bool wraps_between_words(const DecodedInstruction& info, const std::uint64_t* gpr) {
  switch (info.kind) {
    case Kind::load_far_pointer:
    case Kind::far_jump:
    case Kind::far_call:
    case Kind::bound:
    case Kind::far_return:
      break;
    default:
      return false;
  }
  bool last = false, first = false;
  for_each_access(info, gpr, kNoBases.data(), false, [&](const DataAccess& access) {
    if (info.operands[access.operand].write) return;
    last = last || access.offset == 0xfffe;
    first = first || access.offset == 0;
  });
  return last && first;
}

std::uint32_t loaded_flags(CpuModel model, bool protected_mode, std::uint32_t flags) {
  if (protected_mode) return flags;
  const CpuTraits& traits = cpu_traits(model);
  return (flags & traits.loads_flags) | traits.sets_flags;
}

bool shift_writes_nothing(const DecodedInstruction& info, CpuModel model, std::uint8_t cl) {
  if (!is_shift(info.flag_rule) || cpu_traits(model).stores_unshifted) return false;
  return (shift_count(info, cl) & (shift_count_mask(model) | shift_count_bits(info))) == 0;
}

std::uint32_t divide_error_flags(const DecodedInstruction& info, CpuModel model,
                                 std::uint32_t eflags) {
  constexpr std::uint32_t kAllButParity = 0x8d1;
  if (cpu_traits(model).aam_zero_keeps_parity && info.flag_rule == FlagRule::aam)
    return eflags & ~kAllButParity;
  return eflags;
}

bool divide_error_points_past(CpuModel model) { return cpu_traits(model).divide_error_points_past; }

std::uint16_t pushed_stack_pointer(CpuModel model, std::uint16_t sp_before) {
  return static_cast<std::uint16_t>(cpu_traits(model).pushes_sp_after ? sp_before - 2 : sp_before);
}

std::uint8_t shift_count_mask(CpuModel model) { return cpu_traits(model).shift_mask; }

std::vector<PortWrite> coprocessor_cycles(const DecodedInstruction& info, std::uint16_t ip,
                                          std::uint16_t cs, std::uint16_t operand_offset,
                                          std::uint16_t operand_selector) {
  constexpr std::uint16_t kOpcodePort = 0xf8, kPointerPort = 0xfc;
  const auto opcode_word = static_cast<std::uint16_t>(info.opcode | info.modrm << 8);
  std::vector<PortWrite> cycles = {
      {kOpcodePort, opcode_word}, {kPointerPort, ip}, {kPointerPort, cs}};
  if (!info.register_form) {
    cycles.push_back({kPointerPort, operand_offset});
    cycles.push_back({kPointerPort, operand_selector});
  }
  return cycles;
}

}  // namespace citcat
