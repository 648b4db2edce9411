#include "cli/text_error_report.h"

#include <cstdio>

#include "formats/text/printable_text.h"

namespace citcat {

void tell_text_error(const mdl::TextError& error, const Console& console) {
  console.error(error.what());
  std::fputs(printable_text(error.excerpt(), "\n\t").c_str(), stderr);
}

}  // namespace citcat
