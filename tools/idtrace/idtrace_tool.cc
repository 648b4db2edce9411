// idtrace: IDtrace's files of a run. Formats: docs/formats/idtrace.md.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "events/cpu_traits.h"
#include "formats/io/error.h"
#include "tools/host/own_side_file.h"
#include "tools/host/tool.h"
#include "tools/host/tool_output.h"
#include "tools/idtrace/trace_output.h"

namespace citcat::tools {
namespace {

class IdtraceTool final : public Tool {
 public:
  IdtraceTool(std::string path, const IdtraceOptions& options)
      : path_(std::move(path)), options_(options) {}

  Wants wants() const override { return {.executions = true}; }
  void* code(const StaticBlock& block) override { return const_cast<StaticBlock*>(&block); }

  void run(void* mine, const Execution& execution, const Context&) override {
    const auto& block = *static_cast<const StaticBlock*>(mine);
    IdtraceOutput& out = output();
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      const StaticInstruction& code = block[i];
      std::array<std::uint32_t, 2> addresses{};
      const std::size_t count = execution.does_nothing() ? 0 : code.info.ea_count;
      for (std::uint8_t a = 0; a < count; ++a) {
        addresses[a] = static_cast<std::uint32_t>(execution.address(i, a).value);
      }
      out.instruction(code.linear, code.info, std::span(addresses).first(count),
                      execution.iterations(), execution.step());
    }
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<IdtraceTool>(path_, options_);
  }
  bool merges() const override { return false; }
  void follow(Tool&&) override { throw InternalError("parts of IDtrace's files are put together"); }
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}

  void report(Report& out) const override {
    auto& self = const_cast<IdtraceTool&>(*this);
    IdtraceOutput& files = self.output();
    if (!finished_) files.finish();
    self.finished_ = true;
    out.value("records", "instructions and iterations", files.instructions());
  }

 private:
  /// Made when something is told, or at the end.
  IdtraceOutput& output() {
    if (!output_) {
      if (path_.empty()) throw UsageError("idtrace needs to=FILE, or `replay -o FILE`");
      const IdtraceFiles files = IdtraceFiles::beside(path_, options_.content);
      for (const std::string& side : {files.blocks, files.code, files.counts, files.trace})
        if (!side.empty() && side != path_) require_own_side_file(path_, side);
      output_.emplace(files, options_);
    }
    return *output_;
  }

  std::string path_;
  IdtraceOptions options_;
  std::optional<IdtraceOutput> output_;
  bool finished_ = false;
};

std::unique_ptr<Tool> make_idtrace(ToolOptions& options, const Setup& setup) {
  if (cpu_traits(setup.machine.model).has_long_mode) {
    throw UsageError(
        "idtrace: IDtrace's files have addresses of 32 bits, and recordings of the processor " +
        std::string(cpu_model_name(setup.machine.model)) + " have more");
  }
  const std::string path = tool_output(options, setup);
  IdtraceOptions chosen;
  const bool profile = is_idtrace_profile(path);
  const std::string content = options.one_of("content", profile ? "profile" : "execution",
                                             {"execution", "branch", "cache", "profile"});
  chosen.content = content == "branch"    ? IdtraceContent::branch
                   : content == "cache"   ? IdtraceContent::cache
                   : content == "profile" ? IdtraceContent::profile
                                          : IdtraceContent::execution;
  if (profile && chosen.content != IdtraceContent::profile) {
    throw UsageError("idtrace: content: expected profile for " + path + ", found " + content);
  }
  if (chosen.content == IdtraceContent::execution || chosen.content == IdtraceContent::profile) {
    require_place_beside(path, "idtrace");
  }
  if (chosen.content == IdtraceContent::cache) {
    chosen.line_bytes = static_cast<std::uint32_t>(options.power_of_two("line", 16, 4, 4096));
    chosen.repeats = options.flag("repeats");
  }
  return std::make_unique<IdtraceTool>(path, chosen);
}

}  // namespace

extern const ToolRow kIdtraceTool{
    "idtrace",
    "Write IDtrace's files: execution, branch and cache traces, profiles",
    "to=FILE  output file; the files that belong to it go beside it\n"
    "content=execution|branch|cache|profile  what to write (execution; profile for FILE.cnt)\n"
    "line=N  bytes of a line in a cache trace (16)\n"
    "repeats  in a cache trace, references of REP have tags of their own",
    "citcat replay boot.citcat -o boot.trc --format idtrace:content=cache,line=32",
    ToolRow::Merging::serial,
    make_idtrace};

}  // namespace citcat::tools
