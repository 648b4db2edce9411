// Explains runs whose interrupts could not all be placed: a replay cannot go beyond the first one
// without a place, so that what comes before it is explained by itself.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "replay/diagnose/evidence_index.h"
#include "replay/diagnose/explanation.h"

namespace citcat {
namespace {

/// Evidence up to a transaction.
class CutEvidence final : public EvidenceReader {
 public:
  CutEvidence(std::unique_ptr<EvidenceReader> source, std::uint64_t end)
      : source_(std::move(source)), end_(end) {}
  bool next(BusTransaction& out) override { return source_->next(out) && out.index < end_; }

 private:
  std::unique_ptr<EvidenceReader> source_;
  std::uint64_t end_;
};

class UnplacedExplainer {
 public:
  using OpenEvidence = EvidenceSource;
  UnplacedExplainer(const Recording& recording, OpenEvidence evidence, PlacementReport search,
                    const ExplainOptions& options)
      : recording_(recording.clone()),
        evidence_(std::move(evidence)),
        search_(std::move(search)),
        options_(options) {
    for (const PlacedEvent& e : search_.events) {
      const Interrupt& i = recording_.interrupts[e.interrupt];
      // The search makes one that was none another kind.
      const bool absent = e.placement == Placement::absent;
      searched_[i.transaction] = absent ? Interrupt::Kind::on_chip : i.kind;
    }
  }

  Explanation run() {
    explain();
    explanation_.corrected = std::move(recording_);
    return std::move(explanation_);
  }

 private:
  bool is_late() const { return options_.time != nullptr && options_.time->spent(); }

  void explain() {
    while (!search_.complete()) {
      if (is_late()) return give_up();
      if (explanation_.rounds.size() >= options_.rounds || !explain_before_first()) {
        if (is_late()) give_up();
        return;
      }
    }
    explain_all();
  }

  void give_up() {
    explanation_.given_up = options_.time->text();
    // What is known of it: how far the search came.
    if (explanation_.rounds.empty() && search_.divergence) {
      explanation_.rounds.emplace_back().divergence = *search_.divergence;
    }
  }

  using Score = std::pair<std::size_t, std::uint64_t>;
  /// How far a search came: interrupts placed, and then instructions.
  static Score score(const PlacementReport& report) {
    const auto placed = report.events.size() - report.count(Placement::none);
    return {static_cast<std::size_t>(placed),
            report.divergence ? report.divergence->position.instruction : ~std::uint64_t{0}};
  }
  std::size_t first_unplaced() const {
    const auto& interrupts = recording_.interrupts;
    const auto first = std::find_if(interrupts.begin(), interrupts.end(),
                                    [](const Interrupt& i) { return !i.position_known; });
    return static_cast<std::size_t>(first - interrupts.begin());
  }
  std::unique_ptr<EvidenceReader> hinted() const {
    return std::make_unique<HintedEvidence>(evidence_(), explanation_.hints);
  }

  /// Looks for all places again. Those that hints name stay.
  PlacementReport place() {
    for (Interrupt& i : recording_.interrupts) {
      const auto searched = searched_.find(i.transaction);
      const auto named = [&](const Hint& hint) {
        return hint.transaction == i.transaction && hint.kind == Hint::Kind::interrupt;
      };
      const auto& hints = explanation_.hints;
      if (searched == searched_.end() || std::any_of(hints.begin(), hints.end(), named)) continue;
      i.kind = searched->second;
      i.position_known = false;
      i.position = {};
    }
    PlacerOptions placing;
    placing.policy = options_.policy;
    placing.policy.waived = reviewed_transactions(explanation_.hints, options_.policy.waived);
    placing.time = options_.time;
    placing.progress = [this](Position now) {
      if (options_.progress) options_.progress("placing interrupts", now.instruction);
    };
    PlacementReport report = place_events(
        recording_, [this] { return hinted(); }, placing);
    recording_.set_schedule(std::move(report.schedule));
    return report;
  }

  /// False when nothing lets the search come further.
  bool explain_before_first() {
    const std::size_t first = first_unplaced();
    const std::uint64_t end = recording_.interrupts[first].transaction;
    Schedule before = recording_;
    before.interrupts.resize(first);
    const auto port = std::find_if(before.io_reads.begin(), before.io_reads.end(),
                                   [end](const IoRead& r) { return r.transaction >= end; });
    before.io_reads.truncate(port.index());
    ExplainedRun run = explain_run(
        recording_, before, [&] { return std::make_unique<CutEvidence>(evidence_(), end); },
        explanation_.hints, options_, true);
    if (explanation_.rounds.empty()) explanation_.report = run.report;
    if (!run.divergence) return explain_interrupt(first);
    run.divergence->not_tried.push_back(
        fmt::format("whether a cause also fits what follows transaction {}: the first of {} "
                    "interrupts that have no place yet",
                    end, recording_.interrupts.size() - first));
    explanation_.rounds.push_back(std::move(*run.divergence));
    return take_best() || add_interrupt(first);
  }

  /// Where the replay stopped the bus may show the frame of an interrupt that was not captured:
  /// does one fit before the first transaction that was not made?
  bool add_interrupt(std::size_t first) {
    ExplainedDivergence& round = explanation_.rounds.back();
    const std::uint64_t transaction = round.divergence.transaction;
    if (transaction >= recording_.interrupts[first].transaction) return false;
    const auto added = recording_.interrupts.begin() + static_cast<std::ptrdiff_t>(first);
    Interrupt missing;
    missing.transaction = transaction;
    missing.anchor = anchor_before(transaction, *added);
    const std::size_t enough = score(search_).first + 1;
    std::set<std::uint8_t> vectors;
    for (const Interrupt& i : recording_.interrupts) vectors.insert(i.vector);
    const std::vector<Interrupt> before = recording_.interrupts;
    searched_[transaction] = Interrupt::Kind::external;
    for (const std::uint8_t vector : vectors) {
      if (is_late()) break;
      missing.vector = vector;
      recording_.interrupts = before;
      recording_.interrupts.insert(
          recording_.interrupts.begin() + static_cast<std::ptrdiff_t>(first), missing);
      const PlacementReport report = place();
      ++round.tried;
      round.instructions += report.instructions;
      const Position position = recording_.interrupts[first].position;
      if (!report.complete() && score(report).first <= enough) continue;
      recording_.interrupts = before;
      take_added(missing, position, report);
      return true;
    }
    recording_.interrupts = before;
    searched_.erase(transaction);
    return false;
  }

  void take_added(const Interrupt& missing, Position position, const PlacementReport& report) {
    TriedCause tried;
    tried.cause.kind = CauseKind::missing_interrupt;
    tried.cause.text =
        fmt::format("the capture lacks an interrupt with vector {:02x} before instruction {}",
                    missing.vector, position.instruction);
    Hint hint;
    hint.kind = Hint::Kind::added_interrupt;
    hint.name = "intr";
    hint.transaction = missing.transaction;
    hint.position = position;
    hint.value = missing.vector;
    tried.cause.hints.push_back(hint);
    tried.repairs = report.complete();
    tried.agrees_until = score(report).second;
    tried.next = report.divergence;
    auto& causes = explanation_.rounds.back().causes;
    causes.insert(causes.begin(), std::move(tried));
    searched_.erase(missing.transaction);
    apply(hints_of(causes.front()));
    search_ = place();
  }

  /// What is before a transaction: what is before a later interrupt without what is
  /// between.
  BusAnchor anchor_before(std::uint64_t transaction, const Interrupt& later) const {
    BusAnchor anchor = later.anchor;
    const PortCount ports(recording_);
    const auto evidence = hinted();
    for (BusTransaction t; evidence->next(t) && t.index < later.transaction;) {
      if (t.index < transaction) continue;
      if (t.op == BusOp::data_write && !t.has(kWriteBack)) anchor.writes -= t.size;
      if (t.op == BusOp::data_read) --anchor.reads;
      if (t.op == BusOp::io_read || t.op == BusOp::io_write) anchor.io -= ports.of(t);
    }
    return anchor;
  }

  /// Takes the cause with which the search comes furthest, from those that make the run agree up to
  /// the first interrupt without a place, or else from the first one.
  bool take_best() {
    constexpr std::size_t kMaxSearches = 6;
    auto& causes = explanation_.rounds.back().causes;
    if (causes.empty() || causes.front().suspected) return false;
    const std::size_t before = explanation_.hints.size();
    Score best = score(search_);
    std::size_t chosen = causes.size();
    PlacementReport found;
    for (std::size_t c = 0; c < std::min(causes.size(), kMaxSearches); ++c) {
      if (is_late() || (c != 0 && !causes[c].repairs)) break;
      const auto undo = apply(hints_of(causes[c]));
      PlacementReport report = place();
      const bool complete = report.complete();
      if (complete || score(report) > best) {
        best = score(report);
        chosen = c;
        found = std::move(report);
      }
      explanation_.hints.resize(before);
      for (auto step = undo.rbegin(); step != undo.rend(); ++step) (*step)(recording_);
      if (complete) break;
    }
    if (chosen == causes.size()) return false;
    std::rotate(causes.begin(), causes.begin() + static_cast<std::ptrdiff_t>(chosen),
                causes.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
    for (TriedCause& t : causes) t.tied = false;
    apply(hints_of(causes.front()));
    search_ = place();
    return true;
  }

  std::vector<std::function<void(Recording&)>> apply(const std::vector<Hint>& hints) {
    std::vector<std::function<void(Recording&)>> undo;
    for (const Hint& hint : hints) {
      undo.push_back(apply_hint(hint, recording_));
      explanation_.hints.push_back(hint);
    }
    return undo;
  }

  /// Everything before it agrees, and it fits nowhere: was its vector captured wrongly, or what it
  /// stored, or was it none?
  bool explain_interrupt(std::size_t number) {
    ExplainedDivergence round;
    if (search_.divergence) round.divergence = *search_.divergence;
    std::vector<Cause> causes = causes_of(number);
    const std::size_t before = explanation_.hints.size();
    const Score now = score(search_);
    for (Cause& cause : causes) {
      if (round.instructions > options_.budget || is_late()) {
        round.not_tried.push_back(fmt::format("{} causes, when the budget of {} was used up",
                                              causes.size() - round.tried,
                                              is_late() ? "time" : "instructions"));
        break;
      }
      ++round.tried;
      const auto undo = apply(cause.hints);
      if (cause.kind == CauseKind::interrupt_vector) explanation_.hints.resize(before);
      const PlacementReport report = place();
      round.instructions += report.instructions;
      const bool helps = report.complete() || score(report).first > now.first;
      if (helps && cause.kind == CauseKind::interrupt_vector) {
        cause.hints.front().position = recording_.interrupts[number].position;
      }
      explanation_.hints.resize(before);
      for (auto step = undo.rbegin(); step != undo.rend(); ++step) (*step)(recording_);
      if (!helps) continue;
      TriedCause tried;
      tried.cause = std::move(cause);
      tried.repairs = report.complete();
      tried.agrees_until = score(report).second;
      tried.next = report.divergence;
      round.causes.push_back(std::move(tried));
      break;
    }
    round.not_tried.push_back(
        fmt::format("what else may keep the interrupt of transaction {} from its place: with its "
                    "position counted by the capture, or named by a hint, more can be tried",
                    recording_.interrupts[number].transaction));
    explanation_.rounds.push_back(std::move(round));
    if (explanation_.rounds.back().causes.empty()) return false;
    apply(hints_of(explanation_.rounds.back().causes.front()));
    search_ = place();
    return true;
  }

  std::vector<Cause> causes_of(std::size_t number) const {
    const Interrupt& i = recording_.interrupts[number];
    std::vector<Cause> causes;
    const auto add = [&](CauseKind kind, std::string text, Hint hint) {
      Cause& cause = causes.emplace_back();
      cause.kind = kind;
      cause.text = std::move(text);
      cause.hints.push_back(std::move(hint));
    };
    Hint hint;
    hint.transaction = i.transaction;
    for (unsigned bit = 0; bit < 8 && i.kind == Interrupt::Kind::external; ++bit) {
      hint.kind = Hint::Kind::interrupt;
      hint.value = i.vector ^ 1u << bit;
      add(CauseKind::interrupt_vector,
          fmt::format(
              "the interrupt of transaction {} had vector {:02x} and was captured as {:02x}",
              i.transaction, hint.value, i.vector),
          hint);
    }
    hint.kind = Hint::Kind::no_interrupt;
    add(CauseKind::extra_interrupt,
        fmt::format("transaction {} was captured as an interrupt acknowledge, but was not one",
                    i.transaction),
        hint);
    // What it stores first is its frame.
    constexpr std::size_t kFollowing = 32, kFrameBytes = 12;
    std::size_t stored = 0;
    for (const BusTransaction& t : transactions_from(*hinted(), i.transaction, kFollowing)) {
      if (t.op != BusOp::data_write || stored + t.size > kFrameBytes) continue;
      stored += t.size;
      for (unsigned bit = 0; bit < t.size * 8u; ++bit) {
        Hint write;
        write.kind = Hint::Kind::captured_write;
        write.transaction = t.index;
        write.address = t.address;
        write.data.assign(t.data.begin(), t.data.begin() + t.size);
        write.data[bit / 8] = static_cast<std::uint8_t>(write.data[bit / 8] ^ 1u << bit % 8);
        add(CauseKind::captured_write,
            fmt::format("transaction {}, a write to {:08x}, was captured with bit {} of byte {} "
                        "turned over",
                        t.index, t.address.value, bit % 8, bit / 8),
            std::move(write));
      }
    }
    return causes;
  }

  /// Every interrupt has a place: the rest is as everywhere.
  void explain_all() {
    ExplainOptions rest = options_;
    const auto rounds = static_cast<unsigned>(explanation_.rounds.size());
    rest.rounds = options_.rounds - std::min(rounds, options_.rounds);
    rest.policy.waived = reviewed_transactions(explanation_.hints, options_.policy.waived);
    Explanation all = citcat::explain(
        recording_, [this] { return hinted(); }, rest);
    recording_ = std::move(all.corrected);
    explanation_.repaired = all.repaired;
    explanation_.given_up = all.given_up;
    std::move(all.rounds.begin(), all.rounds.end(), std::back_inserter(explanation_.rounds));
    std::move(all.hints.begin(), all.hints.end(), std::back_inserter(explanation_.hints));
  }

  Recording recording_;  ///< with the hints so far, and the places of the last search
  OpenEvidence evidence_;
  PlacementReport search_;
  const ExplainOptions& options_;
  std::map<std::uint64_t, Interrupt::Kind> searched_;  ///< by transaction: those without a count
  Explanation explanation_;
};

}  // namespace

Explanation explain_unplaced(const Recording& recording, const EvidenceSource& evidence,
                             PlacementReport search, const ExplainOptions& options) {
  return UnplacedExplainer(recording, evidence, std::move(search), options).run();
}

}  // namespace citcat
