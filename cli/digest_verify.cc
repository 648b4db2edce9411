#include "cli/digest_verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/replay_run.h"
#include "formats/error.h"
#include "replay/digest_sink.h"

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

DigestVerdict verify_digests(const RecordingFile& file, const Console& console) {
  const std::vector<ReplayDigest>& expected = file.digests();
  if (expected.empty()) {
    throw UsageError(file.container().path() + " holds neither evidence nor digests");
  }
  DigestSink sink;
  ReplayRunOptions options;
  options.check = false;
  options.to = expected.back().instruction;
  ReplayRun run(file, &sink, options, console);
  DigestVerdict verdict;
  verdict.report = run.run();
  const std::vector<ReplayDigest> found = sink.finish(verdict.report.instructions);
  for (const ReplayDigest& digest : expected) {
    ++verdict.checked;
    if (std::find(found.begin(), found.end(), digest) != found.end()) continue;
    verdict.differs_before = digest.instruction;
    break;
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
