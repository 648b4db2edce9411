#include "replay/bus_order_check.h"

namespace citcat {

bool BusOrderCheck::pull() {
  if (at_end_) return false;
  BusTransaction t;
  const auto take = [&](Kind kind, bool values) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const std::uint8_t value = values ? t.data[i] : std::uint8_t{0};
      queue(kind).push_back({t.index, t.address.value + i, value});
    }
  };
  at_end_ = !evidence_->next(t) ||
            (t.op == BusOp::interrupt_acknowledge && acknowledged_++ == interrupts_);
  if (at_end_) return false;
  switch (t.op) {
    case BusOp::data_read:
      take(Kind::read, false);
      break;
    case BusOp::data_write:
      take(Kind::write, true);
      break;
    case BusOp::io_read:
    case BusOp::io_write:
      take(Kind::port, true);
      break;
    default:
      break;
  }
  return true;
}

void BusOrderCheck::compare(Kind kind, std::uint32_t address, std::uint8_t value) {
  // Accesses of another kind held back meanwhile: more than any instruction makes between two of
  // this kind, and the replay is on another way.
  constexpr std::size_t kMostHeld = 1 << 20;
  std::deque<Byte>& waiting = queue(kind);
  while (waiting.empty() && pull()) {
    if (queues_[0].size() + queues_[1].size() + queues_[2].size() > kMostHeld) break;
  }
  if (waiting.empty() && at_end_) throw EvidenceEnd{};
  const Byte expected = waiting.empty() ? Byte{} : waiting.front();
  if (waiting.empty() || expected.address != address || expected.value != value) {
    difference_ = Difference{kind, expected, {expected.transaction, address, value}};
    throw EvidenceEnd{};
  }
  waiting.pop_front();
  ++agreed_;
}

void BusOrderCheck::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) {
  if (kind == AccessKind::walk) return;
  for (std::uint32_t i = 0; i < size; ++i) {
    compare(Kind::read, machine_->memory().captured(a + i).value, 0);
  }
}

void BusOrderCheck::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) {
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    compare(Kind::write, machine_->memory().captured(a + i).value, bytes[i]);
  }
}

void BusOrderCheck::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) {
  for (std::uint32_t i = 0; i < size; ++i) {
    compare(Kind::port, port + i, static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

void BusOrderCheck::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                             Position) {
  for (std::uint32_t i = 0; i < size; ++i) {
    compare(Kind::port, port + i, static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

}  // namespace citcat
