#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "replay/block_template.h"

namespace citcat {

/// The KT records of a block, complete but for the addresses of what it accesses.
class KtImage {
 public:
  /// Bytes copied at a time: most blocks have fewer.
  static constexpr std::size_t kStep = 64;

  /// `offsets`: as in KtOptions.
  KtImage(const BlockTemplate& block, bool offsets);

  /// Bytes of the records.
  std::size_t size() const { return size_; }
  /// Bytes that write() writes, the last of them anything.
  std::size_t room() const { return records_.size(); }
  /// The records of one execution; `out` has room() bytes.
  void write(std::uint8_t* out, const BlockRegisters& registers) const {
    const std::uint8_t* const records = records_.data();
    const Offset* const offsets = offsets_.data();
    const std::size_t room = records_.size(), count = offsets_.size();
    for (std::size_t i = 0; i < room; i += kStep) std::memcpy(out + i, records + i, kStep);
    for (std::size_t i = 0; i < count; ++i) {
      const Offset& o = offsets[i];
      put(out, o.at, o.constant + static_cast<std::uint32_t>(registers.value[o.base]));
    }
    for (const Hole& hole : holes_) put(out, hole.at, hole.address(registers));
  }

 private:
  /// An address that is a register and a constant: nearly all are.
  struct Offset {
    std::uint32_t constant = 0;
    std::uint32_t at = 0;  ///< in the records
    std::uint32_t base = BlockRegisters::kZero;
  };
  struct Hole {
    AddressFormula address;
    std::uint32_t at = 0;
  };
  static void put(std::uint8_t* out, std::uint32_t at, std::uint32_t address) {
    std::memcpy(out + at, &address, 4);
  }
  void add_address(const AddressFormula& address);

  std::vector<std::uint8_t> records_;
  std::size_t size_ = 0;
  std::vector<Offset> offsets_;
  std::vector<Hole> holes_;
};

}  // namespace citcat
