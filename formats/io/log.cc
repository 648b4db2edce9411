#include "formats/io/log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat {

namespace {

/// Loggers register before main(), in whatever order; the list must be there before the first.
std::vector<const Logger*>& loggers() {
  static std::vector<const Logger*> all;
  return all;
}

std::string_view setting_of_environment() {
  const char* const value = std::getenv("CITCAT_LOG");
  return value != nullptr ? value : "";
}

std::optional<LogLevel> level_of(std::string_view name) {
  if (name == "off") return LogLevel::off;
  if (name == "info") return LogLevel::info;
  if (name == "debug") return LogLevel::debug;
  return std::nullopt;
}

struct Item {
  std::string_view module;  ///< empty: all
  std::string_view level;
};

/// Calls `f` with each item of a setting.
template <class F>
void each_item(std::string_view setting, F&& f) {
  while (!setting.empty()) {
    const std::size_t end = std::min(setting.find(','), setting.size());
    const std::string_view item = setting.substr(0, end);
    const std::size_t colon = item.find(':');
    f(colon == item.npos ? Item{{}, item} : Item{item.substr(0, colon), item.substr(colon + 1)});
    setting.remove_prefix(std::min(end + 1, setting.size()));
  }
}

}  // namespace

Logger::Logger(const char* module) : module_(module) { loggers().push_back(this); }

bool Logger::at(LogLevel level) const {
  const std::string_view setting = setting_of_environment();
  return !setting.empty() && level <= log_level(setting, module_);
}

void Logger::write(std::string_view text) const {
  std::fprintf(stderr, "citcat: [%s] %s\n", module_, printable_text(text).c_str());
}

LogLevel log_level(std::string_view setting, std::string_view module) {
  LogLevel found = LogLevel::off;
  each_item(setting, [&](const Item& item) {
    if (item.module.empty() || item.module == module) found = level_of(item.level).value_or(found);
  });
  return found;
}

void check_log_setting(std::string_view setting, const std::vector<std::string>& modules) {
  each_item(setting, [&](const Item& item) {
    if (!level_of(item.level)) {
      throw UsageError("CITCAT_LOG: expected off, info or debug, found \"" +
                       std::string(item.level) + "\"");
    }
    if (item.module.empty()) return;
    if (std::find(modules.begin(), modules.end(), item.module) != modules.end()) return;
    std::string known;
    for (const std::string& module : modules) known += (known.empty() ? "" : ", ") + module;
    throw UsageError("CITCAT_LOG: expected one of " + known + ", found \"" +
                     std::string(item.module) + "\"");
  });
}

std::vector<std::string> log_modules() {
  std::vector<std::string> names;
  for (const Logger* logger : loggers()) names.emplace_back(logger->module());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace citcat
