// Clashes with two.cc where rooms:name-refusal expects it, and nowhere else.
#include <string>

#include "both.h"

namespace citcat {
namespace {

constexpr unsigned kFirst = 1, kLimit = 2;
constexpr const char *kText = "1", *kMore = "2";

using Text = std::string;

int other(int value) { return value + static_cast<int>(kFirst); }

int same(const std::string& text, int value) {
  return other(value) + static_cast<int>(text.size() + kLimit) + (text == kText || text == kMore);
}

using Number = int;

}  // namespace

Number one(const Text& text) { return same(text, 1); }

}  // namespace citcat
