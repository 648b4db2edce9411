// syscalls: every system call with its arguments and its result, and how often each was made
// (docs/tools/syscalls.md).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "events/position_text.h"
#include "tools/guest/system_call.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class SyscallsTool final : public Tool {
 public:
  SyscallsTool(std::size_t list, const NameSource* names) : list_(list), names_(names) {}

  Wants wants() const override { return {.events = true}; }

  void event(const MachineEvent& event, const Context& /*context*/) override {
    if (event.kind == MachineEvent::Kind::call_began) {
      ++counts_[{event.call->of, event.call->number}].calls;
      open_[event.number] = row_of(*event.call);
    } else if (event.kind == MachineEvent::Kind::call_ended) {
      end(event.number, *event.call);
    }
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<SyscallsTool>(list_, names_);
  }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}

  void report(Report& report) const override {
    Count all;
    for (const auto& [number, count] : counts_) {
      all.calls += count.calls;
      all.errors += count.errors;
    }
    report.value("calls", "system calls", all.calls);
    report.value("errors", "of which failed", all.errors);
    report.value("pending", "of which had not ended", std::uint64_t{open_.size()});
    Table& by_name = report.table("by_name", "By name",
                                  {{"number", "number", ""},
                                   {"name", "name", ""},
                                   {"calls", "calls", ""},
                                   {"errors", "failed", ""}});
    for (const auto& [number, count] : counts_) {
      by_name.row({std::uint64_t{number.second}, system_call_name(number.second, number.first),
                   count.calls, count.errors});
    }
    Table& list = report.table("list", "In the order of their ends",
                               {{"begin", "begin", ""},
                                {"end", "end", ""},
                                {"process", "process", ""},
                                {"call", "call", ""},
                                {"result", "result", ""}});
    const auto add = [&list](const Row& r) {
      list.row({r.begin, r.end, r.process, r.call, r.result});
    };
    for (const Row& row : rows_) add(row);
    for (const auto& [number, row] : open_) {
      if (list.rows.size() < list_) add(row);
    }
    report.value("not_listed", "calls that are not listed", all.calls - list.rows.size());
  }

 private:
  struct Count {
    std::uint64_t calls = 0, errors = 0;
  };
  struct Row {
    std::string begin, end, process, call, result;
  };

  Row row_of(const SystemCall& call) const {
    Row row;
    row.begin = position_text(call.begin);
    row.process = names_ != nullptr ? names_->process_of(call.address_space)
                                    : hexadecimal(call.address_space);
    row.call = system_call_text(call);
    row.result = result_text(call);
    return row;
  }
  void end(std::uint64_t number, const SystemCall& call) {
    const auto open = open_.find(number);
    Row row = std::move(open->second);
    open_.erase(open);
    if (is_error(call)) ++counts_[{call.of, call.number}].errors;
    if (rows_.size() == list_) return;
    // Texts may have been read since it began; the process is called as it was then.
    row.end = position_text(call.end);
    row.call = system_call_text(call);
    row.result = result_text(call);
    rows_.push_back(std::move(row));
  }

  std::size_t list_;  ///< calls that are listed at most
  const NameSource* names_;
  std::map<std::pair<SystemCallInterface, std::uint32_t>, Count> counts_;
  std::map<std::uint64_t, Row> open_;  ///< by the calls' ordinals
  std::vector<Row> rows_;
};

constexpr std::uint64_t kListedCalls = 10000, kMostListedCalls = 1u << 24;

std::unique_ptr<Tool> make_syscalls(ToolOptions& options, const Setup& setup) {
  return std::make_unique<SyscallsTool>(options.number("list", kListedCalls, 0, kMostListedCalls),
                                        setup.names);
}

}  // namespace

extern const ToolRow kSyscallsTool{"syscalls",
                                   "List system calls of Linux with arguments and results",
                                   "list=N  list the first N calls that ended (10000)\n",
                                   "citcat analyze boot.citcat --tool syscalls",
                                   ToolRow::Merging::serial,
                                   make_syscalls};

}  // namespace citcat::tools
