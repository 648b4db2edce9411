// The C functions of citcat_references.h: a tool that receives the run a stretch at a time.
#include "api/citcat_references.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/current_error.h"
#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "replay/infer/places/event_placer.h"
#include "replay/run/replay_session.h"
#include "replay/session/checkpoints.h"
#include "replay/session/first_entry.h"
#include "tools/host/analysis.h"
#include "tools/host/tool_host.h"

namespace {

using citcat::current_error;

using citcat::AccessKind;
using citcat::tools::Context;
using citcat::tools::Execution;

struct Row {
  std::uint64_t instruction, address, physical, process;
  std::uint16_t bytes;
  std::uint8_t kind, level;
};

/// Rows that were told, and how far they were handed out. Iterations of a string are kept as the
/// rows of one, however many there are.
class Rows {
 public:
  void add(const Row& row) { rows_.push_back(row); }
  /// The rows after the last call are repeated so often, each time `step` bytes higher.
  void end(std::uint32_t times, std::uint32_t step) {
    if (rows_.size() != begun_) runs_.push_back({begun_, rows_.size(), times, step});
    begun_ = rows_.size();
  }
  bool next(Row& row) {
    if (run_ == runs_.size()) {
      clear();
      return false;
    }
    const Run& r = runs_[run_];
    row = rows_[r.first + at_];
    if (row.kind != CITCAT_FETCH) {
      row.address = citcat::tools::further(citcat::LinearAddr{row.address}, time_ * r.step).value;
    }
    if (row.kind != CITCAT_FETCH)
      row.physical = citcat::PhysAddr{row.physical}.plus32(time_ * r.step).value;
    if (++at_ == r.end - r.first) {
      at_ = 0;
      if (++time_ == r.times) time_ = 0, ++run_;
    }
    return true;
  }

 private:
  struct Run {
    std::size_t first, end;
    std::uint32_t times, step;
  };
  void clear() {
    rows_.clear();
    runs_.clear();
    run_ = begun_ = 0;
  }
  std::vector<Row> rows_;
  std::vector<Run> runs_;
  std::size_t begun_ = 0, run_ = 0, at_ = 0;
  std::uint32_t time_ = 0;
};

std::uint8_t kind_of(const citcat::tools::Reference& r) {
  const std::uint8_t write = r.write ? 1 : 0;
  switch (r.kind) {
    case AccessKind::data:
      return static_cast<std::uint8_t>(CITCAT_READ + write);
    case AccessKind::walk:
      return static_cast<std::uint8_t>(CITCAT_WALK_READ + write);
    case AccessKind::system:
      return static_cast<std::uint8_t>(CITCAT_SYSTEM_READ + write);
  }
  return CITCAT_READ;
}

class RowTool final : public citcat::tools::Tool {
 public:
  explicit RowTool(Rows& rows) : rows_(rows) {}
  citcat::tools::Wants wants() const override { return {.references = true, .walks = true}; }
  void run(void*, const Execution& e, const Context& context) override {
    Row row{};
    row.process = context.address_space();
    row.level = static_cast<std::uint8_t>(context.level());
    const auto& references = e.references();
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < e.block().count(); ++i) {
      row.instruction = e.first().instruction + i;
      if (e.first().iteration == 0) {
        fetch(e.block()[i], row);
        if (e.iterations() > 1) rows_.end(1, 0);
      }
      for (; next < references.size() && references[next].instruction == i; ++next) {
        const auto& r = references[next];
        row.address = r.linear.value;
        row.physical = r.physical.value;
        row.bytes = static_cast<std::uint16_t>(r.size);
        row.kind = kind_of(r);
        rows_.add(row);
      }
    }
    rows_.end(e.iterations(), e.step());
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<RowTool>(rows_); }
  void follow(Tool&&) override {}
  void save(citcat::ByteWriter&) const override {}
  void load(citcat::ByteReader&) override {}
  void report(citcat::tools::Report&) const override {}

 private:
  void fetch(const citcat::tools::StaticInstruction& i, Row row) {
    const std::uint32_t here = i.bytes_in_first_page();
    row.kind = CITCAT_FETCH;
    row.address = i.linear.value;
    row.physical = i.physical.value;
    row.bytes = static_cast<std::uint16_t>(here);
    rows_.add(row);
    if (here == i.info.length) return;
    row.address = i.byte(here).value;
    row.physical = i.physical_rest.value;
    row.bytes = static_cast<std::uint16_t>(i.info.length - here);
    rows_.add(row);
  }
  Rows& rows_;
};

thread_local std::string references_open_error;

citcat::RecordingFile open_placed(const char* path) {
  if (path == nullptr) throw citcat::UsageError("no file was named");
  citcat::RecordingFile file = citcat::RecordingFile::open(path);
  citcat::place_events(file, {});
  return file;
}

}  // namespace

struct citcat_references {
  citcat_references(const char* path, bool check, std::uint64_t from, std::uint64_t to)
      : file(open_placed(path)),
        checkpoints(file),
        analysis(std::make_unique<RowTool>(rows)),
        host(analysis, host_options(file.recording(), from, to)),
        begin(from) {
    citcat::SessionOptions options;
    options.to = to;
    options.check = check;
    options.start = checkpoints.start_for({from, to});
    options.checkpoints = &checkpoints;
    if (options.start) options.check = false;
    session = std::make_unique<citcat::ReplaySession>(file, &host, std::move(options));
  }

  static citcat::tools::HostOptions host_options(const citcat::Recording& recording,
                                                 std::uint64_t from, std::uint64_t to) {
    citcat::tools::HostOptions options;
    options.isolated_tables = citcat::begins_with_isolated_tables(recording);
    options.from = from;
    options.to = to;
    return options;
  }

  /// False at the end. What was sure before a divergence is handed out first.
  bool next(Row& row) {
    while (!rows.next(row)) {
      if (!failure.empty()) throw citcat::Error(failure);
      if (ended) return false;
      replay_on();
    }
    return true;
  }

  void replay_on() {
    constexpr std::uint64_t kStretch = 1 << 12;  // instructions at a time
    const std::uint64_t end = session->to();
    const std::uint64_t from = std::min(end, std::max(session->position().instruction, begin));
    const std::uint64_t to = from + std::min(end - from, kStretch);
    citcat::ReplayReport report = session->run_to(to);
    const bool diverged = report.end == citcat::ReplayReport::End::diverged;
    if (!diverged && report.instructions >= to && to != end) return;
    ended = true;
    host.finish();
    if (!diverged) report = session->end(report);
    if (report.divergence) {
      failure = file.container().path() + ": diverged before or at " +
                place_text(*report.divergence) + ": " + report.divergence->reason;
    } else if (session->differs_before()) {
      failure = file.container().path() + ": the replay is not the one that was verified";
    }
  }

  citcat::RecordingFile file;
  citcat::Checkpoints checkpoints;
  Rows rows;
  citcat::tools::Analysis analysis;
  citcat::tools::ToolHost host;
  std::uint64_t begin;
  std::unique_ptr<citcat::ReplaySession> session;
  bool ended = false;
  std::string failure, error;
};

citcat_references* citcat_references_open(const char* path, unsigned flags, uint64_t from,
                                          uint64_t to) {
  references_open_error.clear();
  try {
    if ((flags & ~unsigned{CITCAT_UNCHECKED}) != 0) {
      throw citcat::UsageError("flags are asked for that this version does not have");
    }
    return std::make_unique<citcat_references>(path, (flags & CITCAT_UNCHECKED) == 0, from, to)
        .release();
  } catch (...) {
    references_open_error = current_error();
    return nullptr;
  }
}

namespace {

/// The columns as those of this version. Throws UsageError where they cannot take what the
/// recording has.
citcat_columns checked_columns(const citcat_references& run, const citcat_columns& columns) {
  constexpr std::size_t kFirstVersion = offsetof(citcat_columns, wide_address),
                        kSecondVersion = offsetof(citcat_columns, wide_physical);
  const bool earlier = columns.size == kFirstVersion || columns.size == kSecondVersion;
  if (!earlier && columns.size < sizeof(citcat_columns)) {
    throw citcat::UsageError("columns of another version");
  }
  const bool long_mode = citcat::cpu_traits(run.file.recording().initial.model).has_long_mode;
  if (long_mode && columns.address != nullptr) {
    throw citcat::UsageError(
        "addresses have 64 bits here: expected wide_address in place of address");
  }
  citcat_columns all{};
  std::memcpy(&all, &columns, std::min(columns.size, sizeof all));
  return all;
}

/// For a column of 32 bits.
std::uint32_t narrow(std::uint64_t value) {
  if (value >> 32 != 0) {
    throw citcat::UsageError(
        "the run uses memory beyond 4 GiB: expected wide_physical and wide_process in place of "
        "physical and process");
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

size_t citcat_references_read(citcat_references* run, const citcat_columns* columns, size_t rows) {
  if (run == nullptr || columns == nullptr) {
    references_open_error = "no run or no columns were given";
    return 0;
  }
  run->error.clear();
  std::size_t count = 0;
  try {
    const citcat_columns to = checked_columns(*run, *columns);
    Row row;
    for (; count < rows && run->next(row); ++count) {
      if (to.instruction) to.instruction[count] = row.instruction;
      if (to.address) to.address[count] = static_cast<std::uint32_t>(row.address);
      if (to.wide_address) to.wide_address[count] = row.address;
      if (to.physical) to.physical[count] = narrow(row.physical);
      if (to.wide_physical) to.wide_physical[count] = row.physical;
      if (to.process) to.process[count] = narrow(row.process);
      if (to.wide_process) to.wide_process[count] = row.process;
      if (to.bytes) to.bytes[count] = row.bytes;
      if (to.kind) to.kind[count] = row.kind;
      if (to.level) to.level[count] = row.level;
    }
  } catch (...) {
    // Rows before it are sure; whoever reads on is told.
    if (count == 0) run->error = current_error();
  }
  return count;
}

void citcat_references_close(citcat_references* run) { delete run; }

const char* citcat_references_error(const citcat_references* run) {
  const std::string& error = run == nullptr ? references_open_error : run->error;
  return error.empty() ? nullptr : error.c_str();
}
