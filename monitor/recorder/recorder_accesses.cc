// Data accesses: what a processor shows where the emulator makes other ones.

#include <algorithm>
#include <cstring>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

struct LeftByProcessor {
  std::array<std::uint8_t, 16> bytes{};
  Notice notice = Notice::taken;
};

/// The bytes that a read of a repeated run shows, where software does not take its value and the
/// processor has left another one than the emulator.
std::optional<LeftByProcessor> left_by_processor(const GuestMemory& memory, InsnKind kind,
                                                 std::uint32_t physical,
                                                 std::span<const std::uint8_t> value) {
  if (!memory.has_left()) return std::nullopt;
  if (kind != InsnKind::iret && kind != InsnKind::far_return && kind != InsnKind::far_transfer)
    return std::nullopt;
  LeftByProcessor left;
  if (value.size() > left.bytes.size() ||
      !memory.is_ram(physical, static_cast<std::uint32_t>(value.size())))
    return std::nullopt;
  std::copy(value.begin(), value.end(), left.bytes.begin());
  left.notice = memory.as_processor_left(physical, std::span(left.bytes).first(value.size()));
  return left.notice == Notice::taken ? std::nullopt : std::optional(left);
}

}  // namespace

/// Counts an access of a string instruction into its iteration. An access of the kind that begins
/// an iteration, where the other kind is due, means that the iteration was begun again.
void Recorder::iterate(bool store) {
  const unsigned per_iteration = accesses_per_iteration(in_flight_->what.kind);
  if (per_iteration == 0) return;
  if (in_flight_->what.kind == InsnKind::movs) accesses_ = store ? 1 : 0;
  if (++accesses_ == per_iteration) {
    accesses_ = 0;
    begin_attempt(false);
    if (in_flight_->what.repeated) ++iterations_;
  }
}

/// Whether a load of INS or OUTS is of the permission map, which programs without the privilege for
/// ports are asked about, and so belongs to no iteration.
bool Recorder::reads_permission(const Insn& insn, std::uint64_t linear) {
  if (insn.what.kind == InsnKind::ins) return true;
  if (insn.what.kind != InsnKind::outs || !insn.user) return false;
  const LoggedSegment task = registers_.state().tr;
  return walker_.behind(linear, task.base) <= task.limit;
}

/// Whether RCX, ECX or CX leaves the REP in flight nothing to do.
bool Recorder::is_used_up(std::uint64_t count) const {
  return (count & address_mask(in_flight_->what.address_bytes)) == 0;
}

/// CMPS reads DS:[ESI], then ES:[EDI]; the emulator the other way round.
void Recorder::compare_strings(const StringRead& read) {
  if (accesses_ == 0) {
    held_back_ = read;
  } else {
    show(read);
    show(held_back_);
  }
  iterate(false);
}

void Recorder::show(const StringRead& read) {
  transfer(false, read.linear, read.physical, read.device, {read.bytes.data(), read.size});
}

/// CMPS faults at ES:[EDI]: what it has read by then.
void Recorder::read_first_string(const LoggedState& state) {
  const InsnClass& what = in_flight_->what;
  const unsigned segment =
      what.segment_override >= 0 ? static_cast<unsigned>(what.segment_override) : 3;
  const std::uint64_t offset = state.gpr[6] & address_mask(what.address_bytes);
  const bool flat = in_flight_->code == CodeSize::bits64 && segment < 4;
  block_access((flat ? 0 : state.segment[segment].base) + offset, what.operand_bytes, false);
}

void Recorder::access_plainly(const Insn& insn, bool store, std::uint64_t linear,
                              std::uint32_t physical, bool device,
                              std::span<const std::uint8_t> value) {
  if (is_begun_anew(InsnKind::plain, store, linear)) begin_attempt(true);
  if (!store && insn.what.updates_memory) {
    value = may_update(insn, linear, device ? std::nullopt : std::optional(physical), value);
    if (value.empty()) return;
  }
  transfer(store, linear, physical, device, value);
  if (store) note_stop_marker(physical, value);
}

bool Recorder::take_out(std::uint64_t address, unsigned size, const Insn& first, const Insn& last) {
  constexpr std::uint64_t kNear = 64;  // more than a line, and an instruction
  const auto physical = static_cast<std::uint32_t>(address);
  const bool is_near = address + kNear >= first.physical && address < last.physical + kNear;
  const bool may_walk = last.size > left_in_page(last.linear) ||
                        !walker_.holds(narrowed(first, first.linear + displacement_), false,
                                       static_cast<std::uint32_t>(first.physical));
  if ((!is_near && !may_walk) || address != physical || size > left_in_page(address) ||
      !memory_.is_ram(physical, size))
    return false;
  memory_.take_back(physical, size);
  return true;
}

void Recorder::note_stop_marker(std::uint32_t physical, std::span<const std::uint8_t> value) {
  if (window_ != 0 && physical == window_ + CITCAT_MARK_OFFSET && value.size() == 4 &&
      dword_of(value) == CITCAT_MARK_STOP)
    stop_marker_ = true;
}

void Recorder::access(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
                      bool device, std::span<const std::uint8_t> value) {
  if (in_flight_ == nullptr) return;
  line_is_known_ = false;
  if (!segments_.allows_all(insn.what.loads_from, insn.what.stores_to) &&
      is_refused(insn, store, linear, value.size()))
    return;
  if (breakpoints_.watch_data())
    breakpoints_.note(linear, static_cast<unsigned>(value.size()), store);
  const auto shown = stand_ins_.shown(address);
  if (!shown) return give_up(stand_ins_.problem());
  std::uint32_t physical = *shown;
  walker_.take_back_pointer_marks();  // of this access's own walk
  set_position();
  if (insn.accesses_plainly && !task_)
    return access_plainly(insn, store, linear, physical, device, value);
  const InsnKind kind = insn.what.kind;
  if (is_begun_anew(kind, store, linear)) begin_attempt(true);
  // fpu_image() and others show these.
  if (kind == InsnKind::fxsave || kind == InsnKind::fxrstor || is_of_extended_state(kind)) return;
  // The emulator reads it, then compares and exchanges, which reads it again
  // (QEMU 7.2, target/i386/tcg/translate.c, disas_insn(), F6 /3).
  if (kind == InsnKind::locked_neg && !store && accesses_++ == 0) return;
  if (kind == InsnKind::cmps) {
    StringRead read{linear, physical, device, value.size(), {}};
    std::copy(value.begin(), value.end(), read.bytes.begin());
    compare_strings(read);
    return;
  }
  if (kind == InsnKind::x87 || moves_environment(kind)) note_fpu_access(insn, linear);
  if (moves_environment(kind) && store) value = as_stored_environment(insn, linear, value);
  if (kind == InsnKind::x87_load && is_environment(insn, linear)) {
    read_environment(insn, linear);
    return;
  }
  if (kind == InsnKind::ins && store) {
    // The first of two stores is a zero that the emulator needs; the port is read after it.
    if (accesses_ == 0) {
      iterate(store);
      return;
    }
    sink_.port(RecordType::io_read, port_.number, dword_of(value), insn.what.operand_bytes);
  }
  if (kind == InsnKind::far_transfer && !store && reads_null_descriptor(linear)) return;
  if (loads_code_segment(kind) && !store && value.size() == 4 && !in_real_mode() &&
      !walker_.long_mode())
    note_descriptor(linear, dword_of(value));
  value = task_ ? as_switched(insn, store, linear, value) : as_moved(insn, store, linear, value);
  // One byte is written of a descriptor, where the emulator writes its upper half.
  if (insn.what.marks_descriptor && store && !in_real_mode() && value.size() == 4 &&
      (linear & 0xfff) != 0xfff) {
    value = value.subspan(1, 1);
    ++linear;
    ++physical;
  }
  const bool permission = !store && reads_permission(insn, linear);
  // The emulator asks once more when the count is used up.
  if (permission && insn.what.repeated && is_used_up(registers_.gpr(1))) return;
  if (!store && insn.what.updates_memory)
    value = may_update(insn, linear, device ? std::nullopt : std::optional(physical), value);
  if (value.empty()) return;
  transfer(store, linear, physical, device, value);
  if (permission) return;
  if (!store && value.size() == 4) note_upper_half(kind, linear, value);
  if (kind == InsnKind::outs && !store)
    sink_.port(RecordType::io_write, port_.number, dword_of(value), insn.what.operand_bytes);
  iterate(store);
  if (store) note_stop_marker(physical, value);
}

/// What a processor moves of `value` to or from the stack for selectors, which the emulator takes
/// for dwords.
std::span<const std::uint8_t> Recorder::as_moved(const Insn& insn, bool store, std::uint64_t linear,
                                                 std::span<const std::uint8_t> value) {
  const bool dword = value.size() == 4;
  switch (insn.what.kind) {
    case InsnKind::push_segment:
      // Processors since the P6 move 16 bits here and leave the upper half of the slot as it was
      // (Intel SDM vol. 2, PUSH), where the emulator writes zeros.
      if (!store || !dword) return value;
      for (const std::uint64_t at : {linear + 2, linear + 3}) {
        const auto byte = walker_.locate(at);
        if (byte && memory_.is_ram(*byte, 1)) memory_.restore(*byte, 1);
      }
      if (((linear + 1) & 0xfff) != 0 && (linear & 0xfff) > 0xffc)
        walker_.take_back_marks(linear + 3);
      return value.first(2);
    case InsnKind::pop_segment:
      // The selector is popped first, then its descriptor is read.
      return !store && accesses_++ == 0 && dword ? value.first(2) : value;
    case InsnKind::pop_all:
      // A processor reads the slot of ESP too, between EBP's and EBX's; the emulator passes over
      // it.
      if (accesses_++ == 3) {
        const auto size = static_cast<unsigned>(value.size());
        block_access(linear - size, size, false);
      }
      return value;
    case InsnKind::iret:
    case InsnKind::far_return:
      return as_returned(insn, linear, value);
    default:
      return value;
  }
}

/// The same for what IRET and far RET take from the stack.
std::span<const std::uint8_t> Recorder::as_returned(const Insn& insn, std::uint64_t linear,
                                                    std::span<const std::uint8_t> value) {
  if (accesses_++ == 0) first_access_ = linear;
  if (value.size() != 4 || walker_.long_mode()) return value;
  // A return to virtual-8086 mode takes all selectors as dwords.
  constexpr std::uint32_t kFlagsAt = 8, kSegmentBytes = 0x10000;
  std::uint64_t at = walker_.behind(linear, first_access_);
  // A stack of 16 bits goes on at its beginning.
  const auto from_its_beginning = static_cast<std::uint32_t>(at) + kSegmentBytes;
  if ((registers_.gpr(4) & (kSegmentBytes - 1)) + from_its_beginning >= kSegmentBytes &&
      from_its_beginning <= insn.what.stack_segment_at)
    at = from_its_beginning;
  if (insn.what.kind == InsnKind::iret && at == kFlagsAt)
    to_virtual8086_ = (dword_of(value) & kVirtual8086) != 0;
  return at == insn.what.stack_segment_at && !to_virtual8086_ ? value.first(2) : value;
}

/// Whether an instruction reads once more what it read first, before it has stored anything: begun
/// again where the store goes to a device. The emulator does not say that it begins
/// (QEMU 7.2, accel/tcg/translate-all.c, cpu_io_recompile(): CF_MEMI_ONLY).
bool Recorder::is_begun_anew(InsnKind kind, bool store, std::uint64_t linear) {
  const bool may = kind == InsnKind::plain || kind == InsnKind::movs;
  const bool again = may && !store && first_read_ == linear;
  if (store) {
    first_read_.reset();
  } else if (shown_ == 0) {
    first_read_ = linear;
  }
  return again;
}

/// The emulator gives an instruction up that finds a device in the middle of a block, and begins it
/// again, sometimes more than once: what it has shown by then is on the bus already.
void Recorder::begin_attempt(bool again) {
  shown_before_ = again ? std::max(shown_, shown_before_) : 0;
  shown_ = 0;
  if (!again) first_read_.reset();
}

/// Shows one access on the bus.
void Recorder::transfer(bool store, std::uint64_t linear, std::uint32_t physical, bool device,
                        std::span<const std::uint8_t> value) {
  if (shown_++ < shown_before_) return;
  const auto show = [&](std::uint32_t at, std::span<const std::uint8_t> bytes) {
    bus_.set_locked(in_flight_->what.locked);
    if (store) {
      bus_.write(at, bytes);
    } else if (const auto left = left_by_processor(memory_, in_flight_->what.kind, at, bytes)) {
      if (left->notice == Notice::of_resume) breakpoints_.leave_resume_out(completed_ + 1);
      bus_.read(at, std::span(left->bytes).first(bytes.size()));
    } else {
      bus_.read(at, bytes);
    }
    bus_.set_locked(false);
    if (several_ && store && device) note_message(at, bytes);
  };
  // The emulator says where the first page is. The second one may be anywhere, with RAM in it or a
  // device's registers.
  const std::size_t in_page = std::min<std::size_t>(value.size(), left_in_page(linear));
  if (device)
    (void)walker_.translate(linear, store);
  else
    physical = walker_.translate_as(linear, store, physical);
  show(physical, value.first(in_page));
  if (in_page == value.size()) return;
  if (const auto second = walker_.translate(linear + in_page, store))
    show(*second, value.subspan(in_page));
}

/// What is read of `value` by an instruction that is going to store there. A processor asks for the
/// right to write to both its pages before it reads of them; the emulator finds out afterwards.
std::span<const std::uint8_t> Recorder::may_update(const Insn& insn, std::uint64_t linear,
                                                   std::optional<std::uint32_t> physical,
                                                   std::span<const std::uint8_t> value) {
  if (!walker_.translate_for_update(linear, insn.user, physical)) return {};
  const std::size_t in_page = std::min<std::size_t>(value.size(), left_in_page(linear));
  const std::uint64_t second = linear + in_page;
  const bool both =
      in_page == value.size() || walker_.translate_for_update(second, insn.user, std::nullopt);
  return both ? value : std::span<const std::uint8_t>();
}

}  // namespace citcat::monitor
