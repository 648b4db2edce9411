#pragma once
// Which instructions of a machine capture's ground truth transferred control, told from their bytes
// and from where the next one is: no code of the replay is asked.

#include <cstdint>
#include <string>
#include <vector>

namespace citcat::test {

/// Counts before each instruction of the ground truth: [k] are those of the first k instructions.
struct GoldenCountsOfBranches {
  std::vector<std::uint64_t> branches;  ///< that were taken
  std::vector<std::uint64_t> blocks;    ///< ended, by branches taken or not
};
GoldenCountsOfBranches golden_branches(const std::string& golden_path);

}  // namespace citcat::test
