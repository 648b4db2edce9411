#include "unit/capture/machine_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/io/input.h"
#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;

std::vector<std::pair<std::string, char>> captures_in(const std::string& folder) {
  std::vector<std::pair<std::string, char>> captures;
  if (folder.empty()) return captures;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const char form : {'A', 'B', 'C'}) {
      if (std::filesystem::exists(entry.path() / (std::string("bus") + form + ".bin.zst"))) {
        captures.emplace_back(entry.path().filename().string(), form);
      }
    }
  }
  std::sort(captures.begin(), captures.end());
  return captures;
}

}  // namespace

bool MachineData::has(const std::string& file) const { return std::filesystem::exists(path(file)); }

std::vector<MonitorRecord> MachineData::records(char form) const {
  const auto bytes = read_whole_file(path(std::string("bus") + form + ".bin.zst"), kMaxFile);
  std::vector<MonitorRecord> records(bytes.size() / sizeof(MonitorRecord));
  std::memcpy(records.data(), bytes.data(), records.size() * sizeof(MonitorRecord));
  return records;
}

std::map<std::uint32_t, std::vector<std::uint8_t>> MachineData::pages(
    const std::string& file) const {
  constexpr std::size_t kPage = 4096;
  const auto bytes = read_whole_file(path(file), kMaxFile);
  std::map<std::uint32_t, std::vector<std::uint8_t>> pages;
  for (std::size_t at = 0; at + 4 + kPage <= bytes.size(); at += 4 + kPage) {
    std::uint32_t address = 0;
    std::memcpy(&address, bytes.data() + at, 4);
    const auto* const begin = bytes.data() + at + 4;
    pages[address].assign(begin, begin + kPage);
  }
  return pages;
}

std::vector<MonitorInterrupt> MachineData::interrupts() const {
  std::vector<MonitorInterrupt> found;
  for (const auto& f : csv_rows(path("events.csv.zst"))) {
    if (f.at(2) != "HWINT") continue;
    found.push_back({std::stoull(f[0]), static_cast<std::uint32_t>(std::stoul(f[1])),
                     static_cast<std::uint8_t>(std::stoul(f[3]))});
  }
  return found;
}

std::vector<MonitorDma> MachineData::dma_writes() const {
  std::vector<MonitorDma> found;
  for (const auto& f : csv_rows(path("dma.csv.zst"))) {
    if (f.at(2) != "W") continue;
    MonitorDma dma{
        std::stoull(f[0]), static_cast<std::uint32_t>(std::stoul(f[3], nullptr, 16)), {}};
    for (std::size_t i = 0; i + 1 < f.at(5).size(); i += 2) {
      dma.data.push_back(static_cast<std::uint8_t>(std::stoul(f[5].substr(i, 2), nullptr, 16)));
    }
    found.push_back(std::move(dma));
  }
  return found;
}

std::map<std::string, std::uint32_t> MachineData::initial_state() const {
  std::map<std::string, std::uint32_t> state;
  for (const auto& f : csv_rows(path("initial_state.csv"))) {
    state[f.at(1)] = static_cast<std::uint32_t>(std::stoul(f.at(2), nullptr, 16));
  }
  return state;
}

std::uint64_t MachineData::meta(const std::string& key) const {
  const auto bytes = read_whole_file(path("meta.json"), kMaxFile);
  return nlohmann::json::parse(bytes).at(key).get<std::uint64_t>();
}

std::uint64_t MachineData::meta(char form, const std::string& key) const {
  const auto bytes = read_whole_file(path("meta.json"), kMaxFile);
  return nlohmann::json::parse(bytes).at(std::string(1, form)).at(key).get<std::uint64_t>();
}

std::string machine_folder() { return shared_file("machine"); }

std::string machine64_folder() { return shared_file("machine64"); }

std::vector<std::pair<std::string, char>> machine_captures() {
  return captures_in(machine_folder());
}

std::vector<std::pair<std::string, char>> machine64_captures() {
  return captures_in(machine64_folder());
}

std::vector<std::pair<std::string, char>> tiny_machine64_captures() {
  auto captures = captures_in(machine64_folder());
  std::erase_if(captures, [](const auto& c) { return !c.first.ends_with("_tiny"); });
  return captures;
}

}  // namespace citcat::test
