#include "replay/machine/fast/string_loop.h"

#include <algorithm>
#include <cstring>

#include "replay/machine/fast/lazy_alu.h"
#include "replay/machine/string_elements.h"

namespace citcat::fast {

namespace {

constexpr std::uint32_t kDf = 1u << 10;

std::uint64_t element(const std::uint8_t* at, std::uint32_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, size);
  return value;
}

/// Flags of `x` less `y`.
LazyFlags compared(std::uint64_t x, std::uint64_t y, std::uint32_t size) {
  LazyFlags f;
  const auto a = static_cast<std::uint32_t>(x), b = static_cast<std::uint32_t>(y);
  if (size == 1) {
    alu<Operation::cmp, std::uint8_t>(a & 0xff, b & 0xff, f.z, f.s, f.c);
  } else if (size == 2) {
    alu<Operation::cmp, std::uint16_t>(a & 0xffff, b & 0xffff, f.z, f.s, f.c);
  } else if (size == 4) {
    alu<Operation::cmp, std::uint32_t>(a, b, f.z, f.s, f.c);
  } else {
    alu<Operation::cmp, std::uint64_t>(x, y, f.z, f.s, f.c);
  }
  return f;
}

}  // namespace

/// How many elements the operand has before something must be looked at, from here on.
std::uint32_t StringLoop::room(const State& s, const MemoryOperand& operand, Side& side) const {
  const std::uint64_t offset = s.r[static_cast<std::size_t>(operand.base)] & mask_;
  const std::uint64_t base = s.segment_base[operand.segment];
  side.linear = linear_at(base, offset, operand.width);
  const std::uint32_t in_page = side.linear.offset_in_page();
  if (in_page + size_ > kPageSize) return 0;
  const std::uint32_t here = down_ ? in_page / size_ + 1 : (kPageSize - in_page) / size_;
  if (operand.width == AddressWidth::bits64) return here;  // segments have no limits
  return std::min(here, room_in_segment(s, operand, static_cast<std::uint32_t>(offset)));
}

/// The same of the segment alone.
std::uint32_t StringLoop::room_in_segment(const State& s, const MemoryOperand& operand,
                                          std::uint32_t offset) const {
  const std::int64_t limit = std::min<std::int64_t>(
      operand.write ? s.write_limit[operand.segment] : s.read_limit[operand.segment],
      static_cast<std::int64_t>(mask_));
  if (std::int64_t{offset} + size_ - 1 > limit) return 0;
  if (down_) return offset / size_ + 1;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>((limit - offset + 1) / size_, kPageSize));
}

/// Finds what both operands cover, and lowers `count` to that. False where nothing can be made.
bool StringLoop::find_sides(const State& s, std::uint32_t& count) {
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    const MemoryOperand& operand = info_->operands[i];
    Side& side = sides_[i];
    count = std::min(count, room(s, operand, side));
    if (count == 0) return false;
    side.page = find_(side.linear, operand.write);
    if (side.page.host == nullptr) return false;
    // What changes its own code is looked at iteration by iteration.
    if (operand.write && side.page.at.page() == code_frame_.page()) return false;
  }
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    if (info_->operands[i].write) continue;
    if (!memory_.is_defined(lowest_at(sides_[i], count), count * size_)) {
      // At least the next iteration can be made before the first undefined byte.
      if (!memory_.is_defined(sides_[i].page.at, size_)) return false;
      count = 1;
    }
  }
  return true;
}

/// Makes comparisons up to the one that ends the repetition.
std::uint32_t StringLoop::compare(State& s, std::uint32_t count) {
  const bool scans = info_->operand_count == 1;
  const bool while_equal = info_->repeat == RepeatPrefix::rep;
  const auto step = down_ ? -static_cast<std::ptrdiff_t>(size_) : std::ptrdiff_t{size_};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * step;
    const std::uint64_t first = scans ? s.r[kEax] : element(sides_[0].page.host + at, size_);
    const std::uint64_t second = element(sides_[scans ? 0 : 1].page.host + at, size_);
    s.flags = compared(first, second, size_);
    if (info_->is_repeated() && (s.flags.z == 0) != while_equal) {
      ended_ = true;
      return i + 1;
    }
  }
  return count;
}

/// Makes iterations, and returns how many.
std::uint32_t StringLoop::make(State& s, std::uint32_t count) {
  if (compares_strings(*info_)) return compare(s, count);
  const std::uint8_t operation = info_->opcode & 0xfe;
  const std::size_t bytes = std::size_t{count} * size_;
  if (operation == 0xac) {  // LODS
    // A load of 32 bits clears the upper half, which is always zero outside 64-bit mode.
    const std::uint64_t kept = size_ >= 4 ? 0 : ~((std::uint64_t{1} << 8 * size_) - 1);
    const auto last = static_cast<std::ptrdiff_t>(count - 1) * static_cast<std::ptrdiff_t>(size_);
    const std::uint64_t value = element(sides_[0].page.host + (down_ ? -last : last), size_);
    s.r[kEax] = (s.r[kEax] & kept) | value;
    return count;
  }
  Side& to = sides_[operation == 0xa4 ? 1 : 0];
  if (operation != 0xa4) {  // STOS
    fill_elements(lowest(to, count), s.r[kEax], size_, bytes);
  } else if (!down_) {
    move_elements(to.page.host, sides_[0].page.host, size_, bytes);
  } else {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memmove(to.page.host - i * size_, sides_[0].page.host - i * size_, size_);
    }
  }
  const PhysAddr from = lowest_at(sides_[0], count);
  stored_(lowest_at(to, count), static_cast<std::uint32_t>(bytes),
          operation == 0xa4 ? &from : nullptr);
  return count;
}

void StringLoop::pass(State& s, std::uint32_t count) {
  const auto size = static_cast<std::int32_t>(size_);
  const std::int32_t step = down_ ? -size : size;
  const std::array<Operand, 2> first{
      {{sides_[0].linear, sides_[0].page.at}, {sides_[1].linear, sides_[1].page.at}}};
  if (made_) made_(first, count, step);
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    std::uint64_t& pointer = s.r[static_cast<std::size_t>(info_->operands[i].base)];
    const std::uint64_t distance = static_cast<std::uint64_t>(std::int64_t{step} * count);
    pointer = (pointer & ~mask_) | ((pointer + distance) & mask_);
  }
  if (info_->is_repeated()) s.r[kEcx] = (s.r[kEcx] & ~mask_) | ((s.r[kEcx] - count) & mask_);
  iterations_ += count;
}

bool StringLoop::run(State& s, const DecodedInstruction& info, PhysAddr code_frame,
                     std::uint32_t most) {
  info_ = &info;
  code_frame_ = code_frame;
  size_ = info.operand_bytes;
  mask_ = address_mask(info.address_bits);
  down_ = (s.eflags & kDf) != 0;
  ended_ = false;
  iterations_ = 0;
  do {
    // No page has more elements.
    auto count = static_cast<std::uint32_t>(
        info.is_repeated() ? std::min<std::uint64_t>(s.r[kEcx] & mask_, kPageSize) : 1);
    if (count == 0) return true;
    if (iterations_ >= most) return false;
    if (!find_sides(s, count)) return false;
    pass(s, make(s, count));
  } while (info.is_repeated() && !ended_);
  return true;
}

}  // namespace citcat::fast
