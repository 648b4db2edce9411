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
  switch (info_->kind) {
    case InstructionClass::pushf:
    case InstructionClass::popf:
    case InstructionClass::iret:
      require_iopl_in_v86();
      break;
    case InstructionClass::lldt:
    case InstructionClass::ltr:
      if (!protected_mode()) throw CpuException{6, std::nullopt, 0};
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
      check_fpu_available(info_->kind);
      break;
    default:
      break;
  }
}

void Machine::prepare_operands() {
  const DecodedInstruction& info = *info_;
  const bool may_look_up = info.opcode_map == 1 && info.opcode <= 3;
  if (may_look_up && info.register_form) [[unlikely]]
    tell_looked_up_descriptor();
  if (info.kind == InstructionClass::mmx || info.kind == InstructionClass::emms) [[unlikely]] {
    // The engine does not look for what the x87 unit has pending (SDM vol. 2, MOVQ and EMMS: #MF).
    check_fpu_available(InstructionClass::mmx);
    engine_.read_fx(fpu_->image());
    if (fpu_->exception_pending()) throw CpuException{16, std::nullopt, 0};
  }
  const bool loads_selector =
      info.kind == InstructionClass::mov_to_segment || info.kind == InstructionClass::ltr ||
      info.kind == InstructionClass::lldt || info.kind == InstructionClass::in ||
      info.kind == InstructionClass::out || info.kind == InstructionClass::far_jump;
  if (info.operand_count == 0 && info.ea_count == 0 && !loads_selector) return;
  check_allowed();
  std::array<std::uint32_t, 6> bases;
  for (int i = 0; i < 6; ++i) bases[static_cast<std::size_t>(i)] = engine_.segment_base(i);
  const std::uint64_t* regs = engine_.gprs();
  if (wants_aligned_operand(info) &&
      operand_linear(info.operands[0], regs, bases.data(), stack32()) % 16 != 0) {
    throw CpuException{13, 0u, 0};
  }
  ea_count_ = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    ea_[i] = kt_address(info, i, linear_ - code_base_, regs, bases.data(), stack32());
  }
  if (info.kind == InstructionClass::invlpg) {
    invlpg_linear_ = operand_linear(info.operands[0], regs, bases.data(), stack32());
  }
  if (is_port_access(info.kind)) check_port_permission();
  // An 80286 hands a coprocessor the operand's address and leaves the transfers to it.
  if (!traits_.coprocessor_by_ports || info.kind != InstructionClass::x87) {
    for_each_access(info, regs, bases.data(), stack32(),
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
      if (protected_mode()) tell_transfer_descriptors();
      break;
    default:
      break;
  }
  if (info.kind == InstructionClass::push_segment && info.operand_bytes == 4 &&
      !pushes_before_a_page()) {
    std::memcpy(&segment_push_upper_, memory_.host(stores_[0].physical + stores_[0].size), 2);
    restore_segment_push_ = true;
  }
  if (stores_to_code_ || info.kind == InstructionClass::ins) keep_overwritten();
}

/// The engine stores unaligned operands byte by byte. Where one of them changes the block being
/// executed it leaves the instruction there, and begins it anew: what it has stored so far must not
/// be what it reads then. Where INS is going to store it stores 0 before it reads the port.
void Machine::keep_overwritten() {
  engine_.read_raw_flags(flags_before_);
  overwritten_.clear();
  for (const Store& s : std::span(stores_).first(store_count_)) {
    const std::uint8_t* const from = memory_.host(s.physical);
    overwritten_.insert(overwritten_.end(), from, from + s.size);
  }
}

/// Of the instruction in flight, which the engine reports once more: it has not completed. One that
/// transfers control may lead to itself, but a call has pushed something then.
bool Machine::comes_again() const {
  const bool calls =
      info_->kind == InstructionClass::call || info_->kind == InstructionClass::far_call;
  return info_->control_flow ? calls && engine_.gpr(kEsp) == stack_before_ : true;
}

/// The instruction in flight is begun anew. The code that it changed is forgotten already, and
/// nothing else was translated since.
void Machine::put_back_overwritten() {
  const std::uint8_t* from = overwritten_.data();
  for (const Store& s : std::span(stores_).first(store_count_)) {
    std::memcpy(memory_.host(s.physical), from, s.size);
    from += s.size;
  }
  if (restore_segment_push_) {
    std::memcpy(memory_.host(stores_[0].physical + stores_[0].size), &segment_push_upper_, 2);
  }
}

/// The engine makes the instruction in flight a block of its own, because it changes the block that
/// it was in, and has just reported it again. It stays prepared, and the engine must not be stopped
/// here: it would make the stores, and once more later. RCL, RCR and SETcc have lost the flags.
void Machine::begin_anew() {
  if (stores_to_code_) {
    put_back_overwritten();
    engine_.put_arithmetic_flags_back(flags_before_);
  }
  if (!wants_arrangement_) return;
  // What was put in the instruction's place is taken back by now.
  reads_to_skip_ = reads_told_;
  in_flight_ = false;
  iterating_ = false;
}

void Machine::access(const DataAccess& a, const MemoryOperand& operand) {
  if (traits_.wraps_words && a.offset + a.size > 0x10000) {
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
    const bool keeps =
        operand.conditional_write &&
        shift_writes_nothing(*info_, model_, static_cast<std::uint8_t>(engine_.gpr(kEcx)));
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
  const bool user = user_mode();
  const PhysAddr at = mmu_.translate(LinearAddr{a.linear}, kind, user);
  if (first == a.size) return is_read ? read_part(at, first, 0) : store_part(at, first);
  const PhysAddr behind = mmu_.translate(LinearAddr{a.linear + first}, kind, user);
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
  if (!memory_.is_mapped(at.page())) throw UndefinedMemory{at, size, "data"};
  if (wants_arrangement_) refuse_reading_own_code(at, size);
  if (!memory_.is_defined(at, size) && info_->kind != InstructionClass::fxrstor) {
    throw UndefinedMemory{at, size, "data"};
  }
  copied_from_ = at;
  if (tells_reads() && ++reads_told_ > reads_to_skip_) tell_read(at, size, first);
}

void Machine::store_part(PhysAddr at, std::uint32_t size) {
  if (!memory_.is_mapped(at.page())) throw NeedsMapping{at.page()};
  CITCAT_ASSERT(store_count_ < stores_.size());
  stores_[store_count_++] = {at, size};
  stores_to_code_ |= memory_.holds_code(at.page());
}

/// Tells a read of `size` bytes, `first` bytes into its operand.
void Machine::tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (info_->kind != InstructionClass::fxrstor) {
    sink_->read(at, size, AccessKind::data, position_);
    return;
  }
  const auto is_read = [&](std::uint32_t i) {
    const std::size_t in_slot = (first + i) % fx_image::kSlot;
    return in_slot < fx_image::restored_bytes(first + i - in_slot);
  };
  for (std::uint32_t i = 0; i < size;) {
    std::uint32_t n = 0;
    while (i + n < size && is_read(i + n)) ++n;
    if (n != 0) sink_->read(at + i, n, AccessKind::data, position_);
    i += n;
    while (i < size && !is_read(i)) ++i;
  }
}

/// `writes`: the access itself, or one that follows it to the same place, which is refused before
/// anything is read.
void Machine::check_segment(const DataAccess& a, const MemoryOperand& operand, bool writes) const {
  if (!traits_.has_limits) return;  // has neither limits nor types
  // Intel SDM vol. 3, 5.3 and 5.4. The engine checks neither limits nor types.
  const int s = operand.segment;
  const std::uint32_t limit = engine_.segment_limit(s);
  const std::uint32_t flags = engine_.segment_flags(s);
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
  if (good && protected_mode()) {
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
  if (!traits_.has_limits) return false;
  const std::uint32_t eip = linear - code_base_, limit = engine_.segment_limit(kCs);
  if (eip > limit) return true;
  const std::uint32_t room = limit - eip + 1;
  if (room == 0 || room >= kMaxInstructionBytes) return false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::uint32_t n = 0;
  for (; n < room; ++n) {
    const auto at = mmu_.peek(LinearAddr{linear + n}, Access::execute, user_mode());
    if (!at || !memory_.is_mapped(at->frame.page())) break;
    bytes[n] = *memory_.host(at->frame + ((linear + n) & kPageMask));
  }
  return n == room && decode_cache_.decode({bytes.data(), n}, code_mode()).state ==
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
  const bool user = user_mode();
  if ((linear & ~kPageMask) != code_page_) {
    code_frame_ = mmu_.translate(LinearAddr{linear}, Access::execute, user);
    code_frame_.value &= ~kPageMask;
    code_host_ = memory_.host(code_frame_);
    if (code_host_ == nullptr) throw UndefinedMemory{code_frame_, 1, "code"};
    require_code_at(LinearAddr{linear}, code_frame_);
    code_page_ = linear & ~kPageMask;
    note_code(code_frame_.page());
  }
  const std::uint32_t offset = linear & kPageMask;
  physical_ = code_frame_ + offset;
  const CodeMode mode = code_mode();
  DecodedCode::Slot& slot = decoded_.slot(linear);
  const std::uint32_t here = std::min(kPageSize - offset, std::uint32_t{kMaxInstructionBytes});
  if (slot.is(linear, mode, {code_host_ + offset, here})) [[likely]] {
    if (!memory_.is_defined(physical_, slot.info.length)) {
      throw UndefinedMemory{physical_, slot.info.length, "code"};
    }
    if (tells_reads()) sink_->fetch(physical_, slot.info.length, position_);
    decoded_.expect(linear + slot.info.length);
    return slot.info;
  }
  slot.valid = false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::memcpy(bytes.data(), code_host_ + offset, here);
  slot.info = decode_cache_.decode({bytes.data(), here}, mode);
  std::uint32_t first = slot.info.state == DecodeState::ok ? slot.info.length : here;
  std::uint32_t second = 0;
  PhysAddr next;
  if (slot.info.state == DecodeState::needs_more_bytes && here < kMaxInstructionBytes) {
    // The segment may end before.
    const std::uint32_t last = linear - code_base_ + here - 1;
    if (traits_.has_limits && last == engine_.segment_limit(kCs) && last != 0xffffffff) {
      throw CpuException{13, 0u, 0};
    }
    next = mmu_.translate(LinearAddr{linear + here}, Access::execute, user);
    const std::uint8_t* host = memory_.host(next);
    if (host == nullptr) throw UndefinedMemory{next, 1, "code"};
    require_code_at(LinearAddr{linear + here}, next);
    std::memcpy(&bytes[here], host, bytes.size() - here);
    slot.info = decode_cache_.decode(bytes, mode);
    if (slot.info.state == DecodeState::ok) second = slot.info.length - here;
  } else if (slot.info.state != DecodeState::ok) {
    first = 1;  // how many bytes an invalid instruction takes is not defined
  }
  if (!memory_.is_defined(physical_, first)) throw UndefinedMemory{physical_, first, "code"};
  if (second != 0 && !memory_.is_defined(next, second)) {
    throw UndefinedMemory{next, second, "code"};
  }
  if (tells_reads()) {
    sink_->fetch(physical_, first, position_);
    if (second != 0) sink_->fetch(next, second, position_);
  }
  slot.linear = linear;
  slot.mode = mode;
  slot.valid = slot.info.state == DecodeState::ok;
  return slot.info;
}

}  // namespace citcat
