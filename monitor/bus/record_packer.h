#pragma once
// Records in the form in which they leave the emulator: most of them are a few bytes, because what
// they have in common with those before is left out (docs/formats/capture.md, "Stored records").

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace citcat::monitor {

/// One record, as docs/formats/capture.md has its fields.
struct RecordFields {
  std::uint64_t instructions = 0;
  std::uint32_t iterations = 0;
  std::uint32_t clock = 0;
  std::uint32_t address = 0;
  std::uint32_t what = 0;   ///< the bytes at 20 to 23 of a record, of which that at 21 is 0
  std::uint8_t clocks = 0;  ///< that pass until the next record if nothing is executed meanwhile
};

/// Packs records into chunks. Those of a chunk can be told apart without the chunks before it.
class RecordPacker {
 public:
  RecordPacker();

  /// Adds a record; `bytes` are at most 16. False, with nothing done, where the chunk has no room.
  [[gnu::always_inline]] bool put(const RecordFields& record, std::span<const std::uint8_t> bytes) {
    if (end_ - at_ < kMostBytes) return false;
    if (records_++ == 0) begin(record);
    const std::uint32_t key = record.what | static_cast<std::uint32_t>(bytes.size()) << 8;
    const std::uint64_t done = record.instructions - last_.instructions;
    if (record.instructions != kNotCounted) last_done_ = record.instructions;
    // The clock of one processor goes on with what it executes, and with what it shows.
    const auto clock =
        static_cast<std::uint32_t>(clock_ + done + record.iterations - last_.iterations);
    const unsigned kind = find_kind(key, record.clocks);
    if (clock != record.clock || kind == kNoKind) [[unlikely]] {
      put_whole(record, bytes, key);
      return true;
    }
    clock_ = record.clock + record.clocks;
    std::uint8_t* const control = at_;
    std::uint64_t bits = 0;
    if (kind < kEscape) [[likely]] {
      bits = kind;
      ++at_;
    } else {
      control[0] = kEscape, control[1] = static_cast<std::uint8_t>(kind);
      at_ += 3;
    }
    if (done == 0 && record.iterations == last_.iterations) {
    } else if (record.iterations == 0 && done == 1) {
      bits |= kNext;
    } else if (record.iterations == 0 && done < kFar) {
      bits |= kLater;
      put_number(done);
    } else {
      bits |= kElsewhere;
      put_number(zigzag(static_cast<std::int64_t>(done)));
      put_number(record.iterations);
    }
    last_.instructions = record.instructions;
    last_.iterations = record.iterations;
    std::uint32_t& expected = expected_[kind];
    if (record.address != expected) {
      bits |= kAddress;
      put_number(zigzag(static_cast<std::int32_t>(record.address - expected)));
    }
    expected = record.address + static_cast<std::uint32_t>(bytes.size());
    std::uint8_t* const known = image_.get() + record.address % kImageBytes;
    if (!take(known, bytes)) bits |= kData;
    control[kind < kEscape ? 0 : 2] = static_cast<std::uint8_t>(bits);
    return true;
  }

  /// The chunk, ready to be sent; empty without records. It begins anew with clear().
  std::span<const std::uint8_t> chunk();
  void clear();

 private:
  static constexpr std::size_t kHeaderBytes = 32, kChunkBytes = std::size_t{1} << 18;
  /// The longest records, with the definition of their kind.
  static constexpr std::ptrdiff_t kMostBytes = 72;
  static constexpr std::uint32_t kImageBytes = std::uint32_t{1} << 24;
  static constexpr std::size_t kMostData = 16;
  static constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
  static constexpr std::uint8_t kEscape = 15;
  static constexpr unsigned kKinds = 256, kNoKind = kKinds;
  static constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  /// Bits of a control byte, above the kind.
  enum : unsigned { kNext = 0x10, kLater = 0x20, kElsewhere = 0x30, kAddress = 0x40, kData = 0x80 };

  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  /// Seven bits a byte; the ones below the lowest zero of the first byte say how many follow it.
  void put_number(std::uint64_t value) {
    const auto bits = static_cast<unsigned>(64 - __builtin_clzll(value | 1));
    if (bits > 56) [[unlikely]] {
      *at_ = 0xff;
      std::memcpy(at_ + 1, &value, sizeof value);
      at_ += 9;
      return;
    }
    const unsigned more = (bits - 1) / 7;
    const std::uint64_t word = value << (more + 1) | ((std::uint64_t{1} << more) - 1);
    std::memcpy(at_, &word, sizeof word);
    at_ += more + 1;
  }
  /// Whether these bytes are known. Otherwise they are put down, and known from now on.
  bool take(std::uint8_t* known, std::span<const std::uint8_t> bytes) {
    const auto take_all = [&]<std::size_t kSize>(std::array<std::uint8_t, kSize> room) {
      if (std::memcmp(known, bytes.data(), kSize) == 0) return true;
      std::memcpy(room.data(), bytes.data(), kSize);
      std::memcpy(known, room.data(), kSize);
      std::memcpy(at_, room.data(), kSize);
      at_ += kSize;
      return false;
    };
    if (bytes.size() == 4) return take_all(std::array<std::uint8_t, 4>{});
    if (bytes.size() == 16) return take_all(std::array<std::uint8_t, 16>{});
    bool same = true;
    for (std::size_t n = 0; n < bytes.size(); ++n) same &= known[n] == bytes[n];
    if (same) return true;
    for (const std::uint8_t byte : bytes) *at_++ = *known++ = byte;
    return false;
  }
  static std::size_t slot_of(std::uint32_t key) { return key * 0xb7115c03U >> 24; }
  unsigned find_kind(std::uint32_t key, std::uint8_t clocks) {
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == (key | std::uint64_t{clocks} << 32) ? slot.kind : define(key, clocks);
  }
  unsigned define(std::uint32_t key, std::uint8_t clocks);
  void begin(const RecordFields& first);
  void put_whole(const RecordFields& record, std::span<const std::uint8_t> bytes,
                 std::uint32_t key);
  template <typename T>
  void append(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};  ///< type, size, flags, burst and clocks as one number
    unsigned kind = 0;
  };
  struct Position {
    std::uint64_t instructions = 0;
    std::uint32_t iterations = 0;
  };

  std::unique_ptr<std::uint8_t[]> buffer_;
  std::uint8_t *at_, *end_;
  struct Unmap {
    void operator()(std::uint8_t* image) const;
  };
  /// What has been shown, by address modulo its size.
  std::unique_ptr<std::uint8_t, Unmap> image_;
  Position last_;
  std::uint64_t last_done_ = 0;
  std::uint32_t clock_ = 0;
  std::uint32_t records_ = 0;
  unsigned kinds_ = 0;
  std::array<std::uint32_t, kKinds> expected_{};
  std::array<Slot, 256> slots_{};
};

}  // namespace citcat::monitor
