#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "replay/machine/memory.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// The bytes of code that begins in one page frame and may go on in another.
class CodeBytes {
 public:
  /// `memory` must outlive the object.
  CodeBytes(const Memory& memory, PhysAddr begin) : memory_(memory), begin_(begin) {}
  /// Where it goes on after the frame it begins in; without, it ends there.
  void set_second_frame(PhysAddr frame) { second_ = frame; }

  /// Bytes before the end of the frame it begins in.
  std::uint32_t in_first_page() const { return kPageSize - begin_.offset_in_page(); }
  bool is_mapped() const {
    return memory_.is_mapped(begin_.page()) && (!second_ || memory_.is_mapped(second_->page()));
  }
  /// What an instruction `offset` bytes into it may consist of. Valid until the next call; the
  /// code must be mapped.
  std::span<const std::uint8_t> at(std::uint32_t offset) {
    const PhysAddr first = physical(offset);
    const std::uint32_t here =
        std::min(kPageSize - first.offset_in_page(), std::uint32_t{kMaxInstructionBytes});
    const std::span<const std::uint8_t> in_page(memory_.host(first), here);
    if (here == kMaxInstructionBytes || offset >= in_first_page() || !second_) return in_page;
    std::copy(in_page.begin(), in_page.end(), joined_.begin());
    std::copy_n(memory_.host(*second_), joined_.size() - here, joined_.begin() + here);
    return joined_;
  }
  bool is_defined(std::uint32_t offset, std::uint32_t size) const {
    const PhysAddr first = physical(offset);
    const std::uint32_t here = std::min(size, kPageSize - first.offset_in_page());
    return memory_.is_defined(first, here) &&
           (here == size || memory_.is_defined(*second_, size - here));
  }

  /// Where the byte at `offset` lies, which is not beyond the frames there are.
  PhysAddr physical(std::uint32_t offset) const {
    return offset < in_first_page() ? begin_.plus32(offset)
                                    : second_->plus32(offset - in_first_page());
  }

 private:
  const Memory& memory_;
  PhysAddr begin_;
  std::optional<PhysAddr> second_;
  std::array<std::uint8_t, kMaxInstructionBytes> joined_{};
};

}  // namespace citcat
