#include "cli/digest_verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/divergence_report.h"
#include "cli/replay_progress.h"
#include "replay/run/digest_check.h"
#include "replay/run/replay_session.h"

namespace citcat {

namespace {

void print_text(const DigestVerdict& v, const RecordingFile& file, const Console& console) {
  console.print_verdict(
      v.match(), v.match() ? "match" : "diverged",
      fmt::format(": {} instructions, {} digests compared", v.report.instructions, v.checked));
  if (v.differs_before) {
    console.print_line(
        fmt::format("  the replay went another way before instruction {}", *v.differs_before));
  }
  if (v.report.divergence) {
    for (const std::string& line : divergence_lines(*v.report.divergence)) {
      console.print_line(line);
    }
  }
  if (!v.match() && file.meta().engine != default_engine_identity()) {
    console.print_line(fmt::format("  the digests were made by {}, this is {}", file.meta().engine,
                                   default_engine_identity()));
  }
}

}  // namespace

nlohmann::ordered_json digest_verdict_json(const DigestVerdict& v, const RecordingFile& file) {
  nlohmann::ordered_json json;
  json["verdict"] = v.match() ? "match" : "diverged";
  json["instructions"] = v.report.instructions;
  json["evidence"] = "digests";
  json["digests"] = {{"checked", v.checked}, {"equal", v.checked - (v.differs_before ? 1 : 0)}};
  json["differs_before"] = nullptr;
  if (v.differs_before) json["differs_before"] = *v.differs_before;
  json["made_by"] = file.meta().engine;
  json["divergence"] = divergence_json(v.report.divergence);
  return json;
}

DigestVerdict digest_verdict_of(ReplaySession& session, const ReplayReport& report,
                                const RecordingFile& file) {
  DigestVerdict verdict;
  verdict.report = report;
  verdict.differs_before = session.differs_before();
  verdict.checked = session.digests().checked();
  // A replay that ended early has not shown that it is the one that was verified.
  if (!verdict.differs_before && verdict.checked != file.digests().size()) {
    verdict.differs_before = file.digests().back().instruction;
  }
  return verdict;
}

DigestVerdict verify_digests(const RecordingFile& file, const Console& console) {
  SessionOptions options;
  options.progress = replay_progress(file, console);
  ReplaySession session(file, nullptr, options);
  const ReplayReport report = session.run();
  return digest_verdict_of(session, report, file);
}

ExitCode run_digest_verify(const RecordingFile& file, bool json, const Console& console) {
  const DigestVerdict verdict = verify_digests(file, console);
  if (json) {
    console.print_json(digest_verdict_json(verdict, file));
  } else {
    print_text(verdict, file, console);
  }
  return verdict.match() ? ExitCode::ok : ExitCode::answer_is_no;
}

}  // namespace citcat
