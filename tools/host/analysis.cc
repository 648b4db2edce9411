#include "tools/host/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

namespace citcat::tools {

namespace {

constexpr std::pair<const char*, Split> kSplits[] = {
    {"process", Split::process}, {"level", Split::level}, {"interrupt", Split::interrupt}};

/// More groups than any run has.
constexpr std::uint64_t kMaxGroups = 1u << 20;
constexpr std::uint64_t kMaxLabel = 1u << 12;

}  // namespace

const char* split_name(Split split) {
  return std::find_if(std::begin(kSplits), std::end(kSplits),
                      [&](const auto& s) { return s.second == split; })
      ->first;
}

std::vector<Split> parse_splits(const std::string& text) {
  std::vector<Split> splits;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const auto* const found = std::find_if(std::begin(kSplits), std::end(kSplits),
                                           [&](const auto& s) { return word == s.first; });
    if (found == std::end(kSplits)) {
      throw UsageError("--by: expected process, level or interrupt, found \"" + word + "\"");
    }
    if (std::find(splits.begin(), splits.end(), found->second) != splits.end()) {
      throw UsageError("--by: " + word + " is given twice");
    }
    splits.push_back(found->second);
    begin = end + 1;
  }
  return splits;
}

Analysis::Analysis(std::vector<ToolRequest> requests, const Setup& setup, std::vector<Split> by)
    : setup_(setup), by_(std::move(by)) {
  if (requests.empty()) throw UsageError("expected --tool NAME; see --list-tools");
  for (ToolRequest& asked : requests) {
    Request request;
    static_cast<ToolRequest&>(request) = std::move(asked);
    ToolOptions& options = request.options;
    request.prototype = request.row->make(options, setup_);
    request.merges = request.row->merging == ToolRow::Merging::exact && request.prototype->merges();
    options.finish();
    request.name = request.prototype->name();
    if (request.name.empty()) request.name = options.tool();
    request.key = request.name;
    requests_.push_back(std::move(request));
  }
  for (Request& r : requests_) {
    const auto same = [&](const Request& o) { return o.name == r.name; };
    if (std::count_if(requests_.begin(), requests_.end(), same) > 1) r.key = r.options.text();
  }
  for (const Request& r : requests_) {
    if (std::count_if(requests_.begin(), requests_.end(),
                      [&](const Request& o) { return o.key == r.key; }) > 1) {
      throw UsageError("--tool " + r.key + " is given twice");
    }
  }
  if (by_.empty()) group({});
  // What cannot be split is refused before the run.
  for (const Request& r : requests_) make_for(r, std::vector<std::string>(by_.size()));
}

Analysis::Analysis(std::unique_ptr<Tool> tool) {
  Request& request = requests_.emplace_back();
  request.name = request.key = tool->name();
  request.prototype = std::move(tool);
  group({});
}

Wants Analysis::wants() const {
  Wants all;
  for (const Request& r : requests_) all = all | r.prototype->wants();
  return all;
}

std::optional<WalkPolicy> Analysis::walks() const {
  std::optional<WalkPolicy> walks;
  for (const Request& r : requests_) {
    const auto wanted = r.prototype->walks();
    if (wanted && walks && *wanted != *walks) {
      throw UsageError("--tool " + r.key +
                       ": needs a TLB that fills differently from the one that another tool needs");
    }
    if (wanted) walks = wanted;
  }
  return walks;
}

std::vector<Wants> Analysis::wants_of_each() const {
  std::vector<Wants> each;
  for (const Request& r : requests_) each.push_back(r.prototype->wants());
  return each;
}

std::vector<std::pair<std::string, Tool::Sampled>> Analysis::sampled() const {
  std::vector<std::pair<std::string, Tool::Sampled>> all;
  for (const Request& r : requests_) all.emplace_back(r.key, r.prototype->sampled());
  return all;
}

std::vector<std::string> Analysis::serial_tools() const {
  std::vector<std::string> names;
  for (const Request& r : requests_) {
    if (!r.merges) names.push_back(r.key);
  }
  return names;
}

/// The tool of one group. One whose result is a file has a file for each.
std::unique_ptr<Tool> Analysis::make_for(const Request& request,
                                         const std::vector<std::string>& labels) const {
  if (by_.empty() || !request.writes_file) return request.prototype->part();
  Setup setup = setup_;
  setup.group = key_of(labels);
  ToolOptions options = request.options;
  return request.row->make(options, setup);
}

/// "process=sh,level=3".
std::string Analysis::key_of(const std::vector<std::string>& labels) const {
  std::string key;
  for (std::size_t i = 0; i < by_.size(); ++i) {
    key += fmt::format("{}{}={}", i != 0 ? "," : "", split_name(by_[i]), labels[i]);
  }
  return key;
}

Group& Analysis::group(const std::vector<std::string>& labels) {
  const auto [at, made] = groups_.try_emplace(labels);
  Group& group = at->second;
  if (!made) return group;
  group.labels = labels;
  group.number = groups_.size() - 1;
  for (const Request& r : requests_) {
    group.tools.push_back(make_for(r, labels));
    group.tools.back()->set_warming(warming_);
  }
  return group;
}

void Analysis::set_warming(bool warming) {
  warming_ = warming;
  for (auto& [labels, group] : groups_) {
    for (const auto& tool : group.tools) tool->set_warming(warming);
  }
}

std::vector<Group*> Analysis::groups() {
  std::vector<Group*> all(groups_.size());
  for (auto& [labels, group] : groups_) all[group.number] = &group;
  return all;
}

void Analysis::follow(Analysis&& later) {
  for (auto& [labels, group] : later.groups_) {
    Group& mine = this->group(labels);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      mine.tools[i]->follow(std::move(*group.tools[i]));
    }
  }
}

void Analysis::save(ByteWriter& out) const {
  out.varint(groups_.size());
  for (const auto& [labels, group] : groups_) {
    for (const std::string& label : labels) out.string(label);
    for (const auto& tool : group.tools) {
      ByteWriter state;
      tool->save(state);
      out.varint(state.size());
      out.bytes(state.view());
    }
  }
}

void Analysis::load(ByteReader& in) {
  const std::size_t count = in.count("number of groups", kMaxGroups);
  for (std::size_t g = 0; g < count; ++g) {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < by_.size(); ++i) labels.push_back(in.string("label", kMaxLabel));
    Group& loaded = group(labels);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const std::uint64_t bytes = in.varint("size of a tool's state");
      const std::uint64_t at = in.offset();
      ByteReader state(in.bytes(bytes, "a tool's state"), in.name(), at);
      loaded.tools[i]->load(state);
      state.expect_end("a tool's state");
    }
  }
}

void Analysis::report_tools(const Group& group, Report& into) const {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    group.tools[i]->report(into.group(requests_[i].key, requests_[i].key));
  }
}

void Analysis::report(Report& into) const {
  if (by_.empty()) {
    report_tools(groups_.begin()->second, into.group("tools", "tools"));
    return;
  }
  Report& groups = into.group("groups", "groups");
  for (const auto& [labels, group] : groups_) {
    const std::string key = key_of(labels);
    Report& one = groups.group(key, key);
    for (std::size_t i = 0; i < by_.size(); ++i) {
      one.value(split_name(by_[i]), split_name(by_[i]), labels[i]);
    }
    report_tools(group, one.group("tools", "tools"));
  }
}

std::vector<std::string> Analysis::failures() const {
  std::vector<std::string> all;
  for (const auto& [labels, group] : groups_) {
    for (const auto& tool : group.tools) {
      std::string failure = tool->failure();
      if (failure.empty()) continue;
      if (std::find(all.begin(), all.end(), failure) == all.end())
        all.push_back(std::move(failure));
    }
  }
  return all;
}

const Tool* Analysis::only_tool() const {
  if (!by_.empty() || requests_.size() != 1) return nullptr;
  return groups_.begin()->second.tools.front().get();
}

}  // namespace citcat::tools
