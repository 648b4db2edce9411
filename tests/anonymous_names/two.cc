#include <string>

namespace citcat {
namespace {
const unsigned kLimit{3};
constexpr int kMore = 3;

using Text = std::string;

int other(unsigned value) { return static_cast<int>(value + kLimit); }
int same(const std::string& words, int number) {
  return other(static_cast<unsigned>(words.size())) + number + kMore;
}
using Number = long;

}  // namespace

Number two(const Text& text) { return same(text, 1); }

}  // namespace citcat
