#include "capture/inspect/code_order.h"

namespace citcat {
namespace {

/// A jump and what lies in the queue after it: 16 bytes of a 386SX, and five of the jump.
constexpr std::size_t kBytesKept = 24;
/// Code is fetched from the beginning of a double word at most.
constexpr std::uint64_t kFetchAlignment = 4;

}  // namespace

void CodeOrder::add(const BusTransaction& t) {
  if (t.op != BusOp::code_read) return;
  ++fetches_;
  if (next_ && t.address == *next_) {
    ++going_on_;
  } else {
    if (next_ && is_led_to(t.address)) ++led_to_;
    code_.clear();
  }
  for (const std::uint8_t byte : t.bytes()) code_.push_back(byte);
  while (code_.size() > kBytesKept) code_.pop_front();
  next_ = t.address.plus32(t.size);
}

/// Jcc, LOOP, JCXZ, and CALL and JMP to where they say, of 16-bit code.
bool CodeOrder::is_led_to(PhysAddr found) const {
  const auto is = [&](std::uint64_t target) {
    return target >= found.value && target - found.value < kFetchAlignment &&
           (target == found.value || found.value % 2 == 0);
  };
  for (std::size_t i = 0; i + 1 < code_.size(); ++i) {
    const std::uint8_t opcode = byte(i);
    const std::uint64_t here = next_->value - (code_.size() - i);
    const bool is_short = (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb;
    if (is_short &&
        is(here + 2 + static_cast<std::uint64_t>(static_cast<std::int8_t>(byte(i + 1)))))
      return true;
    if (i + 2 >= code_.size()) continue;
    const auto word = static_cast<std::uint16_t>(byte(i + 1) | byte(i + 2) << 8);
    // The segment's base is not known: IP wraps within 64 KiB of it.
    const std::uint64_t near = here + 3 + word;
    if ((opcode == 0xe8 || opcode == 0xe9) && (is(near) || is(near - 0x10000))) return true;
    if (i + 4 >= code_.size()) continue;
    const auto segment = static_cast<std::uint16_t>(byte(i + 3) | byte(i + 4) << 8);
    if ((opcode == 0xea || opcode == 0x9a) && is(segment * std::uint64_t{16} + word)) return true;
  }
  return false;
}

}  // namespace citcat
