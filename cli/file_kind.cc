#include "cli/file_kind.h"

#include <algorithm>
#include <vector>

#include "formats/container.h"
#include "formats/error.h"
#include "formats/input.h"
#include "formats/kt.h"
#include "formats/sparse_image.h"

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
    return !whole_file && prefix.size() - reader.offset() < kKtMaxRecordBytes;
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
    case FileKind::unknown:
      return "unknown";
  }
  return "unknown";
}

FoundFile find_file_kind(const std::string& path) {
  if (const CaptureFormat* const format = detect_capture_format(path)) {
    return {FileKind::capture, format};
  }
  InputStream input(path);
  const auto peeked = input.peek(kProbeBytes);
  const std::vector<std::uint8_t> prefix(peeked.begin(), peeked.end());
  if (is_container(prefix)) return {FileKind::recording, nullptr};
  if (memory_file_form_of(prefix) != MemoryFileForm::raw) return {FileKind::memory, nullptr};
  if (looks_like_kt(prefix, prefix.size() < kProbeBytes)) return {FileKind::kt, nullptr};
  return {};
}

}  // namespace citcat
