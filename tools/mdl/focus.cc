#include "tools/mdl/focus.h"

#include <fnmatch.h>

#include <algorithm>

#include "formats/io/error.h"

namespace citcat::mdl {

namespace {

struct RootRow {
  const char* name;
  Root root;
  std::size_t deepest;
};

constexpr RootRow kRoots[] = {
    {"Code", Root::code, 2},           {"Process", Root::process, 1},
    {"Level", Root::level, 1},         {"Interrupt", Root::interrupt, 1},
    {"Syscall", Root::system_call, 1}, {"Port", Root::port, 1},
    {"Data", Root::data, 1},           {"Window", Root::window, 1},
    {"Machine", Root::machine, 0},
};

const RootRow& row_of(Root root) {
  return *std::find_if(std::begin(kRoots), std::end(kRoots),
                       [&](const RootRow& r) { return r.root == root; });
}

bool has_wildcard(const std::string& part) {
  return part.find_first_of("*?[") != std::string::npos;
}

/// Levels and windows are decimal; vectors and ports have as many digits as reports show.
void check_number(const Resource& resource, const std::string& text) {
  const std::string& part = resource.parts.front();
  if (has_wildcard(part)) return;
  const bool decimal = resource.root == Root::level || resource.root == Root::window;
  const char* const digits = decimal ? "0123456789" : "0123456789abcdef";
  if (part.find_first_not_of(digits) == std::string::npos) return;
  throw UsageError(text + ": expected " +
                   (decimal ? "a number" : "a hexadecimal number, small letters") + " after /" +
                   root_name(resource.root) + "/, found " + part);
}

/// Digits alone count: "14" and "0014" are one port.
std::string without_zeros(const std::string& part) {
  const std::size_t begin = part.find_first_not_of('0');
  return begin == std::string::npos ? "0" : part.substr(begin);
}

Resource parse_resource(const std::string& text) {
  if (!text.starts_with('/')) {
    throw UsageError(text + ": expected a path such as /Code/vmlinux/schedule");
  }
  Resource resource;
  std::size_t end = text.find('/', 1);
  resource.root = root_of(text.substr(1, end == std::string::npos ? end : end - 1), text);
  // The last part may have slashes of its own: names of processes do.
  while (end != std::string::npos) {
    const std::size_t begin = end + 1;
    const bool last = resource.parts.size() + 1 >= deepest(resource.root);
    end = last ? std::string::npos : text.find('/', begin);
    resource.parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    // Code without symbols lies in the module without a name.
    const bool module = resource.root == Root::code && resource.parts.size() == 1 && !last;
    if (resource.parts.back().empty() && !module) {
      throw UsageError(text + ": expected a name after each slash, found none");
    }
    if (resource.parts.size() > deepest(resource.root)) {
      throw UsageError(text + ": expected nothing below /" + root_name(resource.root));
    }
  }
  if (resource.is_whole()) return resource;
  switch (resource.root) {
    case Root::level:
    case Root::window:
      check_number(resource, text);
      break;
    case Root::interrupt:
    case Root::port:
      check_number(resource, text);
      if (!resource.is_pattern()) resource.parts[0] = without_zeros(resource.parts[0]);
      break;
    case Root::data:
      resource.data = tools::parse_linear_range(resource.parts.front(), text);
      break;
    default:
      break;
  }
  return resource;
}

}  // namespace

std::optional<Root> find_root(const std::string& name) {
  for (const RootRow& row : kRoots) {
    if (name == row.name) return row.root;
  }
  return std::nullopt;
}

Root root_of(const std::string& name, const std::string& what) {
  if (const std::optional<Root> root = find_root(name)) return *root;
  std::string known;
  for (const RootRow& row : kRoots) {
    known += std::string(known.empty() ? "/" : ", /") + row.name;
  }
  throw UsageError(what + ": expected one of " + known + "; found /" + name);
}

const char* root_name(Root root) { return row_of(root).name; }
std::size_t deepest(Root root) { return row_of(root).deepest; }

bool Resource::is_pattern() const { return std::any_of(parts.begin(), parts.end(), has_wildcard); }

bool Resource::matches(std::size_t part, const std::string& name) const {
  return part >= parts.size() || fnmatch(parts[part].c_str(), name.c_str(), 0) == 0;
}

std::string Resource::text() const {
  std::string text = std::string("/") + root_name(root);
  for (const std::string& part : parts) text += "/" + part;
  return text;
}

const Resource* Focus::of(Root root) const {
  const auto found = std::find_if(resources.begin(), resources.end(),
                                  [&](const Resource& r) { return r.root == root; });
  return found != resources.end() ? &*found : nullptr;
}

std::string Focus::text() const {
  std::string text;
  for (const Resource& r : resources) text += (text.empty() ? "" : ",") + r.text();
  return text.empty() ? "/" : text;
}

Focus parse_focus(const std::string& paths) {
  Focus focus;
  std::size_t begin = 0;
  while (begin < paths.size()) {
    const std::size_t end = std::min(paths.find_first_of(",;", begin), paths.size());
    const std::string path = paths.substr(begin, end - begin);
    begin = end + 1;
    if (path == "/") continue;
    Resource resource = parse_resource(path);
    if (focus.of(resource.root) != nullptr) {
      throw UsageError(paths + ": expected /" + root_name(resource.root) + " once");
    }
    if (!resource.is_whole()) focus.resources.push_back(std::move(resource));
  }
  return focus;
}

MetricRequest parse_metric_request(const std::string& text) {
  const std::size_t at = text.find('@');
  MetricRequest request;
  request.metric = text.substr(0, at);
  if (request.metric.empty()) {
    throw UsageError("metric " + text + ": expected METRIC@FOCUS, found no name of a metric");
  }
  if (at != std::string::npos) request.focus = parse_focus(text.substr(at + 1));
  request.text = request.metric + "@" + request.focus.text();
  return request;
}

}  // namespace citcat::mdl
