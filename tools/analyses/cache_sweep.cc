#include "tools/analyses/cache_sweep.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <sstream>
#include <vector>

#include "tools/analyses/cache_feed.h"
#include "tools/analyses/cache_stacks.h"
#include "tools/analyses/counted_cache.h"

namespace citcat::tools {
namespace {

/// Bounds of a sweep: the smallest cache, and the lines it tries.
constexpr std::uint32_t kLeastBytes = 1024, kLeastLine = 16, kMostLine = 128;

struct Sweep {
  CacheDescriptor base;
  CachedMemory memory{0};
  std::vector<CacheDescriptor> shapes;  ///< by line, size, ways
};

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::countr_zero(power)); }

/// All powers of two from `least` to `most`, or `one` alone.
std::vector<std::uint32_t> powers(bool varied, std::uint32_t one, std::uint32_t least,
                                  std::uint32_t most) {
  if (!varied) return {one};
  std::vector<std::uint32_t> all;
  for (std::uint64_t p = least; p <= most; p *= 2) all.push_back(static_cast<std::uint32_t>(p));
  return all;
}

std::vector<CacheDescriptor> shapes_of(const std::string& what, std::uint32_t most,
                                       const CacheDescriptor& base) {
  bool bytes = false, ways = false, line = false;
  std::istringstream words(what);
  for (std::string word; std::getline(words, word, '+');) {
    bool* const varied = word == "bytes"  ? &bytes
                         : word == "ways" ? &ways
                         : word == "line" ? &line
                                          : nullptr;
    if (varied == nullptr) {
      throw UsageError(
          "--tool cache: expected sweep= of bytes, ways and line with + between, found " + what);
    }
    *varied = true;
  }
  std::vector<CacheDescriptor> all;
  for (const std::uint32_t l : powers(line, base.line_bytes, kLeastLine, kMostLine)) {
    for (const std::uint32_t b : powers(bytes, base.bytes, kLeastBytes, most)) {
      for (const std::uint32_t w : powers(ways, base.ways, 1, CacheModel::kMaxWays)) {
        if (std::uint64_t{l} * w > b) continue;
        CacheDescriptor shape = base;
        shape.line_bytes = l;
        shape.bytes = b;
        shape.ways = w;
        all.push_back(shape);
      }
    }
  }
  if (all.empty()) throw UsageError("--tool cache: no size of the sweep holds a line for each way");
  return all;
}

std::vector<Column> columns(bool with_causes) {
  std::vector<Column> all{{"line", "line", "bytes"},
                          {"bytes", "size", "bytes"},
                          {"ways", "ways", ""},
                          {"code_fills", "filled for code", "lines"},
                          {"code_percent", "of references", "%"},
                          {"data_fills", "for data", "lines"},
                          {"data_percent", "of references", "%"},
                          {"user_code_fills", "at level 3 for code", "lines"},
                          {"user_data_fills", "for data", "lines"}};
  if (with_causes) {
    all.insert(all.end(), {{"first", "the first time", "lines"},
                           {"taken_away", "taken away before", "lines"},
                           {"capacity", "for the size", "lines"},
                           {"conflict", "for the place", "lines"}});
  }
  return all;
}

/// A row without causes.
std::vector<Cell> row_of(const CacheDescriptor& shape, const CacheParts& parts,
                         const CacheFills& rest, const CacheFills& programs) {
  const CachePart all = parts[kRest] + parts[kPrograms];
  const CacheFills fills = rest + programs;
  return {std::uint64_t{shape.line_bytes},
          std::uint64_t{shape.bytes},
          std::uint64_t{shape.ways},
          fills.code,
          percent(fills.code, all.code.references),
          fills.data,
          percent(fills.data, all.data.references),
          programs.code,
          programs.data};
}

void report_references(Report& out, const Sweep& sweep, const CacheParts& parts,
                       std::uint64_t flush_every) {
  const CachePart all = parts[kRest] + parts[kPrograms];
  out.value("model", "model", std::string(sweep.base.name));
  if (flush_every != 0) out.value("flush", "emptied every", flush_every, "instructions");
  out.value("code_references", "references to code", all.code.references);
  out.value("data_references", "references to data", all.data.references);
  out.value("user_code_references", "at level 3 to code", parts[kPrograms].code.references);
  out.value("user_data_references", "to data", parts[kPrograms].data.references);
}

/// Each shape a cache of its own, which may be of any kind.
class CacheBank {
 public:
  explicit CacheBank(std::shared_ptr<const Sweep> sweep) : sweep_(std::move(sweep)) {
    for (const CacheDescriptor& shape : sweep_->shapes) caches_.emplace_back(shape, sweep_->memory);
  }
  void fetch_line(PhysAddr a) {
    for (CountedCache& c : caches_) c.fetch_line(a);
  }
  void fetch(PhysAddr a, std::uint32_t size) {
    for (CountedCache& c : caches_) c.fetch(a, size);
  }
  void read(PhysAddr a, std::uint32_t size) {
    for (CountedCache& c : caches_) c.read(a, size);
  }
  void write(PhysAddr a, std::uint32_t size) {
    for (CountedCache& c : caches_) c.write(a, size);
  }
  void flush() {
    for (CountedCache& c : caches_) c.flush();
  }
  void snoop_write(PhysAddr a, std::uint32_t size) {
    for (CountedCache& c : caches_) c.snoop_write(a, size);
  }
  void set_disabled(bool disabled) {
    for (CountedCache& c : caches_) c.set_disabled(disabled);
  }
  /// The shortest line, from which all others are made.
  std::uint64_t line_of(PhysAddr a) const { return caches_.front().line_of(a); }
  bool has_moved() {
    return std::any_of(caches_.begin(), caches_.end(),
                       [](CountedCache& c) { return c.has_moved(); });
  }
  std::uint32_t repeated_line() const { return caches_.front().repeated_line(); }
  void enter(unsigned) {}
  void settle(unsigned part) {
    for (CountedCache& c : caches_) c.settle(part);
  }
  void report(Report& out, const CacheParts& parts, std::uint64_t flush_every) const {
    report_references(out, *sweep_, parts, flush_every);
    Table& table = out.table("shapes", "Lines filled by caches of many shapes", columns(false));
    for (const CountedCache& c : caches_) {
      table.row(row_of(c.descriptor(), parts, c.fills()[kRest], c.fills()[kPrograms]));
    }
  }

 private:
  std::shared_ptr<const Sweep> sweep_;
  std::vector<CountedCache> caches_;
};

/// Caches of which every access that misses fills its line: stacks tell them all.
class StackBank {
 public:
  explicit StackBank(std::shared_ptr<const Sweep> sweep) : sweep_(std::move(sweep)) {
    for (auto first = sweep_->shapes.begin(); first != sweep_->shapes.end();) {
      const std::uint32_t line = first->line_bytes;
      std::uint32_t least_sets = ~0u, most_sets = 1;
      for (; first != sweep_->shapes.end() && first->line_bytes == line; ++first) {
        const std::uint32_t sets = first->bytes / line / first->ways;
        least_sets = std::min(least_sets, sets);
        most_sets = std::max(most_sets, sets);
      }
      data_.emplace_back(log2_of(line), log2_of(least_sets), log2_of(most_sets));
      if (!sweep_->base.split) continue;
      code_.emplace_back(log2_of(line), log2_of(least_sets), log2_of(most_sets));
    }
  }
  void fetch_line(PhysAddr a) { fetch(a, 1); }
  void fetch(PhysAddr a, std::uint32_t size) {
    for (CacheStacks& s : code()) access(s, a, size, true);
  }
  void read(PhysAddr a, std::uint32_t size) {
    for (CacheStacks& s : data_) access(s, a, size, false);
  }
  void write(PhysAddr a, std::uint32_t size) {
    for (CacheStacks& s : code_) take_away(s, a, size);
    read(a, size);
  }
  void flush() {
    for (CacheStacks& s : data_) s.flush();
    for (CacheStacks& s : code_) s.flush();
  }
  void snoop_write(PhysAddr a, std::uint32_t size) {
    for (CacheStacks& s : data_) take_away(s, a, size);
    for (CacheStacks& s : code_) take_away(s, a, size);
  }
  void set_disabled(bool disabled) { disabled_ = disabled; }
  std::uint64_t line_of(PhysAddr a) const { return a.value >> data_.front().line_shift(); }
  /// Each use counts where lines take turns in a set.
  static std::uint32_t repeated_line() { return 0; }
  static bool has_moved() { return true; }
  void enter(unsigned part) { part_ = part; }
  void settle(unsigned) {}
  void report(Report& out, const CacheParts& parts, std::uint64_t flush_every) const;

 private:
  std::vector<CacheStacks>& code() { return sweep_->base.split ? code_ : data_; }
  const std::vector<CacheStacks>& code() const { return sweep_->base.split ? code_ : data_; }
  void access(CacheStacks& stacks, PhysAddr a, std::uint32_t size, bool code) const {
    if (disabled_) return;
    const std::uint64_t last = (a.value + size - 1) >> stacks.line_shift();
    for (std::uint64_t line = a.value >> stacks.line_shift(); line <= last; ++line) {
      const PhysAddr begin{line << stacks.line_shift()};
      if (sweep_->memory.has(begin)) stacks.access(line, code, part_);
    }
  }
  static void take_away(CacheStacks& stacks, PhysAddr a, std::uint32_t size) {
    const std::uint64_t last = (a.value + size - 1) >> stacks.line_shift();
    for (std::uint64_t line = a.value >> stacks.line_shift(); line <= last; ++line) {
      stacks.take_away(line);
    }
  }

  std::shared_ptr<const Sweep> sweep_;
  std::vector<CacheStacks> data_,
      code_;  ///< by size of line; code_ only where it has caches of its own
  bool disabled_ = false;
  unsigned part_ = kRest;
};

void StackBank::report(Report& out, const CacheParts& parts, std::uint64_t flush_every) const {
  report_references(out, *sweep_, parts, flush_every);
  Table& table = out.table("shapes", "Lines filled by caches of many shapes", columns(true));
  std::size_t lines = 0;
  for (const CacheDescriptor& shape : sweep_->shapes) {
    const unsigned shift = log2_of(shape.line_bytes);
    while (data_[lines].line_shift() != shift) ++lines;
    const unsigned sets = log2_of(shape.bytes / shape.line_bytes / shape.ways);
    const auto fills = [&](unsigned part) {
      const CacheFills data = data_[lines].fills(sets, shape.ways, part);
      return code_.empty() ? data : data + code_[lines].fills(sets, shape.ways, part);
    };
    CacheCauses causes = data_[lines].causes(sets, shape.ways);
    if (!code_.empty()) causes = causes + code_[lines].causes(sets, shape.ways);
    std::vector<Cell> row = row_of(shape, parts, fills(kRest), fills(kPrograms));
    row.insert(row.end(),
               {causes.first, causes.taken_away, causes.capacity, signed_cell(causes.conflict)});
    table.row(std::move(row));
  }
}

template <class Bank>
std::unique_ptr<Tool> make_cache_sweep_tool(std::shared_ptr<const Sweep> sweep,
                                            std::optional<WalkPolicy> walks,
                                            std::uint64_t flush_every,
                                            const MachineFacts& machine) {
  using Feed = CacheFeed<Bank>;
  typename Feed::Plan plan;
  plan.make = [sweep] { return Bank(sweep); };
  plan.walks = walks;
  plan.ins_reads_destination = sweep->base.ins_reads_destination;
  plan.flush_every = flush_every;
  plan.machine = machine;
  return std::make_unique<Feed>(std::move(plan));
}

}  // namespace

std::unique_ptr<Tool> make_cache_sweep(const std::string& what, std::uint32_t most,
                                       const CacheDescriptor& base, std::optional<WalkPolicy> walks,
                                       std::uint64_t flush_every, const MachineFacts& machine) {
  auto sweep = std::make_shared<Sweep>();
  sweep->base = base;
  sweep->memory = CachedMemory(machine.ram_bytes);
  sweep->shapes = shapes_of(what, most, base);
  const bool fills_always = base.allocates_on_write && base.write_hit_is_use;
  if (fills_always && base.replacement == Replacement::lru) {
    return make_cache_sweep_tool<StackBank>(std::move(sweep), walks, flush_every, machine);
  }
  return make_cache_sweep_tool<CacheBank>(std::move(sweep), walks, flush_every, machine);
}

}  // namespace citcat::tools
