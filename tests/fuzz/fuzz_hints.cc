#include <cstddef>
#include <cstdint>
#include <string>

#include "events/hint.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(hints) {
  try {
    const citcat::HintFile file =
        citcat::parse_hints(std::string(reinterpret_cast<const char*>(data), size), "hints");
    // What was read is written as the same hints.
    if (citcat::parse_hints(citcat::hints_text(file), "again").hints != file.hints)
      __builtin_trap();
  } catch (const citcat::Error&) {
  }
  return 0;
}
