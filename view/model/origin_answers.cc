// The question how one knows: what a line of the trace is made from, and what the bus showed that
// confirms it.

#include <fmt/format.h>

#include "replay/run/confidence.h"
#include "replay/run/replay_session.h"
#include "view/model/answer_text.h"

namespace citcat::view {

namespace {

std::string input_text(const RunView& view, const UnconstrainedInput& input) {
  switch (input.kind) {
    case UnconstrainedInput::Kind::memory:
      return "memory at " + physical_text(view, input.address);
    case UnconstrainedInput::Kind::reg:
      return input.name + " at the beginning";
    case UnconstrainedInput::Kind::port_read:
      return fmt::format("port read number {}", input.number);
  }
  return "";
}

/// What the bus showed; empty if nothing confirms the input.
const char* confirmation_text(Confirmation::Kind kind) {
  switch (kind) {
    case Confirmation::Kind::none:
      break;
    case Confirmation::Kind::seen_again:
      return "it was read once more, unchanged";
    case Confirmation::Kind::written_back:
      return "a line that holds something made from it was written back";
    case Confirmation::Kind::stored:
      return "something made from it was stored";
    case Confirmation::Kind::addressed:
      return "it led to the memory that was accessed";
    case Confirmation::Kind::port:
      return "something made from it went to a port";
    case Confirmation::Kind::ran_next:
      return "it led to what ran next";
  }
  return "";
}

/// Replays the run from its beginning, instruction by instruction.
Json answer_origins(RunView& view, const Query& query) {
  const Moment moment = view.go_to(query);
  Json json = here(view);
  json["inputs"] = Json::array();
  const RecordingFile& file = view.file();
  if (file.meta().evidence != EvidenceMode::full) {
    json["why"] = "the archive holds digests in place of the evidence";
    return json;
  }
  Confidence confidence(file.recording(), *file.evidence(), moment.position.instruction);
  SessionOptions options;
  options.check = false;
  if (const auto end = view.run_end()) options.to = end->instruction;
  bool whole = true;
  options.pause = [&](Position) {
    whole = whole && !view.timed_out();
    return !whole;
  };
  ReplaySession(file, &confidence, options).run();
  confidence.unconstrained();
  const auto line = confidence.line();
  if (!whole) {
    json["why"] = kSearchTookTooLong;
  } else if (!line) {
    json["why"] = "this instruction did not run";
  }
  if (!line) return json;
  json["all"] = line->complete;
  for (const LineInput& input : line->inputs) {
    Json one = {{"input", input_text(view, input.input)}};
    const Confirmation::Kind kind = input.confirmed.kind;
    if (kind != Confirmation::Kind::none) {
      one["confirmed"] = confirmation_text(kind);
      if (kind != Confirmation::Kind::seen_again) {
        one["at"] = fmt::format("{}", input.confirmed.at.instruction);
      }
    }
    json["inputs"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::vector<Question> origin_questions() { return {{"origins", {"at"}, answer_origins}}; }

}  // namespace citcat::view
