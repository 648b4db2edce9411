// What the processors before the 386 do differently from the engine, and the instructions that the
// engine executes rightly only in other surroundings: with a documented encoding in place of the
// original one, or with the bytes beyond a segment's end lent from its beginning. Each of these is
// executed alone, and memory is as it was before anything else looks at it.

#include <algorithm>
#include <cstring>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/x86/host_fpu.h"

namespace citcat {

namespace {

constexpr std::uint32_t kSegmentBytes = 0x10000;

bool is_neg(const DecodedInstruction& info) {
  return info.opcode_map == 0 && (info.opcode & 0xfe) == 0xf6 && info.reg_field == 3;
}

/// Shift or rotate by CL whose count only the 8088 takes as it is, as the equivalent count of at
/// most 31: rotations repeat, and after 31 steps nothing is left to shift.
std::uint8_t reduced_count(const DecodedInstruction& info, unsigned count) {
  const unsigned bits = 8u * info.operand_bytes;
  switch (info.flag_rule) {
    case FlagRule::rotate_left:
    case FlagRule::rotate_right:
      return static_cast<std::uint8_t>((count - 1) % bits + 1);
    case FlagRule::rotate_carry_left:
    case FlagRule::rotate_carry_right:
      return static_cast<std::uint8_t>((count - 1) % (bits + 1) + 1);
    default:
      return 31;
  }
}

/// The MMX register that `info` writes, or -1 (SDM vol. 2, the instructions of map 0F).
int written_mmx_register(const DecodedInstruction& info) {
  switch (info.opcode) {
    case 0x71:
    case 0x72:
    case 0x73:  // shifts by an immediate
      return info.rm_field;
    case 0x7f:  // MOVQ mm/m64, mm
      return info.register_form ? info.rm_field : -1;
    case 0x7e:  // MOVD r/m32, mm
    case 0xc5:  // PEXTRW
    case 0xd7:  // PMOVMSKB
    case 0xe7:  // MOVNTQ
    case 0xf7:  // MASKMOVQ
      return -1;
    default:
      return info.reg_field;
  }
}

}  // namespace

bool Machine::needs_canonical() const {
  const DecodedInstruction& info = *flight_.info;
  if (!cpu_.traits.sixteen_bit && !info.aliased && !(info.lock && is_neg(info))) return false;
  return std::memcmp(info.bytes.data(), info.canonical.data(), info.length) != 0;
}

bool Machine::knows_order_of_stores() const {
  if (!cpu_.real_16_bit()) return false;
  return flight_.info == nullptr ||
         (!is_enter(*flight_.info) && flight_.info->kind != InstructionClass::x87);
}

/// True when the instruction is settled: it faults, or is executed here.
bool Machine::prepare_16_bit() {
  if (!cpu_.real_16_bit()) return false;
  beyond_.clear();
  count_register_.reset();
  const DecodedInstruction& info = *flight_.info;
  constexpr std::uint32_t kFlagDf = 0x400;
  if (cpu_.traits.checks_segment_end) {
    segment_end_ =
        segment_end_fault(info, cpu_.engine.gprs(), (cpu_.engine.eflags() & kFlagDf) != 0);
    if (segment_end_) {
      cpu_.request(AfterStop::segment_end);
      return true;
    }
  } else if (emulated_on_8088()) {
    cpu_.request(AfterStop::emulate);
    return true;
  } else {
    reduce_8088_shift();
  }
  if (info.operand_count != 0 && wraps_between_words(info, cpu_.engine.gprs())) {
    const auto* const operand = std::find_if(info.operands.begin(), info.operands.end(),
                                             [](const MemoryOperand& o) { return o.read; });
    // Where the operand begins does not matter: the engine leaves the segment at its end.
    lend_beyond(cpu_.engine.segment_base(operand->segment), 2);
  }
  return false;
}

// ---------------------------------------------------------------------------------------------
// Arranging memory for one instruction

/// The engine reads or writes `size` bytes beyond the segment at `base` where the processor goes on
/// at its beginning.
void Machine::lend_beyond(std::uint32_t base, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) beyond_.push_back({base + kSegmentBytes + i});
  flight_.wants_patch = true;
}

void Machine::split_access(const DataAccess& a, const MemoryOperand& operand) {
  if (a.write && operand.conditional_write &&
      shift_writes_nothing(*flight_.info, cpu_.model,
                           static_cast<std::uint8_t>(cpu_.engine.gpr(kEcx)))) {
    return;
  }
  DataAccess first = a, second = a;
  first.size = static_cast<std::uint16_t>(kSegmentBytes - a.offset);
  second.size = static_cast<std::uint16_t>(a.size - first.size);
  second.offset = 0;
  second.linear = a.linear - a.offset;
  const Access kind = a.write ? Access::write : Access::read;
  access_pages(first, kind, !a.write);
  access_pages(second, kind, !a.write);
  const bool again = a.write && operand.read;  // the read of a read-modify-write has lent already
  if (!again) lend_beyond(second.linear, second.size);
}

void Machine::refuse_reading_own_code(PhysAddr a, std::uint32_t size) {
  if (!needs_canonical()) return;
  const std::uint32_t end = flight_.physical.value + flight_.info->length;
  if (a.value + size <= flight_.physical.value || a.value >= end) return;
  throw ReplayStopped{cpu_.position,
                      "an instruction in an undocumented encoding reads its own bytes",
                      ~std::uint64_t{0}, "", ""};
}

void Machine::lend(PhysAddr at, std::uint8_t value, std::optional<PhysAddr> home) {
  cpu_.memory.ensure_mapped(at.page());
  std::uint8_t* host = cpu_.memory.host(at);
  loans_.push_back({at, home, *host, value});
  *host = value;
  lent_code_.push_back(at);
}

void Machine::arrange() {
  flight_.wants_patch = false;
  arranged_ = true;
  loans_.clear();
  if (needs_canonical()) {
    for (std::uint32_t i = 0; i < flight_.info->length; ++i) {
      if (flight_.info->bytes[i] == flight_.info->canonical[i]) continue;
      const PhysAddr at =
          cpu_.mmu.translate(LinearAddr{cpu_.linear + i}, Access::execute, cpu_.user_mode());
      lend(at, flight_.info->canonical[i], std::nullopt);
    }
  }
  for (const Beyond& beyond : beyond_) {
    const PhysAddr home = cpu_.mmu.translate(LinearAddr{beyond.linear - kSegmentBytes},
                                             Access::read, cpu_.user_mode());
    const PhysAddr at =
        cpu_.mmu.translate(LinearAddr{beyond.linear}, Access::write, cpu_.user_mode());
    cpu_.memory.ensure_mapped(home.page());
    lend(at, *cpu_.memory.host(home), home);
  }
  beyond_.clear();
  if (count_register_) {
    const std::uint8_t count = reduced_count(*flight_.info, *count_register_ & 0xff);
    cpu_.engine.set_gpr(kEcx, (*count_register_ & ~0xffu) | count);
  }
  forget_lent_code();
  for (const Loan& loan : loans_) lent_code_.push_back(loan.at);
  flight_.resuming = true;
  cpu_.engine.step_once();
}

void Machine::restore_arrangement() {
  arranged_ = false;
  if (count_register_) cpu_.engine.set_gpr(kEcx, *count_register_);
  count_register_.reset();
  const auto stored = [&](PhysAddr a) {
    return std::any_of(flight_.stores.begin(),
                       flight_.stores.begin() + static_cast<std::ptrdiff_t>(flight_.store_count),
                       [&](const InFlight::Store& s) {
                         return a.value >= s.physical.value && a.value - s.physical.value < s.size;
                       });
  };
  for (const Loan& loan : loans_) {
    std::uint8_t* host = cpu_.memory.host(loan.at);
    if (loan.home && *host != loan.lent) *cpu_.memory.host(*loan.home) = *host;
    if (!stored(loan.at)) *host = loan.original;
  }
  loans_.clear();
}

void Machine::forget_lent_code() {
  for (const PhysAddr at : lent_code_) cpu_.engine.invalidate_code(at, 1);
  lent_code_.clear();
  cpu_.code.forget();
}

/// Leaves a repeated string whose count is used up without asking the engine, which would have to
/// see the arranged bytes once more.
void Machine::finish_repeat() {
  flight_.wants_patch = false;
  const std::uint32_t next = cpu_.linear - cpu_.engine.segment_base(kCs) + flight_.info->length;
  cpu_.engine.set_eip(cpu_.traits.sixteen_bit ? next & 0xffff : next);
  complete_in_flight(cpu_.engine.segment_base(kCs) + cpu_.engine.eip());
}

// ---------------------------------------------------------------------------------------------
// 80286

void Machine::deliver_segment_end() {
  const SegmentEndFault fault = *segment_end_;
  segment_end_.reset();
  if (fault.port_was_read) {
    on_in(static_cast<std::uint16_t>(cpu_.engine.gpr(kEdx)), flight_.info->operand_bytes);
  }
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t upper = cpu_.engine.gpr(i) & 0xffff0000;
    cpu_.engine.set_gpr(i, upper | fault.gpr[static_cast<std::size_t>(i)]);
  }
  raise({fault.vector, 0u, 0}, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
}

void Machine::emulate_coprocessor_cycles() {
  const DecodedInstruction& info = *flight_.info;
  std::uint16_t offset = 0, selector = 0;
  if (info.operand_count != 0) {
    const MemoryOperand& operand = info.operands[0];
    offset = static_cast<std::uint16_t>(operand_offset(operand, cpu_.engine.gprs(), false));
    selector = cpu_.engine.segment_selector(operand.segment);
  }
  for (const PortWrite& cycle :
       coprocessor_cycles(info, static_cast<std::uint16_t>(cpu_.engine.eip()),
                          cpu_.engine.segment_selector(kCs), offset, selector)) {
    on_out(cycle.port, 2, cycle.value);
  }
  complete_emulated();
}

// ---------------------------------------------------------------------------------------------
// 8088

bool Machine::emulated_on_8088() const {
  if (flight_.info->opcode_map != 0) return false;
  if (cpu_.traits.has_pop_cs && flight_.info->opcode == 0x0f) return true;
  if (!cpu_.traits.pushes_sp_after) return false;
  return flight_.info->opcode == 0x54 ||
         (flight_.info->opcode == 0xff && flight_.info->register_form &&
          flight_.info->reg_field == 6 && flight_.info->rm_field == kEsp);
}

void Machine::emulate_on_8088() {
  flight_.wants_patch = false;
  beyond_.clear();
  const auto sp = static_cast<std::uint16_t>(cpu_.engine.gpr(kEsp));
  if (flight_.info->opcode == 0x0f) {
    const std::uint32_t stack = cpu_.engine.segment_base(kSs);
    std::array<std::uint8_t, 2> bytes{};
    read_operand(stack + sp, std::span(bytes).first(1));
    read_operand(stack + ((sp + 1u) & 0xffff), std::span(bytes).last(1));
    const auto selector = static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
    Segment cs = cpu_.engine.segment(kCs);
    cs.selector = selector;
    cs.base = std::uint32_t{selector} << 4;
    cpu_.engine.set_gpr(kEsp, (sp + 2u) & 0xffff);
    cpu_.engine.set_segment(kCs, cs);
    cpu_.code.forget();
  } else {
    const std::uint16_t value = pushed_stack_pointer(cpu_.model, sp);
    const std::array<std::uint8_t, 2> bytes = {static_cast<std::uint8_t>(value),
                                               static_cast<std::uint8_t>(value >> 8)};
    cpu_.engine.set_gpr(kEsp, (sp - 2u) & 0xffff);
    write_stores(bytes);
  }
  complete_emulated();
}

void Machine::reduce_8088_shift() {
  const DecodedInstruction& info = *flight_.info;
  const bool by_cl = info.opcode_map == 0 && (info.opcode & 0xfe) == 0xd2;
  const unsigned count = cpu_.engine.gpr(kEcx) & 0xff;
  if (!by_cl || count <= 31) return;
  if (info.register_form && info.rm_field == kEcx) {
    throw ReplayStopped{cpu_.position, "a shift of CL or CX by more than 31", ~std::uint64_t{0}, "",
                        ""};
  }
  count_register_ = cpu_.engine.gpr(kEcx);
  flight_.wants_patch = true;
}

// ---------------------------------------------------------------------------------------------
// Pentium and later

void Machine::note_mmx() {
  cpu_.engine.read_fx(fpu_->image());
  if (flight_.info->kind == InstructionClass::mmx) {
    fpu_->note_mmx(written_mmx_register(*flight_.info));
  } else {
    // EMMS leaves TOP at 0 as other MMX instructions do (seen on a host; docs/fidelity.md).
    // The image counts registers from TOP, so they turn with it.
    constexpr std::size_t kTopByte = 3, kRegisters = 32, kSlot = 16;
    constexpr std::uint8_t kTopBits = 0x38;
    auto& image = fpu_->image();
    const std::size_t top = (image[kTopByte] & kTopBits) >> 3;
    const auto first = image.begin() + kRegisters;
    std::rotate(first, first + static_cast<std::ptrdiff_t>((8 - top) % 8 * kSlot),
                first + 8 * kSlot);
    image[kTopByte] = static_cast<std::uint8_t>(image[kTopByte] & ~kTopBits);
  }
  cpu_.engine.write_fx(fpu_->image());
}

}  // namespace citcat
