#include "cli/recovered_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/divergence_report.h"
#include "cli/interrupt.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

const char* explanation(RegisterSource source) {
  switch (source) {
    case RegisterSource::frame:
      return "pushed or used by the interrupt";
    case RegisterSource::saved:
      return "saved by the handler";
    case RegisterSource::solved:
      return "the first traffic that depends on it";
    case RegisterSource::assumed:
      return "assumed: other values give the same traffic up to some point";
    case RegisterSource::free:
      return "free: nothing depends on it";
    case RegisterSource::given:
      return "given by --initial-state";
  }
  return "";
}

/// Registers are listed with four digits, or eight where one of them needs more; with sixteen where
/// they have 64 bits.
int digits(const RecoveredState& recovered) {
  if (recovered.state.long_mode) return 16;
  const bool wide =
      std::any_of(recovered.registers.begin(), recovered.registers.end(),
                  [](const RecoveredRegister& r) { return r.value > 0xffff || r.name == "eip"; });
  return wide ? 8 : 4;
}

}  // namespace

RecoveredState recover_state_of(const std::vector<std::string>& captures,
                                const ImportOptions& options, const std::string& traffic,
                                unsigned seconds, const Console& console) {
  if (!options.start || options.start->kind != Where::Kind::interrupt) {
    throw UsageError("--recover-state needs --start interrupt:N");
  }
  for (const std::string& capture : captures) make_rereadable(capture);
  ImportOptions first = options;
  first.recovers_state = true;
  import_capture(captures, first, traffic);
  const RecordingFile file = RecordingFile::open(traffic);
  Progress progress = console.progress("recovering the state", "");
  TimeBudget time(seconds, TimeBudget::Counts::all, [&progress] {
    progress.show(0, "trying values");
    return interrupt_requested();
  });
  const auto evidence = [&file] { return file.evidence(); };
  RecoveredState recovered = recover_state(file.recording().clone(), evidence, &time);
  if (!recovered.divergence) return recovered;
  for (const std::string& line : divergence_lines(*recovered.divergence)) console.warn(line);
  if (!recovered.given_up.empty()) {
    console.warn("registers found until then:");
    for (const std::string& line : recovered_lines(recovered)) console.warn(line);
    check_interrupt();
    throw FormatError(captures.front(), 0,
                      "expected an interrupt at which the registers can be recovered in the time "
                      "that --recovery-time gives, found none: " +
                          recovered.given_up);
  }
  throw FormatError(captures.front(), 0,
                    "expected an interrupt at which the registers can be recovered, found one "
                    "at which no values of the remaining registers explain the bus");
}

nlohmann::ordered_json recovered_json(const RecoveredState& recovered) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RecoveredRegister& r : recovered.registers) {
    nlohmann::ordered_json item;
    item["register"] = r.name;
    item["value"] = r.value;
    item["source"] = register_source_name(r.source);
    item["transaction"] = nullptr;
    if (r.transaction != kNoTransaction) item["transaction"] = r.transaction;
    json.push_back(std::move(item));
  }
  return json;
}

std::vector<std::string> recovered_lines(const RecoveredState& recovered) {
  std::vector<std::string> lines;
  for (const RecoveredRegister& r : recovered.registers) {
    std::string line = fmt::format("  {:<12} {:0{}x}  {}", r.name, r.value, digits(recovered),
                                   explanation(r.source));
    if (r.source == RegisterSource::solved && r.transaction != kNoTransaction) {
      line += fmt::format(" (transaction {})", r.transaction);
    }
    lines.push_back(std::move(line));
  }
  if (!recovered.memory.empty()) {
    lines.push_back(
        fmt::format("  {} page-table entries that the processor had in its TLB: assumed",
                    recovered.memory.size()));
  }
  return lines;
}

void add_recovered_memory(const RecoveredState& recovered, const std::string& archive) {
  if (recovered.memory.empty()) return;
  HintFile hints{RecordingFile::open(archive).identity(false).hex(), recovered.memory};
  RecordingAppender appender(archive);
  appender.add_hints(hints);
  appender.finish();
}

}  // namespace citcat
