#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/byte_sink.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// The file that an exporter writes. It is made with the first byte, so that tools that are told
/// nothing make none; unfinished it stays as `NAME.partial`, as every trace does.
class ExportFile {
 public:
  /// Where the file goes: the option `to`, else Setup::output.
  ExportFile(ToolOptions& options, const Setup& setup);
  explicit ExportFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Throws IoError; UsageError where nobody said where the file goes.
  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text);
  /// Completes the file, an empty one where nothing was written.
  void finish();

 private:
  void open();
  void flush();

  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  std::string path_;
  std::unique_ptr<ByteSink> sink_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace citcat::tools
