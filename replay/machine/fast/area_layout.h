#pragma once
// How the area of a block is laid out: what is known beforehand, and where addresses go.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/io/error.h"
#include "replay/machine/fast/lowering.h"

namespace citcat::fast {

/// Of one block, instruction by instruction. With Policy::traced the area holds KT records
/// (docs/formats/kt.md); otherwise, where it holds anything, the effective addresses of one
/// instruction after another, as dwords.
class AreaLayout {
 public:
  explicit AreaLayout(Policy policy)
      : records_(policy == Policy::traced || policy == Policy::exact_traced),
        addresses_(policy == Policy::told || policy == Policy::exact_told ||
                   policy == Policy::logged) {}

  /// Where the operation puts its first address: Op::slot.
  std::uint16_t add(const DecodedInstruction& info, LinearAddr linear, std::uint32_t eip,
                    const Lowered& lowered) {
    if (!records_ && !addresses_) return 0;
    static_cast<void>(eip);
    if (records_) add_record(info, linear);
    const std::size_t first = bytes_.size();
    for (unsigned i = 0; i < info.ea_count; ++i) {
      put((lowered.known >> i & 1) != 0 ? lowered.address[i].low32() : 0);
    }
    return static_cast<std::uint16_t>(first + lowered.op.slot);
  }
  std::size_t size() const { return bytes_.size(); }
  /// Rounded up to what is copied at a time.
  std::span<const std::uint8_t> image() {
    const std::size_t size = bytes_.size();
    if (size == 0) return {};
    image_ = bytes_;
    image_.resize((size + kAreaStep - 1) / kAreaStep * kAreaStep);
    return image_;
  }

 private:
  void put(std::uint32_t value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + 4);
    std::memcpy(&bytes_[at], &value, 4);
  }
  void add_record(const DecodedInstruction& info, LinearAddr linear) {
    put(linear.low32());
    const std::size_t at = bytes_.size();
    bytes_.resize(at + ((5 + info.length + 3u) & ~3u) - 4);
    bytes_[at] = static_cast<std::uint8_t>(info.ea_count << 4 | info.length);
    std::memcpy(&bytes_[at + 1], info.bytes.data(), info.length);
  }

  bool records_, addresses_;
  std::vector<std::uint8_t> bytes_, image_;
};

}  // namespace citcat::fast
