#include "view/exported/exported_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "view/exported/deflate.h"
#include "view/exported/exported_stretch.h"
#include "view/page/page_files.h"

namespace citcat::view {

namespace {

/// The modules of the page, each behind those that it imports.
constexpr std::array<std::string_view, 14> kModules{"dom.js",
                                                    "place.js",
                                                    "links.js",
                                                    "live_source.js",
                                                    "packed_stretch.js",
                                                    "exported_source.js",
                                                    "source.js",
                                                    "timeline.js",
                                                    "code.js",
                                                    "registers.js",
                                                    "memory.js",
                                                    "panels.js",
                                                    "overview.js",
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

/// What the page knows of the run beside the stretch.
Json about(RunView& view, const ExportRange& range) {
  Json run = view.answer("run", Query());
  run["from"] = range.from;
  run["to"] = range.to;
  run["known_to"] = range.to;
  run["complete"] = true;
  run["has"]["evidence"] = false;
  const Query stretch({{"from", fmt::format("{}", range.from)},
                       {"to", fmt::format("{}", range.to)},
                       {"limit", "5000"}});
  Json json = {{"run", std::move(run)},
               {"processes", view.answer("processes", Query())["processes"]},
               {"system_calls", view.answer("syscalls", stretch)},
               {"console", view.answer("console", Query({{"at", fmt::format("{}", range.from)}}))}};
  return json;
}

std::vector<std::uint8_t> packed(const Json& description, std::span<const std::uint8_t> columns) {
  ByteWriter out;
  out.string(json_text(description));
  out.bytes(columns);
  return deflated(out.view());
}

}  // namespace

std::optional<std::string> exported_page(RunView& view, const ExportRange& range) {
  if (range.to <= range.from) {
    throw UsageError(
        fmt::format("--to {}: expected more than --from {}; the run has {} instructions", range.to,
                    range.from, view.index().told_to()));
  }
  if (range.to - range.from > kMostExported) {
    throw UsageError(fmt::format("--from {} --to {}: a page holds {} instructions at most",
                                 range.from, range.to, kMostExported));
  }
  ExportedStretch stretch(view);
  if (!stretch.take(range.from, range.to)) return std::nullopt;
  Json description = stretch.description();
  description["about"] = about(view, range);
  const std::string data = base64(packed(description, stretch.columns()));

  std::string page(page_file("index.html"));
  std::string script;
  for (const std::string_view module : kModules) script += as_part(page_file(module));
  script += as_part(page_file(kMain));
  replace(page, "<link rel=\"stylesheet\" href=\"style.css\">",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n<style>\n" +
              std::string(page_file("style.css")) + "</style>");
  replace(page, "<script type=\"module\" src=\"main.js\"></script>",
          "<script type=\"application/octet-stream\" id=\"exported\">" + data +
              "</script>\n<script type=\"module\">\n" + script + "</script>");
  return page;
}

}  // namespace citcat::view
