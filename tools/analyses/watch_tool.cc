// watch: every access to a range of addresses, with its place, instruction and value. Formula and
// facts: docs/tools/watch.md.

#include <fmt/format.h>

#include <vector>

#include "formats/io/error.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

struct Access {
  std::uint64_t instruction = 0;
  std::uint32_t iteration = 0;
  LinearAddr code, data;
  PhysAddr physical;
  std::uint16_t size = 0;
  bool write = false;
  std::uint64_t value = 0;
};

class WatchTool final : public Tool {
 public:
  WatchTool(LinearRange range, bool physical, bool reads, std::uint64_t most,
            const MachineFacts& machine)
      : range_(range), physical_(physical), reads_(reads), most_(most), machine_(machine) {}

  Wants wants() const override { return {.references = true, .values = true}; }
  void run(void*, const Execution& execution, const Context&) override {
    const std::uint32_t step = execution.step();
    for (std::uint32_t n = 0; n < execution.iterations(); ++n) {
      for (const Reference& r : execution.references()) {
        if ((r.write || reads_) && r.kind == AccessKind::data) look(execution, r, n, n * step);
      }
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<WatchTool>(range_, physical_, reads_, most_, machine_);
  }
  void follow(Tool&& tool) override {
    const auto& later = static_cast<const WatchTool&>(tool);
    for (const Access& a : later.accesses_) add(a);
    count_ += later.count_ - later.accesses_.size();
  }
  void save(ByteWriter& out) const override {
    out.varint(count_);
    out.varint(accesses_.size());
    for (const Access& a : accesses_) {
      out.varint(a.instruction);
      out.varint(a.iteration);
      out.varint(a.code.value);
      out.varint(a.data.value);
      out.varint(a.physical.value);
      out.varint(a.size);
      out.u8(a.write ? 1 : 0);
      out.u64(a.value);
    }
  }
  void load(ByteReader& in) override {
    count_ = in.varint("number of accesses");
    const std::size_t kept = in.count("accesses kept", std::min(count_, most_));
    for (std::size_t i = 0; i < kept; ++i) {
      Access& a = accesses_.emplace_back();
      a.instruction = in.varint("instruction");
      a.iteration = static_cast<std::uint32_t>(in.count("iteration", 0xffffffff));
      a.code = LinearAddr{in.varint("code")};
      a.data = LinearAddr{in.varint("data")};
      a.physical = PhysAddr{in.varint("physical address")};
      a.size = static_cast<std::uint16_t>(in.count("size", kPageSize));
      a.write = in.u8("direction") != 0;
      a.value = in.u64("value");
    }
  }
  void report(Report& out) const override {
    out.value("accesses", "accesses", count_);
    Table& table = out.table("list", "the first of them",
                             {{"position", "position", ""},
                              {"code", "instruction at", ""},
                              {"direction", "direction", ""},
                              {"address", "address", ""},
                              {"physical", "physical", ""},
                              {"size", "size", "bytes"},
                              {"value", "value", ""}});
    for (const Access& a : accesses_) {
      table.row({a.iteration != 0 ? fmt::format("{}+{}", a.instruction, a.iteration)
                                  : fmt::format("{}", a.instruction),
                 hexadecimal(a.code.value), std::string(a.write ? "write" : "read"),
                 hexadecimal(a.data.value), hexadecimal(a.physical.value), std::uint64_t{a.size},
                 a.size <= 8 ? fmt::format("{:0{}x}", a.value, 2 * a.size) : std::string()});
    }
  }

 private:
  void look(const Execution& execution, const Reference& r, std::uint32_t iteration,
            std::uint32_t by) {
    const LinearAddr linear = further(r.linear, by);
    const PhysAddr physical = r.physical.plus32(by);
    const LinearAddr at = physical_ ? LinearAddr{physical.value} : linear;
    if (at >= range_.end || at.value + r.size <= range_.begin.value) return;
    Access a;
    const Position first = execution.first();
    a.instruction = first.instruction + r.instruction;
    a.iteration = first.iteration + iteration;
    a.code = execution.block()[r.instruction].linear;
    a.data = linear;
    a.physical = physical;
    a.size = r.size;
    a.write = r.write;
    a.value = r.value;
    add(a);
  }
  void add(const Access& a) {
    ++count_;
    if (accesses_.size() < most_) accesses_.push_back(a);
  }

  LinearRange range_;
  bool physical_, reads_;
  std::uint64_t most_;
  MachineFacts machine_;
  std::uint64_t count_ = 0;
  std::vector<Access> accesses_;  ///< the first of them
};

std::unique_ptr<Tool> make_watch(ToolOptions& options, const Setup& setup) {
  const std::string at = options.text("at", "");
  if (at.empty()) throw UsageError("--tool watch: expected at=FIRST-LAST");
  const LinearRange range = parse_linear_range(at, "--tool watch: at=");
  const bool physical = options.flag("physical");
  const bool reads = options.flag("reads");
  return std::make_unique<WatchTool>(range, physical, reads,
                                     options.number("most", 1000, 0, 1u << 24), setup.machine);
}

}  // namespace

extern const ToolRow kWatchTool{
    "watch",
    "List the accesses to a range of addresses",
    "at=FIRST-LAST  hexadecimal addresses, or one address\n"
    "physical       the addresses are physical\n"
    "reads          list reads, too\n"
    "most=N         list the first N (1000)\n",
    "citcat analyze boot.citcat --tool watch:at=c0100000-c0100fff,reads",
    ToolRow::Merging::exact,
    make_watch};

}  // namespace citcat::tools
