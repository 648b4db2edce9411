// Port accesses: each transaction that shows one, or a part of one, is compared by itself.

#include <cstdio>
#include <optional>

#include "events/port_transfers.h"
#include "replay/verify/verifier.h"

namespace citcat {

std::string Verifier::PortUse::text() const {
  char text[80];
  std::snprintf(text, sizeof text, "%s of %u bytes at port %04x = %0*x",
                op == BusOp::io_read ? "read" : "write", size, port, static_cast<int>(2 * size),
                value);
  return text;
}

/// The transaction that the access is or begins with.
const BusTransaction& Verifier::next_io(const PortUse& use, Position now) {
  if (beyond_) throw EvidenceEnd{};
  end_if_used_up(now);
  if (!counted_) {
    pull_through(now);
    settle_window(now);
    progress_at_ = now.instruction;
  }
  return next_part(use, false, now);
}

/// The next transaction of a port. Throws EvidenceEnd where the capture ends behind the part that
/// agreed last.
const BusTransaction& Verifier::next_part(const PortUse& use, bool begun, Position now) {
  while (io_.empty()) {
    if (!pull()) break;
    if (writes_.size() + starts_.size() + lines_.size() > kMaxHeld) break;
  }
  if (io_.empty() && begun && at_end_ && pulled_index_ == last_agreed_) throw EvidenceEnd{};
  if (io_.empty()) {
    diverged(now, "the replay accesses a port where the processor did not", nullptr, use.text());
  }
  return io_.front();
}

void Verifier::match_port(const PortUse& use, const char* other, Position now) {
  CheckCount& count = use.op == BusOp::io_read ? totals_.io_reads : totals_.io_writes;
  PortAccess access(port_bus_, use.port, use.size);
  while (!access.complete()) {
    const BusTransaction& t = access.begun() ? next_part(use, true, now) : next_io(use, now);
    ++count.checked;
    std::optional<std::uint32_t> offset;
    if (t.op == use.op) offset = access.take(t.address.value, t.size);
    const bool writes = use.op == BusOp::io_write;
    if (!offset || (writes && t.value() != part_of(use.value, *offset, t.size))) {
      diverged(now, other, &t, use.text());
    }
    if (writes && t.has(kPositionKnown) && t.position.instruction != now.instruction) {
      diverged(now, "a port is written at another instruction than in the capture", &t, use.text());
    }
    ++count.equal;
    last_agreed_ = t.index;
    io_.pop_front();
  }
}

void Verifier::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_read, port, size, value},
             "the replay accesses another port than the processor did", now);
}

void Verifier::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_write, port, size, value},
             "the replay writes a port otherwise than the processor did", now);
}

}  // namespace citcat
