#pragma once
// What a processor read from ports, packed: there may be many millions, most of them from one port and
// each a little behind the last.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "events/position.h"

namespace citcat {

/// A value the processor read from a port, or the part of it that was one transfer: the replay
/// consumes them in order and puts together what one access reads (events/port_transfers.h).
struct IoRead {
  Position position;
  std::uint64_t transaction = 0;
  std::uint32_t value = 0;
  std::uint16_t port = 0;
  std::uint8_t size = 1;  ///< bytes, 1 to 4
  bool position_known = false;
  bool operator==(const IoRead&) const = default;
};

/// A sequence of them. Elements are values: they are changed by set_value() alone. An element takes 3
/// to 32 bytes, where IoRead takes 32; to look one up costs up to kGroup of them to be unpacked.
class IoReads {
 public:
  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = IoRead;
    using difference_type = std::ptrdiff_t;
    using pointer = const IoRead*;
    using reference = const IoRead&;

    const_iterator() = default;
    reference operator*() const { return read_; }
    pointer operator->() const { return &read_; }
    const_iterator& operator++();
    bool operator==(const const_iterator& o) const { return index_ == o.index_; }
    /// Of the element; their number at the end.
    std::size_t index() const { return index_; }

   private:
    friend class IoReads;
    const IoReads* reads_ = nullptr;
    std::size_t index_ = 0;
    std::size_t next_ = 0;  ///< byte at which the element behind this one begins
    IoRead read_;
  };

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const_iterator begin() const { return from(0); }
  const_iterator end() const;
  /// From element `index` on, which may be their number.
  const_iterator from(std::size_t index) const;
  /// `index` must be below size().
  IoRead operator[](std::size_t index) const { return *from(index); }
  IoRead front() const { return (*this)[0]; }
  const IoRead& back() const { return last_; }

  void push_back(const IoRead& read);
  void append(std::span<const IoRead> reads);
  void clear() { *this = {}; }
  /// Keeps the first `count`.
  void truncate(std::size_t count);
  /// Removes the first `count` and returns them.
  std::vector<IoRead> take_first(std::size_t count);
  void set_value(std::size_t index, std::uint32_t value);

  bool operator==(const IoReads& o) const { return size_ == o.size_ && bytes_ == o.bytes_; }

 private:
  /// Elements between two that can be found at once.
  static constexpr std::size_t kGroup = 16;

  void put(std::uint64_t value);
  std::uint64_t get(std::size_t& at) const;
  void unpack(std::size_t& at, bool first, IoRead& read) const;

  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> groups_;  ///< where each begins in `bytes_`
  std::size_t size_ = 0;
  IoRead last_;
};

}  // namespace citcat
