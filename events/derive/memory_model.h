#pragma once
// The contents of memory as the derivation knows them. It is separate from MemoryImage because it
// is used once for each bus transaction, at tens of millions a second: it finds pages through a
// small direct-mapped table, and all data that an access needs is in one line of the processor's
// cache.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/memory_image.h"
#include "formats/io/error.h"

namespace citcat {

/// Last known value of every byte seen on the bus, and roughly when it was last accessed.
class MemoryModel {
 public:
  /// No transaction is larger, and none that keeps to its line crosses one of these.
  static constexpr std::uint32_t kLineBytes = 32;
  static constexpr std::uint32_t kLineWords = kLineBytes / 4;

  /// A word's note: in the highest four bits which of its bytes are known, byte 0 the lowest; below
  /// the epoch of its last access.
  static constexpr unsigned kEpochBits = 28;
  static constexpr std::uint32_t kLastEpoch = (std::uint32_t{1} << kEpochBits) - 1;
  static constexpr std::uint32_t kWholeWord = ~kLastEpoch;

  struct alignas(2 * kLineBytes) Line {
    std::array<std::uint8_t, kLineBytes> value{};
    std::array<std::uint32_t, kLineWords> note{};
  };

  struct Page {
    std::array<Line, kPageSize / kLineBytes> lines{};
    /// The same page of the first-read image, once it has a byte there; owned by the image.
    MemoryImage::Page* image = nullptr;
    /// Epoch of the last access to each byte, where that is kept: see granule_shift.
    std::vector<std::uint32_t> byte_epoch;

    Line& line(std::uint32_t offset) { return lines[offset / kLineBytes]; }
    const Line& line(std::uint32_t offset) const { return lines[offset / kLineBytes]; }
    std::uint8_t value(std::uint32_t offset) const {
      return line(offset).value[offset % kLineBytes];
    }
    bool is_known(std::uint32_t offset) const {
      return (line(offset).note[offset % kLineBytes / 4] >> (kEpochBits + offset % 4) & 1) != 0;
    }
    void set(std::uint32_t offset, std::uint8_t value) {
      line(offset).value[offset % kLineBytes] = value;
      line(offset).note[offset % kLineBytes / 4] |= std::uint32_t{1} << (kEpochBits + offset % 4);
    }
  };

  /// Access times are kept for granules of 1 << granule_shift bytes: 0 for processors with a bus
  /// narrower than 32 bits, 2 for the others. An access to part of a granule leaves its time alone,
  /// so the time is never later than the last access to any byte of the granule.
  explicit MemoryModel(unsigned granule_shift) : words_(granule_shift != 0) {
    CITCAT_ASSERT(granule_shift == 0 || granule_shift == 2);
  }

  /// The page frame numbered `number`, made when missing. Valid for the life of the model.
  Page& page(FrameNumber number) {
    Slot& slot = slots_[number % kSlots];
    if (slot.number == number) [[likely]]
      return *slot.page;
    return find_or_make(number, slot);
  }

  /// Asks the processor's caches for what an access to `address` will need soon.
  void prefetch(PhysAddr address) const {
    const Slot& slot = slots_[address.page() % kSlots];
    if (slot.page == nullptr) return;
    __builtin_prefetch(&slot.page->line(address.offset_in_page()), 1);
  }

  // The accesses that nearly all transactions are, each a view of the bytes it covers. All have
  // holds(): whether all of them are known to be those given; put(): they are now; touch(): they
  // were accessed in an epoch.

  /// Half a line, aligned.
  class LinePart {
   public:
    static constexpr std::uint32_t kBytes = 16;
    static bool fits(std::uint32_t offset, std::uint32_t size) {
      return size == kBytes && offset % kBytes == 0;
    }
    LinePart(Line& line, std::uint32_t offset, std::uint32_t /*size*/)
        : value_(std::span(line.value).subspan(offset % kLineBytes).first<kBytes>()),
          note_(std::span(line.note).subspan(offset % kLineBytes / 4).first<kBytes / 4>()) {}

    bool holds(std::span<const std::uint8_t> bytes) const {
      const std::uint64_t differ =
          (load(value_, 0) ^ load(bytes, 0)) | (load(value_, 8) ^ load(bytes, 8));
      const std::uint32_t known = note_[0] & note_[1] & note_[2] & note_[3];
      return (differ | (~known >> kEpochBits)) == 0;
    }
    void put(std::span<const std::uint8_t> bytes) const {
      std::memcpy(value_.data(), bytes.data(), kBytes);
      for (std::uint32_t& note : note_) note |= kWholeWord;
    }
    /// Marks known bytes as used in this epoch.
    void touch(std::uint32_t epoch) const {
      const std::uint32_t note = kWholeWord | epoch;
      const std::array<std::uint32_t, kBytes / 4> notes{note, note, note, note};
      std::memcpy(note_.data(), notes.data(), sizeof notes);
    }

   private:
    std::span<std::uint8_t, kBytes> value_;
    std::span<std::uint32_t, kBytes / 4> note_;
  };

  /// Bytes of one aligned word of the widest bus.
  class BusWord {
   public:
    static constexpr std::uint32_t kBytes = 8;
    static bool fits(std::uint32_t offset, std::uint32_t size) {
      return offset % kBytes + size <= kBytes;
    }
    BusWord(Line& line, std::uint32_t offset, std::uint32_t size)
        : value_(
              std::span(line.value).subspan(offset % kLineBytes / kBytes * kBytes).first<kBytes>()),
          note_(std::span(line.note).subspan(offset % kLineBytes / kBytes * 2).first<2>()),
          shift_(8 * (offset % kBytes)),
          mask_((size < kBytes ? (std::uint64_t{1} << (8 * size)) - 1 : ~std::uint64_t{0})
                << shift_),
          lanes_(((1U << size) - 1) << offset % kBytes) {}

    bool holds(std::span<const std::uint8_t> bytes) const {
      const std::uint64_t differ = (load(value_, 0) ^ load(bytes, 0) << shift_) & mask_;
      const unsigned known = note_[0] >> kEpochBits | note_[1] >> kEpochBits << 4;
      return (differ | (lanes_ & ~known)) == 0;
    }
    void put(std::span<const std::uint8_t> bytes) const {
      const std::uint64_t value = (load(value_, 0) & ~mask_) | (load(bytes, 0) << shift_ & mask_);
      std::memcpy(value_.data(), &value, sizeof value);
      note_[0] |= lanes_ << kEpochBits;
      note_[1] |= lanes_ >> 4 << kEpochBits;
    }
    void touch(std::uint32_t epoch) const {
      const std::uint32_t note = kWholeWord | epoch;
      note_[0] = (lanes_ & 0xf) == 0xf ? note : note_[0];
      note_[1] = lanes_ >> 4 == 0xf ? note : note_[1];
    }

   private:
    std::span<std::uint8_t, kBytes> value_;
    std::span<std::uint32_t, 2> note_;
    unsigned shift_;
    std::uint64_t mask_;
    unsigned lanes_;  ///< bit i: byte i of the word is covered
  };

  /// Any bytes of one line.
  class LineBytes {
   public:
    LineBytes(Line& line, std::uint32_t offset, std::uint32_t size)
        : line_(line), first_(offset % kLineBytes), size_(size) {}

    bool holds(std::span<const std::uint8_t> bytes) const;
    void put(std::span<const std::uint8_t> bytes) const;
    void touch(std::uint32_t epoch) const;

   private:
    Line& line_;
    std::uint32_t first_, size_;
  };

  /// 16 bytes as the processor takes them at once.
  using Words = std::uint64_t __attribute__((vector_size(16)));
  using Notes = std::uint32_t __attribute__((vector_size(16)));

  /// Any bytes of half a line, whichever operation: nothing here depends on a condition.
  class HalfLine {
   public:
    static constexpr std::uint32_t kBytes = 16;
    /// `cover` has FFh for each byte of the half line that is accessed. Of `bytes` the others may
    /// hold anything.
    HalfLine(Line& line, std::uint32_t offset, Words cover, Words bytes)
        : value_(std::span(line.value).subspan(offset % kLineBytes / kBytes * kBytes)),
          note_(std::span(line.note).subspan(offset % kLineBytes / kBytes * (kBytes / 4))),
          old_value_(load_all<Words>(value_.data())),
          old_note_(load_all<Notes>(note_.data())),
          differ_((old_value_ ^ bytes) & cover),
          whole_(reinterpret_cast<Notes>(reinterpret_cast<Notes>(cover) == ~Notes{})),
          covered_(known_bits(reinterpret_cast<Notes>(cover))) {}

    /// Not zero: a byte is known to be another / is not known.
    Words differ() const { return differ_; }
    Words unknown() const { return reinterpret_cast<Words>(covered_ & ~old_note_); }
    /// The bytes are known to be those given, and were accessed in an epoch.
    void put_and_touch(Notes epoch) const {
      const Words value = old_value_ ^ differ_;
      const Notes note = (old_note_ & ~whole_) | covered_ | (epoch & whole_);
      std::memcpy(value_.data(), &value, sizeof value);
      std::memcpy(note_.data(), &note, sizeof note);
    }

   private:
    /// The bits of each word's note that say which of its bytes are known.
    static Notes known_bits(Notes cover) {
      Notes bits = cover & (Notes{} + 0x80402010U);
      bits |= bits << 8;
      bits |= bits << 16;
      return bits & (Notes{} + kWholeWord);
    }

    std::span<std::uint8_t> value_;
    std::span<std::uint32_t> note_;
    Words old_value_;
    Notes old_note_;
    Words differ_;
    Notes whole_, covered_;
  };
  template <typename Vector>
  static Vector load_all(const void* bytes) {
    Vector vector;
    std::memcpy(&vector, bytes, sizeof vector);
    return vector;
  }

  /// The line of `address`, its page made when missing.
  Line& line(PhysAddr address) { return page(address.page()).line(address.offset_in_page()); }
  /// Those of several, as many as there are addresses; the processor's caches are asked for them.
  void find_lines(std::span<const std::uint32_t> addresses, std::span<Line*> lines);

  /// Whether access times are kept by words, in the notes; otherwise touch_bytes() keeps them.
  bool keeps_words() const { return words_; }
  static void touch_bytes(Page& page, std::uint32_t offset, std::uint32_t size,
                          std::uint32_t epoch) {
    std::fill_n(page.byte_epoch.begin() + offset, size, epoch);
  }
  /// Epoch of the last access that covered the granule of `offset`; 0 when there was none.
  std::uint32_t last_access(const Page& page, std::uint32_t offset) const {
    return words_ ? page.line(offset).note[offset % kLineBytes / 4] & kLastEpoch
                  : page.byte_epoch[offset];
  }

  /// Everything known, as an image.
  MemoryImage snapshot() const;
  /// Forgets all pages.
  void clear();

 private:
  struct Slot {
    static constexpr FrameNumber kNone = ~FrameNumber{0};  ///< no page has this number
    FrameNumber number = kNone;
    Page* page = nullptr;
  };

  static std::uint64_t load(std::span<const std::uint8_t> bytes, std::size_t at) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word;
    std::memcpy(&word, bytes.subspan(at).data(), sizeof word);
    return word;
  }
  Page& find_or_make(FrameNumber number, Slot& slot);

  bool words_;  ///< granules are words, not bytes
  std::unordered_map<FrameNumber, std::unique_ptr<Page>> pages_;
  // 16 MiB of working set without a hash look-up.
  static constexpr std::size_t kSlots = 4096;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

}  // namespace citcat
