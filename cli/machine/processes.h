#pragma once
// Work on several processors' recordings side by side, a process for each.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace citcat {

/// `work(0)` to `work(count - 1)`, at most `jobs` of them at a time; with one job in this process.
/// Throws what one of them threw, as Error, when those before it are done. `meanwhile`, where it is
/// not empty, is done here, when the first of them are on their way.
std::vector<std::string> run_side_by_side(std::size_t count, unsigned jobs,
                                          const std::function<std::string(std::size_t)>& work,
                                          const std::function<void()>& meanwhile = {});

}  // namespace citcat
