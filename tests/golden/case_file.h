#pragma once
// A golden case: a program of a few instructions, what came from outside while it ran, and the
// trace that must come of it, all in one file to be read. README.md beside this file has the
// grammar.

#include <filesystem>
#include <string>

#include "events/recording.h"

namespace citcat::testing {

struct CaseFile {
  Recording recording;
  std::string given;   ///< everything up to and including the line "expect"
  std::string expect;  ///< everything after it
};

/// Throws FormatError, with the line's number as the offset.
CaseFile load_case(const std::filesystem::path& path);

}  // namespace citcat::testing
