// What the engine asks and reports by itself: exceptions, translations, port accesses.

#include <algorithm>
#include <cstdio>

#include "replay/machine/machine.h"

namespace citcat {

namespace {

constexpr std::uint8_t kDebugVector = 1;

/// How often the engine may ask again for a page at one place before that counts as a
/// disagreement: translation blocks that reach into an absent page, system accesses.
constexpr unsigned kMaxNativeRetries = 8;

}  // namespace

void Machine::on_exception(std::uint32_t vector, bool software) {
  if (running_.rolled_back) return;
  running_.surroundings = RunningBlock::kUnknown;
  if (running_.block != nullptr) {
    // Told again, with everything that goes before a fault, when the instruction is reported.
    cpu_.linear = cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
    leave_block(cpu_.linear);
    if (!running_.rolled_back) cpu_.request(AfterStop::step);
    return;
  }
  native_vector_ = vector;
  native_software_ = software;
  cpu_.request(AfterStop::native_fault);
}

void Machine::settle_in_flight(std::uint32_t linear, bool completed) {
  // An iteration that was made leaves the engine where it found it.
  const bool iterated = flight_.iterating && cpu_.engine.gpr(kEcx) != flight_.count_before;
  if (!flight_.active || (linear == cpu_.linear && !completed && !iterated)) return;
  cpu_.after_stop = AfterStop::none;
  complete_in_flight(completed && !flight_.iterating ? cpu_.linear + 1 : linear);
  if (cpu_.after_stop == AfterStop::fix_flags) cpu_.engine.set_eflags(fix_flags_);
  cpu_.after_stop = AfterStop::none;
}

void Machine::handle_native_fault() {
  const std::uint32_t linear = cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
  // #DB after a single step, and any fault elsewhere, mean that the instruction in flight is done.
  settle_in_flight(linear, native_vector_ == 1);
  if (!flight_.active && native_vector_ != 1) {
    // Something scheduled for this boundary comes first; the fault will come again.
    cpu_.linear = linear;
    if (cpu_.boundary_stop()) {
      cpu_.after_stop = AfterStop::at_position;
      return;
    }
  }
  CpuException e{static_cast<std::uint8_t>(native_vector_), std::nullopt, 0};
  // Intel SDM vol. 3, table 6-1: vectors with an error code.
  if (native_vector_ == 8 || (native_vector_ >= 10 && native_vector_ <= 13) ||
      native_vector_ == 17) {
    e.error_code = cpu_.engine.error_code();
  }
  if (native_vector_ == kDebugVector) {
    debug_pending_ |= kDr6Step;
    take_debug_trap();
    return;
  }
  std::uint32_t return_eip = cpu_.engine.eip();
  if (cpu_.traits.sixteen_bit && native_vector_ == 0 && flight_.active) {
    cpu_.engine.set_eflags(divide_error_flags(*flight_.info, cpu_.model, cpu_.engine.eflags()));
    if (divide_error_points_past(cpu_.model))
      return_eip = (return_eip + flight_.info->length) & 0xffff;
  }
  raise(e, return_eip, DeliveredEvent::Kind::exception);
}

bool Machine::touches_system_tables() const {
  switch (flight_.info->kind) {
    case InstructionClass::pop_segment:
    case InstructionClass::mov_to_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::in:
    case InstructionClass::out:
    case InstructionClass::ins:
    case InstructionClass::outs:
      return true;
    default:
      // LAR, LSL and the 0F 00 group look descriptors up too.
      return flight_.info->opcode_map == 1 &&
             (flight_.info->opcode == 0 || flight_.info->opcode == 2 || flight_.info->opcode == 3);
  }
}

/// The page is one of those that the instruction in flight may look at with supervisor rights: its
/// other accesses are the program's, like the upper half of what POP of a segment register takes
/// off the stack.
bool Machine::lies_in_system_tables(std::uint32_t page) const {
  if (!touches_system_tables()) return false;
  const auto reaches = [&](std::uint32_t base, std::uint32_t limit) {
    const std::uint32_t first = base & ~kPageMask;
    return page - first <= (base & kPageMask) + limit;
  };
  const TableRegister gdt = cpu_.engine.gdtr();
  const Segment ldt = cpu_.engine.ldtr(), task = cpu_.engine.tr();
  return reaches(gdt.base, gdt.limit) || (!ldt.unusable && reaches(ldt.base, ldt.limit)) ||
         reaches(task.base, task.limit);
}

std::optional<Translation> Machine::on_translate(std::uint32_t linear, EngineAccess kind) {
  auto known = translate_for_engine(linear, kind);
  if (known && kind == EngineAccess::write && begins_to_patch(known->frame.page())) {
    return std::nullopt;
  }
  if (known) share_entry(*known, LinearAddr{linear}, kind);
  return known;
}

/// The engine has one entry for the code and the data of a page, the processor perhaps two, which
/// may differ. The engine's serves both where they lie in one frame, as far as is known by now.
void Machine::share_entry(Translation& known, LinearAddr page, EngineAccess kind) {
  if (kind == EngineAccess::fetch) {
    engine_code_.note(page, known.frame);
    const auto data = cpu_.mmu.held(page, Access::read, cpu_.user_mode());
    known.readable = data && data->frame == known.frame;
    known.writable &= known.readable && data->writable;
    return;
  }
  const auto code = engine_code_.frame_of(page);
  known.executable = code && code->page() == known.frame.page();
}

std::optional<Translation> Machine::translate_for_engine(std::uint32_t linear, EngineAccess kind) {
  const bool user = cpu_.user_mode();
  const LinearAddr page{linear};
  // The walk of a fetch is made when the instruction is prepared, that of an operand before.
  const Access access = kind == EngineAccess::write   ? Access::write
                        : kind == EngineAccess::fetch ? Access::execute
                                                      : Access::read;
  if (kind == EngineAccess::fetch) running_.surroundings = RunningBlock::kUnknown;
  if (cpu_.by_blocks) {
    if (auto known = translate_for_block(page, access)) return known;
    if (running_.block != nullptr || kind == EngineAccess::fetch) return std::nullopt;
  }
  if (auto known = cpu_.mmu.peek(page, access, user)) {
    if (kind == EngineAccess::fetch) {
      if (!cpu_.memory.is_mapped(known->frame.page())) return std::nullopt;
      note_code(known->frame.page());
    }
    return allow_engine(*known, access);
  }
  if (kind == EngineAccess::fetch || !flight_.active ||
      !lies_in_system_tables(linear & ~kPageMask)) {
    return std::nullopt;
  }
  // Descriptor tables and task segments are reached with supervisor rights.
  try {
    cpu_.mmu.translate(page, access, false);
  } catch (const PageFault&) {
    return std::nullopt;
  }
  const auto known = cpu_.mmu.peek(page, access, false);
  if (!known) return std::nullopt;
  return allow_engine(*known, access);
}

void Machine::resolve_translation_fault() {
  const std::uint32_t linear = cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
  if (running_.block != nullptr) {
    if (cpu_.engine.fault_access() == EngineAccess::fetch) {
      settle_block(linear, 0);
    } else {
      leave_block(linear);
    }
    if (running_.rolled_back) {
      roll_block_back();
      return;
    }
  }
  // A transfer to itself that has changed what it leads to: the engine finds other code there.
  const bool led_to_itself = cpu_.engine.fault_access() == EngineAccess::fetch && flight_.active &&
                             !flight_.resuming && flight_.info->control_flow && !comes_again();
  settle_in_flight(linear, led_to_itself);
  if (flight_.active && flight_.repeat_done) {
    finish_repeat();
    return;
  }
  if (++flight_.retries > kMaxNativeRetries) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "the engine finds no translation for linear page %08x where there is one",
                  cpu_.engine.fault_page());
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "", ""};
  }
  try {
    if (flight_.active && cpu_.engine.fault_access() != EngineAccess::fetch) {
      const Access access =
          cpu_.engine.fault_access() == EngineAccess::write ? Access::write : Access::read;
      cpu_.mmu.translate(LinearAddr{cpu_.engine.fault_page()}, access,
                         cpu_.user_mode() && !lies_in_system_tables(cpu_.engine.fault_page()));
      if (flight_.stores_to_code) {
        put_back_overwritten();
        cpu_.engine.write_raw_flags(flight_.flags_before);
      }
      flight_.resuming = true;
      return;
    }
    cpu_.linear = linear;
    if (debug_pending_ != 0) {
      take_debug_trap();
      return;
    }
    if (cpu_.boundary_stop()) {
      cpu_.after_stop = AfterStop::at_position;
      return;
    }
    cpu_.code.base = cpu_.engine.segment_base(kCs);
    if (cpu_.traits.has_limits && linear - cpu_.code.base > cpu_.engine.segment_limit(kCs)) {
      throw CpuException{13, 0u, 0};
    }
    const DecodedInstruction& info = fetch(linear);
    // Refused without the bytes that the engine wants of it.
    if (info.state != DecodeState::ok) refuse_undefined(info, linear);
    // The block being translated reaches into an absent page, its first instruction does not.
    cpu_.engine.step_once();
  } catch (const PageFault& f) {
    raise({14, f.error_code, f.address}, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
  } catch (const CpuException& e) {
    raise(e, cpu_.engine.eip(), DeliveredEvent::Kind::exception);
  } catch (const CodeElsewhere&) {
    cpu_.engine.flush_tlb();
  }
}

/// Before the instruction at cpu_.linear, whose page the engine has elsewhere.
void Machine::ask_for_code_again() {
  if (++flight_.retries > kMaxNativeRetries) {
    char text[128];
    std::snprintf(text, sizeof text,
                  "the engine executes other code at linear %08x than the processor", cpu_.linear);
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "", ""};
  }
  // Of an instruction that it refuses by its first bytes it never asks for the second page.
  engine_code_.forget(LinearAddr{cpu_.linear});
  engine_code_.forget(LinearAddr{cpu_.linear + kPageSize});
  cpu_.request(AfterStop::flush_tlb);
}

/// The engine goes on to the end of its instruction whether or not `access` throws.
template <class F>
void Machine::access_port(F&& access) {
  try {
    access();
  } catch (...) {
    auto& registers = refused_port_access_.emplace();
    std::copy_n(cpu_.engine.gprs(), registers.size(), registers.begin());
    throw;
  }
}

/// Nothing showed the port access of the instruction in flight, or something else: it has not
/// completed, whatever the engine made of it.
void Machine::take_port_access_back() {
  if (!refused_port_access_) return;
  int number = 0;
  for (const std::uint64_t value : *refused_port_access_) {
    cpu_.engine.set_gpr(number++, static_cast<std::uint32_t>(value));
  }
  refused_port_access_.reset();
  cpu_.engine.set_eip(cpu_.linear - cpu_.engine.segment_base(kCs));
  if (flight_.info->kind == InstructionClass::ins) put_back_overwritten();
  flight_.active = false;
  flight_.iterating = false;
}

std::uint32_t Machine::on_in(std::uint16_t port, std::uint32_t size) {
  std::uint32_t value = 0;
  access_port([&] {
    value = cpu_.environment.port_read(port, size, cpu_.position);
    if (cpu_.sink != nullptr) cpu_.sink->io_read(port, size, value, cpu_.position);
  });
  if (breaks_on_ports_) [[unlikely]]
    check_port_breakpoints(port, size);
  return value;
}

void Machine::on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  access_port([&] {
    cpu_.environment.port_write(port, size, value, cpu_.position);
    if (cpu_.sink != nullptr) cpu_.sink->io_write(port, size, value, cpu_.position);
  });
  if (breaks_on_ports_) [[unlikely]]
    check_port_breakpoints(port, size);
  if (has_a20_gate_) a20_gate_.port_write(port, size, value);
}

void Machine::walk_read(PhysAddr entry, std::uint32_t size) {
  if (cpu_.wants_reads) cpu_.sink->read(entry, size, AccessKind::walk, cpu_.position);
}

void Machine::quiet_walk_read(PhysAddr entry, std::uint32_t size) {
  if (expectation_.compares) cpu_.sink->read(entry, size, AccessKind::walk, cpu_.position);
}

void Machine::walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) {
  if (cpu_.sink != nullptr) cpu_.sink->write(entry, bytes, AccessKind::walk, cpu_.position);
}

void Machine::mapping_evicted(Access access) {
  cpu_.code.forget_all();
  // The engine must not keep what the processor's TLB lost, or it would never ask again. Where its
  // code lies is looked at before each block, and by fetch().
  if (access != Access::execute) cpu_.engine.flush_tlb();
}

void Machine::mapping_used(LinearAddr page, PhysAddr frame) {
  if (cpu_.sink != nullptr) cpu_.sink->mapping(page, frame, cpu_.position);
}

std::optional<std::uint64_t> Machine::missing_pdpte(unsigned index, LinearAddr wanted) {
  return cpu_.environment.missing_pdpte(index, wanted, cpu_.position);
}

void Machine::external_write(PhysAddr captured, std::span<const std::uint8_t> data) {
  if (cpu_.sink != nullptr) cpu_.sink->external_write(captured, data, cpu_.position);
  cpu_.memory.external_write(captured, data);
}

}  // namespace citcat
