// The entries of one file of drmemtrace. Format, version and source: docs/export/drmemtrace.md.

#include "tools/export/drmemtrace_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "events/machine/cpu_traits.h"
#include "replay/trace/kt_sink.h"

namespace citcat::tools {
namespace {

/// Instructions, or turns on the bus, stand in for time: DynamoRIO's is in microseconds, and 0
/// means none.
constexpr std::uint64_t kFirstTimestamp = 1;
constexpr std::uint32_t kUserLevel = 3;

/// As instr_to_instr_type() of DynamoRIO's clients/drcachesim/tracer/raw2trace_shared.cpp has it,
/// and the classes of core/ir/x86/instr.c that it asks for.
DrEntry entry_type(const DecodedInstruction& info) {
  switch (info.kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return DrEntry::untaken_jump;
    case InstructionClass::jump:
    case InstructionClass::far_jump:
      return info.indirect ? DrEntry::indirect_jump : DrEntry::direct_jump;
    case InstructionClass::call:
    case InstructionClass::far_call:
      return info.indirect ? DrEntry::indirect_call : DrEntry::direct_call;
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
      return DrEntry::returns;
    case InstructionClass::sysexit:
    case InstructionClass::sysret:
      return DrEntry::indirect_jump;
    case InstructionClass::sysenter:
      return DrEntry::sysenter;
    case InstructionClass::syscall:
      // With 32 bits, SYSCALL continues where the system wants it to, as SYSENTER does.
      return info.bits64 ? DrEntry::instruction : DrEntry::sysenter;
    default:
      return DrEntry::instruction;
  }
}

/// The same of one that was executed.
DrEntry entry_type(const StepCode& step, LinearAddr next, DrEntry of_code) {
  const bool taken = of_code == DrEntry::untaken_jump && next != step.behind();
  return taken ? DrEntry::taken_jump : of_code;
}
DrEntry entry_type(const Step& step, DrEntry of_code) {
  return step.further ? DrEntry::no_fetch : entry_type(*step.code, step.next, of_code);
}

bool is_indirect(DrEntry type) {
  return type == DrEntry::indirect_jump || type == DrEntry::indirect_call ||
         type == DrEntry::returns;
}

/// type_is_instr_branch() of DynamoRIO's common/trace_entry.h.
bool is_branch_entry(DrEntry type) {
  return is_indirect(type) || type == DrEntry::direct_jump || type == DrEntry::direct_call ||
         type == DrEntry::taken_jump || type == DrEntry::untaken_jump;
}

constexpr std::uint8_t kWideBits = 64, kNarrowBits = 32;

/// DynamoRIO's decoder knows where a direct branch goes, unless segments matter: it knows neither
/// these nor code of 16 bits.
bool is_known_branch(const DecodedInstruction& info) {
  if (info.kind == InstructionClass::far_jump || info.kind == InstructionClass::far_call) {
    return false;
  }
  // EB, 70 to 7F and E0 to E3, which have one byte of displacement in all modes.
  const bool is_short = info.opcode_map == 0 && (info.opcode == 0xeb || info.opcode >> 4 == 7 ||
                                                 info.opcode >> 2 == 0xe0 >> 2);
  return is_short || info.operand_bytes != 2 || info.bits64;
}

/// The branch goes to where its displacement leads.
bool is_by_displacement(const StepCode& step, LinearAddr next) {
  const auto displacement = static_cast<std::uint64_t>(std::int64_t{step.displacement});
  return step.behind().value + displacement == next.value;
}

/// `b` lies right after `a`, as the selector of a far pointer does.
bool lies_behind(const MemoryOperand& a, const MemoryOperand& b) {
  return a.kind == b.kind && a.base == b.base && a.index == b.index && a.segment == b.segment &&
         a.read == b.read && a.write == b.write && a.displacement + a.size == b.displacement;
}

/// DynamoRIO takes for one operand what the processor accesses in several pieces: PUSHA, IRET, far
/// pointers, FXRSTOR.
bool has_pieces(const DecodedInstruction& info) {
  if (info.operand_count == 1) return true;
  for (std::size_t o = 0; o < info.operand_count; ++o) {
    if (info.operands[o].count > 1) return true;
    if (o != 0 && lies_behind(info.operands[o - 1], info.operands[o])) return true;
  }
  return false;
}

/// They lie side by side, whichever comes first; or there is one operand alone.
bool adjoin(const StepAccess& a, const StepAccess& b, bool only_one) {
  return a.write == b.write && (only_one || a.linear.value + a.size == b.linear.value ||
                                b.linear.value + b.size == a.linear.value);
}

void join(StepAccess& to, const StepAccess& a) {
  const std::uint64_t end = std::max(to.linear.value + to.size, a.linear.value + a.size);
  if (a.linear < to.linear) {
    to.linear = a.linear;
    to.physical = a.physical;
  }
  to.size = static_cast<std::uint32_t>(end - to.linear.value);
}

/// The records that DynamoRIO has of a step's accesses: one for each operand. They may be put into
/// `records`.
std::span<const StepAccess> operand_accesses(const Step& step, bool has_pieces,
                                             std::vector<StepAccess>& records) {
  if (step.accesses.size() < 2 || !has_pieces) return step.accesses;
  const DecodedInstruction& info = step.code->instruction->info;
  records.clear();
  for (const StepAccess& a : step.accesses) {
    const auto same = std::find_if(records.begin(), records.end(), [&](const StepAccess& r) {
      return adjoin(r, a, info.operand_count == 1);
    });
    if (same == records.end()) {
      records.push_back(a);
    } else {
      join(*same, a);
    }
  }
  return records;
}

constexpr std::uint8_t kTwoBytes = 0x0f, kLongNop = 0x1f;

/// PREFETCH, INVLPG, CLFLUSH: of an address in memory, and without an access.
bool is_hint(const DecodedInstruction& info) {
  if (info.opcode_map != 1 || info.register_form) return false;
  constexpr std::uint8_t kPrefetchW = 0x0d, kPrefetch = 0x18, kGroup7 = 0x01, kGroup15 = 0xae;
  return info.opcode == kPrefetchW || info.opcode == kPrefetch ||
         ((info.opcode == kGroup7 || info.opcode == kGroup15) && info.reg_field == 7);
}

/// The bytes of an instruction as a trace has them. DynamoRIO expects an access of each hint, and
/// none of a NOP with the same operand.
std::array<std::uint8_t, kMaxInstructionBytes> encoding_of(const DecodedInstruction& info) {
  std::array<std::uint8_t, kMaxInstructionBytes> bytes = info.bytes;
  const std::size_t opcode = info.prefix_bytes + 1U;
  if (is_hint(info) && opcode < info.length && bytes[opcode - 1] == kTwoBytes) {
    bytes[opcode] = kLongNop;
  }
  return bytes;
}

}  // namespace

bool DrmemtraceStream::is_decodable(const StaticInstruction& code, CpuModel model) {
  return code_bits(code.info) == (cpu_traits(model).has_long_mode ? kWideBits : kNarrowBits);
}

DrmemtraceStream::Code::Code(const StaticInstruction& code, CpuModel model, std::uint32_t number)
    : type(entry_type(code.info)),
      has_pieces(citcat::tools::has_pieces(code.info)),
      joins(has_pieces && (code.info.operand_count != 1 || code.info.operands[0].count != 1)),
      is_foreign(!is_decodable(code, model)),
      is_known(is_known_branch(code.info)),
      place(number) {}

bool DrmemtraceStream::is_branch(const Step& step) {
  return is_branch_entry(entry_type(step, Code::of(*step.code).type));
}

DrmemtraceStream::DrmemtraceStream(const Form& form, std::unique_ptr<DrmemtraceOutput> output)
    : form_(form),
      out_(form.address_bytes, std::move(output)),
      contexts_(form.view == View::whole) {}

void DrmemtraceStream::name_thread(std::uint32_t thread) {
  thread_ = thread;
  expected_ = &threads_[thread];
  out_.entry(DrEntry::thread, 4, thread);
  out_.entry(DrEntry::process, 4, thread);
}

void DrmemtraceStream::tell_time(std::uint64_t time) {
  later_.reset();
  out_.time(kFirstTimestamp + time, form_.processor);
  schedule_.add(thread_, kFirstTimestamp + time, form_.processor, out_.instructions());
}

/// What every file begins with.
void DrmemtraceStream::begin(const Step& step) {
  const bool long_mode = cpu_traits(form_.machine.model).has_long_mode;
  std::uint64_t type = long_mode ? kDrArchX86_64 : kDrArchX86_32;
  if (form_.encodings) type |= kDrEncodings;
  if (form_.view == View::whole) type |= kDrWholeSystem;
  if (form_.view == View::user) type |= kDrSystemCallNumbers;
  if (form_.all_threads) type |= kDrCoreSharded;
  out_.entry(DrEntry::header, 0, kDrVersion);
  out_.marker(DrMarker::version, kDrVersion);
  out_.marker(DrMarker::file_type, type);
  name_thread(thread_of(step.address_space));
  // The largest line from the i486 to the Pentium III, and the line of all processors with long
  // mode.
  constexpr std::uint64_t kLine = 32, kWideLine = 64;
  out_.marker(DrMarker::cache_line_size, long_mode ? kWideLine : kLine);
  if (out_.chunk_instructions() != 0) {
    out_.marker(DrMarker::chunk_instructions, out_.chunk_instructions());
  }
  out_.marker(DrMarker::page_size, kPageSize);
  // A file that begins within the system has left user code before.
  last_next_ = step.code->linear;
}

void DrmemtraceStream::enter(const Step& step, std::uint64_t time) {
  const std::uint32_t thread = thread_of(step.address_space);
  const bool goes_on = thread == thread_;
  if (thread_ == 0) {
    begin(step);
  } else if (!goes_on) {
    name_thread(thread);
  }
  if (form_.among_others) forget_pages();
  if (goes_on && behind_branch_) {
    later_ = time;
  } else {
    tell_time(time);
  }
}

/// Each chunk can be read alone.
void DrmemtraceStream::begin_chunk() {
  encoded_.clear();
  forget_pages();
  if (!form_.all_threads) return;
  out_.entry(DrEntry::thread, 4, thread_);
  out_.entry(DrEntry::process, 4, thread_);
}

/// Where level 3 begins nothing is open; elsewhere something is.
void DrmemtraceStream::enter_level(LinearAddr here, std::uint32_t level) {
  const unsigned least = level == kUserLevel ? 0 : 1;
  const bool returned = std::exchange(returned_, false);
  // Something is left out of the trace, or another thread came here on behalf of this one.
  if (!is_told_where_ && !returned && here != last_next_) {
    contexts_.moved(last_next_, here, false, out_);
  }
  is_told_where_ = false;
  unsigned open = contexts_.open();
  if (returned && open > least) --open;
  if (least == 0) open = 0;
  contexts_.go_on(here, open, out_);
  if (open < least) contexts_.interrupt(here, false, out_);
}

/// In the user view a program goes on elsewhere only because the system made it: a signal, or a
/// system call that changes the context.
void DrmemtraceStream::follow_user(const Step& step) {
  const Expected& expected = *expected_;
  if (!expected.next || *expected.next == step.code->linear || step.further) return;
  contexts_.moved(*expected.next, step.code->linear, expected.from_system_call, out_);
}

void DrmemtraceStream::forget_pages() {
  if (pages_.empty()) return;
  pages_.clear();
  recent_pages_.fill({});
}

/// A page whose place has not been told yet, or that has another one.
void DrmemtraceStream::write_page(LinearAddr linear, PhysAddr physical) {
  const ToldPage told{linear.value / kPageSize, physical.value / kPageSize};
  ToldPage& recent = recent_pages_[told.page % recent_pages_.size()];
  if (recent.page == told.page && recent.frame == told.frame) return;
  recent = told;
  const auto [at, added] = pages_.try_emplace(told.page, told.frame);
  if (!added && std::exchange(at->second, told.frame) == told.frame) return;
  out_.marker(DrMarker::physical_address, physical.value);
  out_.marker(DrMarker::virtual_address, linear.value);
}

void DrmemtraceStream::write_pages(const Step& step) {
  write_page(step.code->linear, step.code->instruction->physical);
  for (const StepAccess& a : step.accesses) write_page(a.linear, a.physical);
}

inline void DrmemtraceStream::write_encoding(const StepCode& step, const Code& known) {
  const StaticInstruction*& last = encoded_.at(known.place);
  if (last == step.instruction) return;
  const StaticInstruction& code = *step.instruction;
  const bool same = last != nullptr && last->info.length == code.info.length &&
                    last->info.bytes == code.info.bytes;
  last = &code;
  if (same) return;
  const auto encoded = encoding_of(code.info);
  for (std::size_t at = 0; at < code.info.length; at += form_.address_bytes) {
    const std::size_t size = std::min(form_.address_bytes, code.info.length - at);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, encoded.data() + at, size);
    out_.entry(DrEntry::encoding, static_cast<std::uint16_t>(size), bytes);
  }
}

/// The entry of an instruction that is of that type. A direct branch that DynamoRIO would decode
/// wrongly is told as an indirect one, with its target.
inline DrEntry DrmemtraceStream::entry_of(DrEntry type, const StepCode& step, const Code& code,
                                          LinearAddr next) const {
  const bool direct =
      type == DrEntry::direct_jump || type == DrEntry::direct_call || type == DrEntry::taken_jump;
  if (!direct || !form_.encodings) return type;
  if (!code.is_foreign && code.is_known && is_by_displacement(step, next)) return type;
  return type == DrEntry::direct_call ? DrEntry::indirect_call : DrEntry::indirect_jump;
}

void DrmemtraceStream::step(const Step& step) {
  const Code code = Code::of(*step.code);
  const DrEntry type = entry_of(entry_type(step, code.type), *step.code, code, step.next);
  if (form_.encodings && code.is_foreign) ++foreign_;
  const bool fetched = type != DrEntry::no_fetch;
  if (fetched && out_.begin_instruction()) begin_chunk();
  if (form_.view == View::user) {
    follow_user(step);
  } else {
    enter_level(step.code->linear, step.level);
  }
  if (form_.physical) write_pages(step);
  if (is_indirect(type)) out_.marker(DrMarker::branch_target, step.next.value);
  if (fetched && form_.encodings) write_encoding(*step.code, code);
  out_.entry(type, step.code->length, step.code->linear.value);
  for (const StepAccess& a : operand_accesses(step, code.has_pieces, records_)) write_access(a);
  completed(type, *step.code, step.next);
}

inline void DrmemtraceStream::completed(DrEntry type, const StepCode& step, LinearAddr next) {
  behind_branch_ = is_branch_entry(type);
  last_is_sysenter_ = type == DrEntry::sysenter;
  last_next_ = next;
  last_behind_ = step.behind();
  *expected_ = {next, false};
  if (later_ && !behind_branch_) tell_time(*later_);
}

inline void DrmemtraceStream::write_run_accesses(const StepCode& step, const Code& code,
                                                 const RunAccesses& accesses) {
  if (accesses.size() < 2 || !code.has_pieces) [[likely]] {
    for (std::size_t i = 0; i < accesses.size(); ++i) write_access(accesses[i]);
    return;
  }
  accesses_.clear();
  for (std::size_t i = 0; i < accesses.size(); ++i) accesses_.push_back(accesses[i]);
  Step alone;
  alone.code = &step;
  alone.accesses = accesses_;
  for (const StepAccess& a : operand_accesses(alone, true, records_)) write_access(a);
}

/// The run needs nothing but its instructions and accesses, one entry for each, and a target, and
/// these have room.
bool DrmemtraceStream::is_at_hand(const StepRun& run) {
  if (!out_.has_room(run.code.size(), run.code.size() + run.access_count + 1)) return false;
  const LinearAddr here = run.code.front().linear;
  const bool leads_here = form_.view == View::user
                              ? expected_->next == here
                              : !is_told_where_ && !returned_ && here == last_next_ &&
                                    (run.level == kUserLevel) == (contexts_.open() == 0);
  if (!leads_here || later_) return false;
  for (const StepCode& step : run.code) {
    const Code code = Code::of(step);
    if (code.joins || code.is_foreign) return false;
    if (form_.encodings && encoded_.at(code.place) != step.instruction) return false;
  }
  return true;
}

void DrmemtraceStream::write_at_once(const StepRun& run) {
  const StepCode& last = run.code.back();
  const Code end = Code::of(last);
  const DrEntry type = entry_of(entry_type(last, run.next, end.type), last, end, run.next);
  DrmemtraceEntries::Room room = out_.room();
  run.for_each([&](const StepCode& step, const RunAccesses& accesses) {
    const bool ends = &step == &last;
    if (ends && is_indirect(type)) {
      room.add(DrEntry::marker, static_cast<std::uint16_t>(DrMarker::branch_target),
               run.next.value);
    }
    room.add(ends ? type : Code::of(step).type, step.length, step.linear.value);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const StepAccess a = accesses[i];
      room.add(a.write ? DrEntry::write : DrEntry::read, static_cast<std::uint16_t>(a.size),
               a.linear.value);
    }
  });
  out_.wrote(room, run.code.size(), run.code.size() + run.access_count);
  completed(type, last, run.next);
}

/// As step() of each. Only the first may have been led to in another way than from the one before
/// it, and only the last may transfer control.
void DrmemtraceStream::steps(const StepRun& run) {
  if (is_at_hand(run)) [[likely]]
    return write_at_once(run);
  const StepCode& first = run.code.front();
  const StepCode& last = run.code.back();
  DrEntry type{};
  run.for_each([&](const StepCode& step, const RunAccesses& accesses) {
    const Code code = Code::of(step);
    type = code.type;
    if (&step == &last) {
      type = entry_of(entry_type(step, run.next, type), step, code, run.next);
    }
    if (form_.encodings && code.is_foreign) ++foreign_;
    if (out_.begin_instruction()) [[unlikely]]
      begin_chunk();
    if (&step == &first) {
      if (form_.view != View::user) {
        enter_level(step.linear, run.level);
      } else if (const auto& next = expected_->next; next && *next != step.linear) {
        contexts_.moved(*next, step.linear, expected_->from_system_call, out_);
      }
    }
    if (is_indirect(type)) out_.marker(DrMarker::branch_target, run.next.value);
    if (form_.encodings) write_encoding(step, code);
    out_.entry(type, step.length, step.linear.value);
    write_run_accesses(step, code, accesses);
    if (later_ && &step != &last) [[unlikely]]
      tell_time(*later_);
  });
  completed(type, last, run.next);
}

void DrmemtraceStream::happened_in_system(const StepEvent& h) {
  switch (h.event.kind) {
    case MachineEvent::Kind::delivered: {
      const bool by_instruction = h.event.delivery.kind == DeliveredEvent::Kind::software;
      is_told_where_ = true;
      return contexts_.interrupt(by_instruction ? last_behind_ : last_next_, false, out_);
    }
    case MachineEvent::Kind::fast_call:
      is_told_where_ = true;
      return contexts_.interrupt(last_behind_, last_is_sysenter_, out_);
    case MachineEvent::Kind::returned:
    case MachineEvent::Kind::fast_return:
      returned_ = true;
      return;
    default:
      return;
  }
}

void DrmemtraceStream::happened(const StepEvent& h) {
  if (form_.view != View::user) return happened_in_system(h);
  constexpr std::uint8_t kLinuxSystemCall = 0x80;
  const bool by_interrupt = h.event.kind == MachineEvent::Kind::delivered &&
                            h.event.delivery.kind == DeliveredEvent::Kind::software &&
                            h.event.delivery.vector == kLinuxSystemCall;
  if (!by_interrupt && h.event.kind != MachineEvent::Kind::fast_call) return;
  out_.marker(DrMarker::system_call, h.eax);
  const bool returns_behind = by_interrupt || h.event.value == 1;
  // SYSENTER goes on where the system wants it to.
  *expected_ = {returns_behind ? std::optional(last_behind_) : std::nullopt, true};
}

void DrmemtraceStream::end(std::uint64_t time) {
  contexts_.end(out_);
  tell_time(time);
  // Whether threads that the processor ran earlier have ended is not known.
  out_.entry(DrEntry::thread_exit, 4, thread_);
  out_.entry(DrEntry::footer, 0, 0);
  out_.finish();
}

}  // namespace citcat::tools
