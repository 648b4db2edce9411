#pragma once
// Signals beside the pins in a value change dump: facts that a replay knows about the run that the
// pins show.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace citcat {

class ExtraSignals {
 public:
  struct Signal {
    std::string name;   ///< without blanks
    unsigned bits = 0;  ///< 0: a text
  };
  /// A signal has another value from here on.
  struct Change {
    std::uint64_t clock = 0;  ///< sample of the capture
    std::size_t signal = 0;
    std::uint64_t number = 0;  ///< of a signal with bits
    std::string text;          ///< of one without
  };

  virtual ~ExtraSignals() = default;
  virtual std::vector<Signal> signals() const = 0;
  /// The next change, in the order of clocks; false at the end.
  virtual bool next(Change& out) = 0;
};

}  // namespace citcat
