// The tool "syscalls": every system call with its arguments and its result, and how often each was
// made (docs/tools/syscalls.md).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "events/position_text.h"
#include "tools/guest/guest.h"
#include "tools/guest/guest_events.h"
#include "tools/guest/process_names.h"
#include "tools/guest/system_call_follower.h"
#include "tools/host/tool.h"

namespace citcat::tools {

namespace {

class SyscallsTool final : public Tool, private SystemCallListener {
 public:
  explicit SyscallsTool(std::size_t list) : list_(list) { names_.set_follower(follower_); }

  Wants wants() const override { return {.events = true}; }

  void event(const MachineEvent& event, const Context& context) override {
    if (guest_ == nullptr) {
      guest_ = std::make_unique<MachineGuest>(context.machine());
      follower_.watch(*guest_);
    }
    tools::follow(follower_, event);
    if (event.kind == MachineEvent::Kind::address_space) names_.address_space(event.value);
  }

  std::unique_ptr<Tool> part() const override { return std::make_unique<SyscallsTool>(list_); }
  void follow(Tool&& /*later*/) override {}
  void save(ByteWriter& /*out*/) const override {}
  void load(ByteReader& /*in*/) override {}

  void report(Report& report) const override {
    const std::vector<SystemCall> pending = follower_.pending();
    const std::uint64_t calls = ended_ + pending.size();
    report.value("calls", "system calls", calls);
    report.value("errors", "of which failed", errors_);
    report.value("pending", "of which had not ended", std::uint64_t{pending.size()});
    std::map<std::uint32_t, Count> counts = counts_;
    for (const SystemCall& call : pending) ++counts[call.number].calls;
    Table& by_name = report.table("by_name", "By name",
                                  {{"number", "number", ""},
                                   {"name", "name", ""},
                                   {"calls", "calls", ""},
                                   {"errors", "failed", ""}});
    for (const auto& [number, count] : counts) {
      by_name.row({std::uint64_t{number}, system_call_name(number), count.calls, count.errors});
    }
    std::vector<Row> rows = rows_;
    for (const SystemCall& call : pending) {
      if (rows.size() < list_) rows.push_back(row_of(call));
    }
    Table& list = report.table("list", "In the order of their ends",
                               {{"begin", "begin", ""},
                                {"end", "end", ""},
                                {"process", "process", ""},
                                {"call", "call", ""},
                                {"result", "result", ""}});
    for (const Row& r : rows) list.row({r.begin, r.end, r.process, r.call, r.result});
    report.value("not_listed", "calls that are not listed", calls - rows.size());
  }

 private:
  struct Count {
    std::uint64_t calls = 0, errors = 0;
  };
  struct Row {
    std::string begin, end, process, call, result;
  };

  void began(const SystemCall& call) override { names_.began(call); }
  void forked(std::uint32_t parent, std::uint32_t child, Position now) override {
    names_.forked(parent, child, now);
  }
  void executed(std::uint32_t space, const std::string& path, Position now) override {
    names_.executed(space, path, now);
  }
  void ended(const SystemCall& call) override {
    ++ended_;
    Count& count = counts_[call.number];
    ++count.calls;
    if (is_error(call)) {
      ++count.errors;
      ++errors_;
    }
    if (rows_.size() < list_) rows_.push_back(row_of(call));
  }
  Row row_of(const SystemCall& call) const {
    const bool ended = call.state != SystemCall::End::pending;
    return {position_text(call.begin), ended ? position_text(call.end) : "",
            names_.name(call.address_space).value_or(hexadecimal(call.address_space)),
            system_call_text(call), result_text(call)};
  }

  std::size_t list_;  ///< calls that are listed at most
  ProcessNames names_;
  SystemCallFollower follower_{*this};
  std::unique_ptr<MachineGuest> guest_;
  std::uint64_t ended_ = 0, errors_ = 0;
  std::map<std::uint32_t, Count> counts_;
  std::vector<Row> rows_;
};

constexpr std::uint64_t kListed = 10000, kMostListed = 1u << 24;

std::unique_ptr<Tool> make(ToolOptions& options, const Setup& /*setup*/) {
  return std::make_unique<SyscallsTool>(options.number("list", kListed, 0, kMostListed));
}

}  // namespace

extern const ToolRow kSyscallsTool{"syscalls",
                                   "List system calls of Linux on i386 with arguments and results",
                                   "list=N  list the first N calls that ended (10000)\n",
                                   "citcat analyze boot.citcat --tool syscalls",
                                   ToolRow::Merging::serial,
                                   make};

}  // namespace citcat::tools
