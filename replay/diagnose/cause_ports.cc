// Reads of ports that were captured wrongly.

#include <fmt/format.h>

#include <set>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {
namespace {

class PortCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void port_sources();
  void solve_ports();

 private:
  void add_port_cause(const IoRead& read, std::uint32_t value, Position at, double price);
  void suspect_port(std::uint64_t number, std::uint32_t value, Position at, double price);

  std::set<std::pair<std::uint64_t, std::uint32_t>> suspected_;  ///< numbers and values
};

void PortCauses::port_sources() {
  std::set<std::uint64_t> done;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::port || s.number >= c_.schedule().io_reads.size() ||
        !done.insert(s.number).second) {
      continue;
    }
    const IoRead read = c_.schedule().io_reads[s.number];
    const Position at = c_.history().steps()[s.path.front()].position;
    for (unsigned bit = 0; bit < read.size * 8u; ++bit) {
      add_port_cause(read, read.value ^ 1u << bit, at, 1 + 0.02 * s.distance);
    }
  }
}

void PortCauses::add_port_cause(const IoRead& read, std::uint32_t value, Position at,
                                double price) {
  Hint hint;
  hint.kind = Hint::Kind::port_read;
  hint.transaction = read.transaction;
  hint.value = value;
  out_.add({CauseKind::captured_port_read,
            fmt::format("transaction {} read {:0{}x} from port {:04x} and was captured as {:0{}x}",
                        read.transaction, hint.value, 2 * read.size, read.port, read.value,
                        2 * read.size),
            {hint},
            {at, read.transaction},
            std::nullopt,
            price});
}

void PortCauses::solve_ports() {
  std::set<std::uint64_t> done;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::port || s.number >= c_.schedule().io_reads.size() ||
        done.size() == kMaxTriedWhole || !done.insert(s.number).second) {
      continue;
    }
    const IoRead read = c_.schedule().io_reads[s.number];
    const Position at = c_.history().steps()[s.path.front()].position;
    for (const std::uint64_t v : solved_values(read.value, 8u * read.size, c_.differences())) {
      suspect_port(s.number, static_cast<std::uint32_t>(v), at,
                   kSolvedValue + steps_price(s.distance));
    }
    for (unsigned byte = 0; byte < read.size; ++byte) {
      for (std::uint32_t v = 0; v < 256; ++v) {
        const std::uint32_t value = (read.value & ~(0xffu << (8 * byte))) | v << (8 * byte);
        suspect_port(s.number, value, at, kAnyByte + steps_price(s.distance));
      }
    }
  }
}

void PortCauses::suspect_port(std::uint64_t number, std::uint32_t value, Position at,
                              double price) {
  const IoRead read = c_.schedule().io_reads[number];
  const std::uint32_t changed = read.value ^ value;
  const bool single = (changed & (changed - 1)) == 0;
  if (single || !suspected_.insert({number, value}).second) return;
  add_port_cause(read, value, at, price);
}

}  // namespace

void port_reads(const CauseContext& context, CauseList& out) {
  PortCauses(context, out).port_sources();
}

void solved_port_reads(const CauseContext& context, CauseList& out) {
  PortCauses(context, out).solve_ports();
}

}  // namespace citcat
