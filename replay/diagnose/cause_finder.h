#pragma once
// What a divergence may come of: all changes worth trying.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/diagnose/cause.h"
#include "replay/diagnose/evidence_index.h"
#include "replay/diagnose/internal_series.h"
#include "replay/diagnose/value_guesses.h"
#include "replay/diagnose/value_lineage.h"

namespace citcat {

class CauseFinder {
 public:
  /// After TrialRun::run() gave `divergence`. All must outlive the finder.
  CauseFinder(TrialRun& trials, const Divergence& divergence);

  /// In no order.
  std::vector<Cause> find();
  /// After find(): causes that nothing can be tried for, to be named where no other repairs the
  /// run.
  std::vector<Cause> suspects();
  /// After find(): what is not among them, a line for each.
  const std::vector<std::string>& left_out() const { return left_out_; }

  const RunHistory& history() const { return history_; }
  const EvidenceIndex& shown() const { return *index_; }
  /// Nearest first.
  const std::vector<LineageSource>& lineage() const { return lineage_; }
  /// Place in Recording::internal_reads of the one that this step of the history used.
  std::optional<std::size_t> internal_number(std::size_t step) const;

 private:
  /// Bytes that bus and replay's memory disagree on where the replay stopped.
  struct Mismatch {
    PhysAddr address;
    std::uint8_t shown = 0, ours = 0;
  };

  void find_mismatches();
  void add_mismatches(const BusTransaction& t);
  void trace_back();
  void trace_moves(ValueLineage& lineage);
  void index_evidence();
  void add(Cause cause) { causes_.push_back(std::move(cause)); }

  // cause_finder_memory.cc: what reads and writes showed
  void lone_change();
  void wrong_read(const ExternalWrite& w, PhysAddr byte, std::uint8_t before);
  void wrong_before(const ExternalWrite& w, PhysAddr byte, std::uint8_t before);
  void captured_value();
  void other_address();
  void missing_write();
  void extra_write();
  void memory_sources();
  void flip_memory(PhysAddr byte, unsigned distance, std::size_t step);
  void flip_external(PhysAddr byte, std::uint64_t number, unsigned distance);
  void flip_code();
  void add_read_cause(PhysAddr byte, std::uint8_t read, unsigned distance, std::size_t step,
                      double price);
  void unseen_writes();
  void stale_code();
  bool is_second_write_back(const BusTransaction& t) const;
  double write_price(const BusTransaction& shown, std::span<const std::uint8_t> ours) const;
  std::uint64_t next_external(PhysAddr byte, std::uint64_t transaction,
                              std::optional<std::uint8_t>* value = nullptr) const;

  // cause_finder_events.cc: interrupts, ports, registers
  void interrupts();
  void move_interrupt(std::size_t number);
  void add_shown_place(const Interrupt& i);
  void change_vector(std::size_t number);
  void add_interrupt();
  void port_sources();
  void add_port_cause(const IoRead& read, std::uint32_t value, Position at, double price);
  void register_sources();
  void flip_register(const std::string& name, double price);
  void uncertain_result();

  // cause_finder_values.cc: more than one wrong bit
  void compare_last_steps();
  void compare(const HistoryAccess& a);
  std::uint64_t shown_store(const HistoryAccess& store) const;
  bool is_unknown(const std::string& name) const;
  std::vector<std::uint64_t> pointed_to();
  void suspect_register(const std::string& name, std::uint64_t value, double price);
  void solve_register(const std::string& name, double price, bool general);
  std::uint32_t stack_or_data_base(const std::string& name) const;
  void exchange_registers(std::span<const char* const> names, double price);
  void solve_registers();
  void suspect_byte(PhysAddr byte, std::uint8_t value, unsigned distance, std::size_t step,
                    double price);
  void solve_memory(const LineageSource& source);
  void solve_sources();
  void solve_ports();
  void suspect_port(std::uint64_t number, std::uint32_t value, Position at, double price);

  // cause_finder_gaps.cc: what the capture lacks whole
  void unseen_smi();
  std::optional<std::uint32_t> smbase_of(const BusTransaction& fetch) const;
  std::set<Position> smi_places(const BusTransaction& fetch) const;
  Cause smi_cause(Position place, const BusTransaction& fetch, std::uint32_t base,
                  std::uint8_t revision) const;
  std::vector<Hint> smi_stores(const Cause& cause, Position place, const BusTransaction& fetch,
                               std::uint32_t base, bool as_read);
  void suspect_smi(Position place, const BusTransaction& fetch, std::uint32_t base);
  Cause missing_stretch() const;
  std::optional<Cause> start_at_interrupt() const;
  std::optional<Cause> start_at_fetch() const;

  // cause_finder_internal.cc: values that cross no bus
  void number_internal_reads();
  void internal_sources();
  void other_internal_values(std::size_t number, Position position, double price, bool thorough);
  std::vector<std::uint64_t> solved_from_bus(std::uint64_t value) const;

  /// The transaction before which the one of this position would have been.
  std::uint64_t transaction_after(Position position) const;
  std::optional<std::uint8_t> replayed_byte(PhysAddr captured) const;
  std::uint8_t memory_byte(PhysAddr a) const;

  TrialRun& trials_;
  const Recording& recording_;
  const Schedule& schedule_;
  const Divergence& divergence_;
  const RunHistory& history_;
  std::size_t next_interrupt_ = 0;
  std::map<std::uint32_t, std::uint8_t> memory_;  ///< bytes of interest where the replay stopped
  std::vector<Mismatch> mismatches_;
  /// A byte of memory that the bus shows otherwise where it arrived after some moves.
  struct MovedByte {
    PhysAddr from;
    std::uint8_t shown = 0;
    std::size_t step = 0;
  };
  std::vector<std::vector<MovedByte>> moved_;  ///< by number of moves
  std::vector<LineageSource> lineage_;
  std::unique_ptr<EvidenceIndex> index_;
  std::unique_ptr<InternalSeries> series_;
  std::map<std::size_t, std::size_t> internal_numbers_;  ///< of internal reads, by step
  std::vector<BusTransaction> upcoming_;      ///< what the bus shows from the divergence on
  std::vector<ShownDifference> differences_;  ///< of what the replay did last
  std::vector<std::uint64_t> pointers_;       ///< linear addresses of upcoming_
  std::set<std::pair<std::string, std::uint64_t>> suspected_;  ///< values of registers
  std::set<std::pair<std::uint32_t, std::uint8_t>> suspected_bytes_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> suspected_ports_;  ///< by number
  std::vector<Cause> causes_;
  std::vector<std::string> left_out_;
};

}  // namespace citcat
