#include "capture/sample_formats.h"

#include <algorithm>
#include <string_view>

#include "capture/sample_capture.h"
#include "formats/error.h"
#include "formats/sigrok.h"
#include "formats/zip_reader.h"

namespace citcat {
namespace {

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

/// Whether the file is a ZIP file that holds all these members.
bool zip_with(const CaptureProbe& probe, std::initializer_list<const char*> members) {
  if (!begins_with(probe.prefix, "PK\x03\x04")) return false;
  try {
    const ZipReader zip(probe.path);
    return std::all_of(members.begin(), members.end(),
                       [&](const char* member) { return zip.find(member) >= 0; });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

int detect_sigrok(const CaptureProbe& probe) {
  if (zip_with(probe, {"version", "metadata"})) return 100;
  // A cut or damaged session: let its reader say what is wrong.
  return begins_with(probe.prefix, "PK\x03\x04") ? 20 : 0;
}

std::unique_ptr<CaptureReader> open_sigrok_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options) {
  return open_sample_capture("sigrok", paths, options,
                             [](const std::string& path) { return open_sigrok(path); });
}

}  // namespace citcat
