// reuse: how many different lines are touched between two touches of the same: LRU stack distances.
// Formula and facts: docs/tools/reuse.md.

#include <array>
#include <bit>
#include <deque>
#include <vector>

#include "tools/analyses/code_lines.h"
#include "tools/analyses/reuse_stack.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class ReuseTool final : public Tool {
 public:
  ReuseTool(unsigned shift, bool code, bool data)
      : shift_(shift), code_(code), data_(data), stack_(shift) {}

  Wants wants() const override { return {.references = true}; }
  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }
  void* code(const StaticBlock& block) override {
    return &lines_.emplace_back(code_lines_of(block, [this](PhysAddr a) { return line_of(a); }));
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    const std::span<const Reference> references = execution.references();
    if (code_ && execution.first().iteration == 0) {
      run_code(*static_cast<const CodeLines*>(mine), references);
    } else {
      for (const Reference& r : references) look(r, 0);
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
    for (const std::uint64_t line : later.first_) touch(line);
    for (const std::uint64_t line : later.stack_.lines()) stack_.use(line);
    for (std::size_t i = 0; i < distances_.size(); ++i) distances_[i] += later.distances_[i];
    touches_ += later.touches_ - later.first_.size();
  }
  void save(ByteWriter& out) const override {
    out.varint(touches_);
    for (const std::uint64_t n : distances_) out.varint(n);
    out.varint(first_.size());
    for (const std::uint64_t line : first_) out.varint(line);
    for (const std::uint64_t line : stack_.lines()) out.varint(line);
  }
  void load(ByteReader& in) override {
    touches_ = in.varint("touches");
    for (std::uint64_t& n : distances_) n = in.varint("count of a distance");
    const std::uint64_t lines = in.varint("number of lines");
    const auto line = [&] { return in.varint("line"); };
    for (std::uint64_t i = 0; i < lines; ++i) first_.push_back(line());
    for (std::uint64_t i = 0; i < lines; ++i) stack_.use(line());
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
  std::uint64_t line_of(PhysAddr a) const { return a.value >> shift_; }
  /// What CodeLines leaves out of an instruction's lines is the line touched last.
  void run_code(const CodeLines& code, std::span<const Reference> references) {
    std::uint32_t fetched = 0;
    code.run(
        references,
        [&](PhysAddr at, std::uint32_t) {
          ++fetched;
          touch(line_of(at));
        },
        [this](const Reference& r, std::uint16_t) { look(r, 0); });
    if (warming_) return;
    distances_[0] += code.touches() - fetched;
    touches_ += code.touches() - fetched;
  }
  void look(const Reference& r, std::uint32_t by) {
    if (!data_ || r.kind != AccessKind::data) return;
    const std::uint64_t begin = r.physical.plus32(by).value;
    for (std::uint64_t line = begin >> shift_; line <= (begin + r.size - 1) >> shift_; ++line) {
      touch(line);
    }
  }
  void touch(std::uint64_t line) {
    const unsigned bits = stack_.use(line);
    if (warming_) [[unlikely]]
      return warm(line, bits);
    ++touches_;
    if (bits == ReuseStack::kNew) [[unlikely]] {
      first_.push_back(line);
    } else {
      ++distances_[bits];
    }
  }

  /// A line whose first touch was not counted is known to the parts that follow all the same.
  void warm(std::uint64_t line, unsigned bits) {
    if (bits == ReuseStack::kNew) first_.push_back(line);
  }

  unsigned shift_;
  bool code_, data_;
  bool warming_ = false;
  ReuseStack stack_;
  std::deque<CodeLines> lines_;
  std::vector<std::uint64_t> first_;  ///< lines in the order of their first touches
  std::array<std::uint64_t, ReuseStack::kMostBits + 1>
      distances_{};  ///< touches by bits of their distance
  std::uint64_t touches_ = 0;
};

std::unique_ptr<Tool> make_reuse(ToolOptions& options, const Setup&) {
  const auto line = options.power_of_two("line", 16, 1, kPageSize);
  const std::string of = options.one_of("of", "all", {"all", "code", "data"});
  return std::make_unique<ReuseTool>(static_cast<unsigned>(std::countr_zero(line)), of != "data",
                                     of != "code");
}

}  // namespace

extern const ToolRow kReuseTool{"reuse",
                                "Measure how soon lines are touched again: LRU stack distances",
                                "line=N   bytes per line, a power of two (16)\n"
                                "of=WHAT  all (default), code or data\n",
                                "citcat analyze boot.citcat --tool reuse:line=64,of=data",
                                ToolRow::Merging::exact,
                                make_reuse};

}  // namespace citcat::tools
