// Port accesses, and what has to have come before one.

#include "replay/verify/verifier.h"

namespace citcat {

void Verifier::begin_port(Position now) {
  if (beyond_) throw EvidenceEnd{};
  end_if_used_up(now);
  if (!counted_) {
    pull_through(now);
    settle_window(now);
    progress_at_ = now.instruction;
  }
}

/// Has the next transaction of a port come, where there is one. `begun`: it is another part of an
/// access. Throws EvidenceEnd where the capture ends behind the part that agreed last.
void Verifier::expect_port(bool begun) {
  while (ports_.waiting() == 0) {
    if (!pull()) break;
    if (held() + lines_.size() > kMaxHeld) break;
  }
  const bool ends = ports_.waiting() == 0 && at_end_ && pulled_index_ == result_.last_agreed;
  if (begun && ends) throw EvidenceEnd{};
}

void Verifier::match_port(const PortUse& use, Position now) {
  PortAccess access = ports_.begin(use);
  while (!access.complete()) {
    if (!access.begun()) begin_port(now);
    expect_port(access.begun());
    require(ports_.observe(access, use, now, result_), now);
  }
}

void Verifier::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_read, port, size, value}, now);
}

void Verifier::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_write, port, size, value}, now);
}

}  // namespace citcat
