#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/bus/source.h"

namespace citcat {

/// The kinds of files that `info` and `dump` know.
enum class FileKind : std::uint8_t {
  recording,
  capture,
  memory,
  kt,
  idtrace_trace,   ///< `.trc`
  idtrace_blocks,  ///< `.blk`
  idtrace_counts,  ///< `.cnt`
  unknown
};
/// "recording", "capture", "memory image", "KT trace", "IDtrace trace", "IDtrace blocks", "IDtrace
/// counts", "unknown".
std::string_view file_kind_name(FileKind kind);

struct FoundFile {
  FileKind kind = FileKind::unknown;
  const CaptureFormat* format = nullptr;  ///< of a capture
};

/// Decides by content. KT has no header: what begins with whole KT records and is nothing else is
/// taken for KT; IDtrace's traces have none either, and its counts no structure: they are known by
/// their name, `*.cnt`. Throws IoError when the file cannot be read.
FoundFile find_file_kind(const std::string& name);

}  // namespace citcat
