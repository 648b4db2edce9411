#include "replay/session/digest_sink.h"

#include <algorithm>
#include <utility>

namespace citcat {

namespace {
constexpr std::size_t kPendingBytes = 1 << 16;
constexpr std::uint8_t kWrite = 1;
constexpr std::uint8_t kPortWrite = 2;
constexpr std::uint8_t kDelivered = 3;
constexpr std::uint8_t kHalted = 4;
}  // namespace

/// A digest covers what was done before its position.
void DigestSink::begin(Position now) {
  while (now.instruction >= next_) {
    flush();
    digests_.push_back({next_, hasher_.value().low});
    next_ += kInterval;
  }
  if (pending_.size() >= kPendingBytes) flush();
}

void DigestSink::flush() {
  hasher_.update(pending_.view());
  pending_.clear();
}

void DigestSink::write(PhysAddr address, std::span<const std::uint8_t> bytes, AccessKind,
                       Position now) {
  begin(now);
  for (const std::uint8_t value : bytes) {
    pending_.u8(kWrite);
    pending_.u32(address.u32());
    pending_.u8(value);
    address = address.plus32(1);
  }
}

void DigestSink::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) {
  begin(now);
  pending_.u8(kPortWrite);
  pending_.u16(port);
  pending_.u8(static_cast<std::uint8_t>(size));
  pending_.u32(value);
}

void DigestSink::delivered(const DeliveredEvent& event, Position now) {
  begin(now);
  pending_.u8(kDelivered);
  pending_.u8(event.vector);
  pending_.u32(static_cast<std::uint32_t>(event.eip));
  pending_.u64(now.instruction);
}

void DigestSink::halted(Position now) {
  begin(now);
  pending_.u8(kHalted);
  pending_.u64(now.instruction);
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
