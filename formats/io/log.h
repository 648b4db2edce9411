#pragma once
// Log lines that the user asks for with CITCAT_LOG=MODULE:LEVEL[,MODULE:LEVEL...].

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

enum class LogLevel : std::uint8_t {
  off,
  info,   ///< decisions: a few lines a run
  debug,  ///< each step that led to them
};

/// The log of one module. Make one at namespace scope for each module.
class Logger {
 public:
  /// `module` must outlive the object: a literal.
  explicit Logger(const char* module);
  /// Whether this level is on; ask before composing a text.
  bool at(LogLevel level) const;
  /// To the standard error output, as "citcat: [module] text".
  void write(std::string_view text) const;
  const char* module() const { return module_; }

 private:
  const char* module_;
};

/// The level that a setting gives to a module: "LEVEL" for all of them, "MODULE:LEVEL", and several
/// of these with commas between; the last one that fits counts.
LogLevel log_level(std::string_view setting, std::string_view module);

/// Throws UsageError for a setting that names an unknown level, or a module that is not among
/// `modules`.
void check_log_setting(std::string_view setting, const std::vector<std::string>& modules);
/// The names of all loggers of the program, sorted.
std::vector<std::string> log_modules();

}  // namespace citcat
