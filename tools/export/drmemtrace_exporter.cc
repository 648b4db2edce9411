// drmemtrace: the trace that DynamoRIO's simulators and analysis tools read. Format, version and
// source: docs/export/drmemtrace.md.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "events/machine/cpu_traits.h"
#include "events/processors/bus_turns.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/zip/zip_thread.h"
#include "formats/zip/zip_writer.h"
#include "tools/export/drmemtrace_stream.h"
#include "tools/export/export_file.h"
#include "tools/export/exporter_list.h"
#include "tools/export/trace_folder.h"

namespace citcat::tools {
namespace {

/// Where DynamoRIO's tools look for the files (TRACE_SUBDIR,
/// clients/drcachesim/tracer/raw2trace_shared.h).
constexpr const char* kInnerFolder = "trace";

/// All threads in one stream of bytes.
class StreamOutput final : public DrmemtraceOutput {
 public:
  explicit StreamOutput(ExportFile& file) : file_(file) {}
  void write(std::span<const std::uint8_t> bytes) override { file_.write(bytes); }
  void finish() override { file_.finish(); }

 private:
  ExportFile& file_;
};

class PlainOutput final : public DrmemtraceOutput {
 public:
  PlainOutput(TraceFolder& folder, const std::string& name)
      : folder_(folder), file_(folder.add(name)) {}
  void write(std::span<const std::uint8_t> bytes) override { folder_.write(file_, bytes); }

 private:
  TraceFolder& folder_;
  std::size_t file_;
};

/// An archive with a member for each chunk.
class ArchiveOutput final : public DrmemtraceOutput {
 public:
  /// `thread`, which writes the archive, is stopped before the object is destroyed.
  ArchiveOutput(const std::string& path, std::uint64_t chunk, ZipThread& thread)
      : zip_(path), thread_(thread), chunk_(chunk) {}
  std::uint64_t chunk_instructions() const override { return chunk_; }
  void begin_chunk(std::uint64_t number) override {
    // TRACE_CHUNK_PREFIX and TRACE_CHUNK_SUFFIX_WIDTH of the same header.
    thread_.put([this, name = fmt::format("chunk.{:08}", number)] { zip_.begin(name); });
  }
  void write(std::span<const std::uint8_t> bytes) override {
    thread_.put(
        [this, kept = std::vector<std::uint8_t>(bytes.begin(), bytes.end())] { zip_.write(kept); });
  }
  void finish() override {
    thread_.put([this] { zip_.finish(); });
  }

 private:
  ZipWriter zip_;
  ZipThread& thread_;
  std::uint64_t chunk_;
};

/// How the files are made.
struct DrmemtraceFiles {
  bool stream = false;             ///< no folder, but one stream of bytes
  bool encodings_by_mode = false;  ///< of the first instruction; else as the form says
  std::uint64_t chunk = 0;         ///< instructions of a chunk; 0: plain files
};

class DrmemtraceTool final : public StepTool {
 public:
  /// `turns`: of the bus, where several processors share it.
  DrmemtraceTool(ExportFile file, const DrmemtraceFiles& files, const DrmemtraceStream::Form& form,
                 std::shared_ptr<const BusTurns> turns)
      : StepTool(std::move(file)), files_(files), form_(form), turns_(std::move(turns)) {}
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<DrmemtraceTool>(file().anew(), files_, form_, turns_);
  }

 private:
  std::unique_ptr<DrmemtraceOutput> make_output(std::uint32_t thread);
  TraceFolder& folder();
  ZipThread& zip_thread();
  DrmemtraceStream& stream_of(AddressSpaceId address_space);
  std::uint64_t time_of(const Step& step) const;
  void enter(const Step& step, std::uint64_t time);
  void write_step(const Step& step, std::uint64_t time);
  void write_held();
  Wants wants() const override {
    Wants wants = StepTool::wants();
    wants.accesses = !form_.physical;
    wants.references = form_.physical;
    return wants;
  }
  std::uint64_t know(const StaticInstruction& code) override;
  void step(const Step& step) override;
  void steps(const StepRun& run) override;
  void happened(const StepEvent& h) override;
  void end() override;
  void report_more(Report& out) const override;

  DrmemtraceFiles files_;
  DrmemtraceStream::Form form_;
  std::shared_ptr<const BusTurns> turns_;
  std::optional<TraceFolder> folder_;                        ///< else
  std::map<std::uint32_t, DrmemtraceStream> streams_;        ///< by thread; of all: one
  DrmemtraceStream* stream_ = nullptr;                       ///< of the last step that was written
  AddressSpaceId address_space_ = 0;                         ///< of it
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  ///< numbers of addresses
  std::uint64_t time_ = 0;                                   ///< that was written last
  /// Where there are several processors: branches with what happened after them, which get the
  /// time of what they lead to.
  struct Held {
    Step step;
    std::vector<StepAccess> accesses;
    std::vector<StepEvent> events;
  };
  std::vector<Held> held_;
  std::vector<std::unique_ptr<ZipThread>> zip_threads_;  ///< last: they use `streams_`
};

TraceFolder& DrmemtraceTool::folder() {
  if (!folder_) folder_.emplace(file().path(), kInnerFolder);
  return *folder_;
}

std::unique_ptr<DrmemtraceOutput> DrmemtraceTool::make_output(std::uint32_t thread) {
  if (files_.stream) return std::make_unique<StreamOutput>(file());
  // Sorted by name they are sorted by number, as its scheduler wants them.
  const std::string name = form_.all_threads
                               ? fmt::format("drmemtrace.core.{:06}.trace", form_.processor)
                               : fmt::format("drmemtrace.{0:07}.{0:07}.trace", thread);
  if (files_.chunk == 0) return std::make_unique<PlainOutput>(folder(), name);
  return std::make_unique<ArchiveOutput>(folder().inner() + "/" + name + ".zip", files_.chunk,
                                         zip_thread());
}

/// One that writes few archives.
ZipThread& DrmemtraceTool::zip_thread() {
  const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  const std::size_t number = streams_.size() % most;
  if (number == zip_threads_.size()) zip_threads_.push_back(std::make_unique<ZipThread>());
  return *zip_threads_[number];
}

DrmemtraceStream& DrmemtraceTool::stream_of(AddressSpaceId address_space) {
  const std::uint32_t thread = DrmemtraceStream::thread_of(address_space);
  const std::uint32_t key = form_.all_threads ? 0 : thread;
  auto found = streams_.find(key);
  if (found == streams_.end()) {
    found = streams_.try_emplace(key, form_, make_output(thread)).first;
  }
  return found->second;
}

/// Turns are numbered over all processors: sorted by time, their traces are in the order of the
/// bus.
std::uint64_t DrmemtraceTool::time_of(const Step& step) const {
  return turns_ ? turns_->turn_of(form_.processor, step.position) : step.position.instruction;
}

std::uint64_t DrmemtraceTool::know(const StaticInstruction& code) {
  const auto number = static_cast<std::uint32_t>(places_.size());
  const std::uint32_t place = places_.try_emplace(code.linear.value, number).first->second;
  return std::bit_cast<std::uint64_t>(DrmemtraceStream::Code(code, form_.machine.model, place));
}

void DrmemtraceTool::step(const Step& step) {
  if (form_.view == DrmemtraceStream::View::user && step.level != 3) return;
  if (!turns_) return write_step(step, time_of(step));
  constexpr std::size_t kMostHeld = 256;
  held_.push_back({step, {step.accesses.begin(), step.accesses.end()}, {}});
  if (!DrmemtraceStream::is_branch(step) || held_.size() == kMostHeld) write_held();
}

void DrmemtraceTool::write_held() {
  if (held_.empty()) return;
  const std::uint64_t time = time_of(held_.back().step);
  for (Held& held : held_) {
    held.step.accesses = held.accesses;
    write_step(held.step, time);
    for (const StepEvent& event : held.events) stream_->happened(event);
  }
  held_.clear();
}

void DrmemtraceTool::steps(const StepRun& run) {
  if (turns_) return StepTool::steps(run);
  if (form_.view == DrmemtraceStream::View::user && run.level != 3) return;
  if (stream_ == nullptr || address_space_ != run.address_space) {
    Step first;
    first.code = run.code.data();
    first.position = run.first;
    first.level = run.level;
    first.address_space = run.address_space;
    enter(first, run.first.instruction);
  }
  time_ = run.first.instruction + run.code.size() - 1;
  stream_->steps(run);
}

void DrmemtraceTool::write_step(const Step& step, std::uint64_t time) {
  enter(step, time);
  stream_->step(step);
}

/// The file of `step` is the one that is written.
void DrmemtraceTool::enter(const Step& step, std::uint64_t time) {
  // Encodings serve where the run begins in the mode that they are decoded in.
  if (stream_ == nullptr && files_.encodings_by_mode) {
    form_.encodings = DrmemtraceStream::is_decodable(*step.code->instruction, form_.machine.model);
  }
  const bool other_space = stream_ == nullptr || address_space_ != step.address_space;
  if (other_space || (turns_ && time != time_)) {
    address_space_ = step.address_space;
    stream_ = &stream_of(step.address_space);
    stream_->enter(step, time);
    time_ = time;
  } else if (!turns_) {
    time_ = time;
  }
}

void DrmemtraceTool::happened(const StepEvent& h) {
  if (!held_.empty()) {
    held_.back().events.push_back(h);
  } else if (stream_ != nullptr) {
    stream_->happened(h);
  }
}

void DrmemtraceTool::end() {
  write_held();
  DrmemtraceSchedule schedule;
  for (auto& [thread, stream] : streams_) {
    stream.end(turns_ ? time_ : time_ + 1);
    schedule.append(stream.schedule());
  }
  for (const auto& thread : zip_threads_) thread->drain();
  if (files_.stream) return streams_.empty() ? file().finish() : void();
  schedule.write(folder().inner());
  folder().finish();
}

void DrmemtraceTool::report_more(Report& out) const {
  std::uint64_t foreign = 0;
  for (const auto& [thread, stream] : streams_) foreign += stream.foreign();
  out.value("other_modes", "with encodings that DynamoRIO takes for others", foreign);
}

std::unique_ptr<Tool> make_drmemtrace(ToolOptions& options, const Setup& setup) {
  using View = DrmemtraceStream::View;
  // raw2trace's own chunks have as many (-chunk_instr_count, common/options.cpp).
  constexpr std::uint64_t kChunk = 10'000'000, kLeast = 1000, kMost = std::uint64_t{1} << 32;
  DrmemtraceStream::Form form;
  const std::string view = options.one_of("view", "whole", {"whole", "user", "simulator"});
  form.view = view == "user" ? View::user : view == "simulator" ? View::simulator : View::whole;
  form.address_bytes = options.power_of_two("bits", 64, 32, 64) / 8;
  form.processor = setup.processor;
  form.machine = setup.machine;
  const auto yes_or_no = [&](const char* key, bool usual) {
    return options.one_of(key, usual ? "yes" : "no", {"yes", "no"}) == "yes";
  };
  form.physical = yes_or_no("physical", form.view == View::simulator);
  DrmemtraceFiles files;
  const std::string encodings = options.one_of("encodings", "auto", {"auto", "yes", "no"});
  form.encodings = encodings == "yes";
  files.encodings_by_mode = encodings == "auto";
  const bool several = setup.bus_turns != nullptr;
  const std::string threads =
      options.one_of("threads", several ? "together" : "apart", {"apart", "together"});
  if (several && threads == "apart") {
    throw UsageError(
        "drmemtrace: threads: expected together, because a thread goes from one "
        "processor to another, found apart");
  }
  files.chunk = options.number("chunk", kChunk, kLeast, kMost);
  if (options.one_of("files", "zip", {"zip", "plain"}) == "plain") files.chunk = 0;
  ExportFile file(options, setup);
  // What is no file, and what is compressed, is one stream.
  const std::string& path = file.path();
  files.stream =
      path.empty() || path.ends_with(".zst") || output_kind(path) != OutputKind::replaced;
  form.all_threads = threads == "together" || files.stream;
  form.among_others = several || !form.all_threads;
  return std::make_unique<DrmemtraceTool>(std::move(file), files, form,
                                          several ? setup.bus_turns() : nullptr);
}

}  // namespace

void join_drmemtrace(const std::vector<std::string>& parts, const std::string& path) {
  TraceFolder whole(path, kInnerFolder);
  DrmemtraceSchedule schedule;
  for (const std::string& part : parts) {
    const std::string inner = part + "/" + kInnerFolder;
    schedule.append(DrmemtraceSchedule::read(inner));
    for (const auto& file : std::filesystem::directory_iterator(inner)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("drmemtrace.")) {
        std::filesystem::rename(file.path(), whole.inner() + "/" + name);
      }
    }
    std::filesystem::remove_all(part);
  }
  schedule.write(whole.inner());
  whole.finish();
}

extern const ToolRow kDrmemtraceTool{
    "drmemtrace",
    "Write a trace for DynamoRIO's drmemtrace tools and simulators",
    "to=NAME  output folder, with a file for each thread\n"
    "view=whole|user|simulator  the whole system (default); level 3 as a program's own tracer\n"
    "                           sees it; the whole system as the simulators take it\n"
    "threads=apart|together  a file for each thread (default), or one for each processor with\n"
    "                        all of them, as always for several processors, for a pipe, a\n"
    "                        device, or compressed output (.zst)\n"
    "files=zip|plain  archives with chunks, in which tools can skip (default), or plain files\n"
    "chunk=N  instructions per chunk (10000000)\n"
    "physical=yes|no  where each page lies (yes with view=simulator)\n"
    "encodings=auto|yes|no  bytes of instructions; auto: where the run begins in the mode in\n"
    "                        which DynamoRIO decodes them (64 bits of a processor that has them,\n"
    "                        else 32)\n"
    "bits=64|32  bits of the build of DynamoRIO that reads it (64)",
    "citcat replay boot.citcat -o boot.drmemtrace --format drmemtrace:view=simulator",
    ToolRow::Merging::exact,
    make_drmemtrace};

}  // namespace citcat::tools
