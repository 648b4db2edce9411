#include "cli/machine/each_processor.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace citcat {

ExitCode for_each_processor(
    const MachineFile& machine, const Console& console, bool json,
    const std::function<ExitCode(const std::string& name, const Console& console)>& work) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  ExitCode first = ExitCode::ok;
  for (std::size_t p = 0; p < machine.processors(); ++p) {
    if (!json) console.print(fmt::format("{}processor {}\n", p == 0 ? "" : "\n", p));
    nlohmann::ordered_json said = nlohmann::ordered_json::array();
    const ExitCode code = work(machine.name(p), json ? console.collecting(said) : console);
    if (first == ExitCode::ok) first = code;
    if (!json) continue;
    nlohmann::ordered_json its{{"processor", p}};
    for (const auto& each : said) its.update(each);
    all.push_back(std::move(its));
  }
  if (json) console.print_json({{"processors", std::move(all)}});
  return first;
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
