// The entries of one file of drmemtrace. Format, version and source: docs/export/drmemtrace.md.

#include "tools/export/drmemtrace_stream.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace citcat::tools {
namespace {

/// Instructions, or turns on the bus, stand in for time: DynamoRIO's is in microseconds, and 0
/// means none.
constexpr std::uint64_t kFirstTimestamp = 1;
constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr std::uint32_t kUserLevel = 3;

/// As instr_to_instr_type() of DynamoRIO's clients/drcachesim/tracer/raw2trace_shared.cpp has it,
/// and the classes of core/ir/x86/instr.c that it asks for.
DrEntry entry_type(const Step& step) {
  const DecodedInstruction& info = step.code->info;
  if (step.further) return DrEntry::no_fetch;
  switch (info.kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return step.next == step.behind() ? DrEntry::untaken_jump : DrEntry::taken_jump;
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
      // Of 32 bits it goes on where the system wants it to, as SYSENTER does.
      return info.bits64 ? DrEntry::instruction : DrEntry::sysenter;
    default:
      return DrEntry::instruction;
  }
}

bool is_indirect(DrEntry type) {
  return type == DrEntry::indirect_jump || type == DrEntry::indirect_call ||
         type == DrEntry::returns;
}

}  // namespace

void DrmemtraceStream::flush() {
  write_(buffer_);
  buffer_.clear();
}

void DrmemtraceStream::entry(DrEntry type, std::uint16_t size, std::uint64_t value) {
  std::array<std::uint8_t, 12> bytes{};
  const auto number = static_cast<std::uint16_t>(type);
  std::memcpy(bytes.data(), &number, 2);
  std::memcpy(bytes.data() + 2, &size, 2);
  std::memcpy(bytes.data() + 4, &value, form_.address_bytes);
  const auto end = static_cast<std::ptrdiff_t>(4 + form_.address_bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + end);
  if (buffer_.size() >= kPiece) flush();
}

void DrmemtraceStream::marker(DrMarker type, std::uint64_t value) {
  entry(DrEntry::marker, static_cast<std::uint16_t>(type), value);
}

void DrmemtraceStream::name_thread(std::uint32_t thread) {
  thread_ = thread;
  threads_.try_emplace(thread);
  entry(DrEntry::thread, 4, thread);
  entry(DrEntry::process, 4, thread);
}

void DrmemtraceStream::tell_time(std::uint64_t time) {
  marker(DrMarker::timestamp, kFirstTimestamp + time);
  marker(DrMarker::cpu, form_.processor);
}

/// What every file begins with.
void DrmemtraceStream::begin(const Step& step) {
  std::uint64_t type = (form_.long_mode ? kDrArchX86_64 : kDrArchX86_32) | kDrEncodings;
  type |= form_.view == View::whole ? kDrWholeSystem : kDrSystemCallNumbers;
  if (form_.all_threads) type |= kDrCoreSharded;
  entry(DrEntry::header, 0, kDrVersion);
  marker(DrMarker::version, kDrVersion);
  marker(DrMarker::file_type, type);
  name_thread(thread_of(step.address_space));
  // The largest line from the i486 to the Pentium III, and the line of all processors with long
  // mode.
  constexpr std::uint64_t kLine = 32, kWideLine = 64;
  marker(DrMarker::cache_line_size, form_.long_mode ? kWideLine : kLine);
  marker(DrMarker::page_size, kPageSize);
  // A file that begins within the system has left user code before.
  last_next_ = step.code->linear;
}

void DrmemtraceStream::enter(const Step& step, std::uint64_t time) {
  const std::uint32_t thread = thread_of(step.address_space);
  if (thread_ == 0) {
    begin(step);
  } else if (thread != thread_) {
    name_thread(thread);
  }
  tell_time(time);
}

void DrmemtraceStream::hardware_return(LinearAddr from) {
  --depth_;
  marker(DrMarker::hardware_return, from.value);
}

void DrmemtraceStream::hardware_event(LinearAddr from) {
  if (returned_from_ && depth_ > 0) hardware_return(*returned_from_);
  returned_from_.reset();
  ++depth_;
  marker(DrMarker::hardware_event, from.value);
}

/// Where level 3 begins nothing is open; elsewhere something is.
void DrmemtraceStream::enter_level(const Step& step) {
  const unsigned least = step.level == kUserLevel ? 0 : 1;
  const bool returns = returned_from_.has_value();
  const LinearAddr from = returned_from_.value_or(last_next_);
  returned_from_.reset();
  if (returns && depth_ > least) hardware_return(from);
  while (step.level == kUserLevel && depth_ > 0) hardware_return(from);
  if (depth_ < least) hardware_event(last_next_);
}

/// In the user view a program goes on elsewhere only because the system made it: a signal, or a
/// system call that changes the context.
void DrmemtraceStream::write_discontinuity(const Step& step) {
  const Expected& expected = threads_[thread_];
  if (!expected.next || *expected.next == step.code->linear || step.further) return;
  marker(expected.from_system_call ? DrMarker::kernel_transfer : DrMarker::kernel_event,
         expected.next->value);
}

void DrmemtraceStream::write_encoding(const StaticInstruction& code) {
  const StaticInstruction*& last = encoded_[code.linear.value];
  if (last == &code) return;
  const bool same = last != nullptr && last->info.length == code.info.length &&
                    last->info.bytes == code.info.bytes;
  last = &code;
  if (same) return;
  for (std::size_t at = 0; at < code.info.length; at += form_.address_bytes) {
    const std::size_t size = std::min(form_.address_bytes, code.info.length - at);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, code.info.bytes.data() + at, size);
    entry(DrEntry::encoding, static_cast<std::uint16_t>(size), bytes);
  }
}

void DrmemtraceStream::step(const Step& step) {
  if (form_.view == View::whole) {
    enter_level(step);
  } else {
    write_discontinuity(step);
  }
  const DrEntry type = entry_type(step);
  if (is_indirect(type)) marker(DrMarker::branch_target, step.next.value);
  if (type != DrEntry::no_fetch) write_encoding(*step.code);
  entry(type, step.code->info.length, step.code->linear.value);
  for (const StepAccess& a : step.accesses) {
    entry(a.write ? DrEntry::write : DrEntry::read, static_cast<std::uint16_t>(a.size),
          a.linear.value);
  }
  last_next_ = step.next;
  last_behind_ = step.behind();
  threads_[thread_] = {step.next, false};
}

void DrmemtraceStream::happened_in_system(const StepEvent& h) {
  switch (h.event.kind) {
    case MachineEvent::Kind::delivered:
      return hardware_event(h.event.delivery.kind == DeliveredEvent::Kind::software ? last_behind_
                                                                                    : last_next_);
    case MachineEvent::Kind::fast_call:
      return hardware_event(last_behind_);
    case MachineEvent::Kind::returned:
    case MachineEvent::Kind::fast_return:
      returned_from_ = last_next_;
      return;
    default:
      return;
  }
}

void DrmemtraceStream::happened(const StepEvent& h) {
  if (form_.view == View::whole) return happened_in_system(h);
  constexpr std::uint8_t kLinuxSystemCall = 0x80;
  const bool by_interrupt = h.event.kind == MachineEvent::Kind::delivered &&
                            h.event.delivery.kind == DeliveredEvent::Kind::software &&
                            h.event.delivery.vector == kLinuxSystemCall;
  if (!by_interrupt && h.event.kind != MachineEvent::Kind::fast_call) return;
  marker(DrMarker::system_call, h.eax);
  const bool returns_behind = by_interrupt || h.event.value == 1;
  // SYSENTER goes on where the system wants it to.
  threads_[thread_] = {returns_behind ? std::optional(last_behind_) : std::nullopt, true};
}

void DrmemtraceStream::end(std::uint64_t instructions) {
  while (depth_ > 0) hardware_return(last_next_);
  tell_time(instructions);
  for (const auto& [thread, expected] : threads_) entry(DrEntry::thread_exit, 4, thread);
  entry(DrEntry::footer, 0, 0);
  flush();
}

}  // namespace citcat::tools
