#pragma once
// One small family of exceptions for bad input and failed I/O. They are thrown where the input is
// read and caught once, in cli/main.cc. Answers (a replay that diverged, a capture with gaps) are
// values and never throw.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace citcat {

/// Base of everything citcat throws on purpose. what() is one line, ready to print.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Input that is not what its format says. Renders as `file:offset: message`; the message states
/// what was expected and what was found. Offsets are bytes from the start of the named stream
/// (after decompression), or line numbers for text formats, as the thrower documents.
class FormatError : public Error {
 public:
  FormatError(const std::string& file, std::uint64_t offset, const std::string& message)
      : Error(file + ":" + std::to_string(offset) + ": " + message) {}
};

/// The operating system refused or a device failed: open, read, write, rename, fork.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The caller asked for something that makes no sense: contradictory or impossible options.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A broken invariant of citcat, or an engine that does not work as citcat needs.
class InternalError : public Error {
 public:
  using Error::Error;
};

/// Checks an invariant of citcat, in release builds too: a trace tool that goes on after a broken
/// invariant writes a wrong trace that looks right.
#define CITCAT_ASSERT(condition)                                                       \
  do {                                                                                 \
    if (!(condition))                                                                  \
      throw ::citcat::InternalError(std::string("broken invariant at " __FILE__ ":") + \
                                    std::to_string(__LINE__) + ": " #condition);       \
  } while (false)

}  // namespace citcat
