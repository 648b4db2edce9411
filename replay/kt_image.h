#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "replay/block_template.h"

namespace citcat {

/// The KT records of a block, complete but for the addresses of what it accesses.
class alignas(kHostLine) KtImage {
 public:
  /// Bytes copied at a time: most blocks have fewer.
  static constexpr std::size_t kStep = 64;

  /// `offsets`: as in KtOptions.
  KtImage(const BlockTemplate& block, bool offsets);

  KtImage() = default;

  /// BlockTemplate::number of the block it was made of.
  std::uint64_t number() const { return number_; }
  /// What write() reads first.
  const void* data() const { return words_.get(); }
  /// Bytes of the records.
  std::size_t size() const { return size_; }
  /// Bytes that write() writes, the last of them anything.
  std::size_t room() const { return room_; }
  /// The records of one execution; `out` has room() bytes.
  void write(std::uint8_t* out, const BlockRegisters& registers) const {
    const std::uint64_t* const offsets = words_.get();
    const std::uint64_t* const records = offsets + offsets_;
    for (std::size_t i = 0; i < room_; i += kStep) std::memcpy(out + i, records + i / 8, kStep);
    for (std::size_t i = 0; i < offsets_; ++i) {
      const std::uint64_t o = offsets[i];
      put(out, o >> 32 & 0xffffff,
          static_cast<std::uint32_t>(o) + static_cast<std::uint32_t>(registers.value[o >> 56]));
    }
    for (const Hole& hole : holes_) put(out, hole.at, hole.address(registers));
  }

 private:
  struct Hole {
    AddressFormula address;
    std::size_t at = 0;  ///< in the records
  };
  static void put(std::uint8_t* out, std::size_t at, std::uint32_t address) {
    std::memcpy(out + at, &address, 4);
  }

  /// Addresses that are a register and a constant, as nearly all are: the constant in bits 0 to 31,
  /// their place in the records in 32 to 55, the index into BlockRegisters::value in 56 to 63. Then
  /// the records.
  std::unique_ptr<std::uint64_t[]> words_;
  std::uint32_t offsets_ = 0;  ///< number of the former
  std::uint32_t size_ = 0, room_ = 0;
  std::vector<Hole> holes_;
  std::uint64_t number_ = BlockTemplate::kUnnumbered;
};

}  // namespace citcat
