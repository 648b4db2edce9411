// A capture of any format, as the commands take it: recognised by its content, looked over, made a
// list of, explained, imported. The first byte chooses a format, or none, the second a processor.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/import/import.h"
#include "capture/inspect/convert.h"
#include "capture/inspect/explain.h"
#include "capture/inspect/lint.h"
#include "events/archive/recording_check.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

namespace {

/// Calls `use`; only citcat's own exceptions are allowed out of it, and not that it is broken.
template <typename Use>
void allow_errors(Use use) {
  try {
    use();
  } catch (const citcat::InternalError&) {
    throw;
  } catch (const citcat::Error&) {
  }
}

citcat::CaptureOptions options_of(std::uint8_t format, std::uint8_t cpu) {
  citcat::CaptureOptions options;
  const auto formats = citcat::capture_formats();
  const std::size_t number = format % (formats.size() + 1);
  if (number != formats.size()) options.format = formats[number].id;
  options.cpu =
      static_cast<citcat::CpuModel>(cpu % (static_cast<unsigned>(citcat::kLastCpuModel) + 1));
  return options;
}

/// What an import leaves is sound, or nothing.
void import(const std::string& path, const citcat::CaptureOptions& capture, bool with_state) {
  const citcat::fuzz::FileInMemory archive;
  citcat::ImportOptions options;
  options.capture = capture;
  if (with_state) {
    options.initial_state.emplace();
    options.initial_state->model = capture.cpu;
  }
  bool imported = false;
  allow_errors([&] {
    citcat::import_capture({path}, options, archive.path());
    imported = true;
  });
  if (!imported) return;
  CITCAT_ASSERT(citcat::check_recording(archive.path()).sound());
}

}  // namespace

CITCAT_FUZZ_TARGET(capture) {
  constexpr std::size_t kChoices = 2;
  if (size < kChoices) return 0;
  const citcat::fuzz::FileInMemory file({data + kChoices, size - kChoices});
  const std::vector<std::string> paths{file.path()};
  const citcat::CaptureOptions options = options_of(data[0], data[1]);
  allow_errors([&] { citcat::detect_capture_format(file.path()); });
  allow_errors([&] { citcat::lint_capture(paths, options); });
  allow_errors([&] { citcat::channel_lines(citcat::explain_channels(paths, options)); });
  allow_errors([&] {
    citcat::convert_capture(paths, options, "record-csv", std::make_unique<citcat::NullSink>());
  });
  import(file.path(), options, (data[1] & 0x80U) != 0);
  return 0;
}
