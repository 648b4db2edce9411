#include "tools/idtrace/trace_output.h"

#include <cstring>
#include <string_view>

#include "formats/idtrace/count_file.h"
#include "formats/io/error.h"
#include "tools/idtrace/entry_plan.h"

namespace citcat::tools {
namespace {

IdtraceKind kind_of(IdtraceContent content) {
  switch (content) {
    case IdtraceContent::branch:
      return IdtraceKind::branch;
    case IdtraceContent::cache:
      return IdtraceKind::cache;
    default:
      return IdtraceKind::execution;
  }
}

/// `path` without the ending that says which of the files it is.
std::string stem_of(const std::string& path) {
  for (const char* const ending : {".trc", ".blk", ".cnt"}) {
    for (const char* const compressed : {"", ".zst"}) {
      const std::string whole = std::string(ending) + compressed;
      if (path.ends_with(whole)) return path.substr(0, path.size() - whole.size());
    }
  }
  return path;
}

}  // namespace

bool is_idtrace_profile(const std::string& path) {
  constexpr std::string_view kCompressed = ".zst";
  std::string_view name = path;
  if (name.ends_with(kCompressed)) name.remove_suffix(kCompressed.size());
  return name.ends_with(".cnt") || name.ends_with(".blk");
}

IdtraceFiles IdtraceFiles::beside(const std::string& path, IdtraceContent content) {
  IdtraceFiles files;
  const std::string stem = stem_of(path);
  const bool profile = content == IdtraceContent::profile;
  if (profile || content == IdtraceContent::execution) {
    if (path == "-")
      throw UsageError("idtrace: several files need a name, not the standard output");
    files.blocks = stem + ".blk";
    files.code = stem + ".code";
  }
  if (profile) {
    files.counts = path.ends_with(".blk") ? stem + ".cnt" : path;
  } else {
    files.trace = path;
  }
  return files;
}

IdtraceOutput::IdtraceOutput(const IdtraceFiles& files, const IdtraceOptions& options)
    : files_(files), options_(options) {
  if (files_.trace.empty()) return;
  sink_ = open_sink(files_.trace);
  writer_.emplace(*sink_, kind_of(options_.content));
}

IdtraceOutput::IdtraceOutput(std::unique_ptr<ByteSink> trace, const IdtraceOptions& options)
    : options_(options), is_part_(true), sink_(std::move(trace)) {
  if (options_.content != IdtraceContent::profile) {
    writer_.emplace(*sink_, kind_of(options_.content));
  }
}

IdtracePart IdtraceOutput::take_part() {
  CITCAT_ASSERT(builder_.is_between_blocks());
  if (writer_) writer_->flush();
  sink_->finish();
  return {instructions_, table_.runs(), executions_};
}

void IdtraceOutput::add_blocks(const IdtracePart& part) {
  CITCAT_ASSERT(builder_.is_between_blocks());
  instructions_ += part.instructions;
  numbers_.clear();
  for (const ExecutedRun& run : part.blocks) numbers_.push_back(table_.number(run));
  executions_.resize(table_.size());
  for (std::size_t i = 0; i < part.executions.size(); ++i) {
    executions_[numbers_[i]] += part.executions[i];
  }
}

void IdtraceOutput::add_trace(std::vector<std::uint8_t> piece) {
  constexpr std::size_t kEntry = 5;  // all that an execution trace has
  if (options_.content == IdtraceContent::execution) {
    for (std::size_t at = 0; at + kEntry <= piece.size(); at += kEntry) {
      if (piece[at] != static_cast<std::uint8_t>(IdtraceTag::block)) continue;
      std::uint32_t value = 0;
      std::memcpy(&value, &piece[at + 1], sizeof value);
      value = table_.position(numbers_.at(value));
      std::memcpy(&piece[at + 1], &value, sizeof value);
    }
  }
  writer_->write_piece(piece);
}

void IdtraceOutput::open(const ExecutedRun& run, const DecodedInstruction& last) {
  IdtraceEntry entry;
  switch (options_.content) {
    case IdtraceContent::profile: {
      const std::uint32_t number = table_.number(run);
      executions_.resize(table_.size());
      ++executions_[number];
      return;
    }
    case IdtraceContent::branch:
      entry.tag = IdtraceTag::block_start;
      entry.value = run.linear.u32();
      control_.reset();
      if (last.control_flow) {
        const auto bytes = static_cast<std::uint32_t>(run.code.size());
        control_ = idtrace_control(last, run.linear.plus32(bytes - 1).u32());
      }
      return writer_->write(entry);
    case IdtraceContent::cache:
      return write_lines(run);
    case IdtraceContent::execution:
      entry.tag = IdtraceTag::block;
      entry.value = table_.number(run);
      if (!is_part_) entry.value = table_.position(entry.value);
      return writer_->write(entry);
  }
}

void IdtraceOutput::write_lines(const ExecutedRun& run) {
  const std::uint32_t mask = ~(options_.line_bytes - 1);
  const auto bytes = static_cast<std::uint32_t>(run.code.size());
  const std::uint32_t last = run.linear.plus32(bytes - 1).u32() & mask;
  IdtraceEntry entry;
  entry.tag = IdtraceTag::line;
  for (entry.value = run.linear.u32() & mask;; entry.value += options_.line_bytes) {
    writer_->write(entry);
    if (entry.value == last) return;
  }
}

/// An entry of an execution trace as a cache sees it: a target is nothing to it, but the pointer
/// is.
void IdtraceOutput::write_data(const IdtraceBlockEntry& of_block) {
  IdtraceEntry entry = of_block.entry;
  switch (entry.tag) {
    case IdtraceTag::target:
      if (of_block.pointer_code == 0) return;
      entry.tag = IdtraceTag::read;
      entry.size_code = of_block.pointer_code;
      break;
    case IdtraceTag::read_write:
      entry.tag = IdtraceTag::read;
      writer_->write(entry);
      entry.tag = IdtraceTag::write;
      break;
    case IdtraceTag::repeat_read:
      if (!options_.repeats) entry.tag = IdtraceTag::read;
      break;
    case IdtraceTag::repeat_write:
      if (!options_.repeats) entry.tag = IdtraceTag::write;
      break;
    case IdtraceTag::repeat_end:
      if (!options_.repeats) return;
      break;
    default:
      break;
  }
  writer_->write(entry);
}

void IdtraceOutput::entries(std::span<const IdtraceBlockEntry> entries) {
  if (options_.content == IdtraceContent::cache) {
    for (const IdtraceBlockEntry& entry : entries) write_data(entry);
  } else if (options_.content == IdtraceContent::execution) {
    for (const IdtraceBlockEntry& entry : entries) writer_->write(entry.entry);
  }
}

void IdtraceOutput::close() {
  if (control_) writer_->write(*control_);
  control_.reset();
}

void IdtraceOutput::finish() {
  builder_.finish();
  const IdtraceMagic magic = table_.magic();
  // The trace last: who finds it finds what it needs.
  if (!files_.code.empty()) {
    const auto sink = open_sink(files_.code);
    table_.code().write(*sink);
    sink->finish();
  }
  if (!files_.blocks.empty()) {
    const auto sink = open_sink(files_.blocks);
    constexpr std::uint32_t kNoTextOffset = 0;
    table_.blocks().write(*sink, kNoTextOffset, magic);
    sink->finish();
  }
  if (!files_.counts.empty()) {
    const auto sink = open_sink(files_.counts);
    write_idtrace_counts(*sink, magic, executions_);
    sink->finish();
  }
  if (!writer_) return;
  writer_->flush();
  sink_->finish();
}

}  // namespace citcat::tools
