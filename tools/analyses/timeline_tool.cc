// timeline: what happens in each stretch of so many instructions. Formula and facts:
// docs/tools/timeline.md.

#include <algorithm>
#include <map>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

struct Stretch {
  std::uint64_t executions = 0, user = 0, iterations = 0, interrupts = 0, exceptions = 0,
                system_calls = 0, ports = 0, switches = 0, halts = 0;
  template <class F>
  void each(F&& f) {
    f(executions), f(user), f(iterations), f(interrupts), f(exceptions), f(system_calls), f(ports),
        f(switches), f(halts);
  }
};

class TimelineTool final : public Tool {
 public:
  explicit TimelineTool(std::uint64_t every) : every_(every) {}

  Wants wants() const override { return {.executions = true, .events = true}; }
  void run(void*, const Execution& execution, const Context& context) override {
    const bool user = context.level() == Context::kUserLevel;
    const Position first = execution.first();
    if (first.iteration != 0 || execution.iterations() > 1) {
      Stretch& s = at(first.instruction);
      const std::uint32_t begun = first.iteration == 0 ? 1 : 0;
      s.executions += begun;
      s.user += user ? begun : 0;
      s.iterations += execution.iterations() - begun;
      return;
    }
    for (std::uint64_t i = first.instruction, end = i + execution.block().count(); i < end;) {
      const std::uint64_t stop = std::min(end, (i / every_ + 1) * every_);
      Stretch& s = at(i);
      s.executions += stop - i;
      s.user += user ? stop - i : 0;
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
      default:
        break;
    }
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<TimelineTool>(every_); }
  void follow(Tool&& tool) override {
    last_ = nullptr;
    for (auto& [number, theirs] : static_cast<TimelineTool&>(tool).stretches_) {
      std::uint64_t* values[9];
      std::size_t n = 0;
      stretches_[number].each([&](std::uint64_t& v) { values[n++] = &v; });
      n = 0;
      theirs.each([&](std::uint64_t& v) { *values[n++] += v; });
    }
  }
  void save(ByteWriter& out) const override {
    out.varint(stretches_.size());
    for (const auto& [number, stretch] : stretches_) {
      out.varint(number);
      Stretch copy = stretch;
      copy.each([&](std::uint64_t& v) { out.varint(v); });
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t count = in.varint("number of stretches");
    for (std::uint64_t i = 0; i < count; ++i) {
      stretches_[in.varint("stretch")].each([&](std::uint64_t& v) { v = in.varint("count"); });
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
                              {"system_calls", "software interrupts, SYSENTER", ""},
                              {"ports", "port accesses", ""},
                              {"switches", "loads of CR3 or CR0", ""},
                              {"halts", "halts", ""}});
    for (const auto& [number, stretch] : stretches_) {
      std::vector<Cell> cells{number * every_};
      Stretch copy = stretch;
      copy.each([&](std::uint64_t& v) { cells.emplace_back(v); });
      table.row(std::move(cells));
    }
  }

 private:
  Stretch& at(std::uint64_t instruction) {
    const std::uint64_t number = instruction / every_;
    if (last_ == nullptr || number != last_number_) {
      last_ = &stretches_[number];
      last_number_ = number;
    }
    return *last_;
  }

  std::uint64_t every_;
  std::map<std::uint64_t, Stretch> stretches_;  ///< by number
  std::uint64_t last_number_ = 0;
  Stretch* last_ = nullptr;
};

std::unique_ptr<Tool> make(ToolOptions& options, const Setup&) {
  return std::make_unique<TimelineTool>(
      options.number("every", 100'000, 1, std::uint64_t{1} << 60));
}

}  // namespace

extern const ToolRow kTimelineTool{"timeline",
                                   "Count what happens in each stretch of the run",
                                   "every=N  instructions of a stretch (100000)\n",
                                   "citcat analyze boot.citcat --tool timeline:every=1M --csv",
                                   ToolRow::Merging::exact,
                                   make};

}  // namespace citcat::tools
