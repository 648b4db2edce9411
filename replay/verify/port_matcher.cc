#include "replay/verify/port_matcher.h"

#include <cstdio>

namespace citcat {

namespace {

std::string text_of(const PortUse& use) {
  char text[80];
  std::snprintf(text, sizeof text, "%s of %u bytes at port %04x = %0*x",
                use.op == BusOp::io_read ? "read" : "write", use.size, use.port,
                static_cast<int>(2 * use.size), use.value);
  return text;
}

}  // namespace

std::optional<Mismatch> PortMatcher::observe(PortAccess& access, const PortUse& use, Position now,
                                             ComparisonResult& result) {
  if (waiting_.empty()) {
    return Mismatch{"the replay accesses a port where the processor did not", {}, text_of(use)};
  }
  const BusTransaction& t = waiting_.front();
  const bool writes = use.op == BusOp::io_write;
  CheckCount& count = writes ? result.totals.io_writes : result.totals.io_reads;
  ++count.checked;
  std::optional<std::uint32_t> offset;
  if (t.op == use.op) offset = access.take(t.address, t.size);
  if (!offset || (writes && t.value() != part_of(use.value, *offset, t.size))) {
    return Mismatch{writes ? "the replay writes a port otherwise than the processor did"
                           : "the replay accesses another port than the processor did",
                    t, text_of(use)};
  }
  if (writes && t.has(kPositionKnown) && t.position.instruction != now.instruction) {
    return Mismatch{"a port is written at another instruction than in the capture", t,
                    text_of(use)};
  }
  ++count.equal;
  result.last_agreed = t.index;
  waiting_.pop_front();
  return std::nullopt;
}

std::optional<Mismatch> PortMatcher::left_before(Position end) const {
  if (waiting_.empty() || !is_left_at(waiting_.front(), end)) return std::nullopt;
  return Mismatch{"the processor accessed a port and the replay did not", waiting_.front(),
                  "the end of the replay"};
}

}  // namespace citcat
