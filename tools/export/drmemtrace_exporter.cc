// drmemtrace: the trace that DynamoRIO's simulators and analysis tools read. Format, version and
// source: docs/export/drmemtrace.md.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "events/cpu_traits.h"
#include "formats/io/error.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

/// trace_type_t of DynamoRIO's trace_entry.h.
enum EntryType : std::uint16_t {
  kMemoryRead = 0,
  kMemoryWrite = 1,
  kInstruction = 10,
  kDirectJump = 11,
  kIndirectJump = 12,
  kDirectCall = 14,
  kIndirectCall = 15,
  kReturn = 16,
  kThread = 22,
  kThreadExit = 23,
  kProcess = 24,
  kHeader = 25,
  kFooter = 26,
  kMarker = 28,
  kNoFetch = 29,
  kSysenter = 31,
  kEncoding = 47,
  kTakenJump = 48,
  kUntakenJump = 49,
};

/// trace_marker_type_t of the same.
enum MarkerType : std::uint16_t {
  kKernelEvent = 0,
  kKernelTransfer = 1,
  kTimestampMarker = 2,
  kCpu = 3,
  kFileType = 9,
  kCacheLineSize = 10,
  kVersionMarker = 12,
  kPageSizeMarker = 18,
  kSystemCallMarker = 25,
  kBranchTarget = 29,
  kHardwareEvent = 41,
  kHardwareReturn = 42,
};

/// offline_file_type_t of the same.
constexpr std::uint64_t kArchX86_32 = 0x20, kArchX86_64 = 0x40, kEncodings = 0x200,
                        kSystemCallNumbers = 0x400, kWholeSystem = 0x40000;
/// TRACE_ENTRY_VERSION_BRANCH_INFO: taken and untaken jumps, targets of indirect branches.
constexpr std::uint64_t kTraceVersion = 5;
/// Instructions stand in for time: DynamoRIO's is in microseconds, and 0 means none.
constexpr std::uint64_t kFirstTimestamp = 1;

enum class View : std::uint8_t { user, whole };

std::uint16_t entry_type(const Step& step) {
  const DecodedInstruction& info = step.code->info;
  if (step.further) return kNoFetch;
  switch (info.kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return step.next == step.behind() ? kUntakenJump : kTakenJump;
    case InstructionClass::jump:
    case InstructionClass::far_jump:
      return info.indirect ? kIndirectJump : kDirectJump;
    case InstructionClass::call:
    case InstructionClass::far_call:
      return info.indirect ? kIndirectCall : kDirectCall;
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
      return kReturn;
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return kSysenter;
    default:
      return kInstruction;
  }
}

bool is_indirect(std::uint16_t type) {
  return type == kIndirectJump || type == kIndirectCall || type == kReturn;
}

class DrmemtraceTool final : public StepTool {
 public:
  /// `wide`: entries have addresses of 64 bits; `long_mode`: the processor has.
  DrmemtraceTool(ExportFile file, View view, bool wide, bool long_mode)
      : file_(std::move(file)), view_(view), address_bytes_(wide ? 8 : 4), long_mode_(long_mode) {}
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<DrmemtraceTool>(ExportFile(file_.path()), view_, address_bytes_ == 8,
                                            long_mode_);
  }

 private:
  void entry(std::uint16_t type, std::uint16_t size, std::uint64_t address) {
    std::array<std::uint8_t, 12> bytes{};
    std::memcpy(bytes.data(), &type, 2);
    std::memcpy(bytes.data() + 2, &size, 2);
    std::memcpy(bytes.data() + 4, &address, address_bytes_);
    file_.write({bytes.data(), 4 + address_bytes_});
  }
  void marker(MarkerType type, std::uint64_t value) { entry(kMarker, type, value); }

  void begin(const Step& step);
  void enter_level(const Step& step);
  void enter_thread(std::uint32_t address_space);
  void write_encoding(const StaticInstruction& code);
  void write_discontinuity(const Step& step);
  void step(const Step& step) override;
  void happened(const StepEvent& h) override;
  void happened_in_system(const StepEvent& h);
  void hardware_event(LinearAddr from);
  void end() override;

  /// DynamoRIO's thread and process: the address space's number, which is not 0.
  static std::uint32_t thread_of(std::uint32_t address_space) { return (address_space >> 12) + 1; }

  ExportFile file_;
  View view_;
  std::size_t address_bytes_;
  bool long_mode_;
  bool begun_ = false;
  std::uint32_t thread_ = 0;
  std::uint64_t written_ = 0;  ///< instructions
  /// What was encoded last at an address.
  std::unordered_map<std::uint64_t, const StaticInstruction*> encoded_;
  unsigned depth_ = 0;    ///< hardware events that have not returned
  LinearAddr last_next_;  ///< where the last step of the whole went on
  std::optional<LinearAddr>
      returned_from_;       ///< an IRET, SYSEXIT or SYSRET was the last step: its address
  LinearAddr last_behind_;  ///< the address behind it
  /// User view, by thread: where it goes on, unless the system makes it go on elsewhere.
  struct Expected {
    LinearAddr next;
    bool from_system_call = false;
  };
  std::unordered_map<std::uint32_t, Expected> expected_;
};

/// What every file begins with.
void DrmemtraceTool::begin(const Step& step) {
  begun_ = true;
  std::uint64_t type = (long_mode_ ? kArchX86_64 : kArchX86_32) | kEncodings;
  type |= view_ == View::whole ? kWholeSystem : kSystemCallNumbers;
  entry(kHeader, 0, kTraceVersion);
  marker(kVersionMarker, kTraceVersion);
  marker(kFileType, type);
  thread_ = thread_of(step.address_space);
  entry(kThread, 4, thread_);
  entry(kProcess, 4, thread_);
  // Of the i486 to the Pentium III the largest; of all processors with long mode.
  constexpr std::uint64_t kLine = 32, kWideLine = 64;
  marker(kCacheLineSize, long_mode_ ? kWideLine : kLine);
  marker(kPageSizeMarker, kPageSize);
  marker(kTimestampMarker, kFirstTimestamp);
  marker(kCpu, 0);
  // A run that begins within the system has left user code before.
  if (view_ == View::whole && step.level != 3) hardware_event(step.code->linear);
}

void DrmemtraceTool::hardware_event(LinearAddr from) {
  if (returned_from_ && depth_ > 0) {
    --depth_;
    marker(kHardwareReturn, returned_from_->value);
  }
  returned_from_.reset();
  ++depth_;
  marker(kHardwareEvent, from.value);
}

void DrmemtraceTool::enter_thread(std::uint32_t address_space) {
  const std::uint32_t thread = thread_of(address_space);
  if (thread == thread_) return;
  thread_ = thread;
  entry(kThread, 4, thread);
  entry(kProcess, 4, thread);
  marker(kTimestampMarker, kFirstTimestamp + written_);
  marker(kCpu, 0);
}

/// Where level 3 begins nothing is open; elsewhere something is.
void DrmemtraceTool::enter_level(const Step& step) {
  const unsigned least = step.level == 3 ? 0 : 1;
  const bool returns = returned_from_.has_value();
  const LinearAddr from = returned_from_.value_or(last_next_);
  returned_from_.reset();
  if (returns && depth_ > least) {
    --depth_;
    marker(kHardwareReturn, from.value);
  }
  while (step.level == 3 && depth_ > 0) {
    --depth_;
    marker(kHardwareReturn, from.value);
  }
  if (depth_ < least) hardware_event(last_next_);
}

/// In the user view a program goes on elsewhere only because the system made it: a signal, or a
/// system call that changes the context.
void DrmemtraceTool::write_discontinuity(const Step& step) {
  const auto found = expected_.find(thread_);
  if (found == expected_.end() || found->second.next == step.code->linear || step.further) return;
  const Expected& expected = found->second;
  marker(expected.from_system_call ? kKernelTransfer : kKernelEvent, expected.next.value);
}

void DrmemtraceTool::write_encoding(const StaticInstruction& code) {
  const StaticInstruction*& last = encoded_[code.linear.value];
  if (last == &code) return;
  const bool same = last != nullptr && last->info.length == code.info.length &&
                    last->info.bytes == code.info.bytes;
  last = &code;
  if (same) return;
  for (std::size_t at = 0; at < code.info.length; at += address_bytes_) {
    const std::size_t size = std::min(address_bytes_, code.info.length - at);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, code.info.bytes.data() + at, size);
    entry(kEncoding, static_cast<std::uint16_t>(size), bytes);
  }
}

void DrmemtraceTool::step(const Step& step) {
  if (!begun_) begin(step);
  if (view_ == View::user && step.level != 3) return;
  enter_thread(step.address_space);
  if (view_ == View::whole) {
    enter_level(step);
  } else {
    write_discontinuity(step);
  }
  const std::uint16_t type = entry_type(step);
  if (is_indirect(type)) marker(kBranchTarget, step.next.value);
  if (type != kNoFetch) write_encoding(*step.code);
  entry(type, step.code->info.length, step.code->linear.value);
  for (const StepAccess& a : step.accesses) {
    entry(a.write ? kMemoryWrite : kMemoryRead, static_cast<std::uint16_t>(a.size), a.linear.value);
  }
  ++written_;
  last_next_ = step.next;
  last_behind_ = step.behind();
  expected_[thread_] = {step.next, false};
}

void DrmemtraceTool::happened_in_system(const StepEvent& h) {
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

void DrmemtraceTool::happened(const StepEvent& h) {
  if (!begun_) return;
  if (view_ == View::whole) return happened_in_system(h);
  constexpr std::uint8_t kLinuxSystemCall = 0x80;
  const bool by_interrupt = h.event.kind == MachineEvent::Kind::delivered &&
                            h.event.delivery.kind == DeliveredEvent::Kind::software &&
                            h.event.delivery.vector == kLinuxSystemCall;
  if (!by_interrupt && h.event.kind != MachineEvent::Kind::fast_call) return;
  marker(kSystemCallMarker, h.eax);
  const bool returns_behind = by_interrupt || h.event.value == 1;
  if (returns_behind) {
    expected_[thread_] = {last_behind_, true};
  } else {
    // SYSENTER goes on where the system wants it to.
    expected_.erase(thread_);
  }
}

void DrmemtraceTool::end() {
  if (begun_) {
    while (depth_ > 0) {
      --depth_;
      marker(kHardwareReturn, last_next_.value);
    }
    marker(kTimestampMarker, kFirstTimestamp + written_);
    marker(kCpu, 0);
    entry(kThreadExit, 4, thread_);
    entry(kFooter, 0, 0);
  }
  file_.finish();
}

std::unique_ptr<Tool> make_drmemtrace(ToolOptions& options, const Setup& setup) {
  const std::string view = options.one_of("view", "whole", {"whole", "user"});
  const std::uint64_t bits = options.power_of_two("bits", 64, 32, 64);
  return std::make_unique<DrmemtraceTool>(ExportFile(options, setup),
                                          view == "user" ? View::user : View::whole, bits == 64,
                                          cpu_traits(setup.machine.model).has_long_mode);
}

}  // namespace

extern const ToolRow kDrmemtraceTool{
    "drmemtrace",
    "Write a trace for DynamoRIO's drmemtrace tools and simulators",
    "to=FILE  where it goes\n"
    "view=whole|user  the whole system (default), or level 3 as a program's own tracer sees it\n"
    "bits=64|32  of the build of DynamoRIO that reads it (64)",
    "citcat replay boot.citcat -o boot.drmemtrace --format drmemtrace:view=user",
    ToolRow::Merging::serial,
    make_drmemtrace};

}  // namespace citcat::tools
