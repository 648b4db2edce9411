#include "formats/kt/trace_sink.h"

#include "formats/kt/kt_store.h"
#include "formats/kt/kt_zstd.h"

namespace citcat {

TraceSink* as_trace_sink(ByteSink& sink) { return dynamic_cast<TraceSink*>(&sink); }

bool has_trace_ending(const std::string& path) {
  return path.ends_with(".kt") || path.ends_with(".kt.zst") || path.ends_with(".ktz");
}

std::unique_ptr<ByteSink> open_trace_sink(const std::string& path) {
  if (path.ends_with(".ktz")) {
    return std::make_unique<StoredKtSink>(std::make_unique<FileSink>(path));
  }
  if (path.ends_with(".kt.zst")) {
    return std::make_unique<SeekableKtSink>(std::make_unique<FileSink>(path));
  }
  return open_sink(path);
}

}  // namespace citcat
