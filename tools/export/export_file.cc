#include "tools/export/export_file.h"

#include "formats/io/error.h"
#include "tools/host/tool_output.h"

namespace citcat::tools {

ExportFile::ExportFile(ToolOptions& options, const Setup& setup)
    : path_(tool_output(options, setup)) {}

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
  open();
  sink_->write(buffer_);
  buffer_.clear();
}

void ExportFile::finish() {
  flush();
  sink_->finish();
}

}  // namespace citcat::tools
