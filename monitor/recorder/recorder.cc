#include "monitor/recorder/recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/state/address_msrs.h"

namespace citcat::monitor {
namespace {

// Where captures without a driver keep their state block: far above any RAM.
constexpr std::uint32_t kStateWithoutDriver = 0xfef00000;

/// The interrupt command register as an x2APIC has it (Intel SDM vol. 3, table 10-6).
constexpr std::uint32_t kCommandMsr = 0x830;

/// MOV to DRn, and not from it.
bool writes_debug_register(const Insn& insn) {
  return insn.bytes[insn.what.modrm_offset - 1u] == 0x23;
}

/// Ports through which the A20 gate is moved: system control port A and the keyboard controller.
bool moves_a20(std::uint32_t port, unsigned size) {
  const auto covers = [&](std::uint32_t wanted) { return wanted - port < size; };
  return covers(0x92) || covers(0x60) || covers(0x64);
}

}  // namespace

Recorder::Recorder(GuestMemory& memory, RecordSink& sink, InterruptLog& log, Registers& registers,
                   CacheModel model)
    : memory_(memory),
      sink_(sink),
      log_(log),
      registers_(registers),
      bus_(memory, sink, model),
      stand_ins_(memory, sink),
      walker_(memory, stand_ins_, bus_) {}

// ---- beginning and end
// ---------------------------------------------------------------------------

void Recorder::begin(const Insn& first, std::uint32_t window) {
  log_.skip();
  if (!memory_.snapshot()) {
    give_up("no memory for a copy of the guest's RAM");
    return;
  }
  begin_with(window);
  if (window != 0) {
    send_driver_state(window);
  } else {
    const LoggedState state = registers_.state();
    send_emulator_state(state, narrowed(first, linear_of(first) - state.segment[1].base));
  }
  take_control();
}

/// The caches are empty then.
void Recorder::begin_with(std::uint32_t window) {
  active_ = true;
  window_ = window;
  completed_ = 0;
  in_flight_ = nullptr;
  bus_.set_uncached_window(window, window != 0 ? CITCAT_WINDOW_MIN_BYTES : 0);
  bus_.clear();
  set_position();
  sink_.event(RecordType::flush, 2, 1, kDriver);
}

/// The registers that decide how memory is reached become known.
void Recorder::take_control() {
  if (!active_) return;
  change_mode();
  follow_a20();
  // As if CR3 were loaded now: what PAE keeps of it since then is nowhere else to be seen.
  walker_.set_control(registers_.control(), true);
  refuse_unheld();
  breakpoints_.load(registers_.state(), registers_.long_mode_registers().has_value());
}

/// What the driver has stored in its window.
void Recorder::send_driver_state(std::uint32_t window) {
  std::vector<std::uint32_t> words(CITCAT_STATE_MAX_BYTES / 4);
  std::memcpy(words.data(), memory_.live(window), CITCAT_STATE_MAX_BYTES);
  const auto end = std::find(words.begin(), words.end(), CITCAT_STATE_END);
  if (words[0] != CITCAT_STATE_MAGIC || end == words.end()) {
    give_up("the driver's window holds no complete state");
    return;
  }
  words.resize(static_cast<std::size_t>(end - words.begin()) + 1);
  send_state_block(words, window);
  check_dumped_components(words);
  const std::uint8_t* const image = memory_.live(window) + CITCAT_STATE_FXSAVE;
  fpu_.load_image(image);
  tags_.load_image(std::span(image, kSlotBytes));
  // A 64-bit kernel's driver has written a second block.
  std::uint32_t magic = 0;
  std::memcpy(&magic, memory_.live(window + CITCAT_STATE64_MAGIC_OFFSET), sizeof magic);
  if (!registers_.long_mode_registers() || magic != CITCAT_STATE64_MAGIC) return;
  words.resize((CITCAT_STATE64_END_OFFSET - CITCAT_STATE64_MAGIC_OFFSET) / 4 + 1);
  std::memcpy(words.data(), memory_.live(window + CITCAT_STATE64_MAGIC_OFFSET), 4 * words.size());
  send_state_block(words, window + CITCAT_STATE64_MAGIC_OFFSET);
  note_task_base(registers_.state());
}

void Recorder::send_emulator_state(const LoggedState& state, std::uint64_t ip) {
  const auto wide = registers_.long_mode_registers();
  send_state_block(state_block(state, ip, wide, facts_, memory_.low_bytes()), kStateWithoutDriver);
  note_task_base(state);
  fpu_.clear();
  std::array<std::uint8_t, kSlotBytes> head;
  std::memcpy(head.data(), state.fx, head.size());
  tags_.load_image(head);
}

void Recorder::send_state_block(std::span<const std::uint32_t> words, std::uint32_t base) {
  for (std::size_t n = 0; n < words.size(); ++n)
    sink_.single(RecordType::data_write, base + static_cast<std::uint32_t>(4 * n),
                 bytes_of(words[n]), kDriver | kUncached);
}

void Recorder::end(const std::string& reason) {
  if (!active_) return;
  close(reason);
  say_totals(totals(), reason, sink_);
}

void Recorder::close(const std::string& reason) {
  if (!std::exchange(active_, false) || reason == "error") return;
  const unsigned driver = sink_.selected();
  sink_.select(number_);
  set_position();
  sink_.reached();
  sink_.select(driver);
}

Recorder::Totals Recorder::totals() const {
  return {completed_,
          delivered_.interrupts,
          delivered_.exceptions,
          delivered_.software,
          bus_.external_changes(),
          walker_.walks(),
          walker_.disagreements()};
}

void Recorder::Totals::add(const Totals& more) {
  instructions += more.instructions;
  interrupts += more.interrupts;
  exceptions += more.exceptions;
  software += more.software;
  external += more.external;
  walks += more.walks;
  disagreements += more.disagreements;
}

void Recorder::say_totals(const Totals& totals, const std::string& reason, RecordSink& sink) {
  char text[512];
  std::snprintf(text, sizeof text,
                "stop instructions=%llu records=%llu interrupts=%llu exceptions=%llu "
                "software_interrupts=%llu external_changes=%llu walks=%llu disagreements=%llu "
                "reason=%s",
                static_cast<unsigned long long>(totals.instructions),
                static_cast<unsigned long long>(sink.records()),
                static_cast<unsigned long long>(totals.interrupts),
                static_cast<unsigned long long>(totals.exceptions),
                static_cast<unsigned long long>(totals.software),
                static_cast<unsigned long long>(totals.external),
                static_cast<unsigned long long>(totals.walks),
                static_cast<unsigned long long>(totals.disagreements), reason.c_str());
  sink.say(text);
}

void Recorder::give_up(const std::string& why) {
  sink_.say("error " + why);
  active_ = true;  // so that the totals are told
  end("error");
}

// ---- instructions
// --------------------------------------------------------------------------------

/// Blocks are shared by all linear addresses of a physical page, so what an instruction was
/// translated at need not be where it runs. At the first of a block EIP tells.
std::uint64_t Recorder::linear_of(const Insn& insn) {
  if (insn.first_in_block) {
    const std::uint64_t ip = registers_.ip();
    displacement_ = ip + code_base(ip, insn.linear) - insn.linear;
  }
  return narrowed(insn, insn.linear + displacement_);
}

/// The base of CS, where an instruction that was translated at a linear address is at `eip`. Once
/// known it stays until something loads CS.
std::uint64_t Recorder::code_base(std::uint64_t ip, std::uint64_t translated_at) {
  if (code_segment_.known) return code_segment_.base;
  // Flat; asked again each time, because SYSENTER loads CS too.
  if (!in_real_mode() && ip == translated_at) return code_segment_.base = 0;
  code_segment_.selector = registers_.selector(1);
  code_segment_.base = in_real_mode() && !code_segment_.hidden
                           ? std::uint32_t{code_segment_.selector} << 4
                           : registers_.state().segment[1].base;
  code_segment_.known = true;
  return code_segment_.base;
}

bool Recorder::arrive(const Insn& insn) {
  walker_.take_back_pointer_marks();
  if (waits_) take_start();
  take_log(insn);
  if (!active_) return false;
  if (const char* const problem = stand_ins_.problem()) {
    give_up(problem);
    return false;
  }
  if (log_.failed()) {
    give_up("the emulator's log of interrupts cannot be followed further");
    return false;
  }
  if (walker_.met_no_execute()) {
    give_up(
        "a page is marked no-execute, which no replayer holds; choose a processor without it, such "
        "as -cpu pentium3");
    return false;
  }
  const std::uint64_t linear = linear_of(insn);
  if (in_flight_ != nullptr && in_flight_linear_ == linear && !in_flight_->what.branch) {
    // It starts again: the next iteration, or the block was translated anew. Accesses of an
    // iteration that did not get to its end are made again.
    if (in_flight_->what.repeated && (in_flight_ == &insn || insn.bytes == in_flight_->bytes)) {
      begin_attempt(accesses_ != 0);
      accesses_ = 0;
      return false;
    }
    if (!in_flight_->what.repeated) {
      begin_attempt(true);
      prepare(insn);
      in_flight_ = &insn;
      return false;
    }
    // It has stored over itself: what is there now is another instruction, and fetched.
  } else {
    finish();
    if (!active_) return false;
  }
  arrived_at_ = linear;
  return true;
}

void Recorder::enter(const Insn& insn) {
  const std::uint64_t linear = arrived_at_;
  if (needs_segments(insn)) learn_segments();
  set_position();
  fetch(insn, linear);
  begin_attempt(false);
  prepare(insn);
  in_flight_ = &insn;
  in_flight_linear_ = linear;
}

void complete(Insn& insn, const Insn* before, CacheModel model) {
  const InsnClass& what = insn.what;
  insn.ends_plainly = what.kind == InsnKind::plain && what.misdone == nullptr &&
                      what.mmx == MmxUse::none && what.loaded_segments == 0;
  insn.accesses_plainly = what.kind == InsnKind::plain && !what.marks_descriptor;
  insn.accesses_unseen = insn.accesses_plainly || what.kind == InsnKind::movs ||
                         what.kind == InsnKind::stos || what.kind == InsnKind::lods ||
                         what.kind == InsnKind::scas;
  if (before == nullptr) return;
  const std::uint32_t line = fetched_together(model);
  const std::uint64_t first = insn.linear / line;
  insn.continues_line = (before->linear + before->size - 1) / line == first &&
                        (insn.linear + insn.size - 1) / line == first;
}

bool Recorder::arrive_behind() {
  if (in_flight_ == nullptr || !in_flight_->ends_plainly) {
    finish();
  } else {
    iterations_ = 0;
    ++completed_;
  }
  return active_;
}

void Recorder::enter_behind(const Insn& insn) {
  if (needs_segments(insn)) learn_segments();
  const std::uint64_t linear = narrowed(insn, insn.linear + displacement_);
  if (insn.continues_line && line_is_known_) {
    next_linear_ = linear + insn.size;
  } else if (!fetch_unseen(insn, linear)) {
    set_position();
    fetch(insn, linear);
  }
  begin_attempt(false);
  if (insn.ends_plainly)
    accesses_ = 0;
  else
    prepare(insn);
  in_flight_ = &insn;
  in_flight_linear_ = linear;
}

void Recorder::follow_all(const Insn* first, const Insn* last) {
  for (; first <= last; ++first) {
    follow(*first);
    if (!active_) return;
    if (first == last || !line_is_known_) continue;
    const auto alike = std::min<std::ptrdiff_t>(first->alike_behind, last - first);
    if (alike == 0) continue;
    first += alike;
    completed_ += static_cast<std::uint64_t>(alike);
    in_flight_ = first;
    in_flight_linear_ = narrowed(*first, first->linear + displacement_);
    next_linear_ = in_flight_linear_ + first->size;
  }
}

void complete_block(std::span<Insn> block) {
  unsigned alike = 0;
  constexpr unsigned kMost = 255;
  for (std::size_t n = block.size(); n-- != 0;) {
    block[n].alike_behind = static_cast<std::uint8_t>(alike);
    alike = block[n].waits && block[n].continues_line && alike < kMost ? alike + 1 : 0;
  }
}

bool Recorder::start_plainly(const Insn& insn) {
  const bool plain =
      in_flight_ != nullptr && in_flight_->ends_plainly && insn.ends_plainly && insn.first_in_block;
  if (!plain || something_happened() || needs_segments(insn)) return false;
  const std::uint64_t linear = linear_of(insn);
  if (in_flight_linear_ == linear && !in_flight_->what.branch) return false;
  iterations_ = 0;
  ++completed_;
  if (!fetch_unseen(insn, linear)) {
    set_position();
    fetch(insn, linear);
  }
  begin_attempt(false);
  accesses_ = 0;
  in_flight_ = &insn;
  in_flight_linear_ = linear;
  return true;
}

bool Recorder::iterate_plainly(const Insn& insn) {
  if (in_flight_ != &insn || !insn.what.repeated || something_happened()) return false;
  if (linear_of(insn) != in_flight_linear_) return false;
  begin_attempt(accesses_ != 0);
  accesses_ = 0;
  return true;
}

/// A fetch of which nothing is seen. False, with nothing done, where something may be.
bool Recorder::fetch_unseen(const Insn& insn, std::uint64_t linear) {
  const auto physical = static_cast<std::uint32_t>(insn.physical);
  if (several_ || insn.physical != physical || stand_ins_.any() ||
      insn.size > left_in_page(linear) || !walker_.holds(linear, false, physical) ||
      !bus_.fetch_unseen(physical, {insn.bytes.data(), insn.size}))
    return false;
  next_linear_ = linear + insn.size;
  line_is_known_ = true;
  return true;
}

void Recorder::fetch(const Insn& insn, std::uint64_t linear) {
  line_is_known_ = false;
  const bool sequential = linear == next_linear_;
  next_linear_ = linear + insn.size;
  const std::uint32_t in_page = std::min<std::uint32_t>(insn.size, left_in_page(linear));
  const std::span<const std::uint8_t> bytes(insn.bytes.data(), insn.size);
  const bool is_in_ram = insn.physical != GuestMemory::kNotInRam;
  const auto physical =
      is_in_ram ? stand_ins_.shown(insn.physical) : walker_.translate(linear, false);
  if (!physical) return;
  if (is_in_ram) walker_.translate_as(linear, false, *physical);
  line_is_known_ = bus_.fetch(*physical, bytes.first(in_page), sequential);
  if (in_page == insn.size) return;
  const auto second = walker_.translate(linear + in_page, false);
  line_is_known_ = second && bus_.fetch(*second, bytes.subspan(in_page), true);
}

/// Keeps what is gone when the instruction has ended.
void Recorder::prepare(const Insn& insn) {
  accesses_ = 0;
  to_virtual8086_ = false;
  block_address_.reset();
  environment_.reset();
  task_.reset();
  transfer_ = {};
  switch (insn.what.kind) {
    case InsnKind::x87:
      fpu_.begin(insn.what.fpu_opcode,
                 narrowed(insn, insn.linear + displacement_ -
                                    (insn.code == CodeSize::bits64 ? 0 : code_segment_.base)),
                 registers_.selector(1));
      break;
    case InsnKind::ins:
    case InsnKind::outs:
      port_.number = static_cast<std::uint16_t>(registers_.gpr(2));
      break;
    case InsnKind::in:
    case InsnKind::out:
      port_.number =
          insn.what.port_in_dx ? static_cast<std::uint16_t>(registers_.gpr(2)) : insn.what.port;
      port_.value = static_cast<std::uint32_t>(registers_.gpr(0));
      break;
    case InsnKind::software_interrupt:
    case InsnKind::icebp:
      stack_pointer_ = registers_.gpr(4);
      break;
    case InsnKind::iret:
    case InsnKind::far_return:
    case InsnKind::far_transfer:
      level_ = registers_.selector(1) & 3;
      from_virtual8086_ = registers_.in_virtual8086();
      code_segment_.known = false;
      code_segment_.hidden = !in_real_mode();
      if (insn.what.kind == InsnKind::far_return) refuse_wrapped_return(insn);
      break;
    case InsnKind::debug_register:
      refuse_wrong_debug_status(insn);
      break;
    case InsnKind::fxsave:
    case InsnKind::fxrstor:
      block_address_ = effective_address(insn, registers_.state());
      if (insn.what.kind == InsnKind::fxrstor) fpu_image(insn, false);
      break;
    case InsnKind::flush_line:
      block_address_ = effective_address(insn, registers_.state());
      break;
    case InsnKind::vector:
      give_up(
          "AVX is used, which no replayer holds; choose a processor without it, such as -cpu "
          "qemu64");
      break;
    default:
      if (is_of_extended_state(insn.what.kind)) prepare_extended_state(insn);
      break;
  }
}

/// The instruction in flight has ended.
void Recorder::finish(const LoggedState* after) {
  if (in_flight_ == nullptr) return;
  const Insn& insn = *in_flight_;
  iterations_ = 0;
  set_position();
  switch (insn.what.kind) {
    case InsnKind::in:
      sink_.port(RecordType::io_read, port_.number, static_cast<std::uint32_t>(left(0)),
                 insn.what.operand_bytes);
      break;
    case InsnKind::out:
      sink_.port(RecordType::io_write, port_.number, port_.value, insn.what.operand_bytes);
      if (moves_a20(port_.number, insn.what.operand_bytes)) follow_a20();
      break;
    case InsnKind::halt:
      sink_.event(RecordType::halt, 0, 0);
      break;
    case InsnKind::invd:
      bus_.flush(1);
      break;
    case InsnKind::wbinvd:
      bus_.flush(2);
      break;
    case InsnKind::cpuid:
      say_internal("CPUID");
      break;
    case InsnKind::rdtsc:
      say_internal("RDTSC");
      break;
    case InsnKind::rdtscp:
      say_internal("RDTSCP");
      break;
    case InsnKind::rdmsr:
      say_internal("RDMSR");
      break;
    case InsnKind::wrmsr:
      say_internal("WRMSR");
      if (registers_.long_mode_registers() &&
          is_refused_address(static_cast<std::uint32_t>(left(1)),
                             left(2) << 32 | static_cast<std::uint32_t>(left(0))))
        give_up(
            "WRMSR wrote an address that is not canonical, which processors refuse with #GP(0)");
      if (several_ && static_cast<std::uint32_t>(registers_.gpr(1)) == kCommandMsr)
        send_message(static_cast<std::uint32_t>(registers_.gpr(0)),
                     static_cast<std::uint32_t>(registers_.gpr(2)));
      break;
    case InsnKind::rdpmc:
      say_internal("RDPMC");
      break;
    case InsnKind::rdrand:
      say_random("RDRAND");
      break;
    case InsnKind::rdseed:
      say_random("RDSEED");
      break;
    case InsnKind::invlpg:
      walker_.flush();
      break;
    case InsnKind::control_register: {
      const bool was_real = in_real_mode(), was_long = walker_.long_mode();
      walker_.set_control(registers_.control(), insn.what.loads_cr3);
      if (in_real_mode() != was_real || walker_.long_mode() != was_long) change_mode();
      refuse_unheld();
      break;
    }
    case InsnKind::debug_register:
      if (writes_debug_register(insn))
        breakpoints_.load(registers_.state(), registers_.long_mode_registers().has_value());
      break;
    case InsnKind::descriptor_table:
    case InsnKind::local_table:
      tables_.reset();
      segments_.forget_selectors();
      registers_.forget_segments();
      break;
    case InsnKind::task_register:
      load_task_base();
      break;
    case InsnKind::iret:
    case InsnKind::far_return:
    case InsnKind::far_transfer:
      finish_transfer(after);
      break;
    case InsnKind::fxsave:
      fpu_image(insn, true);
      break;
    case InsnKind::fxrstor:
      load_fpu_image(insn);
      break;
    case InsnKind::flush_line:
      if (const auto physical = walker_.translate(*block_address_, false))
        bus_.flush_line(*physical);
      break;
    case InsnKind::x87:
    case InsnKind::x87_init:
    case InsnKind::x87_load:
    case InsnKind::x87_store:
    case InsnKind::x87_save:
    case InsnKind::emms:
      finish_x87(insn);
      break;
    default:
      if (is_of_extended_state(insn.what.kind)) finish_extended_state(insn);
      break;
  }
  segments_.forget(in_real_mode() && loads_code_segment(insn.what.kind)
                       ? SegmentLimits::kCode
                       : insn.what.loaded_segments);
  if (insn.what.misdone != nullptr) give_up(insn.what.misdone);
  if (insn.what.mmx != MmxUse::none) tags_.mmx_executed();
  ++completed_;
  in_flight_ = nullptr;
}

/// EAX, EBX, ECX and EDX after the instruction.
void Recorder::say_internal(const char* op) {
  const auto low = [this](unsigned n) { return static_cast<std::uint32_t>(left(n)); };
  say_value(op, {low(0), low(3), low(1), low(2)});
}

/// The number in EDX:EAX, whatever register has it, and CF in ECX (docs/formats/capture.md). The
/// emulator has a number whenever it is asked for one (QEMU 10, target/i386/tcg/int_helper.c).
void Recorder::say_random(const char* op) {
  const InsnClass& what = in_flight_->what;
  const std::uint64_t number = left(what.destination) & address_mask(what.operand_bytes);
  say_value(op,
            {static_cast<std::uint32_t>(number), 0, 1, static_cast<std::uint32_t>(number >> 32)});
}

void Recorder::say_value(const char* op, std::array<std::uint32_t, 4> values) {
  char text[128];
  const bool wide = in_flight_->code == CodeSize::bits64;
  const std::uint64_t ip =
      narrowed(*in_flight_, in_flight_linear_ - (wide ? 0 : code_segment_.base));
  char its[16] = "value";
  if (several_) std::snprintf(its, sizeof its, "value-of %u", number_);
  std::snprintf(text, sizeof text, "%s %llu,%s,%0*llx,%08x,%08x,%08x,%08x", its,
                static_cast<unsigned long long>(completed_), op, wide ? 16 : 8,
                static_cast<unsigned long long>(ip), values[0], values[1], values[2], values[3]);
  sink_.say(text);
}

// ---- parts of memory
// ---------------------------------------------------------------------------------

/// The stores of [linear, linear + size), which follow one by one, are in RAM already.
void Recorder::expect_stores(std::uint64_t linear, unsigned size) {
  const unsigned in_page = std::min(size, left_in_page(linear));
  const auto range = [this](std::uint64_t at, std::uint32_t bytes) {
    const auto physical = walker_.locate(at);
    return physical ? BusModel::Range{*physical, bytes} : BusModel::Range{};
  };
  bus_.expect_writes(range(linear, in_page), range(linear + in_page, size - in_page));
}

void Recorder::block_access(std::uint64_t linear, unsigned size, bool store) {
  while (size != 0) {
    const unsigned part = std::min(size, left_in_page(linear));
    const auto physical = walker_.translate(linear, store);
    std::array<std::uint8_t, 512> block;
    if (!physical || part > block.size() || !memory_.is_readable(*physical, part)) return;
    const auto bytes = std::span(block).first(part);
    memory_.read(*physical, bytes);
    if (!store) memory_.as_processor_left(*physical, bytes);
    if (store)
      bus_.write(*physical, bytes);
    else
      bus_.read(*physical, bytes);
    linear += part;
    size -= part;
  }
}

}  // namespace citcat::monitor
