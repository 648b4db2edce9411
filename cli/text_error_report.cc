#include "cli/text_error_report.h"

#include <cstdio>

namespace citcat {

void tell_text_error(const mdl::TextError& error, const Console& console) {
  console.error(error.what());
  std::fputs(error.excerpt().c_str(), stderr);
}

}  // namespace citcat
