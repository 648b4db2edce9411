#include "unit/x86/golden_trace.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace citcat::test {
namespace {

std::uint32_t u32(const std::array<std::uint8_t, 40>& record, std::size_t at) {
  return static_cast<std::uint32_t>(record[at]) | static_cast<std::uint32_t>(record[at + 1]) << 8 |
         static_cast<std::uint32_t>(record[at + 2]) << 16 |
         static_cast<std::uint32_t>(record[at + 3]) << 24;
}

enum RecordKind : std::uint8_t { kInstruction = 1, kAccess = 2, kEvent = 3, kRegisters = 4 };

}  // namespace

std::string shared_data_folder() {
  const char* given = std::getenv("CITCAT_SHARED");
  const std::string folder = given != nullptr ? given : CITCAT_SOURCE_DIR "/../shared";
  return std::filesystem::exists(folder + "/data/machine") ? folder : "";
}

std::map<std::string, std::uint32_t> load_machine_state(const std::string& csv_path) {
  std::map<std::string, std::uint32_t> values;
  std::ifstream file(csv_path);
  std::string line;
  std::getline(file, line);  // column titles
  while (std::getline(file, line)) {
    const std::size_t first = line.find(',');
    const std::size_t second = line.find(',', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    values[line.substr(first + 1, second - first - 1)] =
        static_cast<std::uint32_t>(std::stoul(line.substr(second + 1), nullptr, 16));
  }
  return values;
}

bool GoldenTrace::read_record() {
  if (have_record_) return true;
  have_record_ = input_.read(record_) == record_.size();
  return have_record_;
}

std::optional<GoldenStep> GoldenTrace::next() {
  GoldenStep step;
  while (read_record() && record_[0] != kInstruction) {
    step.event_before = step.event_before || record_[0] == kEvent;
    have_record_ = false;
  }
  if (!have_record_) return std::nullopt;
  step.length = record_[1];
  step.cs = static_cast<std::uint16_t>(u32(record_, 0) >> 16);
  step.eip = u32(record_, 4);
  step.linear = u32(record_, 8);
  std::copy_n(record_.begin() + 16, 16, step.bytes.begin());
  step.icount = u32(record_, 32) | static_cast<std::uint64_t>(u32(record_, 36)) << 32;
  have_record_ = false;
  while (read_record() && record_[0] != kInstruction) {
    have_record_ = false;
    if (record_[0] == kEvent) step.event = true;
    if (record_[0] == kAccess && record_[3] == 0 && !step.event) {
      GoldenAccess access;
      access.size = record_[1];
      access.write = record_[2] == 1;
      access.linear = u32(record_, 4);
      access.repetition = u32(record_, 12);
      std::copy_n(record_.begin() + 16, 16, access.data.begin());
      step.accesses.push_back(access);
    }
    if (record_[0] != kRegisters) continue;
    step.completed = true;
    step.eflags = u32(record_, 4);
    for (std::size_t i = 0; i < 8; ++i) step.gpr[i] = u32(record_, 8 + 4 * i);
    break;
  }
  return step;
}

}  // namespace citcat::test
