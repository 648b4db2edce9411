// timeline: what happens in each stretch of a given number of instructions. Formula and facts:
// docs/tools/timeline.md.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr std::size_t kCounters = 11;

/// Executions of each address space, in the order of their coming.
class SpaceCounts {
 public:
  using Count = std::pair<AddressSpaceId, std::uint64_t>;

  void add(AddressSpaceId space, std::uint64_t executions) {
    if (!counts_.empty() && counts_[last_].first == space) [[likely]] {
      counts_[last_].second += executions;
      return;
    }
    last_ = find(space);
    counts_[last_].second += executions;
  }
  const std::vector<Count>& all() const { return counts_; }

 private:
  static constexpr std::size_t kFew = 8;

  /// Its place; made where there is none.
  std::size_t find(AddressSpaceId space) {
    if (counts_.size() <= kFew) {
      for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i].first == space) return i;
      }
    }
    if (counts_.size() == kFew) {
      for (std::size_t i = 0; i < kFew; ++i) places_.emplace(counts_[i].first, i);
    }
    if (counts_.size() >= kFew) {
      const auto [at, is_new] = places_.emplace(space, counts_.size());
      if (!is_new) return at->second;
    }
    counts_.emplace_back(space, 0);
    return counts_.size() - 1;
  }

  std::vector<Count> counts_;
  std::size_t last_ = 0;                                    ///< that something was added to
  std::unordered_map<AddressSpaceId, std::size_t> places_;  ///< where there are more than a few
};

struct Stretch {
  std::uint64_t executions = 0, user = 0, iterations = 0, interrupts = 0, exceptions = 0,
                system_calls = 0, ports = 0, switches = 0, halts = 0, external_writes = 0,
                external_bytes = 0;
  SpaceCounts processes;

  template <class F>
  void each(F&& f) {
    f(executions), f(user), f(iterations), f(interrupts), f(exceptions), f(system_calls), f(ports),
        f(switches), f(halts), f(external_writes), f(external_bytes);
  }
  void add(const Stretch& later) {
    std::uint64_t* mine[kCounters];
    std::size_t n = 0;
    each([&](std::uint64_t& v) { mine[n++] = &v; });
    Stretch theirs = later;
    n = 0;
    theirs.each([&](std::uint64_t& v) { *mine[n++] += v; });
    for (const auto& [space, count] : later.processes.all()) processes.add(space, count);
  }
  /// The one with most executions, the first of equals; 0 where nothing ran.
  std::pair<AddressSpaceId, std::uint64_t> busiest() const {
    std::pair<AddressSpaceId, std::uint64_t> most;
    for (const auto& process : processes.all()) {
      if (process.second > most.second) most = process;
    }
    return most;
  }
};

class TimelineTool final : public Tool {
 public:
  /// `most`: stretches, 0: any number. Where there would be more, each becomes twice as long.
  TimelineTool(std::uint64_t every, std::uint64_t most, const NameSource* names)
      : every_(every), most_(most), names_(names) {}

  Wants wants() const override { return {.executions = true, .events = true, .passes = true}; }
  void run(void*, const Execution& execution, const Context& context) override {
    const bool user = context.level() == Context::kUserLevel;
    const Position first = execution.first();
    if (first.iteration != 0 || execution.iterations() > 1) {
      Stretch& s = at(first.instruction);
      const std::uint32_t begun = first.iteration == 0 ? 1 : 0;
      s.iterations += execution.iterations() - begun;
      return ran(s, begun, user, context);
    }
    passed(first.instruction, first.instruction + execution.block().count(), context);
  }
  void passed(std::uint64_t first, std::uint64_t end, const Context& context) override {
    const bool user = context.level() == Context::kUserLevel;
    for (std::uint64_t i = first; i < end;) {
      Stretch& s = at(i);
      const std::uint64_t stop = std::min(end, last_end_);
      ran(s, stop - i, user, context);
      i = stop;
    }
  }
  void event(const MachineEvent& event, const Context&) override {
    Stretch& s = at(event.position.instruction);
    switch (event.kind) {
      case MachineEvent::Kind::delivered:
        switch (event.delivery.kind) {
          case DeliveredEvent::Kind::exception:
            ++s.exceptions;
            break;
          case DeliveredEvent::Kind::software:
            ++s.system_calls;
            break;
          default:
            ++s.interrupts;
        }
        break;
      case MachineEvent::Kind::fast_call:
        ++s.system_calls;
        break;
      case MachineEvent::Kind::port_read:
      case MachineEvent::Kind::port_write:
        ++s.ports;
        break;
      case MachineEvent::Kind::address_space:
        ++s.switches;
        break;
      case MachineEvent::Kind::halted:
        ++s.halts;
        break;
      case MachineEvent::Kind::external_write:
        ++s.external_writes;
        s.external_bytes += event.size;
        break;
      default:
        break;
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<TimelineTool>(every_, most_, names_);
  }
  /// How long a stretch becomes is known at the end of the run only; and what a process is called
  /// may have been said in a part before.
  bool merges() const override {
    return most_ == 0 && (names_ == nullptr || !names_->names_processes());
  }
  void follow(Tool&& tool) override {
    last_ = nullptr;
    for (const auto& [number, theirs] : static_cast<TimelineTool&>(tool).stretches_) {
      stretches_[number].add(theirs);
    }
  }
  void save(ByteWriter& out) const override {
    out.varint(stretches_.size());
    for (const auto& [number, stretch] : stretches_) {
      out.varint(number);
      Stretch copy = stretch;
      copy.each([&](std::uint64_t& v) { out.varint(v); });
      out.varint(stretch.processes.all().size());
      for (const auto& [space, count] : stretch.processes.all()) {
        out.varint(space);
        out.varint(count);
      }
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t count = in.varint("number of stretches");
    for (std::uint64_t i = 0; i < count; ++i) {
      Stretch& stretch = stretches_[in.varint("stretch")];
      stretch.each([&](std::uint64_t& v) { v = in.varint("count"); });
      const std::uint64_t processes = in.varint("number of processes");
      for (std::uint64_t p = 0; p < processes; ++p) {
        const AddressSpaceId space = in.varint("address space");
        stretch.processes.add(space, in.varint("executions of a process"));
      }
    }
  }
  void report(Report& out) const override {
    out.value("every", "instructions of a stretch", every_);
    Table& table = out.table("stretches", "stretch by stretch",
                             {{"from", "from", "instruction"},
                              {"executions", "executions", ""},
                              {"user", "at level 3", ""},
                              {"iterations", "further iterations", ""},
                              {"interrupts", "interrupts", ""},
                              {"exceptions", "exceptions", ""},
                              {"system_calls", "software interrupts, SYSENTER, SYSCALL", ""},
                              {"ports", "port accesses", ""},
                              {"switches", "loads of CR3 or CR0", ""},
                              {"halts", "halts", ""},
                              {"external_writes", "writes by other bus masters", ""},
                              {"external_bytes", "bytes of them", "bytes"},
                              {"process", "process with most executions", ""},
                              {"process_executions", "executions of that process", ""}});
    for (const auto& [number, stretch] : stretches_) {
      std::vector<Cell> cells{number * every_};
      Stretch copy = stretch;
      copy.each([&](std::uint64_t& v) { cells.emplace_back(v); });
      const auto [space, executions] = stretch.busiest();
      cells.emplace_back(names_ != nullptr ? names_->process_of(space) : hexadecimal(space));
      cells.emplace_back(executions);
      table.row(std::move(cells));
    }
  }

 private:
  static void ran(Stretch& s, std::uint64_t count, bool user, const Context& context) {
    s.executions += count;
    s.user += user ? count : 0;
    s.processes.add(context.address_space(), count);
  }
  Stretch& at(std::uint64_t instruction) {
    if (last_ == nullptr || instruction < last_begin_ || instruction >= last_end_) [[unlikely]] {
      find(instruction);
    }
    return *last_;
  }
  void find(std::uint64_t instruction) {
    last_ = &stretches_[instruction / every_];
    while (most_ != 0 && stretches_.size() > most_) {
      lengthen();
      last_ = &stretches_[instruction / every_];
    }
    last_begin_ = instruction / every_ * every_;
    last_end_ = last_begin_ + every_;
  }
  /// Each stretch becomes twice as long.
  void lengthen() {
    std::map<std::uint64_t, Stretch> longer;
    for (const auto& [number, stretch] : stretches_) longer[number / 2].add(stretch);
    stretches_ = std::move(longer);
    every_ *= 2;
  }

  std::uint64_t every_;
  std::uint64_t most_;
  const NameSource* names_;                      ///< may be null
  std::map<std::uint64_t, Stretch> stretches_;   ///< by number
  Stretch* last_ = nullptr;                      ///< of the stretch that was asked for last, ...
  std::uint64_t last_begin_ = 0, last_end_ = 0;  ///< ... which is of these instructions
};

std::unique_ptr<Tool> make_timeline(ToolOptions& options, const Setup& setup) {
  const std::uint64_t most = options.number("stretches", 0, 0, std::uint64_t{1} << 20);
  const std::uint64_t every =
      options.number("every", most != 0 ? 1 : 100'000, 1, std::uint64_t{1} << 60);
  return std::make_unique<TimelineTool>(every, most, setup.names);
}

}  // namespace

extern const ToolRow kTimelineTool{
    "timeline",
    "Count what happens in each stretch of the run",
    "every=N      instructions per stretch (100000; 1 with stretches=)\n"
    "stretches=N  largest number of stretches; their length doubles until they suffice (0: no "
    "limit)\n",
    "citcat analyze boot.citcat --tool timeline:every=1M --csv",
    ToolRow::Merging::serial,
    make_timeline};

}  // namespace citcat::tools
