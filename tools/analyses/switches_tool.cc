// switches: when the processor went from one process to another, and how long each ran
// (docs/tools/switches.md).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "events/position_text.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class SwitchesTool final : public Tool {
 public:
  SwitchesTool(std::size_t list, const Setup& setup)
      : list_(list), setup_(setup), since_(setup.from) {}

  Wants wants() const override { return {.events = true}; }

  void event(const MachineEvent& event, const Context& context) override {
    if (event.kind != MachineEvent::Kind::address_space) return;
    const AddressSpaceId now = context.address_space();
    if (event.before == now) {
      ++reloads_;
      return;
    }
    ++switches_;
    const std::string from = process(event.before);
    const std::uint64_t instructions = event.position.instruction - since_;
    Count& count = processes_[from];
    ++count.times;
    count.instructions += instructions;
    since_ = event.position.instruction;
    if (rows_.size() == list_) return;
    rows_.push_back({position_text(event.position), from, process(now), instructions});
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<SwitchesTool>(list_, setup_);
  }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}

  void report(Report& report) const override {
    report.value("switches", "switches to other page tables", switches_);
    report.value("reloads", "page tables loaded again", reloads_);
    report.value("not_listed", "switches that are not listed", switches_ - rows_.size());
    Table& processes = report.table(
        "processes", "Processes up to the last switch",
        {{"process", "process", ""}, {"times", "times", ""}, {"instructions", "instructions", ""}});
    for (const auto& [name, count] : processes_) {
      processes.row({name, count.times, count.instructions});
    }
    Table& list = report.table("list", "Switches",
                               {{"position", "position", ""},
                                {"from", "from", ""},
                                {"to", "to", ""},
                                {"instructions", "instructions until then", ""}});
    for (const Row& row : rows_) list.row({row.position, row.from, row.to, row.instructions});
  }

 private:
  struct Row {
    std::string position, from, to;
    std::uint64_t instructions = 0;
  };
  struct Count {
    std::uint64_t times = 0, instructions = 0;
  };
  std::string process(AddressSpaceId address_space) const {
    return setup_.names != nullptr ? setup_.names->process_of(address_space)
                                   : hexadecimal(address_space);
  }

  std::size_t list_;  ///< switches that are listed at most
  Setup setup_;
  std::uint64_t since_;  ///< instruction: the process that runs has run from there
  std::uint64_t switches_ = 0, reloads_ = 0;
  std::map<std::string, Count> processes_;
  std::vector<Row> rows_;
};

constexpr std::uint64_t kListedSwitches = 1000, kMostListedSwitches = 1u << 24;

std::unique_ptr<Tool> make_switches(ToolOptions& options, const Setup& setup) {
  return std::make_unique<SwitchesTool>(
      options.number("list", kListedSwitches, 0, kMostListedSwitches), setup);
}

}  // namespace

extern const ToolRow kSwitchesTool{"switches",
                                   "List switches between processes, and how long each ran",
                                   "list=N  list the first N (1000)\n",
                                   "citcat analyze boot.citcat --tool switches",
                                   ToolRow::Merging::serial,
                                   make_switches};

}  // namespace citcat::tools
