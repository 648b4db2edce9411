#include "events/io_reads.h"

#include <algorithm>
#include <utility>

namespace citcat {

namespace {

// An element is a byte of these, then what they leave open. Differences are to the element before,
// in the first of a group to 0; they are modulo 2^64, so that a count that goes back is one, too.
constexpr std::uint8_t kSizeMask = 0x07;
constexpr std::uint8_t kKnown = 0x08;       ///< IoRead::position_known
constexpr std::uint8_t kSamePort = 0x10;    ///< as before; else two bytes
constexpr std::uint8_t kIteration = 0x20;   ///< is not 0, and follows
constexpr std::uint8_t kNext = 0x40;        ///< the transaction is the next one; else the difference
constexpr std::uint8_t kWideValue = 0x80;   ///< four bytes; else as many as the size says

}  // namespace

void IoReads::put(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t IoReads::get(std::size_t& at) const {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes_[at++];
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

void IoReads::push_back(const IoRead& read) {
  const bool first = size_ % kGroup == 0;
  if (first) groups_.push_back(bytes_.size());
  const IoRead before = first ? IoRead{} : last_;
  const std::uint32_t narrow = read.size >= 4 ? ~0u : (1u << 8 * read.size) - 1;
  std::uint8_t head = read.size & kSizeMask;
  if (read.position_known) head |= kKnown;
  if (!first && read.port == before.port) head |= kSamePort;
  if (read.position.iteration != 0) head |= kIteration;
  if (!first && read.transaction == before.transaction + 1) head |= kNext;
  if ((read.value & ~narrow) != 0) head |= kWideValue;
  bytes_.push_back(head);
  if ((head & kSamePort) == 0) {
    bytes_.push_back(static_cast<std::uint8_t>(read.port));
    bytes_.push_back(static_cast<std::uint8_t>(read.port >> 8));
  }
  put(read.position.instruction - before.position.instruction);
  if ((head & kIteration) != 0) put(read.position.iteration);
  if ((head & kNext) == 0) put(read.transaction - before.transaction);
  const unsigned bytes = (head & kWideValue) != 0 ? 4u : std::min<unsigned>(read.size, 4);
  for (unsigned i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::uint8_t>(read.value >> 8 * i));
  last_ = read;
  ++size_;
}

/// `read`: the element before; becomes this one. `at`: where it begins; becomes where it ends.
void IoReads::unpack(std::size_t& at, bool first, IoRead& read) const {
  const IoRead before = first ? IoRead{} : read;
  const std::uint8_t head = bytes_[at++];
  read.size = head & kSizeMask;
  read.position_known = (head & kKnown) != 0;
  if ((head & kSamePort) == 0) {
    read.port = static_cast<std::uint16_t>(bytes_[at] | bytes_[at + 1] << 8);
    at += 2;
  }
  read.position.instruction = before.position.instruction + get(at);
  read.position.iteration = (head & kIteration) != 0 ? static_cast<std::uint32_t>(get(at)) : 0;
  read.transaction = before.transaction + ((head & kNext) != 0 ? 1 : get(at));
  const unsigned bytes = (head & kWideValue) != 0 ? 4u : std::min<unsigned>(read.size, 4);
  read.value = 0;
  for (unsigned i = 0; i < bytes; ++i) read.value |= std::uint32_t{bytes_[at++]} << 8 * i;
}

IoReads::const_iterator IoReads::end() const {
  const_iterator i;
  i.reads_ = this;
  i.index_ = size_;
  return i;
}

IoReads::const_iterator IoReads::from(std::size_t index) const {
  const_iterator i = end();
  if (index >= size_) return i;
  i.index_ = index;
  i.next_ = groups_[index / kGroup];
  for (std::size_t n = index - index % kGroup; n <= index; ++n) {
    unpack(i.next_, n % kGroup == 0, i.read_);
  }
  return i;
}

IoReads::const_iterator& IoReads::const_iterator::operator++() {
  if (++index_ < reads_->size_) reads_->unpack(next_, index_ % kGroup == 0, read_);
  return *this;
}

void IoReads::append(std::span<const IoRead> reads) {
  for (const IoRead& read : reads) push_back(read);
}

void IoReads::truncate(std::size_t count) {
  if (count >= size_) return;
  IoReads kept;
  for (const_iterator i = begin(); i.index() < count; ++i) kept.push_back(*i);
  *this = std::move(kept);
}

std::vector<IoRead> IoReads::take_first(std::size_t count) {
  std::vector<IoRead> taken;
  IoReads rest;
  for (const IoRead& read : *this) {
    if (taken.size() < count) {
      taken.push_back(read);
    } else {
      rest.push_back(read);
    }
  }
  *this = std::move(rest);
  return taken;
}

void IoReads::set_value(std::size_t index, std::uint32_t value) {
  IoReads changed;
  for (const_iterator i = begin(); i != end(); ++i) {
    IoRead read = *i;
    if (i.index() == index) read.value = value;
    changed.push_back(read);
  }
  *this = std::move(changed);
}

}  // namespace citcat
