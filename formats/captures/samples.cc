#include "formats/captures/samples.h"

#include <cmath>
#include <cstdlib>

namespace citcat {

double parse_sample_rate(const std::string& text) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end == begin || !std::isfinite(number) || number < 0) return 0;
  std::string unit(text, static_cast<std::size_t>(end - begin));
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  if (unit.empty()) return number;
  switch (unit.front()) {
    case 'H':
    case 'h':
      return number;
    case 'k':
    case 'K':
      return number * 1e3;
    case 'm':
    case 'M':
      return number * 1e6;
    case 'g':
    case 'G':
      return number * 1e9;
    default:
      return 0;
  }
}

}  // namespace citcat
