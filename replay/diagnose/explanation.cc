#include "replay/diagnose/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "replay/diagnose/cause_table.h"
#include "x86/disassembler.h"

namespace citcat {
namespace {

constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};
/// How far beyond the divergence a cause must make the replay agree to be tried further.
constexpr std::uint64_t kStages[] = {48, 1024, 16 * 1024, 256 * 1024, kToTheEnd};
/// Causes that are tried so far: when so many have passed a stage, what decides is how cheap they
/// are.
constexpr std::size_t kMaxInStage[] = {20'000, 512, 96, 24, 12};
/// Prices closer than this do not distinguish causes.
constexpr double kSamePrice = 0.35;
/// Bits of a repaired internal value that are changed to see whether anything depends on them.
constexpr std::uint64_t kOtherBits[] = {1, 2, 16, 256};

constexpr std::size_t kListed = 10, kContext = 12, kLineages = 6, kPathListed = 8;

class Ranking {
 public:
  Ranking(TrialRun& trials, const Divergence& divergence, const ExplainOptions& options)
      : trials_(trials), at_(divergence.position.instruction), options_(options) {}

  /// Tries the cheapest first, and none that costs much more than one that repairs the run.
  std::vector<TriedCause> rank(std::vector<Cause> causes) {
    std::stable_sort(causes.begin(), causes.end(),
                     [](const Cause& a, const Cause& b) { return a.price < b.price; });
    std::vector<TriedCause> found;
    double enough = std::numeric_limits<double>::infinity();
    for (Cause& cause : causes) {
      if (cause.price > enough) break;
      if (trials_.cost() > options_.budget || is_spent(options_.time)) {
        untried_ = causes.size() - next_;
        break;
      }
      ++next_;
      TriedCause tried;
      tried.cause = std::move(cause);
      ++tried_;
      if (options_.progress) options_.progress("trying causes", tried_);
      if (!explains(tried)) continue;
      if (tried.repairs) enough = std::min(enough, tried.cause.price + kSamePrice);
      found.push_back(std::move(tried));
    }
    std::stable_sort(found.begin(), found.end(), better);
    drop_chance(found);
    if (!found.empty()) try_other_values(found.front(), found);
    if (found.size() > kListed) found.resize(kListed);
    for (TriedCause& t : found) {
      const TriedCause& first = found.front();
      t.tied = &t != &first && t.repairs == first.repairs && reach(t) == reach(first) &&
               t.cause.price < first.cause.price + kSamePrice;
    }
    return found;
  }
  std::uint64_t tried() const { return tried_; }
  /// Left when the budget was used up.
  std::uint64_t untried() const { return untried_; }

 private:
  /// Beside one that repairs the run, what fails soon after is not worth naming.
  static void drop_chance(std::vector<TriedCause>& found) {
    if (found.empty() || !found.front().repairs) return;
    found.erase(std::remove_if(
                    found.begin(), found.end(),
                    [](const TriedCause& t) { return !t.repairs && t.agrees_until < kStages[1]; }),
                found.end());
  }

  /// Tries whether another value also repairs the run.
  void try_other_values(TriedCause& first, std::vector<TriedCause>& found) {
    const auto number = blamed_internal_read(first.cause);
    if (!number || !first.repairs) return;
    for (const std::uint64_t bit : kOtherBits) {
      std::vector<Hint> hints = first.cause.hints;
      hints.front().value ^= bit;
      const InternalRead& recorded = trials_.schedule().internal_reads[*number];
      if (hints.front().value == (std::uint64_t{recorded.edx} << 32 | recorded.eax)) continue;
      const TrialRun::Outcome outcome = trials_.attempt(hints, first.cause.start, kToTheEnd);
      ++first.other_values;
      if (outcome.complete && !outcome.divergence) ++first.equivalent_values;
    }
    // What cannot be known from it is no other cause.
    const auto rival = [&](const TriedCause& t) {
      return t.repairs && blamed_internal_read(t.cause) == number;
    };
    found.erase(std::remove_if(found.begin() + 1, found.end(), rival), found.end());
  }

  /// A little further is chance; much further is not.
  static unsigned reach(const TriedCause& c) {
    unsigned magnitude = 0;
    for (std::uint64_t n = c.agrees_until; n > 1; n /= 4) ++magnitude;
    return c.repairs ? 0 : magnitude;
  }

  static bool better(const TriedCause& a, const TriedCause& b) {
    if (a.repairs != b.repairs) return a.repairs;
    if (reach(a) != reach(b)) return reach(a) > reach(b);
    return a.cause.price < b.cause.price;
  }

  /// Tries one cause from stage to stage. False when it does not even pass the first.
  bool explains(TriedCause& t) {
    for (std::size_t stage = 0; stage < std::size(kStages); ++stage) {
      if (in_stage_[stage]++ >= kMaxInStage[stage]) return stage != 0;
      const std::uint64_t to = kStages[stage] == kToTheEnd ? kToTheEnd : at_ + kStages[stage];
      const bool quick = stage == 0 && t.cause.near;
      const TrialRun::Outcome outcome =
          trials_.attempt(t.cause.hints, quick ? *t.cause.near : t.cause.start, to);
      const std::uint64_t until =
          outcome.divergence ? outcome.divergence->position.instruction : outcome.instructions;
      t.agrees_until = std::max(t.agrees_until, until - std::min(until, at_));
      t.next = outcome.divergence;
      t.repairs = outcome.complete && !outcome.divergence;
      // A trial from where its value is first used does not see what it changes before.
      if (!outcome.agrees) return stage != 0 && until > at_;
    }
    return true;
  }

  TrialRun& trials_;
  std::uint64_t at_;
  const ExplainOptions& options_;
  std::uint64_t tried_ = 0, untried_ = 0;
  std::size_t next_ = 0;  ///< of the causes by price: not tried yet
  std::size_t in_stage_[std::size(kStages)] = {};
};

class Describer {
 public:
  explicit Describer(const CauseContext& context) : context_(context) {}

  ContextLine line(std::size_t number) {
    const HistoryStep& step = context_.history().steps()[number];
    ContextLine line;
    line.position = step.position;
    line.linear = step.linear;
    line.bytes.assign(step.code().begin(), step.code().end());
    switch (step.kind) {
      case HistoryStep::Kind::delivery:
        line.text = "(interrupt or exception)";
        break;
      case HistoryStep::Kind::external:
        line.text = "(another bus master)";
        break;
      default:
        line.text = Disassembler(step.bits).text(step.code(), step.linear.value);
    }
    for (const HistoryAccess& a : context_.history().accesses(step)) {
      if (a.kind == HistoryAccess::Kind::walk) continue;
      if (!line.accesses.empty()) line.accesses += ", ";
      line.accesses += access_text(a);
    }
    return line;
  }

  LineageLine lineage(const LineageSource& s) {
    LineageLine line;
    switch (s.kind) {
      case LineageSource::Kind::memory:
        line.source = fmt::format("memory at {:08x}", s.address.value);
        if (const auto byte = context_.recording().image.byte(s.address)) {
          line.source += fmt::format(" = {:02x}", *byte);
        }
        if (!context_.shown().of(s.address).empty()) {
          line.transaction = context_.shown().of(s.address).front().transaction;
          line.source += fmt::format(", shown by transaction {}", line.transaction);
        }
        break;
      case LineageSource::Kind::external: {
        line.source =
            fmt::format("memory at {:08x}, written by another bus master", s.address.value);
        if (s.number < context_.schedule().external_writes.size()) {
          line.transaction = context_.schedule().external_writes[s.number].transaction;
          line.source += fmt::format(", shown by transaction {}", line.transaction);
        }
        break;
      }
      case LineageSource::Kind::port:
        line.source = fmt::format("port {:04x}", s.address.value);
        if (s.number < context_.schedule().io_reads.size()) {
          line.transaction = context_.schedule().io_reads[s.number].transaction;
          line.source +=
              fmt::format(" = {:x}, transaction {}", context_.schedule().io_reads[s.number].value,
                          line.transaction);
        }
        break;
      case LineageSource::Kind::internal:
        line.source = internal_text(s.number);
        break;
      case LineageSource::Kind::reg:
        line.source = flow_register_name(static_cast<unsigned>(s.number),
                                         context_.recording().initial.long_mode.has_value()) +
                      " as it was where this stretch begins";
        break;
    }
    const std::size_t count = std::min(s.path.size(), kPathListed);
    for (std::size_t i = 0; i < count; ++i) line.path.push_back(this->line(s.path[i]));
    return line;
  }

 private:
  std::string internal_text(std::size_t step) const {
    const auto number = context_.internal_number(step);
    if (!number) return "a value that crosses no bus";
    const InternalRead& read = context_.schedule().internal_reads[*number];
    return fmt::format("value {:08x}{:08x} that crosses no bus, number {}", read.edx, read.eax,
                       *number);
  }

  static std::string access_text(const HistoryAccess& a) {
    switch (a.kind) {
      case HistoryAccess::Kind::read:
        return fmt::format("reads {:08x}+{}", a.address.value, a.size);
      case HistoryAccess::Kind::write: {
        const int digits = 2 * static_cast<int>(std::min(a.size, 8u));
        return fmt::format("writes {:08x} = {:0{}x}", a.address.value, a.value, digits);
      }
      case HistoryAccess::Kind::port_read:
        return fmt::format("reads port {:04x} = {:x}", a.address.value, a.value);
      case HistoryAccess::Kind::port_write:
        return fmt::format("writes port {:04x} = {:x}", a.address.value, a.value);
      default:
        return fmt::format("{:08x}+{}", a.address.value, a.size);
    }
  }

  const CauseContext& context_;
};

ExplainedDivergence explain_one(TrialRun& trials, const Divergence& divergence,
                                const ExplainOptions& options) {
  ExplainedDivergence result;
  result.divergence = divergence;
  if (options.progress) options.progress("tracing values back", 0);
  const CauseContext context(trials, divergence);
  Describer describer(context);
  const std::size_t steps = context.history().steps().size();
  for (std::size_t i = steps - std::min(kContext, steps); i < steps; ++i) {
    result.context.push_back(describer.line(i));
  }
  for (const LineageSource& s : context.lineage()) {
    if (result.lineage.size() == kLineages) break;
    LineageLine line = describer.lineage(s);
    const bool known =
        std::any_of(result.lineage.begin(), result.lineage.end(), [&](const LineageLine& other) {
          return other.transaction == line.transaction && line.transaction != ~std::uint64_t{0};
        });
    if (!known) result.lineage.push_back(std::move(line));
  }
  Ranking ranking(trials, divergence, options);
  CauseList found = find_causes(context);
  result.causes = ranking.rank(std::move(found.causes));
  if (result.causes.empty() || !result.causes.front().repairs) {
    for (Cause& cause : suspected_causes(context)) {
      TriedCause& suspect = result.causes.emplace_back();
      suspect.cause = std::move(cause);
      suspect.suspected = true;
    }
  }
  result.tried = ranking.tried();
  result.not_tried = std::move(found.left_out);
  if (ranking.untried() != 0) {
    result.not_tried.push_back(
        fmt::format("{} causes of higher price, when the budget of {} was used up",
                    ranking.untried(), is_spent(options.time) ? "time" : "instructions"));
  }
  result.instructions = trials.cost();
  return result;
}

}  // namespace

std::vector<Hint> hints_of(const TriedCause& tried) {
  std::vector<Hint> hints = tried.cause.hints;
  for (Hint& hint : hints) hint.because = tried.cause.text;
  return hints;
}

ExplainedRun explain_run(const Recording& recording, const Schedule& schedule,
                         const EvidenceSource& evidence, const std::vector<Hint>& hints,
                         const ExplainOptions& options, bool causes) {
  TrialOptions trial;
  trial.policy = options.policy;
  trial.policy.waived = reviewed_transactions(hints, options.policy.waived);
  trial.time = options.time;
  trial.progress = [&](Position now) {
    if (options.progress) options.progress("replaying", now.instruction);
  };
  TrialRun trials(
      recording, schedule, [&] { return std::make_unique<HintedEvidence>(evidence(), hints); },
      trial);
  ExplainedRun run;
  run.report = trials.run();
  if (run.report.divergence && causes && !is_spent(options.time)) {
    run.divergence = explain_one(trials, *run.report.divergence, options);
  }
  return run;
}

Explanation explain(const Recording& recording, const EvidenceSource& evidence,
                    const ExplainOptions& options) {
  Explanation explanation;
  Recording& corrected = explanation.corrected;
  corrected = recording.clone();
  for (unsigned round = 0;; ++round) {
    ExplainedRun run = explain_run(corrected, corrected, evidence, explanation.hints, options,
                                   round < options.rounds);
    if (round == 0) explanation.report = run.report;
    if (is_spent(options.time)) explanation.given_up = options.time->text();
    if (!run.report.divergence) {
      explanation.repaired = run.report.end == ReplayReport::End::complete;
      return explanation;
    }
    if (!run.divergence) {
      // What is known of it: where it is.
      if (!explanation.given_up.empty()) {
        explanation.rounds.emplace_back().divergence = *run.report.divergence;
      }
      return explanation;
    }
    explanation.rounds.push_back(std::move(*run.divergence));
    const std::vector<TriedCause>& causes = explanation.rounds.back().causes;
    if (is_spent(options.time)) explanation.given_up = options.time->text();
    if (causes.empty() || causes.front().suspected) return explanation;
    for (const Hint& hint : hints_of(causes.front())) {
      apply_hint(hint, corrected);
      explanation.hints.push_back(hint);
    }
  }
}

}  // namespace citcat
