#include "sql/rows/run_rows.h"

namespace citcat::sql {

namespace {

template <class T>
std::uint64_t bytes_of(const std::vector<T>& rows) {
  return rows.capacity() * sizeof(T);
}

}  // namespace

std::uint64_t RunRows::bytes() const {
  // Texts of system calls lie outside of their rows.
  constexpr std::uint64_t kTexts = 64;
  return bytes_of(instructions) + bytes_of(access_runs) + bytes_of(accesses) + bytes_of(events) +
         bytes_of(system) + bytes_of(ports) + bytes_of(external_writes) + bytes_of(system_calls) +
         system_calls.size() * kTexts + bytes_of(calls) + bytes_of(processes);
}

RowNeeds RowNeeds::operator|(const RowNeeds& o) const {
  RowNeeds all = *this;
  all.instructions |= o.instructions;
  all.accesses |= o.accesses;
  all.values |= o.values;
  all.events |= o.events;
  all.system |= o.system;
  all.ports |= o.ports;
  all.external_writes |= o.external_writes;
  all.system_calls |= o.system_calls;
  all.calls |= o.calls;
  all.processes |= o.processes;
  all.sharing |= o.sharing;
  all.process_names |= o.process_names;
  return all;
}

}  // namespace citcat::sql
