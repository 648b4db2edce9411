#pragma once
// A focus: the part of the machine that a metric is measured for, as paths in the hierarchy of
// resources. "/Code/vmlinux/schedule,/Process/sh": all of them hold.
//
//   /Code/MODULE/PROCEDURE  /Process/NAME  /Level/N  /Interrupt/VECTOR  /Syscall/NAME
//   /Port/NUMBER  /Data/FIRST-LAST  /Window/NUMBER  /Machine
//
// Names may have the wildcards of fnmatch(3); each resource that matches then has a value of its
// own. Vectors and ports are hexadecimal, and so are addresses.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/host/names.h"

namespace citcat::mdl {

enum class Root : std::uint8_t {
  code,
  process,
  level,
  interrupt,
  system_call,
  port,
  data,
  window,
  machine,
};
/// "Code". Throws UsageError naming `what` where there is no such hierarchy.
Root root_of(const std::string& name, const std::string& what);
std::optional<Root> find_root(const std::string& name);
const char* root_name(Root root);
/// Parts below the root that its paths can have at most.
std::size_t deepest(Root root);

struct Resource {
  Root root = Root::machine;
  std::vector<std::string> parts;  ///< below the root; none: the whole hierarchy
  tools::LinearRange data;         ///< of Root::data
  bool is_whole() const { return parts.empty(); }
  /// Some part has a wildcard.
  bool is_pattern() const;
  bool matches(std::size_t part, const std::string& name) const;
  std::string text() const;
};

struct Focus {
  std::vector<Resource> resources;  ///< none of them whole, each root once
  /// The resource of that root; null where all of it is meant.
  const Resource* of(Root root) const;
  std::string text() const;  ///< "/": everything
};

/// "METRIC@FOCUS", as --metric has it.
struct MetricRequest {
  std::string metric;
  Focus focus;
  std::string text;
};
/// `paths`: separated by commas or semicolons; "/" and nothing are everything. Throws UsageError.
Focus parse_focus(const std::string& paths);
MetricRequest parse_metric_request(const std::string& text);

}  // namespace citcat::mdl
