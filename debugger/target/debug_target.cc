#include "debugger/target/debug_target.h"

#include <algorithm>
#include <iterator>

#include "events/machine/cpu_place.h"
#include "events/machine/cpu_traits.h"
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

DebugTarget::DebugTarget(const RecordingFile& file, ComparisonPolicy policy, bool check,
                         Observer* observer)
    : file_(file),
      has_long_mode_(cpu_traits(file.recording().initial.model).has_long_mode),
      timeline_(file, observer, timeline_options(std::move(policy), check)),
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

bool DebugTarget::is_mapped(LinearAddr address, std::size_t size) const {
  bool all = true;
  for_each_page(address, size,
                [&](LinearAddr at, std::uint32_t) { return all = machine().find(at).has_value(); });
  return all;
}

std::vector<LinearAddr> DebugTarget::unmapped_watchpoints() const {
  std::vector<LinearAddr> addresses;
  for (const Inserted& stop : inserted_) {
    const bool watches = !is_breakpoint(stop.kind);
    if (watches && !is_mapped(stop.address, stop.size)) addresses.push_back(stop.address);
  }
  return addresses;
}

DebugTarget::Lookout DebugTarget::lookout() const {
  Lookout lookout(machine().save());
  for (const Inserted& stop : inserted_) {
    if (is_breakpoint(stop.kind)) {
      lookout.stops.code.push_back(stop.address);
      continue;
    }
    for_each_page(stop.address, stop.size, [&](LinearAddr at, std::uint32_t part) {
      const auto found = machine().find(at);
      lookout.stops.memory.push_back({found.value_or(PhysAddr{}), part,
                                      stop.kind != StopKind::write_watchpoint,
                                      stop.kind != StopKind::read_watchpoint});
      lookout.watchpoints.emplace_back(stop);
      if (!found) lookout.unmapped.push_back({lookout.watchpoints.size() - 1, at, part, stop});
      return true;
    });
  }
  look_up_unmapped(lookout);
  std::sort(lookout.stops.code.begin(), lookout.stops.code.end());
  return lookout;
}

/// Looks again where the addresses lie that were not mapped, by the page tables with which the move
/// began.
void DebugTarget::look_up_unmapped(Lookout& lookout) const {
  std::vector<Lookout::Unmapped> left;
  for (const Lookout::Unmapped& each : lookout.unmapped) {
    const PageTables::Walk walk = lookout.tables.walk(machine().memory(), each.address);
    MemoryWatch& piece = lookout.stops.memory[each.number];
    if (walk.mapped) {
      piece = {walk.at, each.size, each.watchpoint.kind != StopKind::write_watchpoint,
               each.watchpoint.kind != StopKind::read_watchpoint};
      lookout.watchpoints[each.number] = each.watchpoint;
    } else {
      // An entry that was unknown at first becomes known when a walk reads it.
      piece = {walk.at, walk.bytes, !walk.known, true};
      lookout.watchpoints[each.number].reset();
      left.push_back(each);
    }
  }
  lookout.unmapped = std::move(left);
}

/// The breakpoint or watchpoints met, as gdb inserted them; nullopt if all hits are left out.
std::optional<MoveEnd> DebugTarget::end_of(const ReplayTimeline::Stop& stop, const Lookout& lookout,
                                           Direction direction) {
  using Why = ReplayTimeline::Stop::Why;
  const bool back = direction == Direction::back;
  if (stop.why == Why::interrupted) return MoveEnd{MoveEnd::Why::interrupted};
  if (stop.why == Why::end) return MoveEnd{back ? MoveEnd::Why::beginning : MoveEnd::Why::end};
  if (stop.hit->kind != StopHit::Kind::code) {
    std::vector<Inserted> watchpoints = watchpoints_met(stop.met, lookout);
    if (watchpoints.empty()) return breakpoint_here();
    return met(std::move(watchpoints), direction);
  }
  return breakpoint_here().value_or(MoveEnd{MoveEnd::Why::breakpoint});
}

/// Each once, in the order of their accesses.
std::vector<DebugTarget::Inserted> DebugTarget::watchpoints_met(const std::vector<StopHit>& met,
                                                                const Lookout& lookout) const {
  const Memory& memory = machine().memory();
  std::vector<Inserted> watchpoints;
  for (const StopHit& hit : met) {
    if (hit.outside && is_left_out_ && is_left_out_(hit)) continue;
    for (std::size_t i = 0; i < lookout.watchpoints.size(); ++i) {
      const MemoryWatch& piece = lookout.stops.memory[i];
      if (!lookout.watchpoints[i]) continue;
      const Inserted& watchpoint = *lookout.watchpoints[i];
      const PhysAddr at = hit.outside ? memory.captured(piece.address) : piece.address;
      const bool wanted = hit.kind == StopHit::Kind::write ? piece.writes : piece.reads;
      if (!wanted || !overlap(at, piece.size, hit.address, hit.size)) continue;
      if (std::find(watchpoints.begin(), watchpoints.end(), watchpoint) == watchpoints.end()) {
        watchpoints.push_back(watchpoint);
      }
    }
  }
  return watchpoints;
}

/// The end of a move that has met these.
MoveEnd DebugTarget::met(std::vector<Inserted> watchpoints, Direction direction) {
  CITCAT_ASSERT(!watchpoints.empty());
  if (direction == Direction::back) std::reverse(watchpoints.begin(), watchpoints.end());
  leave_out_unchanged(watchpoints, direction);
  untold_ = {timeline_.moment(), direction, std::move(watchpoints)};
  return *next_untold(direction);
}

std::vector<std::vector<std::uint8_t>> DebugTarget::contents(
    const std::vector<Inserted>& watchpoints) const {
  std::vector<std::vector<std::uint8_t>> contents;
  for (const Inserted& w : watchpoints) contents.push_back(read(w.address, w.size));
  return contents;
}

/// gdb passes over a write that changes nothing. Another end of the move for it alone would be a
/// step that goes nowhere.
void DebugTarget::leave_out_unchanged(std::vector<Inserted>& watchpoints, Direction direction) {
  if (watchpoints.size() == 1) return;
  const auto here = contents(watchpoints);
  const std::size_t mark = timeline_.mark();
  direction == Direction::on ? timeline_.step_back() : timeline_.step();
  const auto there = contents(watchpoints);
  timeline_.return_to(mark);
  timeline_.forget(mark);
  std::vector<Inserted> left;
  for (std::size_t i = 0; i < watchpoints.size(); ++i) {
    const bool is_write = watchpoints[i].kind == StopKind::write_watchpoint;
    if (!is_write || here[i] != there[i]) left.push_back(watchpoints[i]);
  }
  if (left.empty()) left.push_back(watchpoints.front());
  watchpoints = std::move(left);
}

/// The next of the stops met here that are still inserted: by an address that as many of them have
/// in common as possible, because gdb looks at all that have it.
std::optional<MoveEnd> DebugTarget::next_untold(Direction direction) {
  std::vector<Inserted>& left = untold_.watchpoints;
  if (untold_.at != timeline_.moment() || untold_.direction != direction) left.clear();
  std::erase_if(left, [&](const Inserted& w) {
    return std::find(inserted_.begin(), inserted_.end(), w) == inserted_.end();
  });
  if (left.empty()) return std::nullopt;
  const auto has = [this](const Inserted& w, LinearAddr at) {
    return address(at.value - w.address.value).value < w.size;
  };
  const auto told_by = [&](const Inserted& told) {
    return std::count_if(left.begin(), left.end(),
                         [&](const Inserted& w) { return has(w, told.address); });
  };
  const Inserted told = *std::max_element(
      left.begin(), left.end(),
      [&](const Inserted& a, const Inserted& b) { return told_by(a) < told_by(b); });
  std::erase_if(left, [&](const Inserted& w) { return has(w, told.address); });
  return MoveEnd{MoveEnd::Why::watchpoint, told.kind, told.address};
}

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

MoveEnd DebugTarget::step() { return one_step(Direction::on); }

MoveEnd DebugTarget::step_back() { return one_step(Direction::back); }

MoveEnd DebugTarget::one_step(Direction direction) {
  if (const auto untold = next_untold(direction)) return *untold;
  const bool back = direction == Direction::back;
  const Lookout looked_for = lookout();
  std::vector<StopHit> hits;
  const bool moved =
      back ? timeline_.step_back(looked_for.stops, hits) : timeline_.step(looked_for.stops, hits);
  if (!moved) return {back ? MoveEnd::Why::beginning : MoveEnd::Why::end};
  std::vector<Inserted> watchpoints = watchpoints_met(hits, looked_for);
  if (watchpoints.empty()) return {MoveEnd::Why::moved};
  return met(std::move(watchpoints), direction);
}

MoveEnd DebugTarget::step_in_range(LinearAddr first, std::uint32_t size,
                                   const Interrupt& interrupt) {
  for (;;) {
    const MoveEnd end = step();
    if (end.why != MoveEnd::Why::moved) return end;
    if (const auto met = breakpoint_here()) return *met;
    const bool within = address(next_instruction().value - first.value).value < size;
    if (!within) return {MoveEnd::Why::moved};
    if (interrupt && interrupt()) return {MoveEnd::Why::interrupted};
  }
}

MoveEnd DebugTarget::go_on(const Interrupt& interrupt) { return run(Direction::on, interrupt); }

MoveEnd DebugTarget::go_back(const Interrupt& interrupt) { return run(Direction::back, interrupt); }

MoveEnd DebugTarget::run(Direction direction, const Interrupt& interrupt) {
  if (const auto untold = next_untold(direction)) return *untold;
  Lookout looked_for = lookout();
  for (;;) {
    const ReplayTimeline::Stop stop = direction == Direction::on
                                          ? timeline_.run_to_stop(looked_for.stops, interrupt)
                                          : timeline_.run_back_to_stop(looked_for.stops, interrupt);
    if (const auto end = end_of(stop, looked_for, direction)) return *end;
    look_up_unmapped(looked_for);
  }
}

// ---------------------------------------------------------------------------------------------
// A branch

void DebugTarget::fork() {
  if (forked()) return;
  timeline_.begin_branch();
  untold_ = {};
}

void DebugTarget::join() {
  if (forked()) timeline_.end_branch();
  untold_ = {};
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
