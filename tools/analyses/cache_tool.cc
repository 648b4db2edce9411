// cache: what a processor's cache, or any cache of a given shape, makes of the run. Formula and facts:
// docs/tools/cache.md.

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/verify/cache_model.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// Accesses of one kind.
struct Side {
  std::uint64_t references = 0, reads = 0, writes = 0, fills = 0;
  Side operator+(const Side& o) const {
    return {references + o.references, reads + o.reads, writes + o.writes, fills + o.fills};
  }
};

/// What programs (level 3) or all else did, with one cache between them.
struct Part {
  std::uint64_t instructions = 0;
  Side code, data;
  Part operator+(const Part& o) const {
    return {instructions + o.instructions, code + o.code, data + o.data};
  }
};

class CacheTool final : public Tool {
 public:
  CacheTool(const CacheDescriptor& descriptor, std::uint64_t flush_every, const MachineFacts& machine)
      : descriptor_(descriptor),
        flush_every_(flush_every),
        machine_(machine),
        model_(descriptor_, machine.ram_bytes) {}

  Wants wants() const override { return {.references = true, .walks = true, .events = true}; }
  std::optional<WalkPolicy> walks() const override { return descriptor_.walks; }
  void* code(const StaticBlock& block) override { return &code_lines_.emplace_back(lines_of(block)); }
  void run(void* mine, const Execution& execution, const Context& context) override {
    if (!begun_) begin(context);
    part_ = &parts_[context.level() == 3 ? 1 : 0];
    const std::span<const Reference> references = execution.references();
    if (execution.first().iteration == 0) {
      const CodeLines& code = *static_cast<const CodeLines*>(mine);
      const std::uint32_t count = execution.block().count();
      part_->instructions += count;
      if (flush_every_ == 0 || told_ % flush_every_ + count <= flush_every_) [[likely]] {
        if (flush_every_ != 0 && told_ != 0 && told_ % flush_every_ == 0) model_.flush();
        run_code(code, execution.block(), references);
      } else {
        run_code_flushing(code, execution.block(), references);
      }
      told_ += count;
    } else {
      for (const Reference& r : references) access(r, execution.block().front().info.kind);
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      for (Reference again : references) {
        again.physical = moved(again.physical, n * execution.step());
        access(again, execution.block().front().info.kind);
      }
    }
    settle();
  }

  void accesses(std::span<const OtherAccess> accesses, const Context& context) override {
    if (!begun_) begin(context);
    part_ = &parts_[context.level() == 3 ? 1 : 0];
    for (const OtherAccess& a : accesses) {
      if (a.code) {
        ++part_->code.references;
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
    return std::make_unique<CacheTool>(descriptor_, flush_every_, machine_);
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
  /// Where a block's code lies, line by line: instructions that follow each other in a line fetch it
  /// once, unless they refer to memory in between.
  struct CodeLines {
    std::vector<PhysAddr> lines;  ///< in the order of fetching; a byte of each
    /// By instruction: its first line and the one behind its last, numbers in `lines`.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> of;
    std::uint32_t references = 0;
  };
  CodeLines lines_of(const StaticBlock& block) const {
    CodeLines code;
    for (const StaticInstruction& i : block.instructions()) {
      const std::uint32_t here = i.bytes_in_first_page();
      const auto before = static_cast<std::uint32_t>(code.lines.size());
      add_lines(captured(i.physical), here, code.lines);
      // Its first line may be the last one of the instruction before.
      const bool same = before != 0 && (before == code.lines.size() ||
                                        model_.line_of(code.lines[before - 1]) ==
                                            model_.line_of(captured(i.physical)));
      ++code.references;
      if (here != i.info.length) {
        ++code.references;
        add_lines(captured(i.physical_rest), i.info.length - here, code.lines);
      }
      code.of.emplace_back(same ? before - 1 : before, static_cast<std::uint32_t>(code.lines.size()));
    }
    return code;
  }
  void add_lines(PhysAddr first, std::uint32_t bytes, std::vector<PhysAddr>& lines) const {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const PhysAddr at = first.plus32(i);
      if (lines.empty() || model_.line_of(lines.back()) != model_.line_of(at)) lines.push_back(at);
    }
  }
  void run_code(const CodeLines& code, const StaticBlock& block,
                std::span<const Reference> references) {
    part_->code.references += code.references;
    std::uint32_t fetched = 0;  ///< lines, the last of which was used last
    for (std::size_t r = 0; r < references.size();) {
      const std::uint16_t number = references[r].instruction;
      fetch_lines(code, fetched, code.of[number].second);
      const InstructionClass kind = block[number].info.kind;
      for (; r < references.size() && references[r].instruction == number; ++r) {
        access(references[r], kind);
      }
      // What follows uses its line again, though it may be the same.
      fetched = number + 1u < code.of.size() ? code.of[number + 1u].first
                                             : static_cast<std::uint32_t>(code.lines.size());
    }
    fetch_lines(code, fetched, static_cast<std::uint32_t>(code.lines.size()));
  }
  /// The same of a block in which the cache is emptied: instruction by instruction.
  void run_code_flushing(const CodeLines& code, const StaticBlock& block,
                         std::span<const Reference> references) {
    part_->code.references += code.references;
    std::size_t r = 0;
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      if (told_ + i != 0 && (told_ + i) % flush_every_ == 0) model_.flush();
      fetch_lines(code, code.of[i].first, code.of[i].second);
      for (; r < references.size() && references[r].instruction == i; ++r) {
        access(references[r], block[i].info.kind);
      }
    }
  }
  void fetch_lines(const CodeLines& code, std::uint32_t from, std::uint32_t to) {
    for (; from < to; ++from) model_.fetch_line(code.lines[from]);
  }
  void access(const Reference& r, InstructionClass kind) {
    const PhysAddr at = captured(r.physical);
    if (r.kind == AccessKind::walk) return walk(at, r.size, r.write);
    Side& data = part_->data;
    ++data.references;
    if (!r.write) {
      ++data.reads;
      return model_.read(at, r.size);
    }
    ++data.writes;
    const bool input = kind == InstructionClass::ins && r.kind == AccessKind::data;
    if (input && descriptor_.ins_reads_destination) model_.read(at, r.size);
    model_.write(at, r.size);
  }
  /// What the processor itself does for a program is not the program's: when it walks is not told
  /// to the instruction.
  void walk(PhysAddr at, std::uint32_t size, bool write) {
    settle();
    Part* const program = std::exchange(part_, parts_.data());
    ++part_->data.references;
    if (write) {
      ++part_->data.writes;
      model_.write(at, size);
    } else {
      ++part_->data.reads;
      model_.read(at, size);
    }
    settle();
    part_ = program;
  }
  /// Counts what the model moved.
  void settle() {
    if (model_.traffic().empty()) [[likely]] return;
    for (const CacheTraffic& t : model_.traffic()) {
      switch (t.kind) {
        case CacheTraffic::Kind::code_fill:
          ++part_->code.fills;
          break;
        case CacheTraffic::Kind::data_fill:
          ++part_->data.fills;
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
  const std::uint64_t flush_every_;  ///< instructions; 0: never
  const MachineFacts machine_;
  CacheModel model_;
  std::deque<CodeLines> code_lines_;
  bool begun_ = false;
  std::uint64_t told_ = 0;  ///< instructions
  std::array<Part, 2> parts_;  ///< of what is not at level 3, and of what is
  Part* part_ = parts_.data();
  std::uint64_t write_backs_ = 0, snoop_write_backs_ = 0;
};

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

void report_sides(Report& out, const Part& part) {
  Report& code = out.group("code", "code");
  code.value("references", "references", part.code.references);
  code.value("fills", "lines filled", part.code.fills);
  code.value("percent", "fills of references", percent(part.code.fills, part.code.references), "%");
  Report& data = out.group("data", "data");
  data.value("references", "references", part.data.references);
  data.value("reads", "reads", part.data.reads);
  data.value("writes", "writes", part.data.writes);
  data.value("fills", "lines filled", part.data.fills);
  data.value("percent", "fills of references", percent(part.data.fills, part.data.references), "%");
}

void CacheTool::report(Report& out) const {
  out.value("model", "model", std::string(descriptor_.name));
  out.value("bytes", "size", std::uint64_t{descriptor_.bytes}, "bytes");
  out.value("ways", "ways", std::uint64_t{descriptor_.ways});
  out.value("line", "line", std::uint64_t{descriptor_.line_bytes}, "bytes");
  if (flush_every_ != 0) out.value("flush", "emptied every", flush_every_, "instructions");
  report_sides(out, parts_[0] + parts_[1]);
  out.value("write_backs", "lines written back", write_backs_);
  out.value("snoop_write_backs", "written back for others", snoop_write_backs_);
  Report& user = out.group("user", "at level 3");
  user.value("instructions", "instructions", parts_[1].instructions);
  report_sides(user, parts_[1]);
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
  const std::uint64_t flush = options.number("flush", 0, 0, std::uint64_t{1} << 62);
  if (model.empty()) return std::make_unique<CacheTool>(described(options), flush, setup.machine);
  const CacheDescriptor* const known = find_cache(model);
  if (known == nullptr) {
    std::string names;
    for (const CacheDescriptor& c : known_caches()) {
      names += (names.empty() ? "" : ", ") + std::string(c.name);
    }
    throw UsageError("--tool cache: no such model: " + model + " (there are " + names + ")");
  }
  return std::make_unique<CacheTool>(*known, flush, setup.machine);
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
    "allocate      stores that miss fill their line\n"
    "flush=N       empty it every so many instructions\n",
    "citcat analyze boot.citcat --tool cache:model=i486",
    ToolRow::Merging::serial,
    make};

}  // namespace citcat::tools
