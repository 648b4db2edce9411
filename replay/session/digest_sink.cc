#include "replay/session/digest_sink.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "replay/machine/executed_block.h"
#include "replay/machine/machine.h"

namespace citcat {

namespace {
constexpr std::uint8_t kWrite = 1;
constexpr std::uint8_t kPortWrite = 2;
constexpr std::uint8_t kDelivered = 3;
constexpr std::uint8_t kHalted = 4;
static_assert(std::endian::native == std::endian::little);

/// What is known of a byte that was written, in the lowest bytes of a number.
constexpr std::size_t kWriteBytes = 6;
constexpr std::uint64_t written_byte(PhysAddr address, std::uint8_t value) {
  // There is room for 32 bits of the address: those above them change all of these.
  constexpr std::uint32_t kScatter = 0x9e3779b1;
  const std::uint32_t place =
      address.low32() ^ static_cast<std::uint32_t>(address.value >> 32) * kScatter;
  return kWrite | std::uint64_t{place} << 8 | std::uint64_t{value} << 40;
}
}  // namespace

/// A digest covers what was done before its position.
void DigestSink::begin(Position now) {
  while (now.instruction >= next_) {
    flush();
    digests_.push_back({next_, hasher_.value().low});
    next_ += kInterval;
  }
}

void DigestSink::flush() {
  hasher_.update(std::span(pending_).first(used_));
  used_ = 0;
}

void DigestSink::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    for (const DataReference& r : block.references()) {
      if (!r.write) continue;
      begin({first.instruction + r.instruction, 0});
      std::array<std::uint8_t, sizeof r.value> bytes;
      std::memcpy(bytes.data(), &r.value, sizeof r.value);  // the first byte is the lowest
      add(r.physical, std::span(bytes).first(r.size));
    }
    first.instruction += block.count();
  }
}

/// Up to the next digest, which is due once all before it is told.
Interest DigestSink::interest_from(std::uint64_t instruction) {
  return {.code = Detail::stores, .until = (instruction / kInterval + 1) * kInterval};
}

/// `kSize` bytes that do not go on in another page frame.
template <std::uint32_t kSize>
inline void DigestSink::add(PhysAddr address, std::uint64_t value) {
  if (used_ + kSize * kWriteBytes + sizeof(std::uint64_t) > kPendingBytes) flush();
  for (std::uint32_t i = 0; i < kSize; ++i) {
    const std::uint64_t written =
        written_byte(address.plus32(i), static_cast<std::uint8_t>(value >> 8 * i));
    std::memcpy(&pending_[used_ + i * kWriteBytes], &written, sizeof written);
  }
  used_ += kSize * kWriteBytes;
}

void DigestSink::stored(std::span<const PlainStore> stores, Position from) {
  begin(from);
  for (const PlainStore& store : stores) {
    switch (store.size) {
      case 1:
        add<1>(store.physical, store.value);
        break;
      case 2:
        add<2>(store.physical, store.value);
        break;
      case 4:
        add<4>(store.physical, store.value);
        break;
      default:
        add<8>(store.physical, store.value);
        break;
    }
  }
}

/// What is told alone has told its writes, but for a string that was not repeated.
void DigestSink::instruction(const ExecutedInstruction& e, Position now) {
  if (!e.references.empty()) iterations(e, 1, 0, now);
}

/// They have been made, each to other bytes: memory holds what they stored.
void DigestSink::iterations(const ExecutedInstruction& first, std::uint32_t count,
                            std::uint32_t step, Position now) {
  for (const DataReference& r : first.references) {
    if (!r.write) continue;
    begin(now);
    for (std::uint32_t i = 0; i < count; ++i) {
      const PhysAddr at = r.physical.plus32(i * step);
      add(at, {machine_->memory().host(at), r.size});
    }
  }
}

void DigestSink::write(PhysAddr address, std::span<const std::uint8_t> bytes, AccessKind,
                       Position now) {
  begin(now);
  add(address, bytes);
}

/// Millions of bytes come this way: each is put there as a whole number, over the end of which the
/// next one goes.
void DigestSink::add(PhysAddr address, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t value : bytes) {
    if (used_ + sizeof(std::uint64_t) > kPendingBytes) flush();
    const std::uint64_t written = written_byte(address, value);
    std::memcpy(&pending_[used_], &written, sizeof written);
    used_ += kWriteBytes;
    address = address.plus32(1);
  }
}

template <class... T>
void DigestSink::add_event(std::uint8_t kind, T... numbers) {
  if (used_ + sizeof kind + (sizeof(T) + ...) > kPendingBytes) flush();
  const auto put = [&](auto number) {
    std::memcpy(&pending_[used_], &number, sizeof number);
    used_ += sizeof number;
  };
  put(kind);
  (put(numbers), ...);
}

void DigestSink::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) {
  begin(now);
  add_event(kPortWrite, port, static_cast<std::uint8_t>(size), value);
}

void DigestSink::delivered(const DeliveredEvent& event, Position now) {
  begin(now);
  const auto eip = static_cast<std::uint32_t>(event.eip);
  const auto upper = static_cast<std::uint32_t>(event.eip >> 32);
  if (upper == 0) {
    add_event(kDelivered, event.vector, eip, now.instruction);
  } else {
    add_event(kDelivered, event.vector, eip, upper, now.instruction);
  }
}

void DigestSink::halted(Position now) {
  begin(now);
  add_event(kHalted, now.instruction);
}

std::vector<ReplayDigest> DigestSink::finish(std::uint64_t instructions) {
  begin({instructions, 0});
  flush();
  if (digests_.empty() || digests_.back().instruction != instructions) {
    digests_.push_back({instructions, hasher_.value().low});
  }
  return std::move(digests_);
}

std::optional<std::uint64_t> first_difference(std::span<const ReplayDigest> expected,
                                              std::span<const ReplayDigest> found,
                                              std::uint64_t instructions) {
  for (const ReplayDigest& digest : expected) {
    if (digest.instruction > instructions) break;
    if (std::find(found.begin(), found.end(), digest) == found.end()) return digest.instruction;
  }
  return std::nullopt;
}

}  // namespace citcat
