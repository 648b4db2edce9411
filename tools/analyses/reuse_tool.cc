// reuse: how many different lines are touched between two touches of the same: LRU stack distances.
// Formula and facts: docs/tools/reuse.md.

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tools/analyses/line_stack.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class ReuseTool final : public Tool {
 public:
  ReuseTool(unsigned shift, bool code, bool data) : shift_(shift), code_(code), data_(data) {}

  Wants wants() const override { return {.references = true}; }
  void run(void*, const Execution& execution, const Context&) override {
    std::size_t r = 0;
    const std::span<const Reference> references = execution.references();
    for (std::uint32_t i = 0; i < execution.block().count(); ++i) {
      if (code_ && execution.first().iteration == 0) fetch(execution.block()[i]);
      for (; r < references.size() && references[r].instruction == i; ++r) look(references[r], 0);
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      for (const Reference& again : references) look(again, n * execution.step());
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<ReuseTool>(shift_, code_, data_);
  }
  void follow(Tool&& tool) override {
    auto& later = static_cast<ReuseTool&>(tool);
    // What a part touched first has its distance in what came before (PARDA; Niu et al., IPDPS
    // 2012).
    for (const std::uint32_t line : later.first_) touch(line);
    for (const std::uint32_t line : later.stack_.lines()) stack_.touch(line);
    for (std::size_t i = 0; i < distances_.size(); ++i) distances_[i] += later.distances_[i];
    touches_ += later.touches_ - later.first_.size();
  }
  void save(ByteWriter& out) const override {
    out.varint(touches_);
    for (const std::uint64_t n : distances_) out.varint(n);
    out.varint(first_.size());
    for (const std::uint32_t line : first_) out.varint(line);
    for (const std::uint32_t line : stack_.lines()) out.varint(line);
  }
  void load(ByteReader& in) override {
    touches_ = in.varint("touches");
    for (std::uint64_t& n : distances_) n = in.varint("count of a distance");
    const std::uint64_t lines = in.varint("number of lines");
    const auto line = [&] { return static_cast<std::uint32_t>(in.count("line", 0xffffffff)); };
    for (std::uint64_t i = 0; i < lines; ++i) first_.push_back(line());
    for (std::uint64_t i = 0; i < lines; ++i) stack_.touch(line());
  }
  void report(Report& out) const override {
    out.value("line", "line", std::uint64_t{1} << shift_, "bytes");
    out.value("touches", "touches", touches_);
    out.value("lines", "different lines", stack_.size());
    Table& table = out.table("distances", "touches by different lines since the last one",
                             {{"below", "below", "lines"},
                              {"count", "touches", ""},
                              {"hit_percent", "hits of an LRU cache of so many lines", "%"}});
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < distances_.size(); ++i) {
      if (distances_[i] == 0) continue;
      hits += distances_[i];
      table.row({std::uint64_t{1} << i, distances_[i],
                 100.0 * static_cast<double>(hits) / static_cast<double>(touches_)});
    }
  }

 private:
  void fetch(const StaticInstruction& i) {
    const std::uint32_t here = i.bytes_in_first_page();
    range(i.physical, here);
    if (here < i.info.length) range(i.physical_rest, i.info.length - here);
  }
  void look(const Reference& r, std::uint32_t by) {
    if (data_ && r.kind == AccessKind::data) {
      range(PhysAddr{static_cast<std::uint32_t>(r.physical.value) + by}, r.size);
    }
  }
  void range(PhysAddr at, std::uint32_t size) {
    const auto begin = static_cast<std::uint32_t>(at.value);
    for (std::uint32_t line = begin >> shift_; line <= (begin + size - 1) >> shift_; ++line) {
      touch(line);
    }
  }
  void touch(std::uint32_t line) {
    ++touches_;
    const std::uint64_t distance = stack_.touch(line);
    if (distance == LineStack::kNever) {
      first_.push_back(line);
    } else {
      ++distances_[static_cast<std::size_t>(std::bit_width(distance))];
    }
  }

  unsigned shift_;
  bool code_, data_;
  LineStack stack_;
  std::vector<std::uint32_t> first_;           ///< lines in the order of their first touches
  std::array<std::uint64_t, 34> distances_{};  ///< touches by bits of their distance
  std::uint64_t touches_ = 0;
};

std::unique_ptr<Tool> make(ToolOptions& options, const Setup&) {
  const auto line = options.power_of_two("line", 16, 1, kPageSize);
  const std::string of = options.one_of("of", "all", {"all", "code", "data"});
  return std::make_unique<ReuseTool>(static_cast<unsigned>(std::countr_zero(line)), of != "data",
                                     of != "code");
}

}  // namespace

extern const ToolRow kReuseTool{"reuse",
                                "Measure how soon lines are touched again: LRU stack distances",
                                "line=N   bytes of a line, a power of two (16)\n"
                                "of=WHAT  all (default), code or data\n",
                                "citcat analyze boot.citcat --tool reuse:line=64,of=data",
                                ToolRow::Merging::exact,
                                make};

}  // namespace citcat::tools
