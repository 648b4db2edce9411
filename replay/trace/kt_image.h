#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "replay/machine/executed_block.h"

namespace citcat {

/// The KT records of a block, complete except for the addresses of what it accesses. The records
/// and the places of the addresses follow it in memory, so that an execution needs few lines of the
/// host's cache.
class KtImage final : public BlockNote {
 public:
  /// Bytes copied at a time: most blocks have fewer.
  static constexpr std::size_t kStep = 64;
  /// Most bytes that write() may write.
  static constexpr std::size_t kMaxRoom = std::size_t{1} << 15;
  /// `offsets`: as in KtOptions. Null where kMaxRoom does not suffice.
  static std::unique_ptr<KtImage> make(const ExecutedBlock& block, bool offsets);
  /// What make() allocates is larger than the object.
  static void operator delete(void* image) { ::operator delete(image); }

  /// Bytes of the records.
  std::size_t size() const { return size_; }
  /// The records of one execution, with ExecutedBlock::addresses(). `out` has room for them,
  /// rounded up to a multiple of kStep; what is after them there may be anything then.
  void write(std::uint8_t* out, const LinearAddr* addresses) const {
    // What is written might be this object, as far as the compiler knows.
    const std::size_t size = size_;
    const auto* const holes = at<std::uint16_t>(sizeof *this);
    const std::uint32_t count = holes_;
    const auto* const records = at<std::uint8_t>(records_);
    for (std::size_t i = 0; i < size; i += kStep) std::memcpy(out + i, records + i, kStep);
    for (std::uint32_t i = 0; i < count; ++i) std::memcpy(out + holes[i], &addresses[i].value, 4);
  }

 private:
  KtImage() = default;
  template <class T>
  const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(this) + offset);
  }

  std::uint32_t size_ = 0;
  std::uint32_t holes_ = 0;    ///< places of addresses in the records; they lie after this object
  std::uint32_t records_ = 0;  ///< where the records lie, after them
};

}  // namespace citcat
