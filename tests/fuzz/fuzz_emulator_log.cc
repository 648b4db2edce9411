#include <algorithm>
#include <string>

#include "formats/captures/emulator_log.h"
#include "formats/io/error.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

// The form by the first lines, and then as each of them.
CITCAT_FUZZ_TARGET(emulator_log) {
  const auto read = [&](const std::string& form) {
    try {
      citcat::EmulatorLog log(citcat::fuzz::stream(data, size), form);
      citcat::EmulatorLogEntry entry;
      while (log.next(entry)) {
      }
    } catch (const citcat::FormatError&) {
    }
  };
  read("");
  for (const citcat::LogForm& form : citcat::log_forms()) read(form.name);
  return 0;
}
