#include "cli/file_kind.h"

#include <filesystem>
#include <vector>

#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "formats/captures/sparse_image.h"
#include "formats/idtrace/block_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/kt/kt.h"

namespace citcat {
namespace {

/// Whether the beginning of a file is whole KT records. The last one may be cut by our own look.
bool looks_like_kt(std::span<const std::uint8_t> prefix, bool whole_file) {
  KtReader reader(prefix, "prefix");
  KtRecord record;
  try {
    while (reader.next(record)) {
    }
  } catch (const FormatError&) {
    const std::size_t most = reader.is_wide() ? kKtMaxWideRecordBytes : kKtMaxRecordBytes;
    return !whole_file && prefix.size() - reader.offset() < most;
  }
  return !prefix.empty();
}

}  // namespace

std::string_view file_kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::recording:
      return "recording";
    case FileKind::capture:
      return "capture";
    case FileKind::memory:
      return "memory image";
    case FileKind::kt:
      return "KT trace";
    case FileKind::idtrace_trace:
      return "IDtrace trace";
    case FileKind::idtrace_blocks:
      return "IDtrace blocks";
    case FileKind::idtrace_counts:
      return "IDtrace counts";
    case FileKind::unknown:
      return "unknown";
  }
  return "unknown";
}

FoundFile find_file_kind(const std::string& name) {
  const std::string path = parse_recording_name(name).path;
  std::vector<std::uint8_t> prefix;
  if (!std::filesystem::is_directory(path)) prefix = read_head(path, kProbeBytes);
  if (is_container(prefix)) return {FileKind::recording, nullptr};
  if (path != name) throw IoError(name + ": cannot open: " + path + " is not a recording");
  if (memory_file_form_of(prefix) == MemoryFileForm::ranges) return {FileKind::memory, nullptr};
  const bool whole = prefix.size() < kProbeBytes;
  if (path.ends_with(".cnt") || path.ends_with(".cnt.zst"))
    return {FileKind::idtrace_counts, nullptr};
  if (looks_like_idtrace_blocks(prefix, whole)) return {FileKind::idtrace_blocks, nullptr};
  if (idtrace_kind_of(prefix, whole)) return {FileKind::idtrace_trace, nullptr};
  // Before captures: some of their formats have as little structure as KT, but no file with a magic
  // number or text goes on being KT for long.
  if (looks_like_kt(prefix, whole)) return {FileKind::kt, nullptr};
  if (const CaptureFormat* const format = detect_capture_format(path)) {
    return {FileKind::capture, format};
  }
  if (memory_file_form_of(prefix) == MemoryFileForm::pages) return {FileKind::memory, nullptr};
  return {};
}

}  // namespace citcat
