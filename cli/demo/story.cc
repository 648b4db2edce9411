#include "cli/demo/story.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

struct Meaning {
  std::string_view key, text;
};

/// Interrupts of a PC's firmware, by their vectors. IBM, Technical Reference, Personal Computer
/// (6025008), section 3, "Interrupt vectors".
constexpr Meaning kInterrupts[] = {
    {"08", "timer"},        {"09", "keyboard"},       {"0b", "serial port"},
    {"0e", "diskette"},     {"10", "video"},          {"13", "disk services"},
    {"16", "key services"}, {"1a", "clock services"}, {"1c", "user timer tick"},
    {"21", "DOS"},
};

/// Chips of a PC, by the first three digits of their ports. The same, section 1, "I/O address map",
/// and for 3D8h "Color/graphics monitor adapter".
constexpr Meaning kChips[] = {
    {"000", "DMA controller"},
    {"002", "interrupt controller"},
    {"004", "timer"},
    {"006", "keyboard and speaker"},
    {"03d", "colour graphics adapter"},
    {"03b", "monochrome adapter"},
    {"03f", "diskette and serial port"},
};

template <std::size_t N>
std::string_view meaning(const Meaning (&table)[N], std::string_view key) {
  for (const Meaning& row : table) {
    if (row.key == key) return row.text;
  }
  return "";
}

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

/// "interrupt 08" with what it is.
std::string event_name(const std::string& event) {
  // The vectors of exceptions are the processor's, and some of them have the same numbers.
  if (event.find("interrupt ") == std::string::npos) return event;
  const std::string_view what =
      meaning(kInterrupts, std::string_view(event).substr(event.rfind(' ') + 1));
  return what.empty() ? event : fmt::format("{} ({})", event, what);
}

void tell_events(const Json& report, std::vector<std::string>& story) {
  for (const Json& row : report.at("events")) {
    const std::string event = row.at("event");
    const bool told = event.find("interrupt ") != std::string::npos ||
                      event.find("exception ") != std::string::npos;
    if (!told || event.starts_with("return")) continue;
    story.push_back(fmt::format("{} came {}, first at instruction {}.", event_name(event),
                                times(row.at("count").get<std::uint64_t>()),
                                row.at("first").get<std::uint64_t>()));
  }
}

void tell_ports(const Json& report, std::vector<std::string>& story) {
  std::vector<std::string> chips;
  for (const Json& row : report.at("ports")) {
    const std::string port = row.at("port");
    const std::string_view chip = meaning(kChips, std::string_view(port).substr(0, 3));
    const std::string name = chip.empty() ? "port " + port + "h" : "the " + std::string(chip);
    if (chips.empty() || chips.back() != name) chips.push_back(name);
  }
  if (chips.empty()) return;
  const auto reads = report.at("reads").get<std::uint64_t>();
  const auto writes = report.at("writes").get<std::uint64_t>();
  story.push_back(
      fmt::format("It {}{}{} values at ports: {}.", reads == 0 ? "" : fmt::format("read {}", reads),
                  reads == 0 || writes == 0 ? "" : " and ",
                  writes == 0 ? "" : fmt::format("wrote {}", writes), fmt::join(chips, ", ")));
}

/// Writes to the memory of display adapters, A0000h to BFFFFh.
void tell_drawing(const Json& report, std::vector<std::string>& story) {
  constexpr std::uint64_t kFirst = 0xa0000, kBehind = 0xc0000;
  std::uint64_t writes = 0;
  for (const Json& row : report.at("busiest")) {
    const auto address = std::stoull(row.at("address").get<std::string>(), nullptr, 16);
    if (address >= kFirst && address < kBehind) writes += row.at("writes").get<std::uint64_t>();
  }
  if (writes != 0)
    story.push_back(fmt::format("It drew, with {} writes to the screen's memory.", writes));
}

void tell_hot_code(const Json& report, std::vector<std::string>& story) {
  const Json& hottest = report.at("blocks").at("hottest");
  if (hottest.empty()) return;
  const Json& block = hottest.front();
  story.push_back(fmt::format(
      "It was busiest with {} instructions at {}, which ran {}: {:.0f} % of all.",
      block.at("instructions").get<std::uint64_t>(), block.at("address").get<std::string>(),
      times(block.at("executions").get<std::uint64_t>()), block.at("percent").get<double>()));
  if (const auto iterations = report.at("iterations").get<std::uint64_t>(); iterations != 0) {
    story.push_back(fmt::format(
        "Its repeated string instructions (REP) made {} further iterations.", iterations));
  }
}

}  // namespace

std::vector<std::string> story_tools() {  // More page frames than there are of display adapters.
  return {"events", "io", "memory:show=4096", "count"};
}

std::vector<std::string> story(const Json& tools) {
  std::vector<std::string> sentences;
  tell_events(tools.at("events"), sentences);
  tell_ports(tools.at("io"), sentences);
  tell_drawing(tools.at("memory"), sentences);
  tell_hot_code(tools.at("count"), sentences);
  return sentences;
}

}  // namespace citcat
