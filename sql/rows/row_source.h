#pragma once
// Where the rows of a recording come from: a replay in stretches for rows that every instruction
// has, one replay of the whole run for rare rows, and one that only counts.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/checkpoint_series.h"
#include "events/archive/recording_file.h"
#include "events/names/symbols.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/checkpoints.h"
#include "replay/session/known_registers.h"
#include "replay/session/replay_report.h"
#include "sql/rows/count_collector.h"
#include "sql/rows/row_filter.h"
#include "sql/rows/run_rows.h"
#include "sql/rows/shared_rows.h"

namespace citcat::sql {

class RowPass;

struct SourceOptions {
  std::string path;        ///< the name that the archive was opened by
  unsigned processor = 0;  ///< number of the processor
  /// What all processors of the machine share; null: the recording has only this one.
  SharedRows* shared = nullptr;
  bool placed_now = false;  ///< a search has just put its interrupts in their places
  bool check = true;        ///< compare with the evidence on the way
  bool use_checkpoints = true;
  std::function<void(Position)> progress;  ///< may be empty
};

/// Rows of the instructions [from, to). What they point to lives as long as `pass`.
struct Stretch {
  std::uint64_t from = 0, to = 0;
  bool is_last = false;  ///< the run ends within it
  RunRows rows;
  std::shared_ptr<RowPass> pass;
};

/// The same of a run, or of all of it that was asked for.
struct WholeRun {
  RunRows rows;
  std::shared_ptr<RowPass> pass;
};

struct Counts {
  std::vector<InstructionCount> instructions;
  std::vector<AccessCount> accesses;
  std::shared_ptr<RowPass> pass;
};

/// What a replay contradicted.
struct Contradiction {
  std::optional<Divergence> divergence;
  std::optional<std::uint64_t> differs_before;
};

class RowSource {
 public:
  /// All must outlive the object.
  RowSource(const RecordingFile& file, const Symbols& symbols, SourceOptions options);
  ~RowSource();

  const RecordingFile& file() const { return file_; }
  /// The name that it was opened by.
  const std::string& path() const { return options_.path; }
  /// The number of the processor whose run it is.
  unsigned processor() const { return options_.processor; }
  const Symbols& symbols() const { return symbols_; }
  const ContextTable& contexts() const { return contexts_; }
  /// Instructions of the run, as far as the recording tells.
  std::uint64_t instructions() const { return file_.recording().instructions.value_or(0); }

  /// Another statement is made ready: what the last one needed counts no longer.
  void begin_statement();
  /// The statement is going to ask for these.
  void need(const RowNeeds& needs) { needs_ = needs_ | needs; }
  /// A reader of stretches begins. What several read, is not filtered.
  void add_reader() { ++readers_; }
  void remove_reader() { --readers_; }

  /// The stretch with that instruction; null after the end of the run. At least the rows that the
  /// filter leaves are in it.
  std::shared_ptr<const Stretch> stretch_at(std::uint64_t instruction, const RowFilter& filter);
  /// What the statement needs of the run as a whole.
  std::shared_ptr<const WholeRun> whole();
  /// Counts of what the filter leaves.
  Counts count(const CountNeeds& needs, const RowFilter& filter);

  /// To look at registers and memory of any moment.
  ReplayTimeline& timeline();
  /// Registers where the timeline is. CpuState::unknown has those that nothing has loaded so far.
  CpuState registers();

  /// Who went along the timeline met it.
  void note_divergence(const Divergence& divergence) { contradiction_ = {divergence, {}}; }

  /// What the evidence has against the rows that were given; nullopt: nothing.
  const std::optional<Contradiction>& contradiction() const { return contradiction_; }

 private:
  void begin_pass(std::uint64_t from, const RowFilter& filter);
  bool starts_nearer(std::uint64_t instruction, const RowFilter& filter) const;
  void verify(std::uint64_t to);
  void note(const ReplayReport& report, std::optional<std::uint64_t> differs_before);
  std::shared_ptr<const Stretch> next_stretch();

  const RecordingFile& file_;
  const Symbols& symbols_;
  const SourceOptions options_;
  const Checkpoints checkpoints_;
  const bool isolated_tables_;  ///< HostOptions::isolated_tables
  ContextTable contexts_;
  RowNeeds needs_;
  std::uint32_t readers_ = 0;
  std::uint32_t passes_ = 0;       ///< that the statement has begun
  std::shared_ptr<RowPass> pass_;  ///< that reads stretches
  std::deque<std::shared_ptr<const Stretch>> recent_;
  std::shared_ptr<const WholeRun> whole_;
  RowNeeds whole_needs_;  ///< that `whole_` was made for
  bool was_verified_ = false;
  std::optional<CheckpointRun> verified_;
  std::optional<Contradiction> contradiction_;
  std::unique_ptr<ReplayTimeline> timeline_;
  std::optional<KnownRegisters> known_registers_;
};

}  // namespace citcat::sql
