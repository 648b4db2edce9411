// folded: stacks as flamegraph.pl and its kin read them, a line a path. Format and source:
// docs/export/folded.md.

#include <fmt/format.h>

#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

class FoldedTool final : public ProfileTool {
 public:
  using ProfileTool::ProfileTool;
  std::unique_ptr<Tool> part() const override {
    return part_of_profile<FoldedTool>(file(), command(), names());
  }

 private:
  void write(const CallPaths& paths) override {
    for (std::uint32_t n = 1; n < paths.nodes().size(); ++n) {
      if (paths.nodes()[n].own == 0) continue;
      std::string line;
      for (const std::uint32_t step : paths.path_of(n)) {
        line += (line.empty() ? "" : ";") + paths.name(paths.nodes()[step]);
      }
      file().write(fmt::format("{} {}\n", line, paths.nodes()[n].own));
    }
  }
};

}  // namespace

extern const ToolRow kFoldedTool{"folded",
                                 "Write folded stacks, for flame graphs",
                                 kProfileOptions,
                                 "citcat replay boot.citcat -o boot.folded",
                                 ToolRow::Merging::serial,
                                 make_profile<FoldedTool>};

}  // namespace citcat::tools
