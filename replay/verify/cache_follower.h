#pragma once
// Compares the lines on the bus with a model of the cache, strictly: the first line that only one
// side moves ends the run. It needs no counts and can return to an earlier state, so a search can
// measure with it how good a guess is.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "events/recording.h"
#include "replay/session/rewindable_evidence.h"
#include "replay/verify/cache_accesses.h"

namespace citcat {

class CacheFollower final : public CacheAccesses {
 public:
  /// A line on the bus.
  struct Line {
    CacheTraffic traffic;
    std::uint64_t transaction = 0;
    std::array<std::uint8_t, kMaxTransactionBytes> data{};  ///< of a write-back
  };

  CacheFollower(const Recording& recording, const EvidenceSource& evidence,
                const CacheDescriptor& descriptor);

  /// Compares the lines that the accesses since the last call moved with as many lines of the bus,
  /// in any order. To be called at every boundary. Throws ReplayStopped where they differ. False
  /// when the bus has no more lines, or none before the limit: the run must end.
  bool settle(Position now);
  /// Called with every write-back that agreed.
  void on_write_back(std::function<void(const Line&)> call) { written_back_ = std::move(call); }

  /// Keeps what the cache hears from position `here` on, with every boundary passed.
  void start_log(CacheLog& log, Position here) {
    log_ = &log;
    logged_ = here;
  }
  const CacheModel& model() const { return model_; }
  void stop_log() { log_ = nullptr; }
  /// Stops comparing: what the run moves from here on may be wrong.
  void ignore_bus(bool ignore) { ignores_bus_ = ignore; }
  /// The lines that come next, at most `most`, none after the transaction `end`.
  std::vector<Line> next_lines(std::size_t most, std::uint64_t end);

  /// The first line that is not among those predicted, or shown, as many on either side; nullopt
  /// when they are the same.
  static std::optional<std::size_t> first_difference(std::span<const CacheTraffic> predicted,
                                                     std::span<const Line> shown);
  /// Another bus master reads the first of `lines`: the bus shows it written back, and no code is
  /// filled from it next. False when it is not so, or the line is not modified.
  static bool snoop_by_others(CacheModel& model, std::span<const Line> lines);

  /// Lines that the bus shows after this transaction must not be moved.
  void set_limit(std::optional<std::uint64_t> transaction) { limit_ = transaction; }
  bool closed() const { return closed_; }
  /// All lines before this transaction have been moved.
  bool at(std::uint64_t transaction);
  /// A store goes to the bus by itself.
  bool writes_through(PhysAddr a) const { return model_.writes_through(a); }

  /// What to come back to.
  struct Checkpoint {
    State accesses;
    std::uint64_t evidence = 0;
    std::optional<BusTransaction> ahead;
    std::vector<Line> waiting;
  };
  /// Makes it cheap to restore this or a later checkpoint, until release().
  Checkpoint checkpoint();
  void restore(const Checkpoint& checkpoint);
  void release() { evidence_.release(); }

 private:
  std::uint64_t before_access(Position) override { return 0; }
  bool read_ahead();
  bool pull();
  void take_parts(Line& line);
  void take_snoops();
  [[noreturn]] void differ(Position now, const CacheTraffic& predicted, const Line& shown) const;

  RewindableEvidence evidence_;
  std::function<void(const Line&)> written_back_;
  std::optional<std::uint64_t> limit_;
  bool closed_ = false, ignores_bus_ = false;
  Position logged_;                      ///< boundary logged last
  std::optional<BusTransaction> ahead_;  ///< read, and not taken yet
  std::vector<Line> waiting_;            ///< of the bus, not moved yet
};

}  // namespace citcat
