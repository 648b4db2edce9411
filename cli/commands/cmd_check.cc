// citcat check: whether a file that citcat wrote is whole.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "events/archive/container.h"
#include "events/archive/recording_check.h"
#include "formats/text/one_line.h"

namespace citcat {
namespace {

struct CheckOptions {
  std::string input;
  bool json = false;
};

nlohmann::ordered_json damage_json(const ContainerDamage& damage) {
  nlohmann::ordered_json json;
  json["offset"] = damage.offset;
  json["bytes"] = damage.bytes;
  json["chunk"] = nullptr;
  json["kind"] = nullptr;
  if (damage.chunk) {
    json["chunk"] = damage.chunk->sequence;
    json["kind"] = chunk_kind_name(damage.chunk->kind);
  }
  json["message"] = damage.message;
  return json;
}

void print_json(const RecordingCheck& check, const Console& console) {
  nlohmann::ordered_json json;
  json["verdict"] = check.sound() ? "sound" : "damaged";
  json["bytes"] = check.scan.file_bytes;
  json["intact_chunks"] = check.scan.intact.size();
  json["damage"] = nlohmann::ordered_json::array();
  for (const ContainerDamage& damage : check.scan.damage) {
    json["damage"].push_back(damage_json(damage));
  }
  json["losses"] = check.losses;
  console.print_json(json);
}

void print_text(const RecordingCheck& check, const std::string& name, const Console& console) {
  for (const ContainerDamage& damage : check.scan.damage) {
    console.print_line(fmt::format("{}:{}: {}", name, damage.offset, damage.message));
  }
  for (const std::string& loss : check.losses)
    console.print_line(fmt::format("{}: {}", name, loss));
  console.print(one_line(name) + ": ");
  console.print_verdict(check.sound(), check.sound() ? "sound" : "damaged",
                        fmt::format(", {} intact chunks in {} bytes", check.scan.intact.size(),
                                    check.scan.file_bytes));
}

ExitCode run_check(const CheckOptions& options, const Console& console) {
  const RecordingCheck check = check_recording(options.input, check_interrupt);
  if (options.json) {
    print_json(check, console);
  } else {
    print_text(check, options.input, console);
  }
  return check.sound() ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_check(const CommandParser& parser) {
  auto options = std::make_shared<CheckOptions>();
  parser.add_option("RECORDING", options->input, "Recording to check").required();
  parser.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_check(*options, console); };
}

}  // namespace

extern const Command kCheckCommand{"check", "Look for damage in a recording",
                                   "citcat check boot.citcat", define_check};

}  // namespace citcat
