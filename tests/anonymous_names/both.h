#pragma once
// What one.cc has too.

namespace citcat {

inline constexpr unsigned kFirst = 1;
struct Unseen {};

}  // namespace citcat
