#include "cli/machine/machine_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report/recording_info.h"
#include "events/archive/container.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

/// What belongs to the file, not to one of its recordings.
constexpr const char* kOfTheFile[] = {"bytes", "storage", "content_hash", "recordings", "engine"};

}  // namespace

Json machine_info(const MachineFile& machine) {
  Json each = Json::array(), file;
  std::uint64_t instructions = 0, transactions = 0;
  for (std::size_t i = 0; i < machine.processors(); ++i) {
    const RecordingFile recording = machine.open(i);
    Json its;
    its["processor"] = i;
    its.update(recording_info(recording));
    for (const char* const key : kOfTheFile) {
      if (i == 0) file[key] = its[key];
      its.erase(key);
    }
    instructions += recording.recording().instructions.value_or(0);
    transactions += recording.recording().totals.transactions;
    each.push_back(std::move(its));
  }
  Json json;
  json["cpu"] = each.front()["cpu"];
  json["instructions"] = instructions;
  json["transactions"] = transactions;
  const auto count = [&](BusNote::Kind kind) {
    return std::count_if(machine.notes().begin(), machine.notes().end(),
                         [kind](const BusNote& note) { return note.kind == kind; });
  };
  json["invalidations"] = count(BusNote::Kind::invalidate);
  json["apic_messages"] = count(BusNote::Kind::message);
  json["device_writes"] = count(BusNote::Kind::device_write);
  json.update(file);
  json["processors"] = std::move(each);
  return json;
}

}  // namespace citcat
