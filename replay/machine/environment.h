#pragma once
// The inputs that the replayed processor receives from outside.

#include <cstdint>
#include <optional>

#include "events/recording.h"

namespace citcat {

/// Supplies what comes from outside the processor.
class Environment {
 public:
  virtual ~Environment() = default;
  /// May end the run (Machine::control()): the access is then not reported.
  virtual std::uint32_t port_read(std::uint16_t port, std::uint32_t size, Position now) = 0;
  virtual void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) = 0;
  /// The value of an instruction that reads what crosses no bus, or nullopt if it is not known.
  virtual std::optional<InternalRead> internal_read(InternalRead::Op op, Position now) = 0;
  /// Whether every instruction of this kind that completes has its value, with its position.
  virtual bool reports_each(InternalRead::Op /*op*/) const { return false; }
  /// A page-directory-pointer entry the processor loaded before the capture began.
  virtual std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted,
                                                     Position now) = 0;
  /// Asked at every boundary while Machine::set_polling(true): true stops the run there.
  virtual bool wants_stop(Position next) = 0;
};

}  // namespace citcat
