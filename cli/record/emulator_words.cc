#include "cli/record/emulator_words.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace citcat {
namespace {

/// Options of QEMU that take no value (qemu-options.hx of QEMU 9.2 to 10.2).
constexpr std::array kWithoutValue = {
    "h", "help", "version", "S", "s", "nographic", "nodefaults", "snapshot", "no-reboot",
    "no-shutdown", "enable-kvm", "daemonize", "usb", "mem-prealloc", "no-user-config",
    "full-screen", "curses", "preconfig", "sdl", "only-migratable", "no-acpi", "no-hpet",
    "no-fd-bootchk", "xen-attach", "enable-sync-profile",
    // of older ones:
    "localtime", "no-kvm", "no-kvm-irqchip"};

/// Up to the next single comma; `at` goes after it.
std::string next_part(const std::string& text, std::size_t& at) {
  std::string part;
  for (; at < text.size(); ++at) {
    if (text[at] == ',') {
      if (at + 1 == text.size() || text[at + 1] != ',') break;
      ++at;
    }
    part += text[at];
  }
  ++at;
  return part;
}

}  // namespace

// As path_has_protocol() in QEMU's block.c.
bool has_protocol(const std::string& image) {
  const std::size_t at = image.find_first_of(":/");
  return at != std::string::npos && image[at] == ':';
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == ',' ? std::string(",,") : std::string(1, c);
  return out;
}

std::vector<EmulatorOption> emulator_options(const std::vector<std::string>& command) {
  std::vector<EmulatorOption> options;
  for (std::size_t n = 1; n < command.size(); ++n) {
    const std::string& word = command[n];
    if (!word.starts_with('-')) {
      options.push_back({"", word});
      continue;
    }
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    const bool alone = std::find(kWithoutValue.begin(), kWithoutValue.end(),
                                 std::string_view(name)) != kWithoutValue.end();
    if (alone || n + 1 == command.size())
      options.push_back({name, std::nullopt});
    else
      options.push_back({name, command[++n]});
  }
  return options;
}

std::vector<std::string> parts_of_value(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) parts.push_back(next_part(text, at));
  return parts;
}

std::string value_of_parts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + escaped(part);
  return text;
}

OptionValue::OptionValue(const std::string& text) {
  for (const std::string& part : parts_of_value(text)) {
    const std::size_t equal = part.find('=');
    if (equal == std::string::npos)
      parts_.emplace_back(part, std::nullopt);
    else
      parts_.emplace_back(part.substr(0, equal), part.substr(equal + 1));
  }
}

std::string OptionValue::head() const {
  return parts_.empty() || parts_[0].second ? "" : parts_[0].first;
}

std::optional<std::string> OptionValue::get(const std::string& key) const {
  for (const auto& [name, value] : parts_)
    if (name == key && value) return value;
  return std::nullopt;
}

bool OptionValue::names_file_otherwise() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) {
    return part.first == "driver" || part.first.starts_with("file.");
  });
}

void OptionValue::remove(const std::string& key) {
  std::erase_if(parts_, [&](const auto& part) { return part.first == key && part.second; });
}

void OptionValue::set(const std::string& key, const std::string& value) {
  for (auto& [name, old] : parts_) {
    if (name != key || !old) continue;
    old = value;
    return;
  }
  parts_.emplace_back(key, value);
}

std::string OptionValue::text() const {
  std::string out;
  for (const auto& [name, value] : parts_) {
    if (!out.empty()) out += ',';
    out += escaped(name);
    if (value) out += "=" + escaped(*value);
  }
  return out;
}

}  // namespace citcat
