#include "capture/sample_formats.h"

#include <algorithm>
#include <string_view>

#include "capture/sample_capture.h"
#include "formats/error.h"
#include "formats/input.h"
#include "formats/ols.h"
#include "formats/sample_csv.h"
#include "formats/sigrok.h"
#include "formats/vcd.h"
#include "formats/zip_reader.h"

namespace citcat {
namespace {

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

std::string_view text_of(const CaptureProbe& probe) {
  return {reinterpret_cast<const char*>(probe.prefix.data()), probe.prefix.size()};
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

int detect_vcd(const CaptureProbe& probe) {
  const std::string_view text = text_of(probe);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '$') return 0;
  for (const char* word : {"$date", "$version", "$timescale", "$comment", "$scope", "$var"})
    if (text.compare(begin, std::string_view(word).size(), word) == 0) return 95;
  return 0;
}

std::unique_ptr<CaptureReader> open_vcd_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options) {
  return open_sample_capture("vcd", paths, options, [](const std::string& path) {
    return open_vcd(std::make_unique<InputStream>(path));
  });
}

int detect_csv(const CaptureProbe& probe) { return rate_sample_csv(probe.prefix); }

std::unique_ptr<CaptureReader> open_csv_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options) {
  return open_sample_capture("csv", paths, options, [](const std::string& path) {
    return open_sample_csv(std::make_unique<InputStream>(path));
  });
}

int detect_ols(const CaptureProbe& probe) {
  const std::string_view text = text_of(probe);
  if (text.empty() || text[0] != ';') return 0;
  const std::string_view head = text.substr(0, 4096);
  const bool settings = head.find(";Rate:") < head.size() || head.find(";Size:") < head.size();
  return settings && head.find(";Channels:") < head.size() ? 95 : 0;
}

std::unique_ptr<CaptureReader> open_ols_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options) {
  return open_sample_capture("ols", paths, options, [](const std::string& path) {
    return open_ols(std::make_unique<InputStream>(path));
  });
}

}  // namespace citcat
