#include "replay/run/run_outline.h"

#include <array>
#include <cstring>

#include "events/archive/recording_codec.h"
#include "formats/io/hash.h"
#include "replay/machine/machine.h"
#include "replay/run/replay_session.h"

namespace citcat {

namespace {

/// Hashes registers and memory. What is known of memory is not part of it: a replay that compares
/// notes each byte that was stored, another one whole frames.
Hash128 hash_of_state(const ReplaySession& session) {
  constexpr std::array<std::uint8_t, kPageSize> kUntouched{};
  Hasher128 hasher;
  hasher.update(encode_cpu(session.registers()));
  const Memory& memory = session.machine().memory();
  for (const FrameNumber page : memory.mapped_pages()) {
    if (!memory.has_defined(page)) continue;  // nothing was ever stored there: not to be looked at
    const std::uint8_t* const bytes = memory.host(PhysAddr{page * kPageSize});
    if (std::memcmp(bytes, kUntouched.data(), kPageSize) == 0) continue;
    hasher.update({reinterpret_cast<const std::uint8_t*>(&page), sizeof page});
    hasher.update({bytes, kPageSize});
  }
  return hasher.value();
}

}  // namespace

std::optional<RunOutline> run_in_outline(ReplaySession& session, const std::atomic<bool>& stop) {
  RunOutline outline;
  ReplayReport report;
  for (std::uint64_t next = RunOutline::kInterval;; next += RunOutline::kInterval) {
    report = session.run_to(next);
    if (stop || report.end == ReplayReport::End::diverged) return std::nullopt;
    if (session.position().instruction < next) break;
    outline.registers.push_back(hash128(encode_cpu(session.registers())).low);
  }
  report = session.end(report);
  if (report.end != ReplayReport::End::complete) return std::nullopt;
  outline.end = session.position();
  outline.interrupts = report.interrupts;
  outline.exceptions = report.exceptions;
  outline.io_reads = report.io_reads;
  outline.io_writes = report.io_writes;
  outline.state = hash_of_state(session);
  return outline;
}

}  // namespace citcat
