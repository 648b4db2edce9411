#pragma once
// Captures that are made now, by sigrok-cli, and read as they come: `sigrok:DRIVER[:conn=...]
// OPTIONS`.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "formats/io/temporary.h"

namespace citcat {

/// Whether the name is that of an analyser and not of a file.
bool is_live_source(std::string_view name);

/// The arguments of sigrok-cli for a source: its driver, and the options after it, separated by
/// blanks. Throws UsageError where they do not say how long to capture.
std::vector<std::string> live_arguments(const std::string& source);

/// Captures in a folder of their own, which goes with the object.
class LiveCaptures {
 public:
  /// Makes a capture for each name that is a live source, and puts its file in place of the name.
  /// Throws IoError with what sigrok-cli says where it or the device is not there.
  LiveCaptures(std::vector<std::string>& names, const Console& console);
  /// Some capture was made.
  bool any() const { return folder_ != nullptr; }

 private:
  std::unique_ptr<Temporary> folder_;
};

}  // namespace citcat
