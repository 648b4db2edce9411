#include <cstdint>
#include <optional>
#include <string>

#include "formats/captures/emulator_log.h"
#include "formats/io/error.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

// The form by the first lines, and then as each of them; the entries of any processor or of one.
CITCAT_FUZZ_TARGET(emulator_log) {
  const auto read = [&](const std::string& form, std::optional<std::uint64_t> processor) {
    try {
      citcat::EmulatorLog log(citcat::fuzz::stream(data, size), form, processor);
      citcat::EmulatorLogEntry entry;
      while (log.next(entry)) {
      }
    } catch (const citcat::FormatError&) {
    } catch (const citcat::UsageError&) {
    }
  };
  for (const std::optional<std::uint64_t> processor : {std::optional<std::uint64_t>(), {0}}) {
    read("", processor);
    for (const citcat::LogForm& form : citcat::log_forms()) read(form.name, processor);
  }
  return 0;
}
