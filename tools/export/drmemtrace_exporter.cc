// drmemtrace: the trace that DynamoRIO's simulators and analysis tools read. Format, version and
// source: docs/export/drmemtrace.md.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "events/cpu_traits.h"
#include "events/processors/bus_turns.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "tools/export/drmemtrace_stream.h"
#include "tools/export/export_file.h"
#include "tools/export/trace_folder.h"

namespace citcat::tools {
namespace {

/// Where DynamoRIO's tools look for the files (TRACE_SUBDIR,
/// clients/drcachesim/tracer/raw2trace_shared.h).
constexpr const char* kInnerFolder = "trace";

class DrmemtraceTool final : public StepTool {
 public:
  /// `turns`: of the bus, where several processors share it.
  DrmemtraceTool(ExportFile file, const DrmemtraceStream::Form& form,
                 std::shared_ptr<const BusTurns> turns)
      : file_(std::move(file)), form_(form), turns_(std::move(turns)) {}
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<DrmemtraceTool>(ExportFile(file_.path()), form_, turns_);
  }

 private:
  DrmemtraceStream make_stream(std::uint32_t thread);
  DrmemtraceStream& stream_of(std::uint32_t address_space);
  std::uint64_t time_of(const Step& step) const;
  void step(const Step& step) override;
  void happened(const StepEvent& h) override;
  void end() override;

  ExportFile file_;  ///< of all threads
  DrmemtraceStream::Form form_;
  std::shared_ptr<const BusTurns> turns_;
  std::optional<TraceFolder> folder_;                  ///< else
  std::map<std::uint32_t, DrmemtraceStream> streams_;  ///< by thread; of all: one
  DrmemtraceStream* stream_ = nullptr;                 ///< of the last step that was written
  std::uint32_t address_space_ = 0;                    ///< of it
  std::uint64_t written_ = 0;                          ///< instructions
  std::uint64_t time_ = 0;                             ///< of the last turn that was written
};

DrmemtraceStream DrmemtraceTool::make_stream(std::uint32_t thread) {
  if (form_.all_threads) {
    return {form_, [this](std::span<const std::uint8_t> bytes) { file_.write(bytes); }};
  }
  if (!folder_) folder_.emplace(file_.path(), kInnerFolder);
  // Sorted by name they are sorted by number, as its scheduler wants them.
  const std::size_t file = folder_->add(fmt::format("drmemtrace.{0:07}.{0:07}.trace", thread));
  return {form_,
          [this, file](std::span<const std::uint8_t> bytes) { folder_->write(file, bytes); }};
}

DrmemtraceStream& DrmemtraceTool::stream_of(std::uint32_t address_space) {
  const std::uint32_t thread = DrmemtraceStream::thread_of(address_space);
  const std::uint32_t key = form_.all_threads ? 0 : thread;
  auto found = streams_.find(key);
  if (found == streams_.end()) found = streams_.emplace(key, make_stream(thread)).first;
  return found->second;
}

/// Turns are numbered over all processors: sorted by time, their traces are in the order of the
/// bus.
std::uint64_t DrmemtraceTool::time_of(const Step& step) const {
  return turns_ ? turns_->turn_of(form_.processor, step.position) : written_;
}

void DrmemtraceTool::step(const Step& step) {
  if (form_.view == DrmemtraceStream::View::user && step.level != 3) return;
  const std::uint64_t time = time_of(step);
  const bool has_turn = turns_ && time != time_;
  if (stream_ == nullptr || address_space_ != step.address_space || has_turn) {
    address_space_ = step.address_space;
    stream_ = &stream_of(step.address_space);
    stream_->enter(step, time);
    time_ = time;
  }
  stream_->step(step);
  ++written_;
}

void DrmemtraceTool::happened(const StepEvent& h) {
  if (stream_ != nullptr) stream_->happened(h);
}

void DrmemtraceTool::end() {
  for (auto& [thread, stream] : streams_) stream.end(turns_ ? time_ : written_);
  if (form_.all_threads) return file_.finish();
  if (!folder_) folder_.emplace(file_.path(), kInnerFolder);
  folder_->finish();
}

std::unique_ptr<Tool> make_drmemtrace(ToolOptions& options, const Setup& setup) {
  DrmemtraceStream::Form form;
  const std::string view = options.one_of("view", "whole", {"whole", "user"});
  form.view = view == "user" ? DrmemtraceStream::View::user : DrmemtraceStream::View::whole;
  form.address_bytes = options.power_of_two("bits", 64, 32, 64) / 8;
  form.processor = setup.processor;
  form.long_mode = cpu_traits(setup.machine.model).has_long_mode;
  const std::string threads = options.one_of("threads", "apart", {"apart", "together"});
  ExportFile file(options, setup);
  // What is no file, and what is compressed, is one stream.
  const std::string& path = file.path();
  form.all_threads = threads == "together" || path.empty() || path.ends_with(".zst") ||
                     output_kind(path) != OutputKind::replaced;
  return std::make_unique<DrmemtraceTool>(std::move(file), form,
                                          setup.bus_turns ? setup.bus_turns() : nullptr);
}

}  // namespace

extern const ToolRow kDrmemtraceTool{
    "drmemtrace",
    "Write a trace for DynamoRIO's drmemtrace tools and simulators",
    "to=NAME  output folder, with a file for each thread\n"
    "view=whole|user  the whole system (default), or level 3 as a program's own tracer sees it\n"
    "threads=apart|together  a file for each thread (default), or one file with all of them,\n"
    "                        as always for a pipe, a device or compressed output (.zst)\n"
    "bits=64|32  bits of the build of DynamoRIO that reads it (64)",
    "citcat replay boot.citcat -o boot.drmemtrace --format drmemtrace:view=user",
    ToolRow::Merging::serial,
    make_drmemtrace};

}  // namespace citcat::tools
