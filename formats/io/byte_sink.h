#pragma once
// Where a stream of output bytes goes: a file, the standard output, through a compressor, nowhere.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"

struct ZSTD_CCtx_s;

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

/// Compresses into another sink: one zstd frame with a checksum, made by zstd's own worker threads
/// beside the caller. Interrupted, the frame is not ended: `zstd -d` gives what is there and says
/// that the end is missing.
class ZstdSink final : public ByteSink {
 public:
  /// `level` as zstd -1 ... -19; `workers` threads (0: compress in the caller's thread).
  ZstdSink(std::unique_ptr<ByteSink> target, int level, int workers);
  ~ZstdSink() override;
  void write(std::span<const std::uint8_t> bytes) override;
  void finish() override;

 private:
  void compress(std::span<const std::uint8_t> bytes, bool end);

  std::unique_ptr<ByteSink> target_;
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::uint8_t> buffer_;
};

/// The sink of a file that is not compressed, whatever its name: "-" is the standard output.
std::unique_ptr<ByteSink> open_plain_sink(const std::string& path);

/// The sink a path stands for: "-" the standard output, "*.zst" a compressed file, "" nothing,
/// anything else a plain file.
std::unique_ptr<ByteSink> open_sink(const std::string& path);

}  // namespace citcat
