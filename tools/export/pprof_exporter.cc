// pprof: a profile as a protocol buffer. Format and source: docs/export/pprof.md.

#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

/// Fields of perftools.profiles.Profile and its messages (pprof's proto/profile.proto).
enum ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
};
enum ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
enum SampleField : protozero::pbf_tag_type { kLocationIds = 1, kValues = 2 };
enum LocationField : protozero::pbf_tag_type { kLocationId = 1, kAddress = 3, kLines = 4 };
enum LineField : protozero::pbf_tag_type { kLineFunction = 1 };
enum FunctionField : protozero::pbf_tag_type { kFunctionId = 1, kName = 2 };

/// Texts of a profile, each once; the first is empty.
class StringTable {
 public:
  std::int64_t number(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, static_cast<std::int64_t>(numbers_.size()));
    if (added) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::int64_t> numbers_{{"", 0}};
  std::vector<std::string> texts_{""};
};

class PprofTool final : public ProfileTool {
 public:
  using ProfileTool::ProfileTool;
  std::unique_ptr<Tool> part() const override {
    return part_of_profile<PprofTool>(file(), command(), names());
  }

 private:
  void write(const CallPaths& paths) override {
    std::string bytes;
    protozero::pbf_writer profile(bytes);
    StringTable strings;
    std::map<std::string, std::uint64_t> functions;  // by name: ids of function and location
    {
      protozero::pbf_writer type(profile, kSampleType);
      type.add_int64(kType, strings.number("instructions"));
      type.add_int64(kUnit, strings.number("count"));
    }
    for (std::uint32_t n = 1; n < paths.nodes().size(); ++n) {
      const CallPaths::Node& node = paths.nodes()[n];
      if (node.own == 0) continue;
      // The innermost comes first.
      std::vector<std::uint64_t> locations;
      for (std::uint32_t at = n; at != CallPaths::kRoot; at = paths.nodes()[at].parent) {
        locations.push_back(
            functions.try_emplace(paths.name(paths.nodes()[at]), functions.size() + 1)
                .first->second);
      }
      protozero::pbf_writer sample(profile, kSample);
      sample.add_packed_uint64(kLocationIds, locations.begin(), locations.end());
      const auto self = static_cast<std::int64_t>(node.own);
      sample.add_packed_int64(kValues, &self, &self + 1);
    }
    for (const auto& [name, id] : functions) write_function(profile, strings.number(name), id);
    for (const std::string& text : strings.texts()) profile.add_string(kStringTable, text);
    file().write(bytes);
  }

  static void write_function(protozero::pbf_writer& profile, std::int64_t name, std::uint64_t id) {
    {
      protozero::pbf_writer location(profile, kLocation);
      location.add_uint64(kLocationId, id);
      protozero::pbf_writer line(location, kLines);
      line.add_uint64(kLineFunction, id);
    }
    protozero::pbf_writer function(profile, kFunction);
    function.add_uint64(kFunctionId, id);
    function.add_int64(kName, name);
  }
};

}  // namespace

extern const ToolRow kPprofTool{"pprof",
                                "Write a profile for pprof",
                                kProfileOptions,
                                "citcat replay boot.citcat -o boot.pprof",
                                ToolRow::Merging::serial,
                                make_profile<PprofTool>};

}  // namespace citcat::tools
