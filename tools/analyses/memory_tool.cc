// memory: accesses to data by size and alignment, and the pages with most of them. Formula and
// facts: docs/tools/memory.md.

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr const char* kAccessKinds[] = {"data", "page walk", "system"};

class MemoryTool final : public Tool {
 public:
  MemoryTool(std::size_t shown, const MachineFacts& machine) : shown_(shown), machine_(machine) {}

  Wants wants() const override { return {.references = true, .walks = true}; }
  void run(void*, const Execution& execution, const Context&) override {
    for_each_access(execution, [&](const Reference& r) { count(r); });
  }
  void accesses(std::span<const OtherAccess> accesses, const Context&) override {
    for (const OtherAccess& a : accesses) {
      if (!a.code) count(a);
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<MemoryTool>(shown_, machine_);
  }
  void follow(Tool&& tool) override {
    const auto& later = static_cast<const MemoryTool&>(tool);
    for (const auto& [kind, n] : later.kinds_) kinds_[kind] += n;
    for (const auto& [page, p] : later.pages_) {
      pages_[page].reads += p.reads;
      pages_[page].writes += p.writes;
    }
  }
  void save(ByteWriter& out) const override {
    out.varint(kinds_.size());
    for (const auto& [kind, n] : kinds_) {
      const auto& [k, write, size, misaligned] = kind;
      out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(k) << 2 | (write ? 2u : 0u) |
                                       (misaligned ? 1u : 0u)));
      out.varint(size);
      out.varint(n);
    }
    out.varint(pages_.size());
    for (const auto& [page, p] : pages_) {
      out.varint(page);
      out.varint(p.reads);
      out.varint(p.writes);
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t kinds = in.varint("kinds of accesses");
    for (std::uint64_t i = 0; i < kinds; ++i) {
      const std::uint8_t flags = in.u8("kind");
      if (flags >> 2 > 2) in.fail("expected a kind of access");
      const auto size = static_cast<std::uint16_t>(in.count("size", kPageSize));
      kinds_[{static_cast<AccessKind>(flags >> 2), (flags & 2) != 0, size, (flags & 1) != 0}] =
          in.varint("count of a kind");
    }
    const std::uint64_t pages = in.varint("number of pages");
    for (std::uint64_t i = 0; i < pages; ++i) {
      Page& p = pages_[in.varint("page")];
      p.reads = in.varint("reads");
      p.writes = in.varint("writes");
    }
  }
  void report(Report& out) const override;

 private:
  using Kind = std::tuple<AccessKind, bool, std::uint16_t, bool>;
  struct Page {
    std::uint64_t reads = 0, writes = 0;
    std::uint64_t all() const { return reads + writes; }
  };
  void count(const Reference& r) {
    const bool power = (r.size & (r.size - 1)) == 0;
    const bool misaligned = power && (r.physical.value & (r.size - 1u)) != 0;
    ++kinds_[{r.kind, r.write, r.size, misaligned}];
    Page& page = pages_[r.physical.page()];
    ++(r.write ? page.writes : page.reads);
  }

  std::size_t shown_;
  MachineFacts machine_;
  std::map<Kind, std::uint64_t> kinds_;
  std::map<FrameNumber, Page> pages_;  ///< by frame number
};

void MemoryTool::report(Report& out) const {
  std::uint64_t reads = 0, writes = 0, bytes = 0;
  Table& kinds = out.table("kinds", "by kind and size",
                           {{"kind", "kind", ""},
                            {"direction", "direction", ""},
                            {"size", "size", "bytes"},
                            {"misaligned", "misaligned", ""},
                            {"count", "count", ""}});
  for (const auto& [kind, n] : kinds_) {
    const auto& [k, write, size, misaligned] = kind;
    (write ? writes : reads) += n;
    bytes += n * size;
    kinds.row({std::string(kAccessKinds[static_cast<std::size_t>(k)]),
               std::string(write ? "write" : "read"), std::uint64_t{size},
               std::string(misaligned ? "yes" : "no"), n});
  }
  out.value("reads", "reads", reads);
  out.value("writes", "writes", writes);
  out.value("bytes", "bytes", bytes, "bytes");
  out.value("pages", "different page frames", std::uint64_t{pages_.size()});
  std::vector<std::pair<FrameNumber, Page>> busiest(pages_.begin(), pages_.end());
  std::stable_sort(busiest.begin(), busiest.end(),
                   [](const auto& a, const auto& b) { return a.second.all() > b.second.all(); });
  Table& table = out.table(
      "busiest", "the busiest page frames",
      {{"address", "physical address", ""}, {"reads", "reads", ""}, {"writes", "writes", ""}});
  for (std::size_t i = 0; i < std::min(shown_, busiest.size()); ++i) {
    const auto& [page, p] = busiest[i];
    table.row({hexadecimal(page * kPageSize), p.reads, p.writes});
  }
}

std::unique_ptr<Tool> make_memory(ToolOptions& options, const Setup& setup) {
  return std::make_unique<MemoryTool>(options.number("show", 20, 0, 1u << 20), setup.machine);
}

}  // namespace

extern const ToolRow kMemoryTool{"memory",
                                 "Count accesses to data by kind, size, alignment and page",
                                 "show=N  show the N busiest page frames (20)\n",
                                 "citcat analyze boot.citcat --tool memory",
                                 ToolRow::Merging::exact,
                                 make_memory};

}  // namespace citcat::tools
