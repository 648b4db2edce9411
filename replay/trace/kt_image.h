#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "replay/machine/block_template.h"

namespace citcat {

/// The KT records of a block, complete but for the addresses of what it accesses. They and the
/// places of the addresses follow it in memory, so that an execution needs few lines of the host's
/// cache.
class KtImage {
 public:
  /// Bytes copied at a time: most blocks have fewer.
  static constexpr std::size_t kStep = 64;
  /// Most bytes that write() may write.
  static constexpr std::size_t kMaxRoom = std::size_t{1} << 15;
  struct Deleter {
    void operator()(KtImage* image) const { ::operator delete(image); }
  };
  using Pointer = std::unique_ptr<KtImage, Deleter>;

  /// `offsets`: as in KtOptions. Null where kMaxRoom does not suffice.
  static Pointer make(const BlockTemplate& block, bool offsets);

  /// Bytes of the records.
  std::size_t size() const { return size_; }
  /// The records of one execution. `out` has room for them, rounded up to a multiple of kStep; what
  /// is behind them there may be anything then.
  void write(std::uint8_t* out, const BlockRegisters& registers) const {
    // What is written might be this object, as far as the compiler knows.
    const std::size_t size = size_;
    const PlainHole* const plain = at<PlainHole>(sizeof *this);
    const PlainHole* const plain_end = at<PlainHole>(sizeof *this + plain_);
    const auto* const records = reinterpret_cast<const std::uint8_t*>(plain_end);
    const bool others = others_ != others_end_;
    for (std::size_t i = 0; i < size; i += kStep) std::memcpy(out + i, records + i, kStep);
    for (const PlainHole* h = plain; h != plain_end; ++h) {
      put(out + h->at, h->constant + static_cast<std::uint32_t>(registers.value[h->base]));
    }
    if (others) [[unlikely]]
      write_others(out, registers);
  }

 private:
  /// A place for an address that is a register and a constant, as nearly all are.
  struct PlainHole {
    std::uint32_t constant = 0;
    std::uint16_t at = 0;    ///< in the records
    std::uint16_t base = 0;  ///< index into BlockRegisters::value
  };
  struct Hole {
    AddressFormula address;
    std::uint32_t at = 0;
  };

  KtImage() = default;
  template <class T>
  const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(this) + offset);
  }
  static void put(std::uint8_t* out, std::uint32_t address) { std::memcpy(out, &address, 4); }
  void write_others(std::uint8_t* out, const BlockRegisters& registers) const;

  std::uint32_t size_ = 0;
  std::uint32_t plain_ = 0;                    ///< bytes of plain holes; then come the records
  std::uint32_t others_ = 0, others_end_ = 0;  ///< where the other holes are
};

}  // namespace citcat
