#pragma once
// Compares the line fills and write-backs that a model of the declared cache predicts with those on
// the bus: each predicted miss must be in the capture, and no other.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/recording.h"
#include "events/taken_line.h"
#include "replay/verify/cache_accesses.h"

namespace citcat {

struct CacheCount {
  std::uint64_t predicted = 0, captured = 0, agree = 0;
};

/// A line that only one side moves.
struct CacheDisagreement {
  Position position;
  std::uint64_t transaction = ~std::uint64_t{0};  ///< of the capture; all ones where it shows none
  CacheTraffic traffic;
  bool captured = false;  ///< the bus shows it and the model does not predict it
};
/// Without its position.
std::string cache_disagreement_text(const CacheDisagreement& d);

struct CacheTotals {
  CacheCount fills, write_backs;
  /// Fills of lines that the model held already: another bus master may have taken them away.
  std::uint64_t refills = 0;
  std::optional<CacheDisagreement> first;
};

/// After a disagreement the model takes over what the bus showed, and the comparison goes on.
///
/// Where the capture counts instructions, both sides are compared instruction by instruction, in
/// any order within one. Without counts their order counts, and a line may be early or late by as
/// many others as the comparison looks ahead.
class CacheCheck final : public CacheAccesses {
 public:
  /// `taken`: of several processors, which lines the others take away; empty for none.
  CacheCheck(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
             const CacheDescriptor& descriptor, TakenLineReader taken = {});

  Interest interest() const override { return {.code = Detail::references}; }
  /// After the replay.
  void finish();
  const CacheTotals& totals() const { return totals_; }

 private:
  struct Captured {
    CacheTraffic traffic;
    std::uint64_t transaction = 0;
    Position position;
    bool matched = false;
  };

  std::uint64_t before_access(Position now) override;
  std::uint64_t due() const;
  bool hears_whole(Position first, std::uint32_t count) override;
  void moved(Position now) override;
  bool read_ahead();
  void pull_through(std::uint64_t instruction);
  void take(const BusTransaction& t);
  void snoop_by_others(std::size_t from, std::size_t most);
  bool is_predicted_snoop(std::size_t i) const;
  void hear_of_taken(std::uint64_t transaction);
  bool is_filled(PhysAddr line) const;
  void lose_taken(bool all);
  CacheCount& count_of(const CacheTraffic& t);
  void settle();
  void settle_in_order();
  bool match(const CacheTraffic& predicted);
  void give_up_first();
  void disagree(const CacheTraffic& traffic, const Captured* shown);

  std::unique_ptr<EvidenceReader> evidence_;
  TakenLineReader read_taken_;
  std::optional<TakenLine> next_taken_;  ///< read, but of a later transaction
  std::vector<PhysAddr> taken_;          ///< not lost yet
  bool at_end_ = false;
  bool counted_ = true;                  ///< the evidence tells positions
  std::optional<BusTransaction> ahead_;  ///< read, but of a later instruction
  /// Not matched yet: of this instruction and those before, or without counts as many as are looked
  /// at.
  std::deque<Captured> captured_;
  std::optional<std::uint64_t> instruction_;
  std::uint64_t behind_ = 0;  ///< matched since the first of captured_ was due
  CacheTotals totals_;
};

}  // namespace citcat
