// idtrace: IDtrace's files of a run. Formats: docs/formats/idtrace.md.

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "events/machine/cpu_traits.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_sink.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "tools/host/own_side_file.h"
#include "tools/host/part_spool.h"
#include "tools/host/tool.h"
#include "tools/host/tool_output.h"
#include "tools/idtrace/trace_output.h"

namespace citcat::tools {
namespace {

/// What the tool is told of an instruction.
struct IdtraceCall {
  const StaticInstruction* code = nullptr;
  std::array<std::uint32_t, 2> addresses{};
  std::uint8_t address_count = 0;
  std::uint32_t iterations = 1, step = 0;
};

/// The trace of a part of the run.
class SpoolSink final : public ByteSink {
 public:
  SpoolSink(PartSpool& spool, std::vector<PartSpool::Piece>& pieces)
      : spool_(spool), pieces_(pieces) {}
  void write(std::span<const std::uint8_t> bytes) override {
    pieces_.push_back({spool_.append(bytes), bytes.size()});
  }
  void finish() override {}

 private:
  PartSpool& spool_;
  std::vector<PartSpool::Piece>& pieces_;
};

// Parts are made and read by processes of one program, forked from each other: code is kept as it
// lies in memory.
static_assert(std::is_trivially_copyable_v<StaticInstruction>);
constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

void save_calls(const std::vector<IdtraceCall>& calls, ByteWriter& out) {
  out.varint(calls.size());
  for (const IdtraceCall& call : calls) {
    out.bytes({reinterpret_cast<const std::uint8_t*>(call.code), sizeof *call.code});
    for (const std::uint32_t a : call.addresses) out.u32(a);
    out.u8(call.address_count);
    out.u32(call.iterations);
    out.u32(call.step);
  }
}

void save_part(const IdtracePart& part, ByteWriter& out) {
  out.u64(part.instructions);
  out.varint(part.blocks.size());
  for (const ExecutedRun& run : part.blocks) {
    out.u64(run.linear.value);
    out.u8(static_cast<std::uint8_t>(run.bits));
    out.varint(run.instructions.size());
    for (const IdtraceInstruction& i : run.instructions) {
      out.bytes({reinterpret_cast<const std::uint8_t*>(&i), sizeof i});
    }
    out.string({reinterpret_cast<const char*>(run.code.data()), run.code.size()});
  }
  out.varint(part.executions.size());
  for (const std::uint64_t n : part.executions) out.varint(n);
}

template <class T>
T get_kept(ByteReader& in) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, in.bytes(sizeof value, "a kept value").data(), sizeof value);
  return value;
}

IdtracePart load_part(ByteReader& in) {
  IdtracePart part;
  part.instructions = in.u64("instructions");
  part.blocks.resize(in.count("blocks", kMost));
  for (ExecutedRun& run : part.blocks) {
    run.linear = LinearAddr{in.u64("address")};
    run.bits = in.u8("bits");
    run.instructions.resize(in.count("instructions of a block", kMost));
    for (IdtraceInstruction& i : run.instructions) i = get_kept<IdtraceInstruction>(in);
    const std::string code = in.string("code", kMost);
    run.code.assign(code.begin(), code.end());
  }
  part.executions.resize(in.count("counts", kMost));
  for (std::uint64_t& n : part.executions) n = in.varint("executions");
  return part;
}

/// A process that replays a part of the run knows no block before the first jump that it is told
/// of, nor where the last block ends. It makes the trace of what lies between, which is in a
/// spool, and keeps the rest as it was told.
class IdtraceTool final : public Tool {
 public:
  IdtraceTool(std::string path, const IdtraceOptions& options, std::shared_ptr<PartSpool> spool,
              bool begins)
      : path_(std::move(path)), options_(options), spool_(std::move(spool)), begins_(begins) {}

  Wants wants() const override { return {.executions = true}; }
  void* code(const StaticBlock& block) override { return const_cast<StaticBlock*>(&block); }

  void run(void* mine, const Execution& execution, const Context&) override {
    const auto& block = *static_cast<const StaticBlock*>(mine);
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      IdtraceCall call;
      call.code = &block[i];
      call.address_count = execution.does_nothing() ? 0 : call.code->info.ea_count;
      for (std::uint8_t a = 0; a < call.address_count; ++a) {
        call.addresses[a] = static_cast<std::uint32_t>(execution.address(i, a).value);
      }
      call.iterations = execution.iterations();
      call.step = execution.step();
      told(call);
    }
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<IdtraceTool>(path_, options_, spool_, begins_);
  }
  bool merges() const override { return spool_ != nullptr; }
  void follow(Tool&& later) override { add(static_cast<IdtraceTool&>(later)); }

  void save(ByteWriter& out) const override {
    // What is told last is no part of what the tool holds.
    auto& self = const_cast<IdtraceTool&>(*this);
    if (!has_head_) std::swap(self.head_, self.open_);
    save_calls(head_, out);
    save_part(self.output().take_part(), out);
    out.varint(text_.size());
    for (const PartSpool::Piece& piece : text_) {
      out.u64(piece.offset);
      out.u64(piece.size);
    }
    save_calls(open_, out);
  }

  void load(ByteReader& in) override {
    head_ = load_calls(in);
    part_ = load_part(in);
    text_.resize(in.count("pieces", kMost));
    for (PartSpool::Piece& piece : text_) {
      piece.offset = in.u64("offset");
      piece.size = in.u64("size");
    }
    open_ = load_calls(in);
    joins_ = true;
    if (begins_) add(*this);
  }

  void report(Report& out) const override {
    auto& self = const_cast<IdtraceTool&>(*this);
    IdtraceOutput& files = self.output();
    if (!finished_) files.finish();
    self.finished_ = true;
    out.value("records", "instructions and iterations", files.instructions());
  }

 private:
  void told(const IdtraceCall& call) {
    if (spool_ == nullptr) return write(call);
    open_.push_back(call);
    if (!call.code->info.control_flow) return;
    if (has_head_) {
      for (const IdtraceCall& c : open_) write(c);
    } else {
      has_head_ = true;
      head_ = open_;
    }
    open_.clear();
  }

  void write(const IdtraceCall& call) {
    output().instruction(call.code->linear, call.code->info,
                         std::span(call.addresses).first(call.address_count), call.iterations,
                         call.step);
  }

  /// A loaded part, this one or another, is what comes next.
  void add(const IdtraceTool& later) {
    for (const IdtraceCall& call : later.head_) write(call);
    if (later.part_.instructions != 0) {
      output().add_blocks(later.part_);
      for (const auto& [offset, size] : later.text_) {
        output().add_trace(later.spool_->read(offset, size));
      }
    }
    for (const IdtraceCall& call : later.open_) write(call);
  }

  std::vector<IdtraceCall> load_calls(ByteReader& in) {
    std::vector<IdtraceCall> calls(in.count("calls", kMost));
    for (IdtraceCall& call : calls) {
      call.code = &code_.emplace_back(get_kept<StaticInstruction>(in));
      for (std::uint32_t& a : call.addresses) a = in.u32("address");
      call.address_count = in.u8("addresses");
      call.iterations = in.u32("iterations");
      call.step = in.u32("step");
    }
    return calls;
  }

  /// Made when something is told, or at the end.
  IdtraceOutput& output() {
    if (output_) return *output_;
    if (path_.empty()) throw UsageError("idtrace needs to=FILE, or `replay -o FILE`");
    if (spool_ != nullptr && !joins_) {
      return output_.emplace(std::make_unique<SpoolSink>(*spool_, text_), options_);
    }
    const IdtraceFiles files = IdtraceFiles::beside(path_, options_.content);
    for (const std::string& side : {files.blocks, files.code, files.counts, files.trace})
      if (!side.empty() && side != path_) require_own_side_file(path_, side);
    return output_.emplace(files, options_);
  }

  std::string path_;
  IdtraceOptions options_;
  std::optional<IdtraceOutput> output_;
  bool finished_ = false;

  // For a part of the run.
  std::shared_ptr<PartSpool> spool_;
  bool begins_;
  bool joins_ = false;             ///< parts were loaded, to be put together
  bool has_head_ = false;          ///< a jump was told
  std::vector<IdtraceCall> head_;  ///< up to the first jump
  std::vector<IdtraceCall> open_;  ///< after the last one
  std::vector<PartSpool::Piece> text_;
  IdtracePart part_;
  std::deque<StaticInstruction> code_;  ///< of calls that were loaded
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
  return std::make_unique<IdtraceTool>(path, chosen, setup.spool, setup.begins);
}

}  // namespace

extern const ToolRow kIdtraceTool{
    "idtrace",
    "Write IDtrace's files: execution, branch and cache traces, profiles",
    "to=FILE  output file; the files that belong to it go beside it\n"
    "content=execution|branch|cache|profile  what to write (execution; profile for FILE.cnt)\n"
    "line=N  bytes per line in a cache trace (16)\n"
    "repeats  in a cache trace, give references of REP tags of their own",
    "citcat replay boot.citcat -o boot.trc --format idtrace:content=cache,line=32",
    ToolRow::Merging::exact,
    make_idtrace};

}  // namespace citcat::tools
