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
  if (rolled_back_) return;
  surroundings_ = kUnknown;
  if (pending_ != nullptr) {
    // Told again, with everything that goes before a fault, when the instruction is reported.
    linear_ = engine_.segment_base(kCs) + engine_.eip();
    leave_block(linear_);
    if (!rolled_back_) request(Action::step);
    return;
  }
  native_vector_ = vector;
  native_software_ = software;
  request(Action::native_fault);
}

void Machine::settle_in_flight(std::uint32_t linear, bool completed) {
  // An iteration that was made leaves the engine where it found it.
  const bool iterated = iterating_ && engine_.gpr(kEcx) != count_before_;
  if (!in_flight_ || (linear == linear_ && !completed && !iterated)) return;
  action_ = Action::none;
  complete_in_flight(completed && !iterating_ ? linear_ + 1 : linear);
  if (action_ == Action::fix_flags) engine_.set_eflags(fix_flags_);
  action_ = Action::none;
}

void Machine::handle_native_fault() {
  const std::uint32_t linear = engine_.segment_base(kCs) + engine_.eip();
  // #DB after a single step, and any fault elsewhere, mean that the instruction in flight is done.
  settle_in_flight(linear, native_vector_ == 1);
  if (!in_flight_ && native_vector_ != 1) {
    // Something scheduled for this boundary comes first; the fault will come again.
    linear_ = linear;
    if (boundary_stop()) {
      action_ = Action::at_position;
      return;
    }
  }
  CpuException e{static_cast<std::uint8_t>(native_vector_), std::nullopt, 0};
  // Intel SDM vol. 3, table 6-1: vectors with an error code.
  if (native_vector_ == 8 || (native_vector_ >= 10 && native_vector_ <= 13) ||
      native_vector_ == 17) {
    e.error_code = engine_.error_code();
  }
  if (native_vector_ == kDebugVector) {
    debug_pending_ |= kDr6Step;
    take_debug_trap();
    return;
  }
  std::uint32_t return_eip = engine_.eip();
  if (sixteen_bit_ && native_vector_ == 0 && in_flight_) {
    engine_.set_eflags(divide_error_flags(*info_, model_, engine_.eflags()));
    if (divide_error_points_past(model_)) return_eip = (return_eip + info_->length) & 0xffff;
  }
  raise(e, return_eip, DeliveredEvent::Kind::exception);
}

bool Machine::touches_system_tables() const {
  switch (info_->kind) {
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
      return info_->opcode_map == 1 &&
             (info_->opcode == 0 || info_->opcode == 2 || info_->opcode == 3);
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
  const TableRegister gdt = engine_.gdtr();
  const Segment ldt = engine_.ldtr(), task = engine_.tr();
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
    const auto data = mmu_.held(page, Access::read, user_mode());
    known.readable = data && data->frame == known.frame;
    known.writable &= known.readable && data->writable;
    return;
  }
  const auto code = engine_code_.frame_of(page);
  known.executable = code && code->page() == known.frame.page();
}

std::optional<Translation> Machine::translate_for_engine(std::uint32_t linear, EngineAccess kind) {
  const bool user = user_mode();
  const LinearAddr page{linear};
  // The walk of a fetch is made when the instruction is prepared, that of an operand before.
  const Access access = kind == EngineAccess::write   ? Access::write
                        : kind == EngineAccess::fetch ? Access::execute
                                                      : Access::read;
  if (kind == EngineAccess::fetch) surroundings_ = kUnknown;
  if (by_blocks_) {
    if (auto known = translate_for_block(page, access)) return known;
    if (pending_ != nullptr || kind == EngineAccess::fetch) return std::nullopt;
  }
  if (auto known = mmu_.peek(page, access, user)) {
    if (kind == EngineAccess::fetch) {
      if (!memory_.is_mapped(known->frame.page())) return std::nullopt;
      note_code(known->frame.page());
    }
    return allow_engine(*known, access);
  }
  if (kind == EngineAccess::fetch || !in_flight_ || !lies_in_system_tables(linear & ~kPageMask)) {
    return std::nullopt;
  }
  // Descriptor tables and task segments are reached with supervisor rights.
  try {
    mmu_.translate(page, access, false);
  } catch (const PageFault&) {
    return std::nullopt;
  }
  const auto known = mmu_.peek(page, access, false);
  if (!known) return std::nullopt;
  return allow_engine(*known, access);
}

void Machine::resolve_translation_fault() {
  const std::uint32_t linear = engine_.segment_base(kCs) + engine_.eip();
  if (pending_ != nullptr) {
    if (engine_.fault_access() == EngineAccess::fetch) {
      settle_block(linear, 0);
    } else {
      leave_block(linear);
    }
    if (rolled_back_) {
      roll_block_back();
      return;
    }
  }
  // A transfer to itself that has changed what it leads to: the engine finds other code there.
  const bool led_to_itself = engine_.fault_access() == EngineAccess::fetch && in_flight_ &&
                             !resuming_ && info_->control_flow && !comes_again();
  settle_in_flight(linear, led_to_itself);
  if (in_flight_ && repeat_done_) {
    finish_repeat();
    return;
  }
  if (++native_retries_ > kMaxNativeRetries) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "the engine finds no translation for linear page %08x where there is one",
                  engine_.fault_page());
    throw ReplayStopped{position_, text, ~std::uint64_t{0}, "", ""};
  }
  try {
    if (in_flight_ && engine_.fault_access() != EngineAccess::fetch) {
      const Access access =
          engine_.fault_access() == EngineAccess::write ? Access::write : Access::read;
      mmu_.translate(LinearAddr{engine_.fault_page()}, access,
                     user_mode() && !lies_in_system_tables(engine_.fault_page()));
      if (stores_to_code_) {
        put_back_overwritten();
        engine_.write_raw_flags(flags_before_);
      }
      resuming_ = true;
      return;
    }
    linear_ = linear;
    if (debug_pending_ != 0) {
      take_debug_trap();
      return;
    }
    if (boundary_stop()) {
      action_ = Action::at_position;
      return;
    }
    code_base_ = engine_.segment_base(kCs);
    if (traits_.has_limits && linear - code_base_ > engine_.segment_limit(kCs)) {
      throw CpuException{13, 0u, 0};
    }
    const DecodedInstruction& info = fetch(linear);
    // Refused without the bytes that the engine wants of it.
    if (info.state != DecodeState::ok) refuse_undefined(info, linear);
    // The block being translated reaches into an absent page, its first instruction does not.
    engine_.step_once();
  } catch (const PageFault& f) {
    raise({14, f.error_code, f.address}, engine_.eip(), DeliveredEvent::Kind::exception);
  } catch (const CpuException& e) {
    raise(e, engine_.eip(), DeliveredEvent::Kind::exception);
  } catch (const CodeElsewhere&) {
    engine_.flush_tlb();
  }
}

/// Before the instruction at linear_, whose page the engine has elsewhere.
void Machine::ask_for_code_again() {
  if (++native_retries_ > kMaxNativeRetries) {
    char text[128];
    std::snprintf(text, sizeof text,
                  "the engine executes other code at linear %08x than the processor", linear_);
    throw ReplayStopped{position_, text, ~std::uint64_t{0}, "", ""};
  }
  // Of an instruction that it refuses by its first bytes it never asks for the second page.
  engine_code_.forget(LinearAddr{linear_});
  engine_code_.forget(LinearAddr{linear_ + kPageSize});
  request(Action::flush_tlb);
}

/// The engine goes on to the end of its instruction whether or not `access` throws.
template <class F>
void Machine::access_port(F&& access) {
  try {
    access();
  } catch (...) {
    auto& registers = refused_port_access_.emplace();
    std::copy_n(engine_.gprs(), registers.size(), registers.begin());
    throw;
  }
}

/// Nothing showed the port access of the instruction in flight, or something else: it has not
/// completed, whatever the engine made of it.
void Machine::take_port_access_back() {
  if (!refused_port_access_) return;
  int number = 0;
  for (const std::uint64_t value : *refused_port_access_) {
    engine_.set_gpr(number++, static_cast<std::uint32_t>(value));
  }
  refused_port_access_.reset();
  engine_.set_eip(linear_ - engine_.segment_base(kCs));
  if (info_->kind == InstructionClass::ins) put_back_overwritten();
  in_flight_ = false;
  iterating_ = false;
}

std::uint32_t Machine::on_in(std::uint16_t port, std::uint32_t size) {
  std::uint32_t value = 0;
  access_port([&] {
    value = environment_.port_read(port, size, position_);
    if (sink_ != nullptr) sink_->io_read(port, size, value, position_);
  });
  if (breaks_on_ports_) [[unlikely]]
    check_port_breakpoints(port, size);
  return value;
}

void Machine::on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  access_port([&] {
    environment_.port_write(port, size, value, position_);
    if (sink_ != nullptr) sink_->io_write(port, size, value, position_);
  });
  if (breaks_on_ports_) [[unlikely]]
    check_port_breakpoints(port, size);
  if (has_a20_gate_) a20_gate_.port_write(port, size, value);
}

void Machine::walk_read(PhysAddr entry, std::uint32_t size) {
  if (wants_reads_) sink_->read(entry, size, AccessKind::walk, position_);
}

void Machine::quiet_walk_read(PhysAddr entry, std::uint32_t size) {
  if (compares_) sink_->read(entry, size, AccessKind::walk, position_);
}

void Machine::walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) {
  if (sink_ != nullptr) sink_->write(entry, bytes, AccessKind::walk, position_);
}

void Machine::mapping_evicted(Access access) {
  forget_code_page();
  // The engine must not keep what the processor's TLB lost, or it would never ask again. Where its
  // code lies is looked at before each block, and by fetch().
  if (access != Access::execute) engine_.flush_tlb();
}

void Machine::mapping_used(LinearAddr page, PhysAddr frame) {
  if (sink_ != nullptr) sink_->mapping(page, frame, position_);
}

std::optional<std::uint64_t> Machine::missing_pdpte(unsigned index, LinearAddr wanted) {
  return environment_.missing_pdpte(index, wanted, position_);
}

void Machine::external_write(PhysAddr captured, std::span<const std::uint8_t> data) {
  if (sink_ != nullptr) sink_->external_write(captured, data, position_);
  memory_.external_write(captured, data);
}

}  // namespace citcat
