#pragma once

#include <gtest/gtest.h>

#include <string>

#include "replay/session/replayer.h"

namespace citcat {

/// For tests of both ways to execute code.
inline auto both_paths() {
  return testing::Values(ExecutionPath::instructions, ExecutionPath::blocks);
}

inline std::string path_name(const testing::TestParamInfo<ExecutionPath>& path) {
  return path.param == ExecutionPath::blocks ? "ByBlocks" : "ByInstructions";
}

}  // namespace citcat
