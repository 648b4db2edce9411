#include "view/exported/exported_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "view/exported/deflate.h"
#include "view/exported/exported_stretch.h"
#include "view/model/text_screen.h"
#include "view/page/page_files.h"

namespace citcat::view {

namespace {

/// The modules of the page, each after those that it imports.
constexpr std::array<std::string_view, 16> kModules{
    "dom.js",         "place.js",          "links.js",
    "live_source.js", "packed_stretch.js", "exported_source.js",
    "source.js",      "timeline.js",       "registers.js",
    "code.js",        "memory.js",         "panels.js",
    "overview.js",    "charts.js",         "figures.js",
    "keys.js"};
constexpr std::string_view kMain = "main.js";

std::string_view page_file(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return file.content;
  }
  throw InternalError("no such file of the page: " + std::string(name));
}

/// A module as a part of one script: what it imports is there already.
std::string as_part(std::string_view module) {
  std::string part;
  while (!module.empty()) {
    const std::size_t end = std::min(module.find('\n'), module.size() - 1) + 1;
    std::string_view line = module.substr(0, end);
    module.remove_prefix(end);
    if (line.starts_with("import ")) continue;
    if (line.starts_with("export ")) line.remove_prefix(std::string_view("export ").size());
    part += line;
  }
  return part;
}

void replace(std::string& text, std::string_view what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) {
    throw InternalError("index.html: expected " + std::string(what));
  }
  text.replace(at, what.size(), by);
}

/// What was found before comes first, and in place of what the view says of the same.
void add_found(const ExportedRun& what, Json& run) {
  if (!what.verdict.is_null()) run["verdict"] = what.verdict;
  if (what.divergence.is_null()) return;
  Json& unusual = run["unusual"];
  if (!unusual.empty() && unusual[0].value("moment", "") == "divergence") unusual.erase(0);
  unusual.insert(unusual.begin(), what.divergence);
}

/// Parts of a timeline that a page has of a whole run: as many as a wide screen has room for, and
/// four times as many to look closer at.
constexpr const char *kTimelineParts = "4000", *kCallsAsked = "5000";

/// What the page knows of the run beside the stretch.
Json about(const ExportedRun& what) {
  RunView& view = *what.view;
  const ExportRange& all = what.all;
  const auto bounds = [](const ExportRange& range, const char* name, const char* value) {
    return Query({{"from", fmt::format("{}", range.from)},
                  {"to", fmt::format("{}", std::max(range.to, range.from + 1))},
                  {name, value}});
  };
  Json run = view.answer("run", Query());
  run["from"] = all.from;
  run["to"] = all.to;
  run["known_to"] = all.to;
  run["complete"] = true;
  add_found(what, run);
  // Where there are more calls than a page has room for, it has those that one can go to.
  Json calls = view.answer("syscalls", bounds(all, "limit", kCallsAsked));
  if (calls["more"]) calls = view.answer("syscalls", bounds(what.range, "limit", kCallsAsked));
  const std::string here = fmt::format("{}", what.range.from);
  Json console = view.answer("console", Query({{"at", here}}));
  console.erase("screen");  // the page knows it of each moment
  Json json = {{"run", std::move(run)},
               {"processes", view.answer("processes", Query())["processes"]},
               {"system_calls", std::move(calls)},
               {"console", std::move(console)},
               {"screens", screen_starts(view, what.range.from)}};
  if (all.from != what.range.from || all.to != what.range.to) {
    json["run"]["held"] = {what.range.from, what.range.to};
    json["timeline"] = view.answer("timeline", bounds(all, "count", kTimelineParts));
  }
  return json;
}

std::vector<std::uint8_t> packed(const Json& description, std::span<const std::uint8_t> columns) {
  ByteWriter out;
  out.string(json_text(description));
  out.bytes(columns);
  return deflated(out.view());
}

}  // namespace

namespace {

void check_range(const ExportedRun& run) {
  const ExportRange& range = run.range;
  if (range.to - range.from > kMostExported) {
    throw UsageError(fmt::format("--from {} --to {}: a page holds {} instructions at most",
                                 range.from, range.to, kMostExported));
  }
}

/// JSON within a script element: "<" could end it (HTML Living Standard, 13.1.2.6), and is the same
/// as an escape in a string, where alone JSON has it.
std::string data_element(const char* name, const Json& data) {
  std::string out = fmt::format("<script type=\"application/json\" id=\"{}\">", name);
  for (const char c : json_text(data)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out + "</script>\n";
}

/// Text between tags (HTML Living Standard, 13.2.5.1, "Data state").
std::string title_of(const Json& together) {
  std::string text;
  for (const Json& name : together.value("runs", Json::array())) {
    text += (text.empty() ? "" : " and ") + name.get<std::string>();
  }
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return "<title>" + out + " - citcat</title>";
}

}  // namespace

std::optional<std::string> exported_page(std::span<const ExportedRun> runs, const Json& together,
                                         const Json& figures) {
  std::string data = data_element("data-runs", together);
  if (!figures.is_null()) data += data_element("data-figures", figures);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    check_range(runs[i]);
    ExportedStretch stretch(*runs[i].view);
    if (!stretch.take(runs[i].range.from, runs[i].range.to)) return std::nullopt;
    Json description = stretch.description();
    description["about"] = about(runs[i]);
    const std::string number = i == 0 ? "" : fmt::format("-{}", i + 1);
    data += "<script type=\"application/octet-stream\" id=\"exported" + number + "\">" +
            base64(packed(description, stretch.columns())) + "</script>\n";
  }
  std::string page(page_file("index.html"));
  std::string script;
  for (const std::string_view module : kModules) script += as_part(page_file(module));
  script += as_part(page_file(kMain));
  replace(page, "<title>citcat view</title>", title_of(together));
  replace(page, "<link rel=\"stylesheet\" href=\"style.css\">",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n<style>\n" +
              std::string(page_file("style.css")) + "</style>");
  replace(page, "<script type=\"module\" src=\"main.js\"></script>",
          data + "<script type=\"module\">\n" + script + "</script>");
  return page;
}

}  // namespace citcat::view
