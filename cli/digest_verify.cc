#include "cli/digest_verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/error.h"
#include "replay/session/end_sink.h"

namespace citcat {

namespace {

void print_json(const DigestVerdict& v, const RecordingFile& file, const Console& console) {
  nlohmann::ordered_json json;
  json["verdict"] = v.match() ? "match" : "diverged";
  json["instructions"] = v.report.instructions;
  json["evidence"] = "digests";
  json["digests"] = {{"checked", v.checked}, {"equal", v.checked - (v.differs_before ? 1 : 0)}};
  json["differs_before"] = nullptr;
  if (v.differs_before) json["differs_before"] = *v.differs_before;
  json["made_by"] = file.meta().engine;
  json["divergence"] = divergence_json(v.report.divergence);
  console.print_json(json);
}

void print_text(const DigestVerdict& v, const RecordingFile& file, const Console& console) {
  console.print(fmt::format("{}: {} instructions, {} digests compared\n",
                            v.match() ? "match" : "diverged", v.report.instructions, v.checked));
  if (v.differs_before) {
    console.print(
        fmt::format("  the replay went another way before instruction {}\n", *v.differs_before));
  }
  if (v.report.divergence) {
    for (const std::string& line : divergence_lines(*v.report.divergence)) {
      console.print(line + "\n");
    }
  }
  if (!v.match() && file.meta().engine != default_engine_identity()) {
    console.print(fmt::format("  the digests were made by {}, this is {}\n", file.meta().engine,
                              default_engine_identity()));
  }
}

}  // namespace

DigestCheck::DigestCheck(const RecordingFile& file, ReplayRunOptions& options)
    : expected_(file.digests()) {
  if (file.meta().evidence == EvidenceMode::full) return;
  needed_ = options.check;
  options.check = false;
  if (needed_ && expected_.empty()) {
    throw UsageError(file.container().path() + " holds neither evidence nor digests");
  }
  if (!expected_.empty()) {
    const Position end = file.recording().end.value_or(Position{expected_.back().instruction, 0});
    options.to = EndSink::stop(end, options.to);
  }
}

std::optional<std::uint64_t> DigestCheck::compare(std::uint64_t instructions) {
  if (!needed_) return std::nullopt;
  const auto differs = first_difference(expected_, sink_.finish(instructions), instructions);
  // Compared were those up to the first difference, it among them.
  const std::uint64_t compared = differs.value_or(instructions);
  checked_ = static_cast<std::uint64_t>(
      std::count_if(expected_.begin(), expected_.end(),
                    [compared](const ReplayDigest& d) { return d.instruction <= compared; }));
  return differs;
}

DigestVerdict verify_digests(const RecordingFile& file, const Console& console) {
  ReplayRunOptions options;
  DigestCheck check(file, options);
  ReplayRun run(file, &check.sink(), options, console);
  DigestVerdict verdict;
  verdict.report = run.run();
  verdict.differs_before = check.compare(verdict.report.instructions);
  verdict.checked = check.checked();
  // A replay that ended early has not shown that it is the one that was verified.
  if (!verdict.differs_before && verdict.checked != file.digests().size()) {
    verdict.differs_before = file.digests().back().instruction;
  }
  return verdict;
}

ExitCode run_digest_verify(const RecordingFile& file, bool json, const Console& console) {
  const DigestVerdict verdict = verify_digests(file, console);
  if (json) {
    print_json(verdict, file, console);
  } else {
    print_text(verdict, file, console);
  }
  return verdict.match() ? ExitCode::ok : ExitCode::answer_is_no;
}

}  // namespace citcat
