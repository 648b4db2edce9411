#include "replay/run/accounting.h"

#include <algorithm>
#include <unordered_set>

#include "replay/run/replay_session.h"
#include "replay/verify/cache_model.h"

namespace citcat {
namespace {

constexpr std::uint64_t kLongestStartRoutine = 200'000;

/// Notices when the routine that was running at the start of the replay has returned.
class ReturnWatch final : public Observer {
 public:
  /// The first instruction after it.
  std::optional<std::uint64_t> returned() const { return returned_; }
  Interest interest() const override { return {.code = Detail::blocks}; }
  void instruction(const ExecutedInstruction& e, Position now) override {
    switch (e.info->kind) {
      case InstructionClass::call:
      case InstructionClass::far_call:
        ++depth_;
        break;
      case InstructionClass::ret:
      case InstructionClass::far_return:
      case InstructionClass::iret:
      case InstructionClass::sysexit:
        if (!returned_ && depth_-- == 0) returned_ = now.instruction + 1;
        break;
      default:
        break;
    }
  }
  void delivered(const DeliveredEvent&, Position) override { ++depth_; }

 private:
  std::uint64_t depth_ = 0;
  std::optional<std::uint64_t> returned_;
};

std::optional<std::uint64_t> find_start_routine(const RecordingFile& file,
                                                std::uint64_t instructions) {
  constexpr std::uint64_t kStep = 1000;
  ReturnWatch watch;
  SessionOptions options;
  options.check = false;
  options.to = std::min(kLongestStartRoutine, instructions);
  ReplaySession session(file, &watch, options);
  for (std::uint64_t to = 0; to < options.to && !watch.returned();) {
    to = std::min(to + kStep, options.to);
    if (session.run_to(to).end != ReplayReport::End::stopped) break;
  }
  return watch.returned();
}

/// One pass over the evidence: how much of it there is, and when the cache had been filled once.
void scan_evidence(const Recording& recording, EvidenceReader& evidence, Accounting& accounting) {
  const CacheDescriptor* cache = declared_cache(recording.bus);
  if (cache != nullptr) {
    accounting.cache_lines = cache->bytes / cache->line_bytes * (cache->split ? 2 : 1);
  }
  std::unordered_set<std::uint64_t> filled;
  for (BusTransaction t; evidence.next(t);) {
    // A prefix is reported by itself and compared with its instruction.
    accounting.transactions += t.has(kPrefix) ? 0 : 1;
    if (cache == nullptr || accounting.refilled_at || !t.has(kPositionKnown)) continue;
    const auto traffic = captured_cache_traffic(t, *cache);
    if (!traffic || !traffic->is_fill()) continue;
    filled.insert(traffic->line.value);
    if (filled.size() >= accounting.cache_lines) accounting.refilled_at = t.position.instruction;
  }
}

void follow(const RecordingFile& file, std::uint64_t instructions, Confidence& confidence) {
  SessionOptions options;
  options.check = false;
  options.to = instructions;
  ReplaySession(file, &confidence, options).run();
}

std::vector<UnconstrainedInput> find_unconstrained(const RecordingFile& file,
                                                   std::uint64_t instructions) {
  Confidence confidence(file.recording(), *file.evidence());
  follow(file, instructions, confidence);
  return confidence.unconstrained();
}

std::optional<LineOrigins> find_origins(const RecordingFile& file, std::uint64_t instructions,
                                        std::uint64_t line) {
  Confidence confidence(file.recording(), *file.evidence(), line);
  follow(file, instructions, confidence);
  confidence.unconstrained();
  return confidence.line();
}

void count_events(const Recording& recording, std::span<const PlacedEvent> placements,
                  Accounting& accounting) {
  std::uint64_t absent = 0;  // markers that are no interrupts
  for (const PlacedEvent& e : placements) {
    switch (e.placement) {
      case Placement::none:
        ++accounting.unplaced;
        break;
      case Placement::unique:
        ++accounting.unique;
        break;
      case Placement::equivalent:
        ++accounting.equivalent;
        break;
      case Placement::ambiguous:
        ++accounting.ambiguous;
        break;
      case Placement::absent:
        ++absent;
        break;
    }
  }
  const std::uint64_t all = recording.interrupts.size();
  accounting.interrupts = all - std::min(all, absent);
  accounting.counted = all - std::min(all, std::uint64_t{placements.size()});
  accounting.external_writes = recording.external_writes.size();
  accounting.external_unplaced = static_cast<std::uint64_t>(
      std::count_if(recording.external_writes.begin(), recording.external_writes.end(),
                    [](const ExternalWrite& w) { return !w.position_known; }));
  accounting.port_reads = recording.io_reads.size();
  accounting.internal_reads = recording.internal_reads.size();
}

}  // namespace

Accounting account(const RecordingFile& file, const VerifyTotals& totals,
                   std::uint64_t instructions, std::optional<std::uint64_t> line) {
  const Recording& recording = file.recording();
  Accounting a;
  a.compared = totals.writes.equal + totals.write_backs.equal + totals.reads +
               totals.io_reads.equal + totals.io_writes.equal + totals.specials.equal +
               totals.instructions.equal + recording.totals.interrupts;
  a.evidence_bytes = totals.evidence_bytes;
  a.instructions = instructions;
  a.start_routine = find_start_routine(file, instructions);
  scan_evidence(recording, *file.evidence(), a);
  a.image_bytes = recording.image.byte_count();
  a.assumed_registers = recording.initial.unknown;
  count_events(recording, file.placements(), a);
  a.hints = file.hints().size();
  a.unconstrained = find_unconstrained(file, instructions);
  if (line) a.line = find_origins(file, instructions, *line);
  return a;
}

}  // namespace citcat
