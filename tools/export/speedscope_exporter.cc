// speedscope: a sampled profile as JSON. Format and source: docs/export/speedscope.md.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "formats/io/json_text.h"
#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

class SpeedscopeTool final : public ProfileTool {
 public:
  using ProfileTool::ProfileTool;
  std::unique_ptr<Tool> part() const override {
    return part_of_profile<SpeedscopeTool>(file(), command(), names());
  }

 private:
  void write(const CallPaths& paths) override {
    using Json = nlohmann::ordered_json;
    std::map<std::string, std::size_t> frames;
    Json names = Json::array(), samples = Json::array(), weights = Json::array();
    std::uint64_t total = 0;
    for (std::uint32_t n = 1; n < paths.nodes().size(); ++n) {
      const CallPaths::Node& node = paths.nodes()[n];
      if (node.own == 0) continue;
      Json sample = Json::array();
      for (const std::uint32_t step : paths.path_of(n)) {
        const std::string name = paths.name(paths.nodes()[step]);
        const auto [frame, added] = frames.try_emplace(name, frames.size());
        if (added) names.push_back({{"name", name}});
        sample.push_back(frame->second);
      }
      samples.push_back(std::move(sample));
      weights.push_back(node.own);
      total += node.own;
    }
    Json json;
    json["$schema"] = "https://www.speedscope.app/file-format-schema.json";
    json["shared"]["frames"] = std::move(names);
    json["profiles"] = Json::array({{{"type", "sampled"},
                                     {"name", command()},
                                     {"unit", "none"},
                                     {"startValue", 0},
                                     {"endValue", total},
                                     {"samples", std::move(samples)},
                                     {"weights", std::move(weights)}}});
    json["exporter"] = "citcat";
    json["name"] = command();
    file().write(json_text(json) + "\n");
  }
};

}  // namespace

extern const ToolRow kSpeedscopeTool{"speedscope",
                                     "Write a profile for speedscope",
                                     kProfileOptions,
                                     "citcat replay boot.citcat -o boot.speedscope.json",
                                     ToolRow::Merging::serial,
                                     make_profile<SpeedscopeTool>};

}  // namespace citcat::tools
