#pragma once
// Passes a failure from a process that works on a part of a run to the process that joins the
// parts, so that the command ends there with the exit code that it has in one process.

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

/// Kinds of failures, as the exit codes distinguish them.
enum class PartFailure : std::uint8_t { bad_input = 'b', usage = 'u', system = 'f' };

inline PartFailure failure_of(const std::exception& error) {
  if (dynamic_cast<const FormatError*>(&error) != nullptr) return PartFailure::bad_input;
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return PartFailure::usage;
  return PartFailure::system;
}

/// Bad input in the words of the process that met it.
class BadInputOfPart : public FormatError {
 public:
  explicit BadInputOfPart(std::string line) : FormatError("", 0, ""), line_(std::move(line)) {}
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  std::string line_;
};

[[noreturn]] inline void throw_of_part(PartFailure failure, const std::string& line) {
  if (failure == PartFailure::bad_input) throw BadInputOfPart(line);
  if (failure == PartFailure::usage) throw UsageError(line);
  throw IoError(line);
}

}  // namespace citcat
