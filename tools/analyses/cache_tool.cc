// cache: the lines that the run fills and writes back in a processor's cache, or in any cache of a
// given shape. Formula and facts: docs/tools/cache.md.

#include <memory>
#include <string>
#include <utility>

#include "formats/io/error.h"
#include "replay/verify/cache_model.h"
#include "tools/analyses/cache_feed.h"
#include "tools/analyses/cache_sweep.h"
#include "tools/analyses/counted_cache.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// A cache of the command line's shape.
CacheDescriptor described(ToolOptions& options) {
  CacheDescriptor d;
  d.name = "as given";
  d.bytes = static_cast<std::uint32_t>(options.power_of_two("bytes", 8192, 16, 1u << 30));
  d.ways = static_cast<std::uint32_t>(options.power_of_two("ways", 4, 1, CacheModel::kMaxWays));
  d.line_bytes = static_cast<std::uint32_t>(options.power_of_two("line", 16, 4, 4096));
  if (std::uint64_t{d.ways} * d.line_bytes > d.bytes) {
    throw UsageError("--tool cache: expected bytes of at least ways x line");
  }
  d.split = options.flag("split");
  const std::string writes = options.one_of("writes", "through", {"through", "back"});
  d.form = writes == "back" ? CacheForm::write_back : CacheForm::write_through;
  d.allocates_on_write = options.flag("allocate");
  d.write_hit_is_use = true;
  return d;
}

CacheDescriptor known(const std::string& model) {
  if (const CacheDescriptor* const row = find_cache(model)) return *row;
  std::string names;
  for (const CacheDescriptor& c : known_caches()) {
    names += (names.empty() ? "" : ", ") + std::string(c.name);
  }
  throw UsageError("--tool cache: no such model: " + model + " (there are " + names + ")");
}

std::unique_ptr<Tool> make_cache(const CacheDescriptor& base, std::optional<WalkPolicy> walks,
                                 std::uint64_t flush_every, const MachineFacts& machine) {
  using Feed = CacheFeed<CountedCache>;
  Feed::Plan plan;
  // The model keeps a pointer to it.
  const auto descriptor = std::make_shared<const CacheDescriptor>(base);
  plan.make = [descriptor, machine] {
    return CountedCache(*descriptor, CachedMemory(machine.ram_bytes));
  };
  plan.walks = walks;
  plan.ins_reads_destination = base.ins_reads_destination;
  plan.flush_every = flush_every;
  plan.machine = machine;
  return std::make_unique<Feed>(std::move(plan));
}

std::unique_ptr<Tool> make_cache_tool(ToolOptions& options, const Setup& setup) {
  const std::string model = options.text("model", "");
  const std::uint64_t flush = options.number("flush", 0, 0, std::uint64_t{1} << 62);
  const CacheDescriptor base = model.empty() ? described(options) : known(model);
  const bool walked = options.one_of("walks", "captured", {"captured", "none"}) == "captured";
  const auto walks = walked ? std::optional(base.walks) : std::nullopt;
  const std::string sweep = options.text("sweep", "");
  const auto most = static_cast<std::uint32_t>(
      options.power_of_two("most", std::uint64_t{256} << 10, 1024, std::uint64_t{1} << 24));
  if (sweep.empty()) return make_cache(base, walks, flush, setup.machine);
  return make_cache_sweep(sweep, most, base, walks, flush, setup.machine);
}

}  // namespace

extern const ToolRow kCacheTool{
    "cache",
    "Count what a cache fills and writes back",
    "model=NAME    the cache of a processor: i486, pentium, write-back, i486-plru, pentium-plru\n"
    "bytes=N       or a cache of this size (8k),\n"
    "ways=N        from 1 to 8 (4),\n"
    "line=N        bytes per line (16),\n"
    "split         with one cache for code and one for data,\n"
    "writes=WHICH  through (default) or back,\n"
    "allocate      stores that miss fill their line\n"
    "flush=N       empty the cache every N instructions\n"
    "walks=WHICH   page walks that it sees: captured (default) or none\n"
    "sweep=WHAT    model many at once: bytes (from 1k), ways (1 to 8), line (16 to 128), with + "
    "between\n"
    "most=N        the largest cache of a sweep over bytes (256k)\n",
    "citcat analyze boot.citcat --tool cache:bytes=16k,ways=2,line=32,allocate,sweep=bytes+ways",
    ToolRow::Merging::serial,
    make_cache_tool};

}  // namespace citcat::tools
