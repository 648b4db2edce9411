#pragma once
// The stores that an emulator made differently from a processor, as its monitor reports them.

#include <cstdint>
#include <string>
#include <vector>

#include "capture/bus/side_values.h"
#include "events/position.h"
#include "events/recording.h"

namespace citcat {

class EmulatorStores {
 public:
  EmulatorStores() = default;
  /// Those of a file of internal values. Throws FormatError with the line number.
  explicit EmulatorStores(const std::string& path);

  bool empty() const { return sorted_.empty(); }
  /// The transactions, ascending, that show single bytes which the emulator has stored: `writes`
  /// are those of a recording that begins at the monitor's count `base`.
  std::vector<std::uint64_t> shown_by(const ExternalWrites& writes, Position base) const;

 private:
  std::vector<EmulatorStore> sorted_;
};

}  // namespace citcat
