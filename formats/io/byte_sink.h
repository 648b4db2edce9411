#pragma once
// Where a stream of output bytes goes: a file, the standard output, through a compressor, nowhere.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"

namespace citcat {

/// Takes bytes in order. finish() makes the result complete and final; a sink destroyed without it
/// leaves what its class says of interrupted output. Errors throw IoError.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  virtual void write(std::span<const std::uint8_t> bytes) = 0;
  virtual void finish() = 0;
};

/// The reader of our output has closed its end, as `| head` does.
class ReaderGone : public IoError {
 public:
  using IoError::IoError;
};

/// Counts and forgets.
class NullSink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> bytes) override { size_ += bytes.size(); }
  void finish() override {}
  std::uint64_t size() const { return size_; }

 private:
  std::uint64_t size_ = 0;
};

/// A file that appears under its name when finish() returns. Abandoned, the old file of that name
/// stays as it was, and what was written stays as `path.partial`.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(const std::string& path) : file_(path, AtomicFile::Unfinished::keep) {}
  void write(std::span<const std::uint8_t> bytes) override { file_.write(bytes); }
  void finish() override { file_.commit(); }

 private:
  AtomicFile file_;
};

/// The standard output. A reader that closes its end early (`| head`) is ReaderGone, for programs
/// that ignore SIGPIPE.
class StdoutSink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> bytes) override;
  void finish() override {}
};

/// The sink of a file that is not compressed, whatever its name: "-" is the standard output.
std::unique_ptr<ByteSink> open_plain_sink(const std::string& path);

/// The sink a path stands for: "-" the standard output, "*.zst" a compressed file, "" nothing,
/// anything else a plain file.
std::unique_ptr<ByteSink> open_sink(const std::string& path);

}  // namespace citcat
