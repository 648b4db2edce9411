#pragma once
// Bits of what the replay stores whose values no manual defines - results of one model of a
// processor, undefined flags in images of EFLAGS - and where memory holds them until the bus shows
// them.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>

#include "events/bus_transaction.h"
#include "formats/memory/number_set.h"
#include "replay/machine/memory.h"
#include "replay/verify/transaction_bytes.h"
#include "x86/flag_effects.h"

namespace citcat {

/// All addresses are as captured.
class UndefinedBits {
 public:
  // Flags, as the run goes on.
  /// `reloads`: EFLAGS may have come from an image in memory that the bus has not confirmed.
  void completed(const DecodedInstruction& info, std::uint32_t ecx, bool reloads) {
    flags_.completed(info, ecx);
    if (reloads) flags_.reloaded();
  }
  void completed(FlagEffect effect) { flags_.completed(effect); }
  /// An interrupt or exception is about to store an image of `eflags`, or SYSCALL to leave one in
  /// R11.
  void image_follows(std::uint32_t eflags) { flags_.image_follows(eflags); }
  /// The undefined bits of a store that may be an image of FLAGS, EFLAGS or RFLAGS; `eflags` reads
  /// the register's present value. The upper half of RFLAGS is zeros (Intel SDM vol. 1, 3.4.3.4).
  template <class Eflags>
  std::uint32_t in_image(std::span<const std::uint8_t> bytes, Eflags eflags) {
    const std::optional<std::uint32_t> value = as_flags(bytes);
    if (!value) return 0;
    const std::uint32_t mask = bytes.size() == 2 ? 0xffff : ~0u;
    return flags_.undefined_in_store(*value, [&] { return eflags() & mask; });
  }
  /// False where in_image() gives 0, in a block at whose end EFLAGS is this but for the arithmetic
  /// flags.
  bool may_be_image(std::span<const std::uint8_t> bytes, std::uint32_t eflags) const {
    const std::optional<std::uint32_t> value = as_flags(bytes);
    return value && flags_.may_be_undefined(*value, bytes.size() == 2 ? eflags & 0xffff : eflags);
  }

  // Bytes that have not been on the bus.
  struct Byte {
    std::uint8_t bits = 0;   ///< that no manual defines
    std::uint8_t value = 0;  ///< of the byte as the replay stored it
  };
  /// Whether there is no byte with such bits.
  bool empty() const { return bytes_.empty(); }
  /// The byte was stored, and is not on the bus; `bits` may be 0.
  void stored(PhysAddr a, Byte byte) {
    if (byte.bits != 0 || !bytes_.empty()) note(a, byte);
  }
  void forget_bytes() {
    bytes_.clear();
    lines_ = {};
  }
  /// Some such byte may be in a line of these.
  bool is_near(PhysAddr a, std::uint32_t size) const {
    return !bytes_.empty() &&
           (lines_.contains(line_of(a)) || lines_.contains(line_of(a.plus32(size - 1))));
  }
  /// Null if all its bits are defined.
  const Byte* find(PhysAddr a) const;
  /// MOVS at `now` reads from here.
  void copying(PhysAddr from, Position now) {
    copied_from_ = from;
    copied_at_ = now;
  }
  /// The undefined bits of byte `byte` that MOVS stores: those it had where it was read. Linux
  /// copies the frames of interrupts from one stack to another.
  std::uint8_t copied(std::size_t byte, Position now) const {
    if (copied_at_ != now || bytes_.empty()) return 0;
    const Byte* const source = find(copied_from_.plus32(static_cast<std::uint32_t>(byte)));
    return source != nullptr ? source->bits : std::uint8_t{0};
  }
  /// The byte differs from the captured one, if it does, only in such bits.
  bool may_differ(PhysAddr a, std::uint8_t captured, const Memory& memory) const;
  /// The bus shows the line. A byte of it may have been seen equal before the instruction stored
  /// what is there now.
  void line_agreed(const BusTransaction& t, const Memory& memory) {
    if (!bytes_.empty()) forget(t, memory);
  }

 private:
  static std::optional<std::uint32_t> as_flags(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 8 && bytes.size() != 4 && bytes.size() != 2) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    if (value >> 32 != 0) return std::nullopt;
    return static_cast<std::uint32_t>(value);
  }
  void note(PhysAddr a, Byte byte);
  void forget(const BusTransaction& line, const Memory& memory);

  UndefinedFlagTracker flags_;
  std::unordered_map<std::uint64_t, Byte> bytes_;
  NumberSet lines_;       ///< line_of() where there may be such bytes
  PhysAddr copied_from_;  ///< what the MOVS in progress has read
  std::optional<Position> copied_at_;
};

}  // namespace citcat
