#pragma once
// One comparison: the evidence as it is read, the matchers in which it waits for the replay, and
// what they have found.
//
// The Verifier, which receives instructions, and the BlockComparison, which receives blocks, read
// as much evidence as they need and pass to the matchers what the replay does.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "events/recording.h"
#include "replay/captured/evidence_ahead.h"
#include "replay/captured/evidence_cursor.h"
#include "replay/captured/repeated_transfer.h"
#include "replay/machine/machine.h"
#include "replay/machine/replay_stopped.h"
#include "replay/verify/branch_matcher.h"
#include "replay/verify/bus_times.h"
#include "replay/verify/comparison_policy.h"
#include "replay/verify/comparison_result.h"
#include "replay/verify/external_change.h"
#include "replay/verify/fetch_order.h"
#include "replay/verify/final_memory_check.h"
#include "replay/verify/flag_images.h"
#include "replay/verify/line_matcher.h"
#include "replay/verify/order_of_stores.h"
#include "replay/verify/ordered_reads.h"
#include "replay/verify/port_matcher.h"
#include "replay/verify/read_matcher.h"
#include "replay/verify/special_matcher.h"
#include "replay/verify/undefined_bits.h"
#include "replay/verify/write_matcher.h"

namespace citcat {

struct ComparisonPlace;

struct VerifierOptions {
  ComparisonPolicy policy;
  bool reads = true;         ///< compare reads and line fills too, where the capture counts them
  bool final_memory = true;  ///< keep what Verifier::compare_final() needs
  /// Accept only what agrees plainly, in whole blocks where the capture allows it: see
  /// Verifier::plain(). Several times faster.
  bool plain = false;
  /// The comparison is never gone back in, and what the capture shows of memory never corrected: of
  /// a plain one, evidence may be taken in on a second thread.
  bool ahead = false;
  /// What the replay is given where that is not the recording's own schedule; must outlive the
  /// comparison.
  const Schedule* schedule = nullptr;
  /// Where to begin, if not at the beginning of the run: the place of another comparison with the
  /// same options. The evidence is opened from its start all the same.
  const ComparisonPlace* begin = nullptr;
  /// Only the evidence of instructions from here on and before `to` is compared. This is for a
  /// plain comparison with `ahead`; call Verifier::begin_part() and end_part() at these places.
  std::uint64_t from = 0, to = ~std::uint64_t{0};
  bool is_part() const { return from != 0 || to != ~std::uint64_t{0}; }
  /// Receives the times at which the bus showed what the replay does; must outlive the comparison.
  /// Not with `plain`.
  BusTimes* times = nullptr;
};

class Doubts;

/// The state of a comparison: the captured transactions that wait for the replay, and what was
/// compared so far. A copy is a checkpoint. Copying it is compiled once, in comparison.cc: it
/// copies a dozen queues.
struct ComparisonProgress {
  ComparisonProgress(const Recording& recording, EvidenceCursor begin);
  ComparisonProgress(const ComparisonProgress&);
  ComparisonProgress(ComparisonProgress&&);
  ComparisonProgress& operator=(const ComparisonProgress&);
  ComparisonProgress& operator=(ComparisonProgress&&);
  ~ComparisonProgress();

  EvidenceCursor cursor;
  WriteMatcher writes;
  OrderOfStores stores_order;  ///< where instructions are counted
  RepeatedTransfer repeated;
  LineMatcher lines;
  PortMatcher ports;
  // Where Comparison::orders_reads.
  OrderedReads ordered_reads;
  FetchOrder fetches;
  /// The first transaction that FetchOrder::observe() has found wrong.
  std::optional<std::uint64_t> from_elsewhere;
  SpecialMatcher specials;
  BranchMatcher starts;
  UndefinedBits undefined;
  ComparisonResult result;
  std::uint64_t interrupts_captured = 0, interrupts_delivered = 0;
  /// Without counts: instruction of the last agreement after the last event.
  std::uint64_t progress_at = 0;
  /// The run goes on beyond the end of the evidence.
  bool beyond = false;
};

/// Where a plain comparison is whose evidence is taken in on a second thread.
struct ComparisonPlace {
  ComparisonProgress progress;
  FinalMemoryCheck::Progress final_memory;
  std::size_t external_changes = 0;
  ReadMatcherProgress reads;
  FlagImages images;
  std::uint64_t interrupted = 0;
  std::uint64_t taken_in = 0;  ///< transactions, lines where they are joined
  /// The same without the one that the cursor knows but has not handed out.
  std::uint64_t handed_out() const { return taken_in - (progress.cursor.is_known() ? 1 : 0); }
};

struct Comparison : ComparisonProgress {
  /// Transactions held back while looking for one of another kind, before that counts as missing.
  static constexpr std::size_t kMaxHeld = std::size_t{1} << 20;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// `recording` must outlive the comparison; so must `machine`, to be set before the replay.
  Comparison(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
             const VerifierOptions& options);
  const Memory& memory() const { return std::as_const(*machine).memory(); }

  /// Whether place() may be asked for.
  bool has_places() const { return ahead != nullptr; }
  ComparisonPlace place() const;

  // The evidence.
  /// Makes sure that the next transaction is known. False at the end.
  bool look_ahead() { return cursor.is_known() || read_ahead(); }
  /// Hands the next transaction to its matcher, where it waits. False at the end.
  bool pull();
  /// All that belongs to `position` or before, as far as that can be known.
  void pull_through(Position position);
  /// Without counts, behind a write-back cache: write-backs from here on are of the time after the
  /// next port access or interrupt.
  bool at_barrier() const {
    return !cursor.counted() && write_back &&
           (ports.waiting() != 0 || interrupts_captured > interrupts_delivered);
  }
  /// Every transaction that waits, but for lines and special cycles.
  std::size_t held() const { return writes.waiting() + ports.waiting() + starts.waiting(); }
  /// Without counts: the replay has made all there is.
  bool is_used_up() const;
  /// At the end: it has made all stores, port accesses and special cycles that the bus shows.
  bool made_all() const;
  /// Nothing is left before the instruction or access at `now`, where counts do not show the end.
  bool is_over(Position now);

  // Reads; only where they are compared.
  /// Before the first access of instruction `now`: compares what the one before has read.
  void follow_reads(Position now);
  /// Before an access at `now`.
  void begin_reads(Position now) {
    if (now.instruction != reads->instruction()) follow_reads(now);
    // An event that came at a REP has it start again from zero: counts no longer order its reads.
    reads->reach(now.instruction == interrupted ? ReadMatcher::kAnyIteration : now.iteration);
  }

  // Lines.
  /// Those that may have been given up before `next`.
  void check_lines(Position next);
  /// The instruction or iteration at `now` is complete: so must its lines be.
  void expire_lines(Position now, bool in_repeat);
  /// Takes over bits that no manual defines, of lines that instructions up to `last` have given up,
  /// before the reads after those lines are looked at.
  void adopt_lines(std::uint64_t last);
  /// Without counts: those of a window, as memory is now. True where some agree.
  bool check_window(std::uint64_t window);
  /// Without counts, at an event: all that wait.
  void settle_windows(Position now);

  // What agrees, and what is taken over.
  void write_agreed(const BusTransaction& t);
  void line_agreed(const LineMatcher::Pending& line);
  bool is_waived(std::uint64_t transaction) const;
  /// A difference from the captured byte is allowed by what no manual defines.
  bool may_differ(PhysAddr a, std::uint8_t captured) const {
    return !policy.strict && undefined.may_differ(a, captured, memory());
  }
  /// The byte of a captured write is taken over where `value`, as the replay stored it, may differ
  /// in `bits`.
  bool adopt(WriteMatcher::Pending& pending, PhysAddr a, std::uint8_t value, std::uint8_t bits);

  /// After a complete replay: nothing captured before `end` may be left over.
  void end(Position end);
  void require_rest(Position end);

  /// Whether undefined bits are followed from store to store at `now`: always in the full
  /// comparison, in a plain one close to a doubt.
  bool looks_closely(Position now);

  static void require(const std::optional<Mismatch>& mismatch, Position now) {
    if (mismatch) stop_with(*mismatch, now);
  }

  const Recording& recording;
  ComparisonPolicy policy;
  const bool plain;         ///< as Verifier::plain()
  const bool write_back;    ///< the form of the bus
  const bool orders_reads;  ///< ordered_reads and fetches are used
  const std::uint64_t to;   ///< what belongs to instructions from here on is not counted
  BusTimes* const times;    ///< null where nobody asks
  std::unique_ptr<EvidenceReader> evidence;
  EvidenceAhead* const ahead;  ///< the same, where it is taken in ahead; else null
  Machine* machine = nullptr;
  std::unique_ptr<ReadMatcher> reads;  ///< null where reads are not compared
  FinalMemoryCheck final_memory;
  ExternalChanges external;
  FlagImages images;         ///< of a plain comparison
  Doubts* doubts = nullptr;  ///< of a plain comparison: may be put off; null: none is
  /// An event came at this instruction: a REP there starts again from zero.
  std::uint64_t interrupted = kNone;

 private:
  struct Intake {
    std::unique_ptr<EvidenceReader> reader;
    EvidenceAhead* ahead = nullptr;  ///< the same
  };
  static Intake take_in(const Recording& recording, std::unique_ptr<EvidenceReader> reader,
                        const VerifierOptions& options);
  Comparison(const Recording& recording, Intake intake, const VerifierOptions& options);
  void begin_at(const ComparisonPlace& place);
  bool read_ahead();
  void fetch_ahead(const BusTransaction& t) const;
  void sort_in(const BusTransaction& t);
  bool shows_images_alone(const LineMatcher::Pending& line) const;
  bool shows_undefined_bits(const LineMatcher::Pending& line) const;
  bool excuses(LineMatcher::Pending& line);
  bool adopt(LineMatcher::Pending& line);
  std::size_t stretch_ = 0;  ///< of the doubts, in which undefined bits are followed

  void take_over(bool write, PhysAddr a, const std::uint8_t& byte);
  [[noreturn]] void refuse(const LineMatcher::Pending& line, const char* reason, Position now);
};

}  // namespace citcat
