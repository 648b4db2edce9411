#include "monitor/units/accesses.h"

#include <algorithm>

namespace citcat::monitor {
namespace {

struct LeftByProcessor {
  std::array<std::uint8_t, 16> bytes{};
  Notice notice = Notice::taken;
};

/// The bytes that a read of a repeated run shows, where software does not take its value and the
/// processor has left another one than the emulator.
std::optional<LeftByProcessor> left_by_processor(const GuestMemory& memory, InsnKind kind,
                                                 PhysicalAddress physical,
                                                 std::span<const std::uint8_t> value) {
  if (!memory.has_left() || !loads_code_segment(kind)) return std::nullopt;
  LeftByProcessor left;
  if (value.size() > left.bytes.size() ||
      !memory.is_ram(physical, static_cast<std::uint32_t>(value.size())))
    return std::nullopt;
  std::copy(value.begin(), value.end(), left.bytes.begin());
  left.notice = memory.as_processor_left(physical, std::span(left.bytes).first(value.size()));
  return left.notice == Notice::taken ? std::nullopt : std::optional(left);
}

}  // namespace

void Accesses::make(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
                    bool device, std::span<const std::uint8_t> value) {
  if (flight_.insn == nullptr) return;
  seen_.code.lose_line();
  if (!units_.guard.allows_all(insn) && units_.guard.refuses(insn, store, linear, value.size()))
    return;
  if (cpu_.breakpoints.watch_data())
    cpu_.breakpoints.note(linear, static_cast<unsigned>(value.size()), store);
  cpu_.walker.take_back_pointer_marks();  // of this access's own walk
  seen_.recording.set_position();
  const Access access{store, linear, address, device, value};
  if (insn.accesses_plainly && !units_.far_transfer.switches_task())
    make_plainly(insn, access);
  else
    make_otherwise(insn, access);
}

void Accesses::make_plainly(const Insn& insn, Access access) {
  if (flight_.attempt.is_begun_anew(InsnKind::plain, access.store, access.linear))
    flight_.attempt.begin(true);
  if (!access.store && insn.what.updates_memory) {
    access.value = may_update(insn, access);
    if (access.value.empty()) return;
  }
  transfer(access);
  if (access.store) units_.window.note_store(access.physical, access.value);
}

void Accesses::make_otherwise(const Insn& insn, Access access) {
  const InsnKind kind = insn.what.kind;
  const bool store = access.store;
  if (flight_.attempt.is_begun_anew(kind, store, access.linear)) flight_.attempt.begin(true);
  // The units that move these show them.
  if (kind == InsnKind::fxsave || kind == InsnKind::fxrstor || is_of_extended_state(kind)) return;
  // The emulator reads it, then compares and exchanges, which reads it again
  // (QEMU 7.2, target/i386/tcg/translate.c, disas_insn(), F6 /3).
  if (kind == InsnKind::locked_neg && !store && flight_.accesses++ == 0) return;
  if (kind == InsnKind::cmps) {
    StringRead read{access.linear, access.physical, access.device, access.value.size(), {}};
    std::copy(access.value.begin(), access.value.end(), read.bytes.begin());
    compare_strings(read);
    return;
  }
  if (take_for_x87(insn, access)) return;
  if (kind == InsnKind::ins && store) {
    // The first of two stores is a zero that the emulator needs; the port is read after it.
    if (flight_.accesses == 0) {
      flight_.iterate(store);
      return;
    }
    cpu_.sink.port(RecordType::io_read, flight_.port.number, dword_of(access.value),
                   insn.what.operand_bytes);
  }
  if (kind == InsnKind::far_transfer && !store &&
      units_.far_transfer.reads_null_descriptor(access.linear))
    return;
  if (loads_code_segment(kind) && !store && access.value.size() == 4 && !cpu_.in_real_mode() &&
      !cpu_.walker.long_mode())
    units_.far_transfer.note_descriptor(access.linear, dword_of(access.value));
  access.value = units_.far_transfer.switches_task()
                     ? units_.far_transfer.as_switched(insn, store, access.linear, access.value)
                     : as_moved(insn, access);
  // One byte is written of a descriptor, where the emulator writes its upper half.
  if (insn.what.marks_descriptor && store && !cpu_.in_real_mode() && access.value.size() == 4 &&
      (access.linear & 0xfff) != 0xfff) {
    access.value = access.value.subspan(1, 1);
    ++access.linear;
    ++access.physical;
  }
  const bool permission = !store && reads_permission(insn, access.linear);
  // The emulator asks once more when the count is used up.
  if (permission && insn.what.repeated && flight_.is_used_up(cpu_.registers.gpr(1))) return;
  if (!store && insn.what.updates_memory) access.value = may_update(insn, access);
  if (access.value.empty()) return;
  transfer(access);
  if (permission) return;
  if (!store && access.value.size() == 4)
    units_.task_register.note_read(kind, access.linear, access.value);
  if (kind == InsnKind::outs && !store)
    cpu_.sink.port(RecordType::io_write, flight_.port.number, dword_of(access.value),
                   insn.what.operand_bytes);
  flight_.iterate(store);
  if (store) units_.window.note_store(access.physical, access.value);
}

/// Has the x87 unit look at it. True where the access is shown already.
bool Accesses::take_for_x87(const Insn& insn, Access& access) {
  const InsnKind kind = insn.what.kind;
  const bool environment = moves_environment(kind);
  if (kind == InsnKind::x87 || environment) units_.x87.note_access(insn, access.linear);
  if (environment && access.store)
    access.value = units_.x87.as_stored(insn, access.linear, access.value);
  if (kind != InsnKind::x87_load || !units_.x87.is_environment(insn, access.linear)) return false;
  units_.x87.read_environment(insn, access.linear);
  return true;
}

/// Whether a load of INS or OUTS is of the permission map, which programs without the privilege for
/// ports are asked about, and so belongs to no iteration.
bool Accesses::reads_permission(const Insn& insn, std::uint64_t linear) {
  if (insn.what.kind == InsnKind::ins) return true;
  if (insn.what.kind != InsnKind::outs || !insn.user) return false;
  const LoggedSegment task = cpu_.registers.state().tr;
  return cpu_.walker.behind(linear, task.base) <= task.limit;
}

/// CMPS reads DS:[ESI], then ES:[EDI]; the emulator the other way round.
void Accesses::compare_strings(const StringRead& read) {
  if (flight_.accesses == 0) {
    held_back_ = read;
  } else {
    show(read);
    show(held_back_);
  }
  flight_.iterate(false);
}

void Accesses::show(const StringRead& read) {
  transfer({false, read.linear, read.physical, read.device, {read.bytes.data(), read.size}});
}

void Accesses::read_first_string(const LoggedState& state) {
  const InsnClass& what = flight_.insn->what;
  const unsigned segment =
      what.segment_override >= 0 ? static_cast<unsigned>(what.segment_override) : 3;
  const std::uint64_t offset = state.gpr[6] & address_mask(what.address_bytes);
  const bool flat = flight_.insn->code == CodeSize::bits64 && segment < 4;
  seen_.linear.show((flat ? 0 : state.segment[segment].base) + offset, what.operand_bytes, false);
}

/// What a processor moves to or from the stack for selectors, which the emulator takes for dwords.
std::span<const std::uint8_t> Accesses::as_moved(const Insn& insn, const Access& access) {
  const auto value = access.value;
  const bool dword = value.size() == 4;
  switch (insn.what.kind) {
    case InsnKind::push_segment:
      return access.store && dword ? as_pushed(access) : value;
    case InsnKind::pop_segment:
      // The selector is popped first, then its descriptor is read.
      return !access.store && flight_.accesses++ == 0 && dword ? value.first(2) : value;
    case InsnKind::pop_all:
      // A processor reads the slot of ESP too, between EBP's and EBX's; the emulator passes over
      // it.
      if (flight_.accesses++ == 3) {
        const auto size = static_cast<unsigned>(value.size());
        seen_.linear.show(access.linear - size, size, false);
      }
      return value;
    case InsnKind::iret:
    case InsnKind::far_return:
      return units_.far_transfer.as_returned(insn, access.linear, value);
    default:
      return value;
  }
}

/// Processors since the P6 move 16 bits in PUSH of a segment register and leave the upper half of
/// the slot as it was (Intel SDM vol. 2, PUSH), where the emulator writes zeros.
std::span<const std::uint8_t> Accesses::as_pushed(const Access& access) {
  const std::uint64_t linear = access.linear;
  for (const std::uint64_t at : {linear + 2, linear + 3}) {
    const auto byte = cpu_.walker.locate(at);
    if (byte && cpu_.memory.is_ram(*byte, 1)) cpu_.memory.restore(*byte, 1);
  }
  if (((linear + 1) & 0xfff) != 0 && (linear & 0xfff) > 0xffc)
    cpu_.walker.take_back_marks(linear + 3);
  return access.value.first(2);
}

/// Shows one access on the bus.
void Accesses::transfer(const Access& access) {
  if (flight_.attempt.was_shown()) return;
  // The emulator says where the first page is. The second one may be anywhere, with RAM in it or a
  // device's registers.
  const std::size_t in_page =
      std::min<std::size_t>(access.value.size(), left_in_page(access.linear));
  PhysicalAddress physical = access.physical;
  if (access.device)
    (void)cpu_.walker.translate(access.linear, access.store);
  else
    physical = cpu_.walker.translate_as(access.linear, access.store, physical);
  show_part(access.store, physical, access.device, access.value.first(in_page));
  if (in_page == access.value.size()) return;
  if (const auto second = cpu_.walker.translate(access.linear + in_page, access.store))
    show_part(access.store, *second, access.device, access.value.subspan(in_page));
}

/// The part of an access that lies in one page.
void Accesses::show_part(bool store, PhysicalAddress physical, bool device,
                         std::span<const std::uint8_t> bytes) {
  cpu_.bus.set_locked(flight_.insn->what.locked);
  if (store) {
    cpu_.bus.write(physical, bytes);
  } else if (const auto left =
                 left_by_processor(cpu_.memory, flight_.insn->what.kind, physical, bytes)) {
    if (left->notice == Notice::of_resume) cpu_.breakpoints.leave_resume_out(flight_.completed + 1);
    cpu_.bus.read(physical, std::span(left->bytes).first(bytes.size()));
  } else {
    cpu_.bus.read(physical, bytes);
  }
  cpu_.bus.set_locked(false);
  if (cpu_.several && store && device) units_.local_apic.note_store(physical, bytes);
}

/// What is read by an instruction that is going to store there. A processor asks for the right to
/// write to both its pages before it reads of them; the emulator finds out afterwards.
std::span<const std::uint8_t> Accesses::may_update(const Insn& insn, const Access& access) {
  std::optional<PhysicalAddress> physical;
  if (!access.device) physical = access.physical;
  if (!cpu_.walker.translate_for_update(access.linear, insn.user, physical)) return {};
  const std::size_t in_page =
      std::min<std::size_t>(access.value.size(), left_in_page(access.linear));
  const std::uint64_t second = access.linear + in_page;
  const bool both = in_page == access.value.size() ||
                    cpu_.walker.translate_for_update(second, insn.user, std::nullopt);
  return both ? access.value : std::span<const std::uint8_t>();
}

}  // namespace citcat::monitor
