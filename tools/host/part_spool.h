#pragma once
// What the tools of a part of a run keep for the process that joins the parts, if it is too much
// for memory.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/io/file_descriptor.h"

namespace citcat::tools {

/// A file without a name, which processes that were forked from this one share. Throws IoError.
class PartSpool {
 public:
  struct Piece {
    std::uint64_t offset = 0, size = 0;
  };

  PartSpool();
  /// Appends; returns where.
  std::uint64_t append(std::span<const std::uint8_t> bytes);
  std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t size) const;

 private:
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace citcat::tools
