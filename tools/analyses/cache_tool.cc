// cache: what a processor's cache, or any cache of a given shape, makes of the run. Formula and facts:
// docs/tools/cache.md.

#include <memory>
#include <optional>
#include <string>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/verify/cache_model.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// Accesses of one kind.
struct Side {
  std::uint64_t references = 0, reads = 0, writes = 0, fills = 0;
};

class CacheTool final : public Tool {
 public:
  CacheTool(const CacheDescriptor& descriptor, const MachineFacts& machine)
      : descriptor_(descriptor), machine_(machine), model_(descriptor_, machine.ram_bytes) {}

  Wants wants() const override { return {.references = true, .walks = true, .events = true}; }
  std::optional<WalkPolicy> walks() const override { return descriptor_.walks; }
  void run(void*, const Execution& execution, const Context& context) override {
    if (!begun_) begin(context);
    const StaticBlock& block = execution.block();
    const std::span<const Reference> references = execution.references();
    const Reference* r = references.data();
    const Reference* const end = r + references.size();
    if (execution.first().iteration != 0) {
      for (; r != end; ++r) access(*r, block.front().info.kind);
    } else {
      std::uint32_t number = 0;
      for (const StaticInstruction& i : block.instructions()) {
        fetch(i);
        for (; r != end && r->instruction == number; ++r) access(*r, i.info.kind);
        ++number;
      }
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      for (Reference again : references) {
        again.physical = moved(again.physical, n * execution.step());
        access(again, block.front().info.kind);
      }
    }
    settle();
  }

  void accesses(std::span<const OtherAccess> accesses, const Context& context) override {
    if (!begun_) begin(context);
    for (const OtherAccess& a : accesses) {
      if (a.code) {
        ++code_.references;
        model_.fetch(captured(a.physical), a.size);
      } else {
        access(a, InstructionClass::plain);
      }
    }
    settle();
  }

  void event(const MachineEvent& event, const Context& context) override {
    switch (event.kind) {
      case MachineEvent::Kind::external_write:
        model_.snoop_write(event.physical, event.size);
        break;
      case MachineEvent::Kind::cache_flushed:
        model_.flush();
        break;
      case MachineEvent::Kind::address_space:
        begin(context);
        break;
      default:
        return;
    }
    settle();
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<CacheTool>(descriptor_, machine_);
  }
  void follow(Tool&&) override { throw InternalError("cache: a part cannot follow another"); }
  void save(ByteWriter&) const override { throw InternalError("cache: has no parts"); }
  void load(ByteReader&) override { throw InternalError("cache: has no parts"); }
  void report(Report& out) const override;

 private:
  static PhysAddr moved(PhysAddr a, std::uint32_t by) {
    return PhysAddr{static_cast<std::uint32_t>(a.value) + by};
  }
  PhysAddr captured(PhysAddr a) const {
    return PhysAddr{static_cast<std::uint32_t>(a.value) & machine_.address_mask};
  }
  /// CR0.CD may have changed.
  void begin(const Context& context) {
    constexpr std::uint32_t kCr0Cd = 1u << 30;
    begun_ = true;
    model_.set_disabled(!machine_.ignores_cd && (context.machine().engine().cr(0) & kCr0Cd) != 0);
  }
  void fetch(const StaticInstruction& i) {
    const std::uint32_t here = i.bytes_in_first_page();
    ++code_.references;
    model_.fetch(captured(i.physical), here);
    if (here == i.info.length) [[likely]] return;
    ++code_.references;
    model_.fetch(captured(i.physical_rest), i.info.length - here);
  }
  void access(const Reference& r, InstructionClass kind) {
    ++data_.references;
    const PhysAddr at = captured(r.physical);
    if (!r.write) {
      ++data_.reads;
      return model_.read(at, r.size);
    }
    ++data_.writes;
    const bool input = kind == InstructionClass::ins && r.kind == AccessKind::data;
    if (input && descriptor_.ins_reads_destination) model_.read(at, r.size);
    model_.write(at, r.size);
  }
  /// Counts what the model moved.
  void settle() {
    if (model_.traffic().empty()) [[likely]] return;
    for (const CacheTraffic& t : model_.traffic()) {
      switch (t.kind) {
        case CacheTraffic::Kind::code_fill:
          ++code_.fills;
          break;
        case CacheTraffic::Kind::data_fill:
          ++data_.fills;
          break;
        case CacheTraffic::Kind::write_back:
          ++write_backs_;
          break;
        case CacheTraffic::Kind::snoop_write_back:
          ++snoop_write_backs_;
          break;
      }
    }
    model_.traffic().clear();
  }

  const CacheDescriptor descriptor_;
  const MachineFacts machine_;
  CacheModel model_;
  bool begun_ = false;
  Side code_, data_;
  std::uint64_t write_backs_ = 0, snoop_write_backs_ = 0;
};

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

void CacheTool::report(Report& out) const {
  out.value("model", "model", std::string(descriptor_.name));
  out.value("bytes", "size", std::uint64_t{descriptor_.bytes}, "bytes");
  out.value("ways", "ways", std::uint64_t{descriptor_.ways});
  out.value("line", "line", std::uint64_t{descriptor_.line_bytes}, "bytes");
  Report& code = out.group("code", "code");
  code.value("references", "references", code_.references);
  code.value("fills", "lines filled", code_.fills);
  code.value("percent", "fills of references", percent(code_.fills, code_.references), "%");
  Report& data = out.group("data", "data");
  data.value("references", "references", data_.references);
  data.value("reads", "reads", data_.reads);
  data.value("writes", "writes", data_.writes);
  data.value("fills", "lines filled", data_.fills);
  data.value("percent", "fills of references", percent(data_.fills, data_.references), "%");
  out.value("write_backs", "lines written back", write_backs_);
  out.value("snoop_write_backs", "written back for others", snoop_write_backs_);
}

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

std::unique_ptr<Tool> make(ToolOptions& options, const Setup& setup) {
  const std::string model = options.text("model", "");
  if (model.empty()) return std::make_unique<CacheTool>(described(options), setup.machine);
  const CacheDescriptor* const known = find_cache(model);
  if (known == nullptr) {
    std::string names;
    for (const CacheDescriptor& c : known_caches()) {
      names += (names.empty() ? "" : ", ") + std::string(c.name);
    }
    throw UsageError("--tool cache: no such model: " + model + " (there are " + names + ")");
  }
  return std::make_unique<CacheTool>(*known, setup.machine);
}

}  // namespace

extern const ToolRow kCacheTool{
    "cache",
    "Count what a cache fills and writes back",
    "model=NAME    of a processor: i486, pentium, write-back, i486-plru, pentium-plru\n"
    "bytes=N       or a cache of this shape: its size (8k),\n"
    "ways=N        1 to 8 (4),\n"
    "line=N        bytes of a line (16),\n"
    "split         one for code and one for data,\n"
    "writes=WHICH  through (default) or back,\n"
    "allocate      stores that miss fill their line\n",
    "citcat analyze boot.citcat --tool cache:model=i486",
    ToolRow::Merging::serial,
    make};

}  // namespace citcat::tools
