#pragma once
// Sequences of events, packed: there may be many millions, and each differs little from the one
// before. An archive has another form of them (events/archive/recording_codec.h).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace citcat {

/// Receives packed events: each number takes as many bytes as it needs.
class PackedWriter {
 public:
  explicit PackedWriter(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  void byte(std::uint8_t value) { bytes_.push_back(value); }
  /// The low `count` bytes of `value`.
  void fixed(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) byte(static_cast<std::uint8_t>(value >> 8 * i));
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  /// The difference of `value` and `before`, modulo 2^64; a small one, up or down, takes one byte.
  void difference(std::uint64_t value, std::uint64_t before) {
    const std::uint64_t by = value - before;
    varint(by << 1 ^ (by >> 63 != 0 ? ~std::uint64_t{0} : 0));
  }
  void bytes(std::span<const std::uint8_t> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }

 private:
  std::vector<std::uint8_t>& bytes_;
};

/// Reads the bytes of a PackedWriter. They come from this program, so nothing is checked.
class PackedReader {
 public:
  PackedReader(const std::vector<std::uint8_t>& bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  std::size_t at() const { return at_; }
  std::uint8_t byte() { return bytes_[at_++]; }
  std::uint64_t fixed(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= std::uint64_t{byte()} << 8 * i;
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
  }
  std::uint64_t difference(std::uint64_t before) {
    const std::uint64_t coded = varint();
    return before + (coded >> 1 ^ ((coded & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  std::span<const std::uint8_t> bytes(std::size_t count) {
    at_ += count;
    return std::span(bytes_).subspan(at_ - count, count);
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_;
};

/// A number for each state of a sequence of events. Two states with the same number differ only in
/// events that were appended.
class PackedGeneration {
 public:
  PackedGeneration() : number_(next()) {}
  PackedGeneration(const PackedGeneration&) : number_(next()) {}
  PackedGeneration(PackedGeneration&& o) noexcept : number_(std::exchange(o.number_, next())) {}
  PackedGeneration& operator=(const PackedGeneration&) {
    number_ = next();
    return *this;
  }
  PackedGeneration& operator=(PackedGeneration&& o) noexcept {
    number_ = std::exchange(o.number_, next());
    return *this;
  }
  void renew() { number_ = next(); }
  std::uint64_t number() const { return number_; }

 private:
  static std::uint64_t next() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }

  std::uint64_t number_;
};

/// A sequence of events, packed by `Codec`, which has `Event`, `pack(event, before, writer)` and
/// `unpack(reader, event)`. `before`, and `event` when unpack() is called, is the previous event,
/// or a default one. Elements are values. To look one up, up to kGroup elements are unpacked; to
/// change one that is not the last, all are.
template <class Codec>
class PackedEvents {
 public:
  using Event = typename Codec::Event;

  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using pointer = const Event*;
    using reference = const Event&;

    const_iterator() = default;
    reference operator*() const { return event_; }
    pointer operator->() const { return &event_; }
    const_iterator& operator++() {
      if (++index_ >= events_->size_) return *this;
      if (next_ == kNotPacked) return *this = events_->from(index_);  // appended meanwhile
      events_->unpack(next_, index_, event_);
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& o) const { return index_ == o.index_; }
    /// The element's index; at the end, the number of elements.
    std::size_t index() const { return index_; }

   private:
    friend class PackedEvents;
    const PackedEvents* events_ = nullptr;
    std::size_t index_ = 0;
    std::size_t next_ = 0;  ///< byte at which the element after this one begins, or kNotPacked
    Event event_;
  };

  PackedEvents() = default;
  explicit PackedEvents(std::span<const Event> events) { append(events); }
  PackedEvents(std::initializer_list<Event> events) { append(events); }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// Bytes that the elements take in memory, without the last one.
  std::size_t stored_bytes() const { return bytes_.size() + groups_.size() * sizeof(std::size_t); }
  const_iterator begin() const { return from(0); }
  const_iterator end() const { return from(size_); }
  /// Begins at element `index`, which may be the number of elements.
  const_iterator from(std::size_t index) const {
    const_iterator i;
    i.events_ = this;
    i.index_ = index;
    if (index >= size_) return i;
    const bool packed = index + 1 < size_;
    if (packed) i.next_ = groups_[index / kGroup];
    for (std::size_t n = packed ? index - index % kGroup : index; n <= index; ++n) {
      unpack(i.next_, n, i.event_);
    }
    return i;
  }
  /// `index` must be below size().
  Event operator[](std::size_t index) const { return *from(index); }
  Event front() const { return (*this)[0]; }
  const Event& back() const { return last_; }

  void push_back(Event event) {
    if (size_ > 0) pack_last();
    last_ = std::move(event);
    ++size_;
  }
  /// Calls `change` with the last element, which may change it. There must be one.
  template <class Change>
  void change_back(Change change) {
    generation_.renew();
    change(last_);
  }
  void append(std::span<const Event> events) {
    for (const Event& event : events) push_back(event);
  }
  void clear() { *this = {}; }
  /// Keeps the first `count` elements.
  void truncate(std::size_t count) {
    if (count < size_)
      rebuild([count](std::size_t i, auto& keep, const Event& e) {
        if (i < count) keep(e);
      });
  }
  /// Removes and returns the first `count` elements.
  std::vector<Event> take_first(std::size_t count) {
    std::vector<Event> taken;
    rebuild([&](std::size_t i, auto& keep, const Event& e) {
      i < count ? taken.push_back(e) : keep(e);
    });
    return taken;
  }
  void replace(std::size_t index, const Event& event) {
    rebuild([&](std::size_t i, auto& keep, const Event& e) { keep(i == index ? event : e); });
  }
  /// Inserts before element `index`, or at the end.
  void insert(std::size_t index, const Event& event) {
    if (index >= size_) return push_back(event);
    rebuild([&](std::size_t i, auto& keep, const Event& e) {
      if (i == index) keep(event);
      keep(e);
    });
  }
  void erase(std::size_t index) {
    rebuild([index](std::size_t i, auto& keep, const Event& e) {
      if (i != index) keep(e);
    });
  }
  /// Calls `change` with each element in order, which may change it.
  template <class Change>
  void change_each(Change change) {
    rebuild([&](std::size_t, auto& keep, Event e) {
      change(e);
      keep(e);
    });
  }

  bool operator==(const PackedEvents& o) const {
    return size_ == o.size_ && bytes_ == o.bytes_ && last_ == o.last_;
  }
  /// A new number after every change except an append.
  std::uint64_t generation() const { return generation_.number(); }

 private:
  /// Elements between two that can be found at once.
  static constexpr std::size_t kGroup = 16;
  static constexpr std::size_t kNotPacked = ~std::size_t{0};

  /// `event` is the element before, and becomes number `index`, which begins at `at`; `at` becomes
  /// its end, or kNotPacked for the last one.
  void unpack(std::size_t& at, std::size_t index, Event& event) const {
    if (index + 1 == size_) {
      event = last_;
      at = kNotPacked;
      return;
    }
    if (index % kGroup == 0) event = Event{};
    PackedReader in(bytes_, at);
    Codec::unpack(in, event);
    at = in.at();
  }
  /// The last element is packed when the next one comes: until then it may grow.
  void pack_last() {
    static const Event none{};
    const bool first = (size_ - 1) % kGroup == 0;
    if (first) groups_.push_back(bytes_.size());
    PackedWriter out(bytes_);
    Codec::pack(last_, first ? none : std::as_const(before_last_), out);
    before_last_ = std::move(last_);
  }
  /// Makes a new sequence: `choose` keeps an element, changed or not, or drops it.
  template <class Choose>
  void rebuild(Choose choose) {
    PackedEvents made;
    const auto keep = [&made](const Event& event) { made.push_back(event); };
    for (const_iterator i = begin(); i.index() < size_; ++i) choose(i.index(), keep, *i);
    *this = std::move(made);
  }

  std::vector<std::uint8_t> bytes_;  ///< of all elements but the last
  std::vector<std::size_t> groups_;  ///< where each begins in `bytes_`
  std::size_t size_ = 0;
  Event before_last_, last_;
  PackedGeneration generation_;
};

/// Looks up elements, mostly one after the other, in a sequence that may change meanwhile.
template <class Events>
class PackedCursor {
 public:
  explicit PackedCursor(const Events& events) : events_(&events) {}
  /// `index` must be below the number of elements. Valid until the next call.
  const typename Events::Event& operator[](std::size_t index) {
    const bool same = generation_ == events_->generation();
    if (same && at_.index() == index) return *at_;
    if (same && at_.index() + 1 == index) {
      ++at_;
    } else {
      at_ = events_->from(index);
      generation_ = events_->generation();
    }
    return *at_;
  }

 private:
  const Events* events_;
  typename Events::const_iterator at_;
  std::uint64_t generation_ = 0;  ///< of the sequence when `at_` was found; none has this
};

}  // namespace citcat
