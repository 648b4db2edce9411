#include "tools/export/export_file.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"
#include "tools/host/tool_output.h"

namespace citcat::tools {

ExportFile::ExportFile(ToolOptions& options, const Setup& setup)
    : path_(tool_output(options, setup)), spool_(setup.spool), begins_(setup.begins) {}

ExportFile::~ExportFile() {
  if (is_kept_ || used_ == 0 || buffer_.empty()) return;  // a moved one has no buffer
  try {
    flush();
  } catch (const std::exception&) {
    // Whatever left the file unfinished is told already.
  }
}

ExportFile ExportFile::anew() const {
  ExportFile file(path_);
  file.spool_ = spool_;
  file.begins_ = begins_;
  return file;
}

std::vector<PartSpool::Piece> ExportFile::take_pieces() {
  flush();
  return std::exchange(pieces_, {});
}

void ExportFile::open() {
  if (sink_) return;
  if (path_.empty()) throw UsageError("an exporter needs to=FILE, or `replay -o FILE`");
  sink_ = open_sink(path_);
}

void ExportFile::write(std::span<const std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), room(bytes.size()));
  wrote(bytes.size());
}

void ExportFile::write(std::string_view text) {
  write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void ExportFile::flush() {
  const std::span<const std::uint8_t> bytes{buffer_.data(), used_};
  if (is_kept_) {
    pieces_.push_back({spool_->append(bytes), bytes.size()});
  } else {
    open();
    sink_->write(bytes);
  }
  used_ = 0;
}

void ExportFile::finish() {
  flush();
  sink_->finish();
}

}  // namespace citcat::tools
