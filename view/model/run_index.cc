#include "view/model/run_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "replay/machine/code_place.h"
#include "tools/guest/system_call.h"

namespace citcat::view {

namespace {

/// What is kept one by one; the buckets have the rest.
constexpr std::size_t kMostEvents = std::size_t{1} << 20, kMostCalls = std::size_t{1} << 17,
                      kMostCharacters = std::size_t{1} << 20, kMostProcesses = 4096;

/// Deliveries that are closer than this follow one another.
constexpr std::uint64_t kStreakDistance = 64;

/// The serial ports of a PC (IBM PC/AT Technical Reference, "Serial/Parallel Adapter"), and the
/// ports that QEMU and Bochs take texts at (their options debugcon and port_e9_hack).
constexpr std::array<std::uint16_t, 4> kSerialPorts{0x3f8, 0x2f8, 0x3e8, 0x2e8};
constexpr std::array<std::uint16_t, 2> kDebugPorts{0xe9, 0x402};
/// The line control register of a 16550, and the bit that replaces the data by the divisor.
constexpr std::uint16_t kLineControl = 3;
constexpr std::uint32_t kDivisorLatch = 0x80;

}  // namespace

void RunBucket::add(const RunBucket& other) {
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] += other.levels[i];
  interrupts += other.interrupts;
  nmis += other.nmis;
  smis += other.smis;
  exceptions += other.exceptions;
  software += other.software;
  calls += other.calls;
  port_reads += other.port_reads;
  port_writes += other.port_writes;
  external_writes += other.external_writes;
  halts += other.halts;
  if (other.process == process) {
    of_process += other.of_process;
  } else if (other.of_process > of_process) {
    process = other.process;
    of_process = other.of_process;
  }
}

RunIndex::RunIndex(std::uint64_t from, std::uint64_t width, std::size_t most)
    : from_(from), told_to_(from), width_(std::max<std::uint64_t>(width, 1)), most_(most) {}

std::unique_ptr<RunIndex> RunIndex::from_beginning() {
  constexpr std::size_t kMostBuckets = std::size_t{1} << 17;
  constexpr std::uint64_t kFirstWidth = 64;
  return std::make_unique<RunIndex>(0, kFirstWidth, kMostBuckets);
}

void RunIndex::listen_to(const Machine& machine) {
  machine_ = &machine;
  guest_.watch(machine);
  here_ = machine.engine().hflags() & kHfCpl;
  settle_process(from_);
}

void RunIndex::end(std::uint64_t instruction) {
  if (told_to_ == instruction + 1 && told_to_ > from_) take_back(instruction);
  told_to_ = std::max(told_to_, instruction);
}

// ---------------------------------------------------------------------------------------------
// Buckets

/// Twice as wide, and half as many.
void RunIndex::halve() {
  for (std::size_t i = 0; 2 * i < buckets_.size(); ++i) {
    RunBucket both = buckets_[2 * i];
    if (2 * i + 1 < buckets_.size()) both.add(buckets_[2 * i + 1]);
    buckets_[i] = both;
  }
  buckets_.resize((buckets_.size() + 1) / 2);
  width_ *= 2;
}

RunBucket& RunIndex::bucket(std::uint64_t instruction) {
  instruction = std::max(instruction, from_);
  while ((instruction - from_) / width_ >= most_) halve();
  const auto number = static_cast<std::size_t>((instruction - from_) / width_);
  if (number >= buckets_.size()) {
    buckets_.resize(number + 1);
    shares_.clear();
  }
  return buckets_[number];
}

/// Instructions [from, to) ran in the process and at the level that the machine is in. An
/// instruction that comes again, as a REP does after an interrupt, counts once. `has_left`: the
/// machine may have gone to another level or process.
void RunIndex::completed(std::uint64_t from, std::uint64_t to, bool has_left) {
  const std::size_t before = std::exchange(here_, machine_->engine().hflags() & kHfCpl);
  from = std::max(from, told_to_);
  if (from >= to) return;
  if (!has_left) settle_process(from);
  level_ = has_left ? before : here_;
  RunProcess& process = processes_[running_];
  process.instructions += to - from;
  process.last = std::max(process.last, to);
  while (from < to) {
    RunBucket& b = bucket(from);
    const std::uint64_t behind = from_ + ((from - from_) / width_ + 1) * width_;
    const auto count = static_cast<std::uint32_t>(std::min(to, behind) - from);
    b.levels[level_] += count;
    const std::uint32_t share = shares_[running_] += count;
    if (share > b.of_process) {
      b.process = running_;
      b.of_process = share;
    }
    from += count;
  }
  told_to_ = std::max(told_to_, to);
}

/// The instruction that was told last has not completed.
void RunIndex::take_back(std::uint64_t instruction) {
  told_to_ = instruction;
  RunProcess& process = processes_[running_];
  --process.instructions;
  process.last = std::min(process.last, instruction);
  RunBucket& b = bucket(instruction);
  --b.levels[level_];
  --shares_[running_];
  if (b.process == running_) --b.of_process;
}

RunBucket RunIndex::totals() const {
  RunBucket all;
  for (const RunBucket& b : buckets_) all.add(b);
  return all;
}

// ---------------------------------------------------------------------------------------------
// Processes

std::uint32_t RunIndex::process_number(AddressSpaceId space, std::uint64_t at) {
  const auto found = numbers_.find(space);
  if (found != numbers_.end()) return found->second;
  // Those beyond are counted with the last one.
  if (processes_.size() >= kMostProcesses) return static_cast<std::uint32_t>(kMostProcesses - 1);
  const auto number = static_cast<std::uint32_t>(processes_.size());
  RunProcess process;
  process.space = space;
  process.first = at;
  process.name = guest_.names().name(space).value_or("");
  processes_.push_back(process);
  numbers_.emplace(space, number);
  return number;
}

void RunIndex::settle_process(std::uint64_t at) {
  const AddressSpaceId space = guest_.names().space_of(machine_->engine().address_space());
  if (!processes_.empty() && processes_[running_].space == space) return;
  running_ = process_number(space, at);
  ++processes_[running_].switches;
  RunEvent event;
  event.kind = RunEvent::Kind::process;
  event.value = running_;
  event.instruction = at;
  happened(event, nullptr);
}

void RunIndex::address_space(AddressSpaceId cr3, Position now) { guest_.address_space(cr3, now); }

void RunIndex::executed(AddressSpaceId space, const std::string&, Position now) {
  const std::uint32_t number = process_number(guest_.names().space_of(space), now.instruction);
  processes_[number].name = guest_.names().name(space).value_or("");
}

void RunIndex::renamed(AddressSpaceId space, const std::string& name, Position now) {
  processes_[process_number(guest_.names().space_of(space), now.instruction)].name = name;
}

std::string RunIndex::process_label(std::size_t number) const {
  const RunProcess& process = processes_[number];
  return process.name.empty() ? fmt::format("{:08x}", process.space) : process.name;
}

std::string RunIndex::process_name(AddressSpaceId space) const {
  const auto found = numbers_.find(guest_.names().space_of(space));
  return found == numbers_.end() ? std::string() : processes_[found->second].name;
}

// ---------------------------------------------------------------------------------------------
// What is told

void RunIndex::happened(const RunEvent& event, std::uint32_t RunBucket::*counter) {
  if (event.instruction < from_) return;
  if (counter != nullptr) ++(bucket(event.instruction).*counter);
  if (events_.size() >= kMostEvents) {
    events_to_ = std::min(events_to_, event.instruction);
    return;
  }
  events_.push_back(event);
}

void RunIndex::passed(std::uint64_t from, std::uint64_t to) { completed(from, to); }

void RunIndex::ran(std::span<const ExecutedBlock>, Position first, std::uint32_t count) {
  completed(first.instruction, first.instruction + count);
}

void RunIndex::instruction(const ExecutedInstruction& e, Position now) {
  const InstructionClass kind = e.info->kind;
  const bool leaves = kind == InstructionClass::iret || kind == InstructionClass::far_return ||
                      kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
                      kind == InstructionClass::into || kind == InstructionClass::mov_to_cr;
  completed(now.instruction, now.instruction + 1, leaves);
  guest_.instruction(e, now);
}

void RunIndex::iterations(const ExecutedInstruction&, std::uint32_t, std::uint32_t, Position now) {
  completed(now.instruction, now.instruction + 1);
}

void RunIndex::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  RunEvent event;
  event.kind = RunEvent::Kind::port_read;
  event.port = port;
  event.size = static_cast<std::uint8_t>(size);
  event.value = value;
  event.instruction = now.instruction;
  happened(event, &RunBucket::port_reads);
}

void RunIndex::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  RunEvent event;
  event.kind = RunEvent::Kind::port_write;
  event.port = port;
  event.size = static_cast<std::uint8_t>(size);
  event.value = value;
  event.instruction = now.instruction;
  happened(event, &RunBucket::port_writes);
  bool is_text = std::find(kDebugPorts.begin(), kDebugPorts.end(), port) != kDebugPorts.end();
  for (std::size_t i = 0; i < kSerialPorts.size(); ++i) {
    if (port == kSerialPorts[i] + kLineControl) divisor_latch_[i] = (value & kDivisorLatch) != 0;
    is_text = is_text || (port == kSerialPorts[i] && !divisor_latch_[i]);
  }
  if (is_text && console_.size() < kMostCharacters) {
    console_.push_back({now.instruction, port, static_cast<char>(value)});
  }
}

void RunIndex::follow_streak(const RunEvent& event) {
  const std::uint64_t at = event.instruction;
  const bool goes_on = streak_.count != 0 && streak_.vector == event.vector &&
                       streak_.kind == event.kind && at <= streak_.last + kStreakDistance;
  if (!goes_on) streak_ = {0, at, at, event.vector, event.kind};
  ++streak_.count;
  streak_.last = at;
  if (streak_.count > longest_.count) longest_ = streak_;
}

void RunIndex::delivered(const DeliveredEvent& delivery, Position now) {
  RunEvent event;
  event.vector = delivery.vector;
  event.instruction = now.instruction;
  event.value = delivery.cr2;
  std::uint32_t RunBucket::*counter = &RunBucket::interrupts;
  switch (delivery.kind) {
    case DeliveredEvent::Kind::exception:
      event.kind = RunEvent::Kind::exception;
      counter = &RunBucket::exceptions;
      break;
    case DeliveredEvent::Kind::software:
      event.kind = RunEvent::Kind::software;
      counter = &RunBucket::software;
      break;
    case DeliveredEvent::Kind::nmi:
      event.kind = RunEvent::Kind::nmi;
      break;
    case DeliveredEvent::Kind::smi:
      event.kind = RunEvent::Kind::smi;
      break;
    case DeliveredEvent::Kind::external:
      event.kind = RunEvent::Kind::interrupt;
      break;
  }
  happened(event, counter);
  if (now.instruction >= from_) {
    RunBucket& b = bucket(now.instruction);
    b.nmis += event.kind == RunEvent::Kind::nmi ? 1 : 0;
    b.smis += event.kind == RunEvent::Kind::smi ? 1 : 0;
  }
  if (event.kind != RunEvent::Kind::software) follow_streak(event);
  // Handlers of operating systems run at level 0. An INT n has not been counted yet.
  if (event.kind != RunEvent::Kind::software) here_ = 0;
  guest_.delivered(delivery, now);
}

void RunIndex::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  RunEvent event;
  event.kind = RunEvent::Kind::external_write;
  event.value = a.value;
  event.size = static_cast<std::uint8_t>(std::min<std::size_t>(bytes.size(), 255));
  event.instruction = now.instruction;
  happened(event, &RunBucket::external_writes);
}

void RunIndex::translation_dropped(LinearAddr page, Position now) {
  RunEvent event;
  event.kind = RunEvent::Kind::translation_dropped;
  event.value = page.value;
  event.instruction = now.instruction;
  happened(event, nullptr);
}

void RunIndex::halted(Position now) {
  RunEvent event;
  event.kind = RunEvent::Kind::halt;
  event.instruction = now.instruction;
  happened(event, &RunBucket::halts);
}

void RunIndex::shutdown(Position now) {
  shutdown_at_ = now.instruction;
  RunEvent event;
  event.kind = RunEvent::Kind::shutdown;
  event.instruction = now.instruction;
  happened(event, nullptr);
}

void RunIndex::began(const tools::SystemCall& call) {
  if (call.begin.instruction < from_) return;
  ++bucket(call.begin.instruction).calls;
  settle_process(call.begin.instruction);
  ++processes_[running_].calls;
  if (calls_.size() >= kMostCalls) {
    calls_dropped_ = true;
    return;
  }
  RunCall kept;
  kept.begin = kept.end = call.begin.instruction;
  kept.process = running_;
  kept.text = tools::system_call_text(call);
  open_calls_[call.ordinal] = calls_.size();
  calls_.push_back(std::move(kept));
}

void RunIndex::ended(const tools::SystemCall& call) {
  const auto open = open_calls_.find(call.ordinal);
  if (open == open_calls_.end()) return;
  RunCall& kept = calls_[open->second];
  kept.ended = true;
  kept.end = call.end.instruction;
  kept.text = tools::system_call_text(call);
  kept.result = tools::result_text(call);
  kept.failed = tools::is_error(call);
  open_calls_.erase(open);
}

}  // namespace citcat::view
