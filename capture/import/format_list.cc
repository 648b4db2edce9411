// The table of capture formats: one row each, and the choice among them.

#include <algorithm>
#include <filesystem>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/byu_capture.h"
#include "capture/import/machine_records.h"
#include "capture/import/moo_capture.h"
#include "capture/import/native.h"
#include "capture/import/processor_capture.h"
#include "capture/import/record_csv.h"
#include "capture/import/sample_formats.h"
#include "capture/import/unknown_file.h"
#include "events/archive/container.h"
#include "formats/captures/table_kind.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

const CaptureFormat kRecordFormats[] = {
    {"native", "citcat's own capture format", detect_native, open_native_capture},
    {"record-csv", "bus records as comma-separated text", detect_record_csv, open_record_csv},
    {"machine", "bus records of a virtual bus monitor (40 bytes each)", detect_machine_records,
     open_machine_records},
    {"machine-smp", "the same of several processors; machine-smp:P is the share of one",
     detect_processor_records, open_processor_records},
    {"moo", "single-step tests of real processors (MOO), each test a segment", detect_moo,
     open_moo_capture},
};
/// These come after the formats of pin levels.
const CaptureFormat kByuFormats[] = {
    {"byu", "BYU address trace, 12-byte records (v1.0, v1.1)", detect_byu, open_byu_capture},
    {"byu-pentium", "BYU address trace, 6-byte Pentium records", detect_byu_pentium,
     open_byu_pentium_capture},
};

/// File name without folders and without the suffix of a compression.
std::string bare_name(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  const std::string suffix = name.extension().string();
  return suffix == ".gz" || suffix == ".xz" || suffix == ".zst" ? name.stem().string()
                                                                : name.string();
}

std::string format_names() {
  std::string names;
  for (const CaptureFormat& format : capture_formats())
    names += (names.empty() ? "" : ", ") + std::string(format.id);
  const std::size_t last = names.rfind(", ");
  return names.replace(last, 2, " or ");
}

}  // namespace

std::span<const CaptureFormat> capture_formats() {
  static const std::vector<CaptureFormat> kAll = [] {
    std::vector<CaptureFormat> all(std::begin(kRecordFormats), std::end(kRecordFormats));
    const auto samples = sample_formats();
    all.insert(all.end(), samples.begin(), samples.end());
    all.insert(all.end(), std::begin(kByuFormats), std::end(kByuFormats));
    return all;
  }();
  return kAll;
}

const CaptureFormat* find_capture_format(std::string_view id) {
  if (id == "csv") id = "samples-csv";
  // After a colon is what describes the columns, or the processor whose share is read.
  for (const std::string_view with : {"columns", "machine-smp", "native"}) {
    if (id.starts_with(with) && id.substr(with.size()).starts_with(':')) id = with;
  }
  const auto formats = capture_formats();
  const auto it = std::find_if(formats.begin(), formats.end(),
                               [&](const CaptureFormat& format) { return format.id == id; });
  return it == formats.end() ? nullptr : &*it;
}

const CaptureFormat* detect_capture_format(const std::string& path) {
  const std::string name = bare_name(path);
  CaptureProbe probe;
  probe.name = name;
  probe.path = path;
  std::error_code ignored;
  probe.is_directory = std::filesystem::is_directory(path, ignored);
  std::vector<std::uint8_t> prefix;
  if (!probe.is_directory) {
    const auto size = std::filesystem::file_size(path, ignored);
    if (!ignored) probe.file_bytes = size;
    prefix = read_head(path, kProbeBytes);
    probe.prefix = prefix;
    const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
    if (text.starts_with(kByteOrderMark)) {
      probe.prefix = probe.prefix.subspan(kByteOrderMark.size());
    }
  }
  const CaptureFormat* best = nullptr;
  int confidence = 0;
  for (const CaptureFormat& format : capture_formats()) {
    const int found = format.detect(probe);
    if (found <= confidence) continue;
    best = &format;
    confidence = found;
  }
  return best;
}

std::string what_was_found(const std::string& path) {
  if (std::filesystem::is_directory(path)) return "a folder without one";
  const std::vector<std::uint8_t> head = read_head(path, kProbeBytes);
  if (head.empty()) return "an empty file";
  if (is_container(head)) return "a citcat recording";
  const std::string complaint = complaint_of_table(head);
  if (complaint.empty()) return "a file of another kind";
  return "a table that is not understood: " + complaint;
}

const CaptureFormat& capture_format_of(const std::string& path, const CaptureOptions& options) {
  if (!options.format.empty()) {
    if (const CaptureFormat* const named = find_capture_format(options.format)) return *named;
    throw UsageError("--format: expected " + format_names() + ", found " + options.format);
  }
  if (const CaptureFormat* const found = detect_capture_format(path)) return *found;
  throw FormatError(path, 0,
                    "expected a capture, found " + what_was_found(path) +
                        " (`citcat import --list-formats` lists the formats, --format names one)");
}

std::unique_ptr<CaptureReader> open_capture(const std::vector<std::string>& paths,
                                            const CaptureOptions& options) {
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat& format = capture_format_of(paths.front(), options);
  if (format.open != nullptr) return format.open(paths, options);
  return open_capture_with_cycles(format_in_full(format.id, options), paths, options, nullptr);
}

}  // namespace citcat
