#include "debugger/target/debug_target.h"

#include <algorithm>
#include <iterator>

#include "events/cpu_place.h"
#include "events/cpu_traits.h"
#include "formats/io/error.h"

namespace citcat {

namespace {

TimelineOptions timeline_options(ComparisonPolicy policy, bool check) {
  TimelineOptions options;
  options.check = check;
  options.policy = std::move(policy);
  return options;
}

bool is_breakpoint(StopKind kind) {
  return kind == StopKind::software_breakpoint || kind == StopKind::hardware_breakpoint;
}

}  // namespace

/// Calls visit(address, size) for the part of the range in each page.
template <class F>
void DebugTarget::for_each_page(LinearAddr address, std::size_t size, F&& visit) const {
  while (size != 0) {
    const auto part = static_cast<std::uint32_t>(
        std::min<std::size_t>(size, kPageSize - address.offset_in_page()));
    if (!visit(address, part)) return;
    address = this->address(address.value + part);
    size -= part;
  }
}

DebugTarget::DebugTarget(const RecordingFile& file, ComparisonPolicy policy, bool check)
    : file_(file),
      has_long_mode_(cpu_traits(file.recording().initial.model).has_long_mode),
      timeline_(file, nullptr, timeline_options(std::move(policy), check)),
      register_file_(file.recording().initial.model),
      known_registers_(file.recording()) {}

// ---------------------------------------------------------------------------------------------
// To look at

RegisterView DebugTarget::registers() const {
  RegisterView view{timeline_.registers(), timeline_.moment()};
  known_registers_.settle(view.cpu, view.moment);
  for (const std::string& name : set_in_branch_) std::erase(view.cpu.unknown, name);
  return view;
}

std::vector<std::uint8_t> DebugTarget::read(LinearAddr address, std::size_t size) const {
  std::vector<std::uint8_t> bytes;
  for_each_page(address, size, [&](LinearAddr at, std::uint32_t part) {
    const auto found = machine().find(at);
    if (!found) return false;
    for (std::uint32_t i = 0; i < part; ++i) {
      const auto byte = machine().memory().defined_byte(found->plus32(i));
      if (!byte) return false;
      bytes.push_back(*byte);
    }
    return true;
  });
  return bytes;
}

int DebugTarget::code_bits() const {
  constexpr std::uint16_t kDefaultBig = 1u << 14;
  const CpuState cpu = machine().save();
  if (is_in_64_bit_mode(cpu)) return 64;
  return (cpu.segment[kCs].attributes & kDefaultBig) != 0 ? 32 : 16;
}

// ---------------------------------------------------------------------------------------------
// Stops

void DebugTarget::insert(StopKind kind, LinearAddr address, std::uint32_t size) {
  const Inserted stop{kind, address, size};
  if (std::find(inserted_.begin(), inserted_.end(), stop) == inserted_.end()) {
    inserted_.push_back(stop);
  }
}

void DebugTarget::remove(StopKind kind, LinearAddr address, std::uint32_t size) {
  std::erase(inserted_, Inserted{kind, address, size});
}

void DebugTarget::add_watch(const Inserted& watch, StopSet& stops) const {
  for_each_page(watch.address, watch.size, [&](LinearAddr at, std::uint32_t part) {
    if (const auto found = machine().find(at)) {
      stops.memory.push_back({*found, part, watch.kind != StopKind::write_watchpoint,
                              watch.kind != StopKind::read_watchpoint});
    }
    return true;
  });
}

StopSet DebugTarget::stops() const {
  StopSet stops;
  for (const Inserted& stop : inserted_) {
    if (is_breakpoint(stop.kind)) {
      stops.code.push_back(stop.address);
    } else {
      add_watch(stop, stops);
    }
  }
  std::sort(stops.code.begin(), stops.code.end());
  return stops;
}

/// What was met, as gdb inserted it.
MoveEnd DebugTarget::end_of(const ReplayTimeline::Stop& stop, bool back) const {
  using Why = ReplayTimeline::Stop::Why;
  if (stop.why == Why::interrupted) return {MoveEnd::Why::interrupted};
  if (stop.why == Why::end) return {back ? MoveEnd::Why::beginning : MoveEnd::Why::end};
  const StopHit& hit = *stop.hit;
  MoveEnd end{MoveEnd::Why::breakpoint};
  end.hit = hit;
  if (hit.kind == StopHit::Kind::code) {
    if (const auto breakpoint = breakpoint_here()) end.kind = breakpoint->kind;
    return end;
  }
  end.why = MoveEnd::Why::watchpoint;
  // Where the address led when it was looked for, it may not lead any longer: then any will do.
  const Memory& memory = machine().memory();
  for (const Inserted& inserted : inserted_) {
    if (is_breakpoint(inserted.kind)) continue;
    if (is_breakpoint(end.kind)) {
      end.kind = inserted.kind;
      end.watched = inserted.address;
    }
    StopSet pieces;
    add_watch(inserted, pieces);
    for (const MemoryWatch& piece : pieces.memory) {
      const PhysAddr at = hit.outside ? memory.captured(piece.address) : piece.address;
      const bool wanted = hit.kind == StopHit::Kind::write ? piece.writes : piece.reads;
      if (!wanted || !overlap(at, piece.size, hit.address, hit.size)) continue;
      end.kind = inserted.kind;
      end.watched = inserted.address;
    }
  }
  return end;
}

/// The breakpoint at the instruction that is to run next.
std::optional<MoveEnd> DebugTarget::breakpoint_here() const {
  for (const Inserted& stop : inserted_) {
    if (!is_breakpoint(stop.kind) || stop.address != next_instruction()) continue;
    MoveEnd end{MoveEnd::Why::breakpoint};
    end.kind = stop.kind;
    return end;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------------------------------------
// To move

MoveEnd DebugTarget::step() { return {timeline_.step() ? MoveEnd::Why::moved : MoveEnd::Why::end}; }

MoveEnd DebugTarget::step_back() {
  return {timeline_.step_back() ? MoveEnd::Why::moved : MoveEnd::Why::beginning};
}

MoveEnd DebugTarget::step_in_range(LinearAddr first, std::uint32_t size,
                                   const Interrupt& interrupt) {
  for (;;) {
    if (!timeline_.step()) return {MoveEnd::Why::end};
    if (const auto met = breakpoint_here()) return *met;
    const bool within = address(next_instruction().value - first.value).value < size;
    if (!within) return {MoveEnd::Why::moved};
    if (interrupt && interrupt()) return {MoveEnd::Why::interrupted};
  }
}

MoveEnd DebugTarget::go_on(const Interrupt& interrupt) {
  return end_of(timeline_.run_to_stop(stops(), interrupt), false);
}

MoveEnd DebugTarget::go_back(const Interrupt& interrupt) {
  return end_of(timeline_.run_back_to_stop(stops(), interrupt), true);
}

// ---------------------------------------------------------------------------------------------
// A branch

void DebugTarget::fork() {
  if (!forked()) timeline_.begin_branch();
}

void DebugTarget::join() {
  if (forked()) timeline_.end_branch();
  set_in_branch_.clear();
}

bool DebugTarget::set_register(std::size_t number, std::span<const std::uint8_t> value) {
  CITCAT_ASSERT(forked());
  CpuState cpu = timeline_.registers();
  const std::vector<std::string> unknown = cpu.unknown;
  if (!register_file_.set(number, value, cpu)) return false;
  std::copy_if(unknown.begin(), unknown.end(), std::back_inserter(set_in_branch_),
               [&](const std::string& name) { return !is_unknown(cpu, name); });
  timeline_.change_registers(cpu);
  return true;
}

bool DebugTarget::write(LinearAddr address, std::span<const std::uint8_t> bytes) {
  CITCAT_ASSERT(forked());
  bool all = true;
  for_each_page(address, bytes.size(), [&](LinearAddr at, std::uint32_t part) {
    const auto found = machine().find(at);
    all = all && found.has_value();
    if (all) timeline_.change_memory(*found, bytes.subspan(at.minus32(address), part));
    return all;
  });
  return all;
}

}  // namespace citcat
