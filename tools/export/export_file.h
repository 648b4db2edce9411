#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/byte_sink.h"
#include "tools/host/part_spool.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// The file that an exporter writes. It is created with the first byte, so that tools that receive
/// nothing create none; an unfinished file stays as `NAME.partial`, as every trace does, with
/// everything that was written.
class ExportFile {
 public:
  ~ExportFile();
  ExportFile(ExportFile&&) = default;
  ExportFile& operator=(ExportFile&&) = default;
  /// Where the file goes: the option `to`, else Setup::output.
  ExportFile(ToolOptions& options, const Setup& setup);
  explicit ExportFile(std::string path) : path_(std::move(path)) {}
  /// Another one of that name, with nothing written.
  ExportFile anew() const;

  const std::string& path() const { return path_; }
  /// True for a part of the run: the output is kept for the process that joins the parts.
  bool is_kept() const { return is_kept_; }
  void keep(bool kept) { is_kept_ = kept; }
  /// Where the output of a part is kept; null for a whole run.
  const std::shared_ptr<PartSpool>& spool() const { return spool_; }
  /// Nothing of the run comes before this part.
  bool begins() const { return begins_; }
  /// Where the spool has what was written.
  std::vector<PartSpool::Piece> take_pieces();
  /// Throws IoError; UsageError where nobody said where the file goes.
  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text);
  /// Room for so many bytes. wrote() says how many of them were filled: what is formatted in place
  /// need not be copied.
  std::uint8_t* room(std::size_t most) {
    if (buffer_.size() < kPiece + most) buffer_.resize(kPiece + most);
    return buffer_.data() + used_;
  }
  void wrote(std::size_t count) {
    used_ += count;
    if (used_ >= kPiece) flush();
  }
  /// Completes the file, an empty one where nothing was written.
  void finish();

 private:
  void open();
  void flush();

  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  std::string path_;
  std::shared_ptr<PartSpool> spool_;
  bool is_kept_ = false;
  bool begins_ = true;
  std::vector<PartSpool::Piece> pieces_;
  std::unique_ptr<ByteSink> sink_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;  ///< bytes of it
};

}  // namespace citcat::tools
