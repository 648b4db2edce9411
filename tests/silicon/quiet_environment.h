#pragma once
// Nothing from outside: for a processor that runs alone.

#include <cstdint>
#include <optional>

#include "replay/machine/environment.h"

namespace citcat::silicon {

/// Ports read as 0, and nothing that crosses no bus is known.
class QuietEnvironment : public Environment {
 public:
  std::uint32_t port_read(std::uint16_t, std::uint32_t, Position) override { return 0; }
  void port_write(std::uint16_t, std::uint32_t, std::uint32_t, Position) override {}
  std::optional<InternalRead> internal_read(InternalRead::Op, Position) override {
    return std::nullopt;
  }
  std::optional<std::uint64_t> missing_pdpte(unsigned, LinearAddr, Position) override {
    return std::nullopt;
  }
  bool wants_stop(Position) override { return false; }
};

}  // namespace citcat::silicon
