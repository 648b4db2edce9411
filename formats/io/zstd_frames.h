#pragma once
// Checks by the structure of its frames that a zstd file is complete.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Follows the frames and blocks of RFC 8878, section 3.1, without decompressing them.
/// boost::iostreams::zstd_decompressor accepts a file that was cut anywhere as a whole one, without
/// an error; this does not. Costs a few instructions per block of up to 128 KiB.
class ZstdFrames {
 public:
  /// The next bytes of the file. What is no frame is left for the decompressor to refuse.
  void pass(std::span<const std::uint8_t> bytes);
  /// Whether the file may end here.
  bool at_frame_boundary() const;

 private:
  enum class Part : std::uint8_t {
    magic,
    skippable_size,
    descriptor,
    header,
    block_header,
    checksum,
    unknown
  };

  void expect(Part part, std::size_t bytes);
  void take_field();
  void begin_frame(std::uint64_t magic);
  void read_descriptor(std::uint64_t descriptor);
  void begin_block(std::uint64_t header);
  std::uint64_t field_value() const;

  Part part_ = Part::magic;
  std::array<std::uint8_t, 16> field_{};  ///< the field that is being collected
  std::size_t have_ = 0, wanted_ = 4;     ///< bytes of it
  std::uint64_t skip_ = 0;                ///< bytes of content before it
  bool has_checksum_ = false;
};

}  // namespace citcat
