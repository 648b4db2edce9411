#include "tools/export/call_paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/text/printable_text.h"

namespace citcat::tools {

std::string CallPaths::name(const Node& node) const {
  using Kind = CallTree::Kind;
  switch (node.kind) {
    case Kind::root:
      return "all";
    case Kind::process:
      return "process " + (names_ != nullptr ? printable_text(names_->process_of(node.value))
                                             : fmt::format("{:08x}", node.value));
    case Kind::system:
      return "system";
    case Kind::procedure:
      return printable_text(procedures_.name(static_cast<ProcedureNumber>(node.value)));
    case Kind::interrupt:
      return fmt::format("interrupt {:02x}", node.value);
    case Kind::exception:
      return fmt::format("exception {:02x}", node.value);
    case Kind::call:
      return "system call";
  }
  return "";
}

std::vector<CallPath> CallPaths::path_of(CallPath node) const {
  std::vector<CallPath> path;
  for (; node != kRoot; node = nodes()[node].parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace citcat::tools
