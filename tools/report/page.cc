#include "tools/report/page.h"

#include <nlohmann/json.hpp>
#include <span>

#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/text/printable_text.h"
#include "tools/report/page_files.h"

namespace citcat::tools {

namespace {

/// Text between tags (HTML Living Standard, 13.2.5.1, "Data state").
std::string escaped(const std::string& text) {
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
  return out;
}

/// With texts as a page may show them: marks for the direction of writing work in a browser, too.
void make_printable(nlohmann::ordered_json& data) {
  if (data.is_string()) {
    data = printable_text(data.get_ref<const std::string&>(), "\n\t");
  } else if (data.is_structured()) {
    for (auto& part : data) make_printable(part);
  }
}

/// JSON within a script element: "<" could end it (13.1.2.6), and is the same as an escape in a
/// string, where alone JSON has it.
std::string within_script(nlohmann::ordered_json data) {
  make_printable(data);
  const std::string json = json_text(data);
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string content_of(std::string_view mark, const std::string& title,
                       const nlohmann::ordered_json& data) {
  if (mark == "title") return escaped(printable_text(title));
  if (mark == "data") return within_script(data);
  return std::string(page_file(mark));
}

}  // namespace

std::string_view page_file(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return file.content;
  }
  throw InternalError("no such file of the report's page: " + std::string(name));
}

/// The template has its parts named in marks: "{{page.css}}".
std::string make_page(const std::string& title, const nlohmann::ordered_json& data) {
  constexpr std::string_view kOpen = "{{", kClose = "}}";
  std::string_view rest = page_file("page.html");
  std::string page;
  for (;;) {
    const std::size_t open = rest.find(kOpen);
    page += rest.substr(0, open);
    if (open == std::string_view::npos) return page;
    const std::size_t close = rest.find(kClose, open);
    if (close == std::string_view::npos)
      throw InternalError("the page's template has an open mark");
    page += content_of(rest.substr(open + kOpen.size(), close - open - kOpen.size()), title, data);
    rest.remove_prefix(close + kClose.size());
  }
}

}  // namespace citcat::tools
