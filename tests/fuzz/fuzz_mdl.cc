// parse() on any text. What is refused is refused at a place of the text, with a caret below it.

#include <algorithm>
#include <cstdint>
#include <string>

#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"
#include "tools/mdl/parser.h"

CITCAT_FUZZ_TARGET(mdl) {
  const citcat::mdl::Source source("text", std::string(data, data + size));
  try {
    const citcat::mdl::Program program = citcat::mdl::parse(source);
    for (const citcat::mdl::Metric& metric : program.metrics) {
      CITCAT_ASSERT(!metric.id.empty() && metric.base);
    }
  } catch (const citcat::mdl::TextError& error) {
    const std::string& excerpt = error.excerpt();
    CITCAT_ASSERT(std::count(excerpt.begin(), excerpt.end(), '\n') == 2 &&
                  excerpt.ends_with("^\n"));
  }
  return 0;
}
