#include "cli/machine/each_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/machine/processes.h"
#include "formats/io/json_text.h"

namespace citcat {

namespace {

/// What one of them printed, and how it ended.
struct Said {
  ExitCode code = ExitCode::ok;
  std::string text;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
};

std::string to_line(const Said& said, bool json) {
  return std::to_string(static_cast<int>(said.code)) + "\n" +
         (json ? json_text(said.json) : said.text);
}

Said said_of(const std::string& line, bool json) {
  const std::size_t end = line.find('\n');
  Said said;
  said.code = static_cast<ExitCode>(std::stoi(line.substr(0, end)));
  said.text = line.substr(end + 1);
  if (json) said.json = nlohmann::ordered_json::parse(said.text);
  return said;
}

/// One line of JSON for all of them, or their texts one below the other.
class Collected {
 public:
  Collected(const Console& console, bool json) : console_(console), json_(json) {}

  void begin(std::size_t processor) {
    if (!json_)
      console_.print(fmt::format("{}processor {}\n", processor == 0 ? "" : "\n", processor));
  }
  void add(std::size_t processor, const Said& said) {
    if (first_ == ExitCode::ok) first_ = said.code;
    if (!json_) return;
    nlohmann::ordered_json its{{"processor", processor}};
    for (const auto& each : said.json) its.update(each);
    all_.push_back(std::move(its));
  }
  ExitCode end() {
    if (json_) console_.print_json({{"processors", std::move(all_)}});
    return first_;
  }

 private:
  const Console& console_;
  bool json_;
  nlohmann::ordered_json all_ = nlohmann::ordered_json::array();
  ExitCode first_ = ExitCode::ok;
};

}  // namespace

ExitCode for_each_processor(const MachineFile& machine, const Console& console, bool json,
                            unsigned jobs, const WorkOfProcessor& work) {
  Collected all(console, json);
  if (jobs <= 1) {
    for (std::size_t p = 0; p < machine.processors(); ++p) {
      Said said;
      all.begin(p);
      said.code = work(p, machine.name(p), json ? console.collecting(said.json) : console);
      all.add(p, said);
    }
    return all.end();
  }
  const auto lines = run_side_by_side(machine.processors(), jobs, [&](std::size_t p) {
    Said said;
    const Console its = json ? console.collecting(said.json) : console.collecting_text(said.text);
    said.code = work(p, machine.name(p), its);
    return to_line(said, json);
  });
  for (std::size_t p = 0; p < lines.size(); ++p) {
    const Said said = said_of(lines[p], json);
    all.begin(p);
    if (!json) console.print(said.text);
    all.add(p, said);
  }
  return all.end();
}

int jobs_of_each(int jobs, const MachineFile& machine) {
  return std::max(1, jobs / static_cast<int>(machine.processors()));
}

std::string path_of_processor(const std::string& path, std::size_t processor) {
  const std::filesystem::path whole(path);
  std::string name = whole.filename().string();
  // A name may begin with a dot.
  const std::size_t dot = name.find('.', 1);
  name.insert(dot == std::string::npos ? name.size() : dot, "." + std::to_string(processor));
  return (whole.parent_path() / name).string();
}

}  // namespace citcat
