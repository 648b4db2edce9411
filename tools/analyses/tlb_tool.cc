// tlb: what a translation lookaside buffer of a given shape would miss. Formula and facts:
// docs/tools/tlb.md.

#include <array>
#include <bit>

#include "formats/io/error.h"
#include "tools/analyses/lru_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

enum : std::uint8_t { kCode, kRead, kWrite, kKinds, kUncounted = kKinds };
constexpr const char* kNames[] = {"code", "read", "write"};

struct Shape {
  std::size_t entries = 32, ways = 4;
  bool split = false;
  std::size_t sets() const { return entries / ways; }
};

class TlbTool final : public Tool {
 public:
  TlbTool(const Shape& shape, bool begins)
      : shape_(shape),
        begins_(begins),
        tables_{LruTable(shape.sets(), shape.ways, begins),
                LruTable(shape.sets(), shape.ways, begins)} {}

  Wants wants() const override { return {.references = true, .events = true}; }
  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }
  void run(void*, const Execution& execution, const Context&) override {
    std::size_t r = 0;
    const std::span<const Reference> references = execution.references();
    for (std::uint32_t i = 0; i < execution.block().count(); ++i) {
      if (execution.first().iteration == 0) fetch(execution.block()[i]);
      for (; r < references.size() && references[r].instruction == i; ++r) look(references[r]);
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      for (Reference again : references) {
        again.linear =
            LinearAddr{static_cast<std::uint32_t>(again.linear.value) + n * execution.step()};
        look(again);
      }
    }
  }
  void event(const MachineEvent& event, const Context&) override {
    if (event.kind != MachineEvent::Kind::address_space) return;
    if (!warming_) ++flushes_;
    for (LruTable& t : tables_) t.flush();
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<TlbTool>(shape_, begins_); }
  void follow(Tool&& tool) override {
    const auto& later = static_cast<const TlbTool&>(tool);
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      tables_[t].follow(later.tables_[t], [&](std::uint8_t kind, bool hit) {
        if (!hit) ++misses_[kind];
      });
    }
    for (std::size_t k = 0; k < kKinds; ++k) {
      accesses_[k] += later.accesses_[k];
      misses_[k] += later.misses_[k];
    }
    flushes_ += later.flushes_;
  }
  void save(ByteWriter& out) const override {
    for (const LruTable& t : tables_) t.save(out);
    for (std::size_t k = 0; k < kKinds; ++k) {
      out.varint(accesses_[k]);
      out.varint(misses_[k]);
    }
    out.varint(flushes_);
  }
  void load(ByteReader& in) override {
    for (LruTable& t : tables_) t.load(in);
    for (std::size_t k = 0; k < kKinds; ++k) {
      accesses_[k] = in.varint("accesses");
      misses_[k] = in.varint("misses");
    }
    flushes_ = in.varint("flushes");
  }
  void report(Report& out) const override {
    out.value("entries", "entries", std::uint64_t{shape_.entries});
    out.value("ways", "ways", std::uint64_t{shape_.ways});
    out.value("flushes", "flushes", flushes_);
    Table& table = out.table("pages", "pages looked up",
                             {{"kind", "kind", ""},
                              {"accesses", "accesses", ""},
                              {"misses", "misses", ""},
                              {"percent", "of accesses", "%"}});
    for (std::size_t k = 0; k < kKinds; ++k) {
      const double share = accesses_[k] != 0 ? 100.0 * static_cast<double>(misses_[k]) /
                                                   static_cast<double>(accesses_[k])
                                             : 0.0;
      table.row({std::string(kNames[k]), accesses_[k], misses_[k], share});
    }
  }

 private:
  void fetch(const StaticInstruction& i) {
    look_up(i.linear, kCode);
    const std::uint32_t here = i.bytes_in_first_page();
    if (here == i.info.length) return;
    look_up(LinearAddr{static_cast<std::uint32_t>(i.linear.value) + here}, kCode);
  }
  void look(const Reference& r) {
    if (r.kind == AccessKind::data) look_up(r.linear, r.write ? kWrite : kRead);
  }
  void look_up(LinearAddr at, std::uint8_t kind) {
    const auto page = static_cast<std::uint64_t>(at.page());
    LruTable& table = tables_[shape_.split && kind == kCode ? 1 : 0];
    if (warming_) kind = kUncounted;
    ++accesses_[kind];
    const auto hit = table.access(page & (shape_.sets() - 1), page, kind);
    if (hit && !*hit) ++misses_[kind];
  }

  const Shape shape_;
  const bool begins_;
  std::array<LruTable, 2> tables_;  ///< of data, or all; of code
  std::array<std::uint64_t, kKinds + 1> accesses_{}, misses_{};
  std::uint64_t flushes_ = 0;
  bool warming_ = false;
};

std::unique_ptr<Tool> make(ToolOptions& options, const Setup& setup) {
  Shape shape;
  shape.entries = options.power_of_two("entries", 32, 1, 1u << 20);
  shape.ways = options.power_of_two("ways", 4, 1, 256);
  shape.split = options.flag("split");
  if (shape.ways > shape.entries) {
    throw UsageError("--tool tlb: expected at least as many entries as ways");
  }
  return std::make_unique<TlbTool>(shape, setup.begins);
}

}  // namespace

extern const ToolRow kTlbTool{"tlb",
                              "Count what a translation lookaside buffer misses",
                              "entries=N  a power of two (32, as the i486)\n"
                              "ways=N     a power of two (4)\n"
                              "split      one for code and one for data\n",
                              "citcat analyze boot.citcat --tool tlb:entries=64",
                              ToolRow::Merging::exact,
                              make};

}  // namespace citcat::tools
