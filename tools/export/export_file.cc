#include "tools/export/export_file.h"

#include <utility>

#include "formats/io/error.h"
#include "tools/host/tool_output.h"

namespace citcat::tools {

ExportFile::ExportFile(ToolOptions& options, const Setup& setup)
    : path_(tool_output(options, setup)), spool_(setup.spool), begins_(setup.begins) {}

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
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kPiece) flush();
}

void ExportFile::write(std::string_view text) {
  write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void ExportFile::flush() {
  if (is_kept_) {
    pieces_.push_back({spool_->append(buffer_), buffer_.size()});
  } else {
    open();
    sink_->write(buffer_);
  }
  buffer_.clear();
}

void ExportFile::finish() {
  flush();
  sink_->finish();
}

}  // namespace citcat::tools
