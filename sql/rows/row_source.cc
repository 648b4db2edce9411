#include "sql/rows/row_source.h"

#include <algorithm>
#include <limits>

#include "formats/io/error.h"
#include "replay/run/verified_run.h"
#include "replay/session/first_entry.h"
#include "sql/rows/row_pass.h"

namespace citcat::sql {

namespace {

constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};
/// Instructions of a stretch: enough for what a replay costs to be stopped to be nothing.
constexpr std::uint64_t kStretch = std::uint64_t{1} << 16;
/// Stretches that are kept: a query that joins neighbours comes back to the last ones.
constexpr std::size_t kRecent = 3;
/// Up to this many instructions the careful comparison is cheaper than verifying first.
constexpr std::uint64_t kFewInstructions = std::uint64_t{1} << 21;

/// The first instruction after the positions of the filter.
std::uint64_t end_of(const RowFilter& filter) {
  const std::int64_t last = filter.positions.last;
  if (last == std::numeric_limits<std::int64_t>::max()) return kNoEnd;
  return last < 0 ? 0 : static_cast<std::uint64_t>(last) + 1;
}
std::uint64_t begin_of(const RowFilter& filter) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(filter.positions.first, 0));
}

/// Accesses of a delivery at the end of a stretch belong to the next one.
RunRows take_later(RunRows& rows, std::uint64_t to) {
  RunRows later;
  auto begin = rows.access_runs.end();
  while (begin != rows.access_runs.begin() && begin[-1].first.instruction >= to) --begin;
  if (begin == rows.access_runs.end()) return later;
  const std::uint32_t cut = begin->begin;
  later.access_runs.assign(begin, rows.access_runs.end());
  later.accesses.assign(rows.accesses.begin() + cut, rows.accesses.end());
  rows.access_runs.erase(begin, rows.access_runs.end());
  rows.accesses.resize(cut);
  for (AccessRun& run : later.access_runs) {
    run.begin -= cut;
    run.end -= cut;
  }
  return later;
}

}  // namespace

RowSource::RowSource(const RecordingFile& file, const Symbols& symbols, SourceOptions options)
    : file_(file),
      symbols_(symbols),
      options_(std::move(options)),
      checkpoints_(file),
      isolated_tables_(begins_with_isolated_tables(file.recording())) {}
RowSource::~RowSource() = default;

void RowSource::begin_statement() {
  needs_ = {};
  passes_ = 0;
  recent_.clear();
  pass_.reset();
}

void RowSource::note(const ReplayReport& report, std::optional<std::uint64_t> differs_before) {
  if (report.divergence || differs_before) {
    contradiction_ = Contradiction{report.divergence, differs_before};
  }
}

// ---------------------------------------------------------------------------------------------
// Stretches

/// Whoever reads far compares all of it first, which takes a fraction of the time that comparing
/// each instruction takes.
void RowSource::verify(std::uint64_t to) {
  const bool is_far = std::min(to, file_.recording().instructions.value_or(to)) > kFewInstructions;
  if (!is_far || was_verified_) return;
  was_verified_ = true;
  CheckpointedRun run = verify_once(file_, options_.path, options_.placed_now, options_.progress);
  if (run.sure()) verified_ = std::move(run.run);
}

void RowSource::begin_pass(std::uint64_t from, const RowFilter& filter) {
  recent_.clear();
  RowFilter all;
  all.positions = filter.positions;
  // Who comes again for other positions joins the rows of another table, and is going to come for
  // each of them: the pass goes on from one to the next. So it does for another reader.
  const bool joins = passes_++ != 0 && end_of(filter) != kNoEnd;
  const bool alone = readers_ <= 1 && !joins;
  if (!alone) all.positions = {};
  pass_ = std::make_shared<RowPass>(symbols_, contexts_, alone ? filter : all, isolated_tables_);
  const std::uint64_t to = end_of(all);
  SessionOptions options;
  options.to = to;
  if (options_.use_checkpoints) {
    options.start =
        needs_.process_names && options_.check
            ? checkpoints_.beginning()
            : (needs_.process_names ? std::nullopt : checkpoints_.start_for({from, to}));
    if (!options.start && options_.check) options.start = checkpoints_.beginning();
  }
  const bool comparable = file_.meta().evidence == EvidenceMode::full || !file_.digests().empty();
  options.check = options_.check && comparable && !options.start;
  options.checkpoints = &checkpoints_;
  if (options.check) {
    verify(joins ? end_of(filter) : to);
    if (verified_) options.verified = &*verified_;
  }
  options.progress = options_.progress;
  RowNeeds needs = needs_;
  needs.events = needs.system = needs.ports = needs.external_writes = false;
  needs.system_calls = needs.calls = needs.processes = needs.sharing = false;
  pass_->collect(needs, from, to);
  pass_->start(file_, std::move(options));
}

/// Replays a stretch further; null where nothing follows.
std::shared_ptr<const Stretch> RowSource::next_stretch() {
  RowPass& pass = *pass_;
  if (pass.ended) return nullptr;
  ReplaySession& session = pass.session();
  const std::uint64_t end = session.to();
  const std::uint64_t from = std::max(session.position().instruction, pass.from);
  const std::uint64_t to = std::min(end, from + kStretch);
  ReplayReport report = session.run_to(to);
  const bool diverged = report.end == ReplayReport::End::diverged;
  auto stretch = std::make_shared<Stretch>();
  stretch->from = from;
  stretch->to = to;
  if (diverged || report.instructions < to || to == end) {
    pass.ended = true;
    pass.finish();
    if (!diverged) report = session.end(report);
    note(report, session.differs_before());
    stretch->to = pass.to;
    stretch->is_last = pass.to == kNoEnd || diverged || report.instructions < to;
  }
  RunRows later = take_later(pass.rows, stretch->to);
  stretch->rows = std::move(pass.rows);
  pass.rows = std::move(later);
  stretch->pass = pass_;
  recent_.push_back(stretch);
  if (recent_.size() > kRecent) recent_.pop_front();
  return stretch;
}

/// A checkpoint lies between the pass and the instruction, more than a stretch ahead.
bool RowSource::starts_nearer(std::uint64_t instruction, const RowFilter& filter) const {
  const std::uint64_t end = end_of(filter);
  const std::uint64_t now = pass_->session().position().instruction;
  if (!options_.use_checkpoints || needs_.process_names || end == kNoEnd || end <= instruction ||
      instruction < now + kStretch) {
    return false;
  }
  const auto start = checkpoints_.start_for({instruction, end});
  return start && start->instruction > now + kStretch;
}

std::shared_ptr<const Stretch> RowSource::stretch_at(std::uint64_t instruction,
                                                     const RowFilter& filter) {
  if (pass_ != nullptr) {
    RowFilter others = filter;
    others.positions = pass_->filter().positions;
    RowFilter all;
    all.positions = pass_->filter().positions;
    const bool serves =
        (pass_->filter() == all || pass_->filter() == others) && instruction < pass_->to;
    if (!serves) pass_.reset();
  }
  for (const auto& stretch : recent_) {
    if (pass_ != nullptr && instruction >= stretch->from && instruction < stretch->to) {
      return stretch;
    }
  }
  const bool is_behind = pass_ == nullptr || instruction < pass_->from ||
                         (!recent_.empty() && instruction < recent_.back()->to) ||
                         starts_nearer(instruction, filter);
  if (is_behind) begin_pass(instruction, filter);
  for (;;) {
    std::shared_ptr<const Stretch> stretch = next_stretch();
    if (stretch == nullptr || instruction < stretch->to) return stretch;
  }
}

// ---------------------------------------------------------------------------------------------
// All at once

namespace {

/// Replays all of the range in one go, compared in the quick way first.
void run_through(
    RowPass& pass, const RecordingFile& file, const Checkpoints& checkpoints,
    const SourceOptions& source, ReplayRange range, bool from_beginning,
    const std::function<Observer*()>& collect,
    const std::function<void(const ReplayReport&, std::optional<std::uint64_t>)>& note) {
  collect();
  SessionOptions options;
  options.to = range.to;
  options.check = source.check;
  if (source.use_checkpoints) {
    if (!from_beginning) options.start = checkpoints.start_for(range);
    if (!options.start && source.check) options.start = checkpoints.beginning();
    options.checkpoints = &checkpoints;
  }
  options.start_over = collect;
  options.plain_first = true;
  options.progress = source.progress;
  ReplaySession& session = pass.start(file, std::move(options));
  const ReplayReport report = session.run();
  pass.finish();
  note(report, session.differs_before());
  pass.drop_session();
}

}  // namespace

std::shared_ptr<const WholeRun> RowSource::whole() {
  RowNeeds needs = needs_;
  needs.instructions = needs.accesses = needs.values = false;
  if (whole_ != nullptr && whole_needs_.cover(needs)) return whole_;
  auto whole = std::make_shared<WholeRun>();
  if (needs.sharing && options_.shared == nullptr) {
    throw UsageError(options_.path +
                     ": sharing needs a recording of several processors together, "
                     "not of one alone");
  }
  const bool only_sharing = needs == RowNeeds{.sharing = true};
  whole->pass = std::make_shared<RowPass>(symbols_, contexts_, RowFilter{}, isolated_tables_);
  if (!only_sharing) {
    run_through(
        *whole->pass, file_, checkpoints_, options_, {}, true,
        [&] { return whole->pass->collect(needs, 0, kNoEnd); },
        [this](const ReplayReport& report, auto differs) { note(report, differs); });
  }
  whole->rows = std::move(whole->pass->rows);
  if (needs.sharing) whole->rows.sharing = options_.shared->of(options_.processor);
  std::stable_sort(whole->rows.system_calls.begin(), whole->rows.system_calls.end(),
                   [](const auto& a, const auto& b) { return a.call.begin < b.call.begin; });
  whole_needs_ = needs;
  whole_ = whole;
  return whole_;
}

Counts RowSource::count(const CountNeeds& needs, const RowFilter& filter) {
  Counts counts;
  counts.pass = std::make_shared<RowPass>(symbols_, contexts_, filter, isolated_tables_);
  const ReplayRange range{begin_of(filter), end_of(filter)};
  if (range.from < range.to) {
    run_through(
        *counts.pass, file_, checkpoints_, options_, range, needs.process_names,
        [&] { return counts.pass->collect(needs, range.from, range.to); },
        [this](const ReplayReport& report, auto differs) { note(report, differs); });
    const auto& collected = static_cast<const CountCollector&>(counts.pass->tool());
    if (needs.instructions) {
      counts.instructions = collected.instruction_counts();
    } else {
      counts.accesses = collected.access_counts();
    }
  }
  return counts;
}

ReplayTimeline& RowSource::timeline() {
  if (timeline_ == nullptr) {
    const bool comparable = file_.meta().evidence == EvidenceMode::full || !file_.digests().empty();
    TimelineOptions options;
    options.use_checkpoints = options_.use_checkpoints;
    options.check = options_.check && comparable &&
                    (!options_.use_checkpoints || checkpoints_.longest_series(false).empty());
    options.progress = options_.progress;
    timeline_ = std::make_unique<ReplayTimeline>(file_, nullptr, std::move(options));
  }
  return *timeline_;
}

CpuState RowSource::registers() {
  CpuState state = timeline().registers();
  if (state.unknown.empty()) return state;
  if (!known_registers_) known_registers_.emplace(file_.recording());
  known_registers_->settle(state, timeline().moment());
  return state;
}

}  // namespace citcat::sql
