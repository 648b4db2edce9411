#pragma once
// Stretches of a run kept instruction by instruction: the beginning, the end, and those around
// chosen events. A ring holds the last instructions, so that those *before* an event can be kept
// once the event has been chosen.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "formats/kt/kt_note.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// Chooses a bounded number of many, evenly: each `stride`-th, which doubles when there are too
/// many.
class EvenChoice {
 public:
  explicit EvenChoice(std::size_t most) : most_(most) {}
  /// Counts one more; true where it is chosen. Look at stride() afterwards: it may have doubled.
  bool next() {
    const bool chosen = count_++ % stride_ == 0;
    if (chosen && (count_ - 1) / stride_ >= most_) {
      stride_ *= 2;
      return (count_ - 1) % stride_ == 0;
    }
    return chosen;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t stride() const { return stride_; }

 private:
  std::size_t most_;
  std::uint64_t count_ = 0, stride_ = 1;
};

/// One report: an instruction, iterations of a REP that follow one another, or an event (`code` is
/// null).
struct ToldRecord {
  const StaticInstruction* code = nullptr;
  Position position;
  std::uint8_t address_count = 0;
  LinearAddr addresses[2];
  std::uint32_t iterations = 1, step = 0;  ///< as Execution's; 0 without REP
  KtNote event;
};

/// Why a stretch is kept.
struct MomentReason {
  std::string text;
  std::size_t kind = 0;       ///< of the event
  std::uint64_t ordinal = 0;  ///< of the event among those of its kind
  bool pinned = false;        ///< it stays, whatever else is chosen
  bool operator==(const MomentReason&) const = default;
};

struct KeptStretch {
  std::vector<ToldRecord> records;
  std::vector<MomentReason> reasons;
};

class KeptMoments {
 public:
  /// Keeps `edge` instructions at both ends of the run, and `around` on both sides of an event.
  KeptMoments(std::uint64_t edge, std::uint64_t around);

  void told(const Execution& execution);
  void told(const KtNote& event);
  /// This many records were not reported. Not while goes_on(); what is told next, up to an event,
  /// is at least what is kept before one.
  void skipped(std::uint64_t records);
  /// What is reported next is kept.
  bool goes_on() const { return kept_ < keep_until_; }
  /// Keep what lies around what was reported last.
  void keep(const MomentReason& reason);
  /// Those of `kind` whose ordinal is no multiple of `stride` need not be kept any longer.
  void thin(std::size_t kind, std::uint64_t stride);
  /// All stretches, in the order of the run, with the end of it.
  std::vector<KeptStretch> all() const;

 private:
  /// What was reported at once: a block, or an event (`block` is null).
  struct Told {
    const StaticBlock* block = nullptr;
    Position first;
    std::uint32_t iterations = 1, step = 0;
    bool does_nothing = false;
    std::vector<LinearAddr> addresses;  ///< Execution::append_addresses()
    KtNote event;
    std::uint64_t end = 0;  ///< records reported up to its end
  };
  Told& next_told(std::uint64_t records);
  std::optional<std::uint32_t> step_to(const Execution& execution) const;
  /// Appends those of its records that are after the first `from` of the run.
  static void append(const Told& told, std::uint64_t from, std::uint64_t until,
                     std::vector<ToldRecord>& to);
  void append_ring(KeptStretch& to, std::uint64_t from) const;
  void take(const Told& told);
  void told_further(std::uint32_t iterations, std::uint32_t step);
  Told& in_ring(std::uint64_t number) { return ring_[number & (ring_.size() - 1)]; }
  const Told& in_ring(std::uint64_t number) const { return ring_[number & (ring_.size() - 1)]; }

  std::uint64_t edge_, around_;
  std::vector<Told> ring_;
  std::uint64_t next_ = 0;        ///< reported so far
  std::uint64_t told_ = 0;        ///< records of them
  std::uint64_t kept_ = 0;        ///< records up to the end of the last stretch
  std::uint64_t keep_until_ = 0;  ///< records up to which the last stretch still takes them
  std::deque<KeptStretch> stretches_;
};

}  // namespace citcat::tools
