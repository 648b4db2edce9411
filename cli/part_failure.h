#pragma once
// Passes a failure from a process that works on a part of a run to the process that joins the
// parts; bad input stays bad input there.

#include <exception>
#include <string>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

inline bool is_bad_input(const std::exception& error) {
  return dynamic_cast<const FormatError*>(&error) != nullptr;
}

/// Bad input in the words of the process that met it.
class BadInputOfPart : public FormatError {
 public:
  explicit BadInputOfPart(std::string line) : FormatError("", 0, ""), line_(std::move(line)) {}
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  std::string line_;
};

[[noreturn]] inline void throw_of_part(bool bad_input, const std::string& line) {
  if (bad_input) throw BadInputOfPart(line);
  throw IoError(line);
}

}  // namespace citcat
