#include "monitor/options/plugin_options.h"

#include <cstdlib>

namespace citcat::monitor {
namespace {

bool parse_cache(std::string_view text, CacheModel& out) {
  if (text == "none")
    out = CacheModel::none;
  else if (text == "i486")
    out = CacheModel::i486;
  else if (text == "write-back")
    out = CacheModel::write_back;
  else if (text == "pentium")
    out = CacheModel::pentium;
  else
    return false;
  return true;
}

}  // namespace

bool parse_plugin_option(std::string_view argument, PluginOptions& options) {
  const std::size_t equal = argument.find('=');
  if (equal == std::string_view::npos) return false;
  const std::string_view name = argument.substr(0, equal);
  const std::string value(argument.substr(equal + 1));
  const auto trigger = [&value](Trigger& out) {
    const auto parsed = parse_trigger(value);
    if (parsed) out = *parsed;
    return parsed.has_value();
  };
  if (name == "data")
    options.data = std::atoi(value.c_str());
  else if (name == "control")
    options.control = std::atoi(value.c_str());
  else if (name == "log")
    options.log = value;
  else if (name == "ram")
    options.ram = value;
  else if (name == "probe")
    options.probe = value;
  else if (name == "quit")
    options.quit = value == "on";
  else if (name == "observe")
    options.observe = value == "on";
  else if (name == "packed")
    options.packs = value == "on";
  else if (name == "processors")
    options.processors = std::atoi(value.c_str());
  else if (name == "before")
    options.before = std::strtoull(value.c_str(), nullptr, 10);
  else if (name == "cache")
    return parse_cache(value, options.cache);
  else if (name == "start")
    return trigger(options.start);
  else if (name == "stop")
    return trigger(options.stop);
  else
    return false;
  return true;
}

}  // namespace citcat::monitor
