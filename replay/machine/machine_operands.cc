// What an instruction is and accesses, found out before the engine executes it: its bytes, and its
// operands translated, checked and told in the order in which the processor makes the accesses.

#include <algorithm>
#include <cstring>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/x86/fx_image.h"
#include "replay/x86/host_fpu.h"

namespace citcat {

namespace {

bool is_port_access(InstructionClass kind) {
  return kind == InstructionClass::in || kind == InstructionClass::out ||
         kind == InstructionClass::ins || kind == InstructionClass::outs;
}

}  // namespace

/// What a processor refuses before it touches an operand, by mode and privilege (Intel SDM vol. 2,
/// the exceptions of each instruction). The engine refuses it too, but asks for no operand first.
void Machine::check_allowed() const {
  switch (flight_.info->kind) {
    case InstructionClass::pushf:
    case InstructionClass::popf:
    case InstructionClass::iret:
      require_iopl_in_v86();
      break;
    case InstructionClass::lldt:
    case InstructionClass::ltr:
      if (!cpu_.protected_mode()) throw CpuException{6, std::nullopt, 0};
      require_ring0();
      break;
    case InstructionClass::lgdt:
    case InstructionClass::lidt:
    case InstructionClass::lmsw:
    case InstructionClass::invlpg:
      require_ring0();
      break;
    case InstructionClass::mmx:
    case InstructionClass::sse:
      check_fpu_available(flight_.info->kind);
      break;
    default:
      break;
  }
}

void Machine::prepare_operands() {
  const DecodedInstruction& info = *flight_.info;
  const bool may_look_up = info.opcode_map == 1 && info.opcode <= 3;
  if (may_look_up && info.register_form) [[unlikely]]
    tell_looked_up_descriptor();
  if (info.kind == InstructionClass::mmx || info.kind == InstructionClass::emms) [[unlikely]] {
    // The engine does not look for what the x87 unit has pending (SDM vol. 2, MOVQ and EMMS: #MF).
    check_fpu_available(InstructionClass::mmx);
    cpu_.engine.read_fx(fpu_->image());
    if (fpu_->exception_pending()) throw CpuException{16, std::nullopt, 0};
  }
  const bool loads_selector =
      info.kind == InstructionClass::mov_to_segment || info.kind == InstructionClass::ltr ||
      info.kind == InstructionClass::lldt || info.kind == InstructionClass::in ||
      info.kind == InstructionClass::out || info.kind == InstructionClass::far_jump;
  if (info.operand_count == 0 && info.ea_count == 0 && !loads_selector) return;
  check_allowed();
  std::array<std::uint32_t, 6> bases;
  for (int i = 0; i < 6; ++i) bases[static_cast<std::size_t>(i)] = cpu_.engine.segment_base(i);
  const std::uint64_t* regs = cpu_.engine.gprs();
  if (wants_aligned_operand(info) &&
      operand_linear(info.operands[0], regs, bases.data(), cpu_.stack32()) % 16 != 0) {
    throw CpuException{13, 0u, 0};
  }
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] =
        kt_address(info, i, cpu_.linear - cpu_.code.base, regs, bases.data(), cpu_.stack32());
  }
  if (info.kind == InstructionClass::invlpg) {
    invlpg_linear_ = operand_linear(info.operands[0], regs, bases.data(), cpu_.stack32());
  }
  if (is_port_access(info.kind)) check_port_permission();
  // An 80286 hands a coprocessor the operand's address and leaves the transfers to it.
  if (!cpu_.traits.coprocessor_by_ports || info.kind != InstructionClass::x87) {
    for_each_access(info, regs, bases.data(), cpu_.stack32(),
                    [&](const DataAccess& a) { access(a, info.operands[a.operand]); });
  }
  if (may_look_up && !info.register_form) [[unlikely]]
    tell_looked_up_descriptor();
  switch (info.kind) {
    case InstructionClass::mov_to_segment:
    case InstructionClass::pop_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::ltr:
    case InstructionClass::lldt:
      watch_descriptor();
      break;
    case InstructionClass::far_return:
    case InstructionClass::iret:
      if (cpu_.protected_mode()) tell_transfer_descriptors();
      break;
    default:
      break;
  }
  if (info.kind == InstructionClass::push_segment && info.operand_bytes == 4 &&
      !pushes_before_a_page()) {
    std::memcpy(&flight_.segment_push_upper,
                cpu_.memory.host(flight_.stores[0].physical + flight_.stores[0].size), 2);
    flight_.restore_segment_push = true;
  }
  if (flight_.stores_to_code || info.kind == InstructionClass::ins) keep_overwritten();
}

/// The engine stores unaligned operands byte by byte. Where one of them changes the block being
/// executed it leaves the instruction there, and begins it anew: what it has stored so far must not
/// be what it reads then. Where INS is going to store it stores 0 before it reads the port.
void Machine::keep_overwritten() {
  cpu_.engine.read_raw_flags(flight_.flags_before);
  flight_.overwritten.clear();
  for (const InFlight::Store& s : std::span(flight_.stores).first(flight_.store_count)) {
    const std::uint8_t* const from = cpu_.memory.host(s.physical);
    flight_.overwritten.insert(flight_.overwritten.end(), from, from + s.size);
  }
}

/// Of the instruction in flight, which the engine reports once more: it has not completed. One that
/// transfers control may lead to itself, but a call has pushed something then.
bool Machine::comes_again() const {
  const bool calls = flight_.info->kind == InstructionClass::call ||
                     flight_.info->kind == InstructionClass::far_call;
  return flight_.info->control_flow ? calls && cpu_.engine.gpr(kEsp) == flight_.stack_before : true;
}

/// The instruction in flight is begun anew. The code that it changed is forgotten already, and
/// nothing else was translated since.
void Machine::put_back_overwritten() {
  const std::uint8_t* from = flight_.overwritten.data();
  for (const InFlight::Store& s : std::span(flight_.stores).first(flight_.store_count)) {
    std::memcpy(cpu_.memory.host(s.physical), from, s.size);
    from += s.size;
  }
  if (flight_.restore_segment_push) {
    std::memcpy(cpu_.memory.host(flight_.stores[0].physical + flight_.stores[0].size),
                &flight_.segment_push_upper, 2);
  }
}

/// The engine makes the instruction in flight a block of its own, because it changes the block that
/// it was in, and has just reported it again. It stays prepared, and the engine must not be stopped
/// here: it would make the stores, and once more later. RCL, RCR and SETcc have lost the flags.
void Machine::begin_anew() {
  if (flight_.stores_to_code) {
    put_back_overwritten();
    cpu_.engine.put_arithmetic_flags_back(flight_.flags_before);
  }
  if (!flight_.wants_patch) return;
  // What was put in the instruction's place is taken back by now.
  flight_.reads_to_skip = flight_.reads_told;
  flight_.active = false;
  flight_.iterating = false;
}

void Machine::access(const DataAccess& a, const MemoryOperand& operand) {
  if (cpu_.traits.wraps_words && a.offset + a.size > 0x10000) {
    split_access(a, operand);
    return;
  }
  if (is_in_parts(a, operand)) [[unlikely]] {
    access_parts(a, operand);
    return;
  }
  check_segment(a, operand, a.write || operand.write);
  if (breaks_on_data_) [[unlikely]]
    check_data_breakpoints(a);
  if (a.write) {
    const bool keeps = operand.conditional_write &&
                       shift_writes_nothing(*flight_.info, cpu_.model,
                                            static_cast<std::uint8_t>(cpu_.engine.gpr(kEcx)));
    if (!keeps) access_pages(a, Access::write, false);
  } else {
    // A read-modify-write asks for write permission before it reads: a page it may not write is
    // left without its accessed bit.
    access_pages(a, operand.write ? Access::write : Access::read, true);
  }
}

/// Both pages of an operand, which is never longer than one, are found before anything of it is
/// read: where the second one faults, the bus shows no read of the first.
void Machine::access_pages(const DataAccess& a, Access kind, bool is_read) {
  const std::uint32_t first = std::min<std::uint32_t>(a.size, kPageSize - (a.linear & kPageMask));
  const bool user = cpu_.user_mode();
  const PhysAddr at = cpu_.mmu.translate(LinearAddr{a.linear}, kind, user);
  if (first == a.size) return is_read ? read_part(at, first, 0) : store_part(at, first);
  const PhysAddr behind = cpu_.mmu.translate(LinearAddr{a.linear + first}, kind, user);
  const std::uint32_t rest = a.size - first;
  if (is_read) {
    read_part(at, first, 0);
    read_part(behind, rest, first);
  } else {
    store_part(at, first);
    store_part(behind, rest);
  }
}

/// Of an operand what lies in one page, `first` bytes into it.
void Machine::read_part(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (!cpu_.memory.is_mapped(at.page())) throw UndefinedMemory{at, size, "data"};
  if (flight_.wants_patch) refuse_reading_own_code(at, size);
  if (!cpu_.memory.is_defined(at, size) && flight_.info->kind != InstructionClass::fxrstor) {
    throw UndefinedMemory{at, size, "data"};
  }
  flight_.copied_from = at;
  if (expectation_.tells_reads() && ++flight_.reads_told > flight_.reads_to_skip)
    tell_read(at, size, first);
}

void Machine::store_part(PhysAddr at, std::uint32_t size) {
  if (!cpu_.memory.is_mapped(at.page())) throw NeedsMapping{at.page()};
  CITCAT_ASSERT(flight_.store_count < flight_.stores.size());
  flight_.stores[flight_.store_count++] = {at, size};
  flight_.stores_to_code |= cpu_.memory.holds_code(at.page());
}

/// Tells a read of `size` bytes, `first` bytes into its operand.
void Machine::tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (flight_.info->kind != InstructionClass::fxrstor) {
    cpu_.sink->read(at, size, AccessKind::data, cpu_.position);
    return;
  }
  const auto is_read = [&](std::uint32_t i) {
    const std::size_t in_slot = (first + i) % fx_image::kSlot;
    return in_slot < fx_image::restored_bytes(first + i - in_slot);
  };
  for (std::uint32_t i = 0; i < size;) {
    std::uint32_t n = 0;
    while (i + n < size && is_read(i + n)) ++n;
    if (n != 0) cpu_.sink->read(at + i, n, AccessKind::data, cpu_.position);
    i += n;
    while (i < size && !is_read(i)) ++i;
  }
}

/// `writes`: the access itself, or one that follows it to the same place, which is refused before
/// anything is read.
void Machine::check_segment(const DataAccess& a, const MemoryOperand& operand, bool writes) const {
  if (!cpu_.traits.has_limits) return;  // has neither limits nor types
  // Intel SDM vol. 3, 5.3 and 5.4. The engine checks neither limits nor types.
  const int s = operand.segment;
  const std::uint32_t limit = cpu_.engine.segment_limit(s);
  const std::uint32_t flags = cpu_.engine.segment_flags(s);
  const bool expand_down = (flags & 0x1c00) == 0x1400;  // S, data, E
  bool good;
  if (!expand_down) {
    // What goes on at 0 behind a segment of 4 GiB is left to the implementation (SDM vol. 3, 5.3):
    // by blocks the engine lets it pass.
    good = a.offset <= limit && (limit - a.offset >= a.size - 1u || limit == 0xffffffff);
  } else {
    const std::uint32_t top = (flags & 1u << 22) != 0 ? 0xffffffff : 0xffff;
    good = a.offset > limit && a.offset <= top && top - a.offset >= a.size - 1u;
  }
  if (good && cpu_.protected_mode()) {
    const bool present = (flags & 0x8000) != 0;
    const bool code = (flags & 0x800) != 0;
    const bool bit = (flags & 0x200) != 0;  // writable data, readable code
    good = present && (writes ? !code && bit : !code || bit);
  }
  if (!good) throw CpuException{static_cast<std::uint8_t>(s == kSs ? 12 : 13), 0u, 0};
}

/// Throws CodeElsewhere where the engine translated code of the page before the processor's TLB
/// lost it, and the page's table has changed.
void Machine::require_code_at(LinearAddr page, PhysAddr frame) const {
  const auto told = engine_code_.frame_of(page);
  if (told && told->page() != frame.page()) throw CodeElsewhere{};
}

/// Of an undefined instruction, which processors find out once they have its bytes: the code
/// segment ends before.
bool Machine::reaches_beyond_limit(std::uint32_t linear) {
  if (!cpu_.traits.has_limits) return false;
  const std::uint32_t eip = linear - cpu_.code.base, limit = cpu_.engine.segment_limit(kCs);
  if (eip > limit) return true;
  const std::uint32_t room = limit - eip + 1;
  if (room == 0 || room >= kMaxInstructionBytes) return false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::uint32_t n = 0;
  for (; n < room; ++n) {
    const auto at = cpu_.mmu.peek(LinearAddr{linear + n}, Access::execute, cpu_.user_mode());
    if (!at || !cpu_.memory.is_mapped(at->frame.page())) break;
    bytes[n] = *cpu_.memory.host(at->frame + ((linear + n) & kPageMask));
  }
  return n == room && decode_cache_.decode({bytes.data(), n}, cpu_.code_mode()).state ==
                          DecodeState::needs_more_bytes;
}

/// What becomes of an instruction at `linear` that is none.
void Machine::refuse_undefined(const DecodedInstruction& info, std::uint32_t linear) {
  if (reaches_beyond_limit(linear) || info.reason == InvalidReason::too_long) {
    throw CpuException{13, 0u, 0};
  }
  throw CpuException{6, std::nullopt, 0};
}

const DecodedInstruction& Machine::fetch(std::uint32_t linear) {
  const bool user = cpu_.user_mode();
  if ((linear & ~kPageMask) != cpu_.code.page) {
    cpu_.code.frame = cpu_.mmu.translate(LinearAddr{linear}, Access::execute, user);
    cpu_.code.frame.value &= ~kPageMask;
    cpu_.code.host = cpu_.memory.host(cpu_.code.frame);
    if (cpu_.code.host == nullptr) throw UndefinedMemory{cpu_.code.frame, 1, "code"};
    require_code_at(LinearAddr{linear}, cpu_.code.frame);
    cpu_.code.page = linear & ~kPageMask;
    note_code(cpu_.code.frame.page());
  }
  const std::uint32_t offset = linear & kPageMask;
  flight_.physical = cpu_.code.frame + offset;
  const CodeMode mode = cpu_.code_mode();
  DecodedCode::Slot& slot = decoded_.slot(linear);
  const std::uint32_t here = std::min(kPageSize - offset, std::uint32_t{kMaxInstructionBytes});
  if (slot.is(linear, mode, {cpu_.code.host + offset, here})) [[likely]] {
    if (!cpu_.memory.is_defined(flight_.physical, slot.info.length)) {
      throw UndefinedMemory{flight_.physical, slot.info.length, "code"};
    }
    if (expectation_.tells_reads())
      cpu_.sink->fetch(flight_.physical, slot.info.length, cpu_.position);
    decoded_.expect(linear + slot.info.length);
    return slot.info;
  }
  slot.valid = false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::memcpy(bytes.data(), cpu_.code.host + offset, here);
  slot.info = decode_cache_.decode({bytes.data(), here}, mode);
  std::uint32_t first = slot.info.state == DecodeState::ok ? slot.info.length : here;
  std::uint32_t second = 0;
  PhysAddr next;
  if (slot.info.state == DecodeState::needs_more_bytes && here < kMaxInstructionBytes) {
    // The segment may end before.
    const std::uint32_t last = linear - cpu_.code.base + here - 1;
    if (cpu_.traits.has_limits && last == cpu_.engine.segment_limit(kCs) && last != 0xffffffff) {
      throw CpuException{13, 0u, 0};
    }
    next = cpu_.mmu.translate(LinearAddr{linear + here}, Access::execute, user);
    const std::uint8_t* host = cpu_.memory.host(next);
    if (host == nullptr) throw UndefinedMemory{next, 1, "code"};
    require_code_at(LinearAddr{linear + here}, next);
    std::memcpy(&bytes[here], host, bytes.size() - here);
    slot.info = decode_cache_.decode(bytes, mode);
    if (slot.info.state == DecodeState::ok) second = slot.info.length - here;
  } else if (slot.info.state != DecodeState::ok) {
    first = 1;  // how many bytes an invalid instruction takes is not defined
  }
  if (!cpu_.memory.is_defined(flight_.physical, first))
    throw UndefinedMemory{flight_.physical, first, "code"};
  if (second != 0 && !cpu_.memory.is_defined(next, second)) {
    throw UndefinedMemory{next, second, "code"};
  }
  if (expectation_.tells_reads()) {
    cpu_.sink->fetch(flight_.physical, first, cpu_.position);
    if (second != 0) cpu_.sink->fetch(next, second, cpu_.position);
  }
  slot.linear = linear;
  slot.mode = mode;
  slot.valid = slot.info.state == DecodeState::ok;
  return slot.info;
}

}  // namespace citcat
