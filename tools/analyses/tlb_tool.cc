// tlb: what a translation lookaside buffer of a given shape would miss. Formula and facts:
// docs/tools/tlb.md.

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "formats/io/error.h"
#include "tools/analyses/lru_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// kTlbUncounted: what only warms the buffers up.
enum : std::uint8_t { kTlbCode, kTlbRead, kTlbWrite, kTlbKinds, kTlbUncounted = kTlbKinds };
constexpr const char* kTlbNames[] = {"code", "read", "write"};
using PageNumber = LinearAddr::PageNumber;

struct Shape {
  std::vector<std::uint64_t> entries;  ///< of each buffer
  std::size_t ways = 4;
  bool split = false;
};

/// The pages that were looked up last. A table that has as many ways as there are of them holds
/// them, whatever its number of sets: looked up again, they change the order of use in their sets
/// and nothing else. So the table need not be told before another page is looked up.
class LatestPages {
 public:
  explicit LatestPages(std::size_t ways) : most_(std::min(ways, kMost)) {}

  /// True where it is one of them.
  bool use(PageNumber page) {
    if (count_ != 0 && pages_[0] == page) [[likely]]
      return true;
    for (std::size_t i = 1; i < count_; ++i) {
      if (pages_[i] != page) continue;
      for (; i != 0; --i) pages_[i] = pages_[i - 1];
      pages_[0] = page;
      told_ = false;
      return true;
    }
    return false;
  }
  /// The first in place of the one used least lately: `page` was not among them. All were told.
  void add(PageNumber page) {
    count_ = std::min(count_ + 1, most_);
    for (std::size_t i = count_ - 1; i != 0; --i) pages_[i] = pages_[i - 1];
    pages_[0] = page;
  }
  /// Tells tell(page) the order in which they were used, if it has changed.
  template <class F>
  void tell(F&& tell_page) {
    if (!std::exchange(told_, true)) each(tell_page);
  }
  /// The same, whether it has changed or not.
  template <class F>
  void each(F&& tell_page) const {
    for (std::size_t i = count_; i-- != 0;) tell_page(pages_[i]);
  }
  void clear() { count_ = 0; }

 private:
  static constexpr std::size_t kMost = 4;
  std::array<PageNumber, kMost> pages_{};  ///< the latest first
  std::size_t most_, count_ = 0;
  bool told_ = true;
};

/// Buffers of all sizes that one stream of pages goes to.
class Buffers {
 public:
  Buffers(const Shape& shape, bool known) : latest_(shape.ways) {
    for (const std::uint64_t entries : shape.entries) {
      sets_.push_back(static_cast<std::size_t>(entries) / shape.ways);
      tables_.emplace_back(sets_.back(), shape.ways, known);
      misses_.emplace_back();
    }
  }

  void look_up(PageNumber page, std::uint8_t kind) {
    if (!latest_.use(page)) [[unlikely]]
      look_up_new(page, kind);
  }
  /// Misses of that buffer, of that kind.
  std::uint64_t misses(std::size_t number, std::size_t kind) const { return misses_[number][kind]; }
  void flush() {
    latest_.clear();
    for (LruTable& t : tables_) t.flush();
  }
  void follow(Buffers& later) {
    settle();
    later.settle();
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      tables_[t].follow(later.tables_[t], [&](std::uint8_t kind, bool hit) {
        if (!hit) ++misses_[t][kind];
      });
      for (std::size_t k = 0; k < kTlbKinds; ++k) misses_[t][k] += later.misses_[t][k];
    }
    latest_.clear();
  }
  void save(ByteWriter& out) const {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      LruTable table = tables_[t];
      latest_.each([&](PageNumber page) { use_known(table, t, page); });
      table.save(out);
      for (std::size_t k = 0; k < kTlbKinds; ++k) out.varint(misses_[t][k]);
    }
  }
  void load(ByteReader& in) {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      tables_[t].load(in);
      for (std::size_t k = 0; k < kTlbKinds; ++k) misses_[t][k] = in.varint("misses");
    }
  }

 private:
  void use_known(LruTable& table, std::size_t number, PageNumber page) const {
    table.access(page & (sets_[number] - 1), page, kTlbRead);
  }
  void settle() {
    latest_.tell([this](PageNumber page) {
      for (std::size_t t = 0; t < tables_.size(); ++t) use_known(tables_[t], t, page);
    });
  }
  void look_up_new(PageNumber page, std::uint8_t kind) {
    settle();
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const auto hit = tables_[t].access(page & (sets_[t] - 1), page, kind);
      if (hit && !*hit) ++misses_[t][kind];
    }
    latest_.add(page);
  }

  LatestPages latest_;
  std::vector<std::size_t> sets_;
  std::vector<LruTable> tables_;
  std::vector<std::array<std::uint64_t, kTlbKinds + 1>> misses_;
};

class TlbTool final : public Tool {
 public:
  TlbTool(Shape shape, bool begins)
      : shape_(std::move(shape)),
        begins_(begins),
        buffers_{Buffers(shape_, begins), Buffers(shape_, begins)} {}

  Wants wants() const override { return {.references = true, .events = true}; }
  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }
  void* code(const StaticBlock& block) override { return &code_.emplace_back(pages_of(block)); }
  void run(void* mine, const Execution& execution, const Context&) override {
    const CodePages& code = *static_cast<const CodePages*>(mine);
    const std::span<const Reference> references = execution.references();
    if (execution.first().iteration != 0) {
      for (const Reference& r : references) look(r, 0);
    } else {
      accesses_[counted(kTlbCode)] += code.lookups;
      run_code(code, execution.block().count(), references);
    }
    if (execution.iterations() > 1) run_further(execution);
  }
  void event(const MachineEvent& event, const Context&) override {
    if (event.kind != MachineEvent::Kind::address_space) return;
    if (!warming_) ++flushes_;
    for (Buffers& b : buffers_) b.flush();
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<TlbTool>(shape_, begins_); }
  void follow(Tool&& tool) override {
    auto& later = static_cast<TlbTool&>(tool);
    for (std::size_t b = 0; b < buffers_.size(); ++b) buffers_[b].follow(later.buffers_[b]);
    for (std::size_t k = 0; k < kTlbKinds; ++k) accesses_[k] += later.accesses_[k];
    flushes_ += later.flushes_;
  }
  void save(ByteWriter& out) const override {
    for (const Buffers& b : buffers_) b.save(out);
    for (std::size_t k = 0; k < kTlbKinds; ++k) out.varint(accesses_[k]);
    out.varint(flushes_);
  }
  void load(ByteReader& in) override {
    for (Buffers& b : buffers_) b.load(in);
    for (std::size_t k = 0; k < kTlbKinds; ++k) accesses_[k] = in.varint("accesses");
    flushes_ = in.varint("flushes");
  }
  void report(Report& out) const override;

 private:
  /// The pages of a block's code.
  struct CodePages {
    /// The pages of each instruction's first and last byte.
    std::vector<std::pair<PageNumber, PageNumber>> of;
    std::uint32_t lookups = 0;
    bool one_page = true;  ///< all of it lies in one
  };
  static CodePages pages_of(const StaticBlock& block) {
    CodePages code;
    for (const StaticInstruction& i : block.instructions()) {
      const std::uint32_t here = i.bytes_in_first_page();
      const PageNumber page = i.linear.page();
      const PageNumber last = here == i.info.length ? page : i.byte(here).page();
      code.lookups += last == page ? 1 : 2;
      code.one_page = code.one_page && last == page && page == block.front().linear.page();
      code.of.emplace_back(page, last);
    }
    return code;
  }
  std::uint8_t counted(std::uint8_t kind) const {
    return warming_ ? static_cast<std::uint8_t>(kTlbUncounted) : kind;
  }
  Buffers& of_code() { return buffers_[shape_.split ? 1 : 0]; }

  /// Instructions of one page that follow one another look it up once, unless there is data in
  /// between.
  void run_code(const CodePages& code, std::uint32_t count, std::span<const Reference> references) {
    if (!code.one_page) [[unlikely]]
      return run_pages(code, references);
    Buffers& buffers = of_code();
    const PageNumber page = code.of.front().first;
    std::uint32_t fetched = 0;
    buffers.look_up(page, counted(kTlbCode));
    for (const Reference& r : references) {
      if (r.instruction != fetched) {
        buffers.look_up(page, counted(kTlbCode));
        fetched = r.instruction;
      }
      look(r, 0);
    }
    if (fetched + 1 < count) buffers.look_up(page, counted(kTlbCode));
  }
  void run_pages(const CodePages& code, std::span<const Reference> references) {
    std::size_t r = 0;
    for (std::uint32_t i = 0; i < code.of.size(); ++i) {
      const auto [page, last] = code.of[i];
      of_code().look_up(page, counted(kTlbCode));
      if (last != page) of_code().look_up(last, counted(kTlbCode));
      for (; r < references.size() && references[r].instruction == i; ++r) look(references[r], 0);
    }
  }
  /// Iterations after the first. Where all lie in the pages of the first, they leave the buffers
  /// as the second does.
  void run_further(const Execution& execution) {
    const std::uint32_t further = execution.iterations() - 1;
    const std::uint32_t end = further * execution.step();
    bool same = further <= kPageSize;
    for (const Reference& r : execution.references()) {
      same = same && r.linear.page() == tools::further(r.linear, end).page();
    }
    const std::uint32_t last = same ? 1 : further;
    for (std::uint32_t n = 1; n <= last; ++n) {
      for (const Reference& r : execution.references()) look(r, n * execution.step());
    }
    if (!same) return;
    for (const Reference& r : execution.references()) {
      if (r.kind == AccessKind::data) accesses_[kind_of(r)] += further - 1;
    }
  }
  std::uint8_t kind_of(const Reference& r) const { return counted(r.write ? kTlbWrite : kTlbRead); }
  void look(const Reference& r, std::uint32_t by) {
    if (r.kind != AccessKind::data) return;
    const std::uint8_t kind = kind_of(r);
    ++accesses_[kind];
    buffers_[0].look_up(tools::further(r.linear, by).page(), kind);
  }
  std::uint64_t misses(std::size_t number, std::size_t kind) const {
    return buffers_[0].misses(number, kind) + buffers_[1].misses(number, kind);
  }

  const Shape shape_;
  const bool begins_;
  std::array<Buffers, 2> buffers_;  ///< of data, or all; of code
  std::deque<CodePages> code_;
  std::array<std::uint64_t, kTlbKinds + 1> accesses_{};
  std::uint64_t flushes_ = 0;
  bool warming_ = false;
};

void TlbTool::report(Report& out) const {
  const bool one = shape_.entries.size() == 1;
  if (one) out.value("entries", "entries", shape_.entries[0]);
  out.value("ways", "ways", std::uint64_t{shape_.ways});
  out.value("flushes", "flushes", flushes_);
  std::vector<Column> columns = {{"kind", "kind", ""},
                                 {"accesses", "accesses", ""},
                                 {"misses", "misses", ""},
                                 {"percent", "of accesses", "%"}};
  if (!one) columns.insert(columns.begin(), {"entries", "entries", ""});
  Table& table = out.table("pages", "pages looked up", columns);
  for (std::size_t t = 0; t < shape_.entries.size(); ++t) {
    for (std::size_t k = 0; k < kTlbKinds; ++k) {
      const double share = accesses_[k] != 0 ? 100.0 * static_cast<double>(misses(t, k)) /
                                                   static_cast<double>(accesses_[k])
                                             : 0.0;
      std::vector<Cell> cells = {std::string(kTlbNames[k]), accesses_[k], misses(t, k), share};
      if (!one) cells.insert(cells.begin(), shape_.entries[t]);
      table.row(std::move(cells));
    }
  }
}

std::unique_ptr<Tool> make_tlb(ToolOptions& options, const Setup& setup) {
  Shape shape;
  shape.entries = options.powers_of_two("entries", 32, 1, 1u << 20);
  shape.ways = options.power_of_two("ways", 4, 1, 256);
  shape.split = options.flag("split");
  if (shape.ways > *std::min_element(shape.entries.begin(), shape.entries.end())) {
    throw UsageError("--tool tlb: expected at least as many entries as ways");
  }
  return std::make_unique<TlbTool>(shape, setup.begins);
}

}  // namespace

extern const ToolRow kTlbTool{
    "tlb",
    "Count what a translation lookaside buffer misses",
    "entries=N  entries, a power of two (32, as on the i486), or several: 16+32+64\n"
    "ways=N     ways, a power of two (4)\n"
    "split      one TLB for code and one for data\n",
    "citcat analyze boot.citcat --tool tlb:entries=64",
    ToolRow::Merging::exact,
    make_tlb};

}  // namespace citcat::tools
