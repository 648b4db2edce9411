#include "capture/import/sample_formats.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "capture/import/sample_capture.h"
#include "formats/captures/columns.h"
#include "formats/captures/dsview.h"
#include "formats/captures/hp_listing.h"
#include "formats/captures/lac.h"
#include "formats/captures/logic2.h"
#include "formats/captures/ols.h"
#include "formats/captures/saleae.h"
#include "formats/captures/sample_csv.h"
#include "formats/captures/sigrok.h"
#include "formats/captures/table_kind.h"
#include "formats/captures/vcd.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/once_input.h"
#include "formats/io/zip_reader.h"

namespace citcat {
namespace {

using Paths = std::vector<std::string>;

constexpr std::string_view kColumnsFormat = "columns:";

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

/// Shorter names first, so that digital_2 comes before digital_10.
bool by_number(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// Files of a directory with this extension (lower case), in the order of their numbers.
Paths files_in(const std::string& directory, std::string_view extension) {
  Paths files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::string found = entry.path().extension().string();
    std::transform(found.begin(), found.end(), found.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (entry.is_regular_file() && found == extension) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end(), by_number);
  return files;
}

/// Directories stand for the files in them.
Paths expanded(const Paths& paths, std::string_view extension) {
  Paths all;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      all.push_back(path);
      continue;
    }
    for (std::string& file : files_in(path, extension)) all.push_back(std::move(file));
  }
  return all;
}

Paths hp_label_files(const Paths& paths) {
  Paths files = expanded(paths, ".txt");
  std::erase_if(files, [](const std::string& file) {
    return !is_hp_label_file(std::filesystem::path(file).filename().string());
  });
  return files;
}

std::unique_ptr<SampleSource> open_saleae_files(const Paths& paths) {
  std::vector<SaleaeChannel> channels;
  for (const std::string& path : paths) {
    std::string name = std::filesystem::path(path).stem().string();
    constexpr std::string_view kUnnamed = "digital_";
    if (name.compare(0, kUnnamed.size(), kUnnamed) == 0) name.erase(0, kUnnamed.size());
    channels.push_back({name, std::make_unique<InputStream>(path)});
  }
  return open_saleae(std::move(channels));
}

std::unique_ptr<SampleSource> open_hp_files(const Paths& paths) {
  std::vector<HpLabel> labels;
  for (const std::string& path : paths) labels.push_back({std::make_unique<InputStream>(path)});
  return open_hp_listing(std::move(labels));
}

int detect_sigrok(const CaptureProbe& probe) {
  if (zip_with(probe, {"version", "metadata"})) return 100;
  // A cut or damaged session: let its reader say what is wrong.
  return begins_with(probe.prefix, "PK\x03\x04") ? 20 : 0;
}

int detect_dsview(const CaptureProbe& probe) {
  return zip_with(probe, {"header", "session"}) || zip_with(probe, {"header", "L-0/0"}) ||
                 zip_with(probe, {"header", "data"})
             ? 100
             : 0;
}

int detect_vcd(const CaptureProbe& probe) {
  const std::string_view text = text_of(probe);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '$') return 0;
  for (const char* word : {"$date", "$version", "$timescale", "$comment", "$scope", "$var"})
    if (text.compare(begin, std::string_view(word).size(), word) == 0) return 95;
  return 0;
}

int detect_csv(const CaptureProbe& probe) { return rate_sample_csv(probe.prefix); }

int detect_ols(const CaptureProbe& probe) {
  const std::string_view text = text_of(probe);
  if (text.empty() || text[0] != ';') return 0;
  const std::string_view head = text.substr(0, 4096);
  const bool settings = head.find(";Rate:") < head.size() || head.find(";Size:") < head.size();
  return settings && head.find(";Channels:") < head.size() ? 95 : 0;
}

int detect_saleae(const CaptureProbe& probe) {
  if (!probe.is_directory) return is_saleae(probe.prefix) ? 100 : 0;
  const Paths files = files_in(probe.path, ".bin");
  if (files.empty()) return 0;
  InputStream first(files[0]);
  return is_saleae(first.peek(16)) ? 100 : 0;
}

int detect_lac(const CaptureProbe& probe) { return is_lac(probe.prefix) ? 95 : 0; }

int detect_sal(const CaptureProbe& probe) { return zip_with(probe, {"meta.json"}) ? 90 : 0; }

int detect_hp_listing(const CaptureProbe& probe) {
  return probe.is_directory && !hp_label_files({probe.path}).empty() ? 60 : 0;
}

struct SampleFormat {
  std::string_view id, description;
  int (*detect)(const CaptureProbe& probe);
  /// For `columns`, the description says how (described_columns()).
  std::function<std::unique_ptr<SampleSource>(const Paths& paths)> open;
  /// The files of the channels, if each has its own; nullptr: every path is a segment.
  Paths (*channel_files)(const Paths& paths) = nullptr;
};

/// Opens a format whose capture is one file.
template <std::unique_ptr<SampleSource> (*kOpen)(std::unique_ptr<InputStream>)>
std::unique_ptr<SampleSource> open_file(const Paths& paths) {
  return kOpen(std::make_unique<InputStream>(paths[0]));
}

const SampleFormat kSampleFormats[] = {
    {"sigrok", "sigrok session (.sr), versions 1 and 2", detect_sigrok,
     [](const Paths& paths) { return open_sigrok(paths[0]); }},
    {"dsview", "DSView capture (.dsl), versions 1 to 3", detect_dsview,
     [](const Paths& paths) { return open_dsview(paths[0]); }},
    {"saleae", "Saleae Logic 2 binary export, a file for each channel (or their folder)",
     detect_saleae, open_saleae_files, [](const Paths& paths) { return expanded(paths, ".bin"); }},
    {"hp-listing", "HP/Agilent 16500 ASCII listing: a folder with a file for each label",
     detect_hp_listing, open_hp_files, hp_label_files},
    {"lac", "LogicAnalyzer for the Raspberry Pi Pico (.lac)", detect_lac, open_file<open_lac>},
    // An error of its reader says how to export what Logic 2 keeps for itself.
    {"sal", "Saleae Logic 2's own captures, versions 1 and 3", detect_sal,
     [](const Paths& paths) { return open_logic2(paths[0]); }},
    {"columns",
     "text of a sniffer, a line for each sample: columns:FILE, where FILE describes them",
     [](const CaptureProbe&) { return 0; }, nullptr},
    {"vcd", "value change dump (IEEE 1364)", detect_vcd, open_file<open_vcd>},
    {"ols", "Logic Sniffer client file (OLS, SUMP)", detect_ols, open_file<open_ols>},
    {"samples-csv", "text table: samples of libsigrok, DSView, Saleae, or any listing of states",
     detect_csv, open_file<open_sample_csv>},
};

/// "columns:FILE": FILE describes the columns.
SampleFormat described_columns(std::string_view format) {
  const std::string path(format.substr(kColumnsFormat.size()));
  InputStream input(path);
  std::string text;
  constexpr std::size_t kMostText = 1 << 20;
  for (auto block = input.next_block(); !block.empty(); block = input.next_block()) {
    if (text.size() + block.size() > kMostText)
      throw FormatError(path, 0, "expected a description of at most 1 MiB");
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
  }
  return {"columns", {}, nullptr, [columns = parse_text_columns(text, path)](const Paths& paths) {
            return open_text_columns(std::make_unique<InputStream>(paths[0]), columns);
          }};
}

std::optional<SampleFormat> find_sample_format(std::string_view id) {
  if (id.starts_with(kColumnsFormat)) return described_columns(id);
  const auto it = std::find_if(std::begin(kSampleFormats), std::end(kSampleFormats),
                               [&](const SampleFormat& format) { return format.id == id; });
  if (it == std::end(kSampleFormats) || it->open == nullptr) return std::nullopt;
  return *it;
}

/// Samples are read more than once: to hash the file, to look for lines that never move, to decode.
void make_all_rereadable(const Paths& paths) {
  for (const std::string& path : paths) make_rereadable(path);
}

}  // namespace

std::span<const CaptureFormat> sample_formats() {
  static const std::vector<CaptureFormat> kRows = [] {
    std::vector<CaptureFormat> rows;
    for (const SampleFormat& f : kSampleFormats) rows.push_back({f.id, f.description, f.detect});
    return rows;
  }();
  return kRows;
}

std::string format_in_full(std::string_view id, const CaptureOptions& options) {
  return options.format.starts_with(kColumnsFormat) ? options.format : std::string(id);
}

std::unique_ptr<SampleSource> open_samples(std::string_view format, const Paths& paths) {
  const std::optional<SampleFormat> found = find_sample_format(format);
  if (!found || paths.empty()) return nullptr;
  make_all_rereadable(paths);
  return found->open(found->channel_files != nullptr ? found->channel_files(paths) : paths);
}

std::unique_ptr<CaptureReader> open_capture_with_cycles(
    std::string_view format, const Paths& paths, const CaptureOptions& options,
    std::function<void(const PinCycle&)> on_cycle) {
  const std::optional<SampleFormat> found = find_sample_format(format);
  if (format == "columns")
    throw UsageError("--format columns:FILE: FILE describes the columns (docs/formats/columns.md)");
  if (!found) throw UsageError("'" + std::string(format) + "' is not a format of pin levels");
  make_all_rereadable(paths);
  std::vector<Paths> segments;
  if (found->channel_files != nullptr) {
    segments.push_back(found->channel_files(paths));
    if (segments[0].empty())
      throw FormatError(paths.empty() ? "" : paths[0], 0, "expected files of channels, found none");
  } else {
    for (const std::string& path : paths) segments.push_back({path});
  }
  return open_sample_capture(std::string(found->id), std::move(segments), options, found->open,
                             std::move(on_cycle));
}

}  // namespace citcat
