#pragma once
// One recording of a capture: where it starts and with what state, which counts can be believed,
// where it ends.

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/bus/transaction_stream.h"
#include "capture/import/dump_window.h"
#include "capture/import/emulator_stores.h"
#include "capture/import/import.h"
#include "capture/import/position_audit.h"
#include "capture/import/where.h"
#include "events/derive/recording_builder.h"

namespace citcat {

/// Derives recordings from a stream of transactions.
class Importer {
 public:
  /// Evidence goes to `evidence` (may be null) on the way. Nothing is owned.
  Importer(TransactionStream& stream, const ImportOptions& options, EvidenceWriter* evidence);

  /// The recording that the options ask for.
  Recording run();
  /// The next one that begins with a dump, or with a state the capture itself carries: everything
  /// but what is known at the end of the capture. Nothing when the segment has none left.
  /// `may_spin`: the segment may end in the spin loop of a driver.
  std::optional<Recording> run_next(bool may_spin);
  std::string missing_dump() const;
  /// Completes what run_next() returned, once the capture was read to its end.
  void fill_in(Recording& recording);
  bool ends_where_told() const;
  void reach(Recording& recording, const Position& told) const;
  void leave_open(CpuState& state) const;
  /// The transactions that show what the emulator has stored, of the recording's `writes`.
  std::vector<std::uint64_t> told_changes(const ExternalWrites& writes) const {
    return stores_.shown_by(writes, base_);
  }
  bool tells_changes() const { return !stores_.empty(); }
  void require_width(const CpuState& state) const;

 private:
  bool next(BusTransaction& t) { return stream_.next(t); }
  void select_segment();
  void find_state();
  void require_state_of_this_processor() const;
  bool search_dump();
  void find_dump();
  bool dump_ended();
  void pass(const BusTransaction& t);
  void pass_ahead();
  void take_dump();
  void skip_to_start();
  void look_ahead();
  void find_base();
  std::optional<Position> base_of_dump() const;
  std::optional<Position> base_of_start() const;
  void derive();
  bool derive(std::span<BusTransaction> block, std::size_t& taken);
  bool derive(BusTransaction& t);
  bool derive_run(AccessRun run);
  std::size_t count_plain(std::span<const BusTransaction> block);
  std::size_t derive_plain(std::span<BusTransaction> block);
  bool stopped_by(const BusTransaction& t);
  bool reset_by(const BusTransaction& t);
  void derive_delayed(std::size_t delay);
  void leave_out_spin_loop();
  void drain();
  Recording finish();
  void settle_smbase(Recording& recording);
  void take_internal(Recording& recording);
  bool is_behind(const Recording& recording, std::uint64_t instruction) const;
  InternalReads internal_reads(const Recording& recording) const;
  std::vector<DroppedTranslation> dropped_translations(const Recording& recording);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::string& name() const;
  bool starts_with_tlb() const;
  CountUnit counts() const { return options_.counts.value_or(stream_.info().counts); }
  bool counts_instructions() const { return counts() == CountUnit::instructions; }
  void find_base_of_counts();

  TransactionStream& stream_;
  const ImportOptions& options_;
  RecordingBuilder builder_;
  WhereFinder start_, stop_;
  PositionAudit audit_;
  DumpFinder dump_;
  std::deque<BusTransaction> ahead_;  ///< read but not yet derived
  std::optional<CpuState> state_;
  std::vector<std::string> warnings_;

  std::optional<std::uint32_t> smbase_;  ///< as the first SMI of the recording shows it
  bool has_smi_ = false;

  bool by_dump_ = false;
  Ending ending_ = Ending::unknown;
  std::optional<std::uint64_t> stopped_at_;  ///< instructions before the driver's stop marker
  bool prefix_seen_ = false;                 ///< the machine ran before the start
  std::optional<Position> first_window_, last_window_;  ///< counts at writes into the dump window
  Position base_;
  bool base_known_ = true;
  EmulatorStores stores_;
};

}  // namespace citcat
