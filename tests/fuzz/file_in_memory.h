#pragma once
// Input for readers that take files.

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace citcat::fuzz {

/// A file of the fuzzer's process, gone with the object. In memory: archives are flushed to the
/// device when they are finished. There are never more than a few at a time.
class FileInMemory {
 public:
  /// A name that no file has yet.
  FileInMemory() = default;
  explicit FileInMemory(std::span<const std::uint8_t> bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~FileInMemory() { ::unlink(path_.c_str()); }
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;

  const std::string& path() const { return path_; }

 private:
  inline static int made_ = 0;
  const std::string path_ =
      "/dev/shm/citcat-fuzz-" + std::to_string(::getpid()) + "-" + std::to_string(made_++ % 16);
};

}  // namespace citcat::fuzz
