#pragma once
// Names the option in messages about its value.

#include <string>

#include "formats/io/error.h"

namespace citcat {

/// What `parse` returns. A UsageError that it throws begins with `option` then: "--start: expected
/// ...".
template <class F>
auto for_option(const char* option, F&& parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw UsageError(std::string(option) + ": " + error.what());
  }
}

}  // namespace citcat
