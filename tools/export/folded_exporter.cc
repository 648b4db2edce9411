// folded: stacks as flamegraph.pl and similar programs read them, one line per path. Format and
// source: docs/export/folded.md.

#include <fmt/format.h>

#include "tools/export/profile_exporters.h"

namespace citcat::tools {
namespace {

/// The name of a node as one frame of a line. A semicolon would end the frame. Where two
/// numbers are at the end of a line, flamegraph.pl takes it for one of differential stacks, so
/// that the last name ends in no word of digits; a procedure's never does, so that it has one name
/// in all lines.
std::string frame_text(const CallPaths& paths, CallPath node, bool is_last) {
  std::string name = paths.name(paths.nodes()[node]);
  for (std::size_t at = 0; (at = name.find(';', at)) != std::string::npos;) {
    name.replace(at, 1, "\\x3b");
  }
  if (!is_last && paths.nodes()[node].kind != CallTree::Kind::procedure) return name;
  const std::size_t blank = name.find_last_of(' ');
  const bool ends_in_number = blank != std::string::npos && blank + 1 != name.size() &&
                              name.find_first_not_of("0123456789.", blank + 1) == std::string::npos;
  if (ends_in_number) name.replace(blank, 1, "\\x20");
  return name;
}

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
        line += (line.empty() ? "" : ";") + frame_text(paths, step, step == n);
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
