#include "cli/staged_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {
namespace {

/// A name that exists and is neither a file nor a folder cannot be replaced by a file.
bool must_be_staged(const std::string& path) {
  if (path == "-") return true;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

std::string make_temporary_file() {
  std::string name = (std::filesystem::temp_directory_path() / "citcat.XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) {
    throw IoError(name + ": cannot make a temporary file: " + std::strerror(errno));
  }
  ::close(descriptor);
  return name;
}

}  // namespace

bool is_standard_output(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

void require_own_output(const std::string& path, bool json) {
  if (json && is_standard_output(path)) {
    throw UsageError("--json and -o " + path + ": both cannot go to the standard output");
  }
}

StagedOutput::StagedOutput(const std::string& path, Named named) : path_(path) {
  if (is_standard_output(path) && ::isatty(STDOUT_FILENO) == 1) {
    throw UsageError("-o " + path +
                     ": a recording is not text, and the standard output is a "
                     "terminal");
  }
  copied_ = must_be_staged(path);
  if (copied_) {
    staged_.emplace(make_temporary_file());
  } else if (named == Named::at_the_end) {
    staged_.emplace(path + ".unfinished");
  }
}

void StagedOutput::finish() {
  if (!staged_) return;
  if (!copied_) return std::filesystem::rename(staged_->path(), path_);
  std::unique_ptr<ByteSink> out;
  if (path_ == "-") {
    out = std::make_unique<StdoutSink>();
  } else {
    out = std::make_unique<FileSink>(path_);
  }
  InputStream in(staged_->path());
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) out->write(block);
  out->finish();
}

}  // namespace citcat
