#include "replay/run/part_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/log.h"
#include "replay/run/model_specific_text.h"
#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"
#include "replay/verify/doubts.h"
#include "replay/verify/verifier.h"

namespace citcat {
namespace {

const Logger part_logger("session");

/// The hash of everything that decides how the replay goes on.
Hash128 state_hash(const Replayer& replayer) {
  const Replayer::Checkpoint state = replayer.checkpoint();
  Hasher128 hash;
  hash.update(encode_checkpoint_state(state));
  for (const auto& page : state.machine.pages) {
    hash.update({reinterpret_cast<const std::uint8_t*>(&page->number), sizeof page->number});
    hash.update(page->data);
    for (std::uint32_t at = 0; at < kPageSize; at += 32) {
      const std::uint32_t defined = page->defined.bits(at, 32);
      hash.update({reinterpret_cast<const std::uint8_t*>(&defined), sizeof defined});
    }
  }
  return hash.value();
}

bool is_delivered_at(const Recording& recording, std::uint64_t instruction) {
  return std::any_of(recording.interrupts.begin(), recording.interrupts.end(),
                     [&](const Interrupt& i) { return i.position.instruction == instruction; });
}

/// One comparison of a part, with the doubts of the ones before.
class PartRun {
 public:
  PartRun(const RecordingFile& file, const PartOfRun& part, const ComparisonPolicy& policy,
          Doubts& doubts)
      : part_(part),
        verifier_(file.recording(), file.evidence(), options_of(file, part, policy)),
        replayer_(file.recording(), Listeners(&verifier_), replay_options(file)) {
    verifier_.put_off(doubts);
  }

  /// False where it does not agree.
  bool run(const Checkpoints& checkpoints, ComparedPart& result) {
    const auto to_the_end = [&] {
      if (part_.begin) result.begin = state_hash(replayer_);
      result.report =
          part_.end ? replayer_.run_to(part_.end->instruction) : verifier_.finish(replayer_.run());
      if (!part_.end || result.report.divergence) return result.report;
      verifier_.end_part();
      result.end = state_hash(replayer_);
      return result.report;
    };
    return agrees(checkpoints, to_the_end) && !result.report.cut;
  }
  /// The same of the part before this instruction, or its end.
  bool agrees_to(std::uint64_t instruction, const Checkpoints& checkpoints) {
    if (part_.end) instruction = std::min(instruction, part_.end->instruction);
    return agrees(checkpoints, [&] {
      const ReplayReport report = replayer_.run_to(instruction);
      return report.instructions < instruction ? verifier_.finish(report) : report;
    });
  }

  bool finish(const MemoryImage* captured, ComparedPart& result) {
    const Machine& machine = replayer_.machine();
    result.totals = verifier_.totals();
    result.orders = verifier_.order_of_stores().orders();
    result.shut_down = machine.shut_down();
    result.model_specific_results = machine.model_specific_results();
    result.first_model_specific = first_model_specific_text(machine);
    if (part_.end) return true;
    if (!verifier_.end_last_part()) return false;
    result.memory = verifier_.compare_final(captured);
    return result.memory.different == 0;
  }

 private:
  static VerifierOptions options_of(const RecordingFile& file, const PartOfRun& part,
                                    const ComparisonPolicy& policy) {
    VerifierOptions options;
    options.policy = policy;
    options.policy.waived = file.waived();
    options.policy.told_changes = file.told_changes();
    options.plain = options.ahead = true;
    options.final_memory = false;
    if (part.begin) options.from = part.begin->instruction;
    if (part.end) options.to = part.end->instruction;
    return options;
  }
  static ReplayOptions replay_options(const RecordingFile& file) {
    ReplayOptions options;
    options.evidence = [&file] { return file.evidence(); };
    return options;
  }

  template <class Run>
  bool agrees(const Checkpoints& checkpoints, Run&& run) {
    if (!verifier_.has_places()) return false;
    try {
      if (part_.begin) {
        checkpoints.restore(*part_.begin, replayer_);
        verifier_.begin_part(replayer_.next_external_write());
      }
      const ReplayReport report = run();
      return !report.divergence || tell(*report.divergence);
    } catch (const ReplayStopped& stop) {
      return tell(make_divergence(stop));
    }
  }
  /// Always false.
  static bool tell(const Divergence& d) {
    if (part_logger.at(LogLevel::debug)) {
      part_logger.write(fmt::format("a part, {}: {}; expected {}, found {}", place_text(d),
                                    d.reason, d.expected, d.found));
    }
    return false;
  }

  const PartOfRun& part_;
  Verifier verifier_;
  Replayer replayer_;
};

void add(CheckCount& all, const CheckCount& one) {
  all.checked += one.checked;
  all.equal += one.equal;
}

void add(VerifyTotals& all, const VerifyTotals& one) {
  add(all.writes, one.writes);
  add(all.write_backs, one.write_backs);
  add(all.io_reads, one.io_reads);
  add(all.io_writes, one.io_writes);
  add(all.specials, one.specials);
  add(all.instructions, one.instructions);
  all.reads += one.reads;
  all.adopted += one.adopted;
  if (all.single_bit_changes == 0) all.first_single_bit_change = one.first_single_bit_change;
  all.single_bit_changes += one.single_bit_changes;
  all.evidence_bytes += one.evidence_bytes;
}

}  // namespace

std::vector<PartOfRun> parts_to_compare(const RecordingFile& file, const Checkpoints& checkpoints,
                                        const ComparisonPolicy& policy, unsigned parts) {
  const Recording& recording = file.recording();
  std::vector<PartOfRun> result(1);
  // The end within an instruction is told to the replay of the whole.
  const bool as_whole = recording.adoptions.empty() && recording.instructions && !recording.end &&
                        file.placements().empty();
  if (!as_whole) return result;
  std::vector<CheckpointStart> starts = checkpoints.longest_series(policy.strict);
  std::erase_if(starts, [&](const CheckpointStart& start) {
    return !start.ordinal || is_delivered_at(recording, start.instruction);
  });
  auto next = starts.begin();
  for (unsigned part = 1; part < parts; ++part) {
    const std::uint64_t begin = *recording.instructions / parts * part;
    next = std::find_if(next, starts.end(),
                        [&](const CheckpointStart& s) { return s.instruction >= begin; });
    if (next == starts.end()) break;
    result.back().end = *next;
    result.push_back({*next++, std::nullopt});
  }
  return result;
}

std::optional<ComparedPart> compare_part(const RecordingFile& file, const Checkpoints& checkpoints,
                                         const PartOfRun& part, const ComparisonPolicy& policy,
                                         const MemoryImage* captured) {
  Doubts doubts;
  PartRun run(file, part, policy, doubts);
  ComparedPart result;
  if (!run.run(checkpoints, result)) return std::nullopt;
  while (doubts.remain()) {
    const std::vector<Doubts::Stretch>& stretches = doubts.look_again();
    if (part.begin && stretches.front().first <= part.begin->instruction) return std::nullopt;
    const std::uint64_t end = stretches.back().end;
    if (!PartRun(file, part, policy, doubts).agrees_to(end, checkpoints)) return std::nullopt;
  }
  return run.finish(captured, result) ? std::optional(result) : std::nullopt;
}

std::optional<ComparedPart> join_parts(const std::vector<ComparedPart>& parts) {
  ComparedPart all = parts.back();
  all.totals = {};
  all.first_model_specific.clear();
  const ComparedPart* before = nullptr;
  for (const ComparedPart& part : parts) {
    if (before != nullptr && before->end != part.begin) return std::nullopt;
    before = &part;
    add(all.totals, part.totals);
    if (all.first_model_specific.empty()) all.first_model_specific = part.first_model_specific;
    for (const auto& [key, order] : part.orders) {
      if (all.orders.emplace(key, order).first->second != order) return std::nullopt;
    }
  }
  return all;
}

}  // namespace citcat
