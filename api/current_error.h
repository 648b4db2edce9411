#pragma once
// Turns exceptions into text, because none may leave a function that C calls.

#include <exception>
#include <new>
#include <string>

namespace citcat {

/// The exception that is being handled, as text. Call it only within a handler.
inline std::string current_error() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace citcat
