#pragma once
// The plain bytes of a compressed file: Boost.Iostreams' filters, and the checks that they lack.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "formats/io/compression.h"
#include "formats/io/stored_bytes.h"

namespace citcat {

/// A chain of boost::iostreams filters above the stored bytes. Several concatenated members or
/// frames are one stream.
///
/// A file that ends inside a member, frame or block, fails its checksum or is followed by something
/// else throws FormatError. The offset is that of the compressed file: its end where it ends too
/// early; otherwise how far it was read, which is up to two buffers (128 KiB) after the damage.
/// Memory: three buffers of 64 KiB and the decompressor's window, which may have at most 128 MiB
/// with zstd and 100 MiB with xz (the limits of boost::iostreams and the tools themselves).
class Decompression {
 public:
  /// Decompresses `stored`, which must outlive it. `from_beginning` is false when a stored trace is
  /// read from one of its later segments on.
  Decompression(StoredBytes& stored, Compression compression, bool from_beginning);
  ~Decompression();
  Decompression(const Decompression&) = delete;
  Decompression& operator=(const Decompression&) = delete;

  /// From now on a zstd stream that is cut ends there, a stored trace after its last whole
  /// segment; neither is an error.
  void allow_cut();
  /// Fills `out`; returns less only before the end, where it returns 0 from then on.
  std::size_t read(std::span<std::uint8_t> out);

 private:
  struct Chain;
  std::unique_ptr<Chain> chain_;
};

}  // namespace citcat
