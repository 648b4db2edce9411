#pragma once

#include <cstdint>
#include <optional>

#include "tools/guest/guest.h"

namespace citcat {

class Machine;

namespace tools {

/// The guest on one machine, which must outlive the object.
class MachineGuest final : public Guest {
 public:
  explicit MachineGuest(const Machine& machine) : machine_(machine) {}
  AddressSpaceId address_space() const override;
  std::uint64_t gpr(int number) const override;
  std::uint64_t ip() const override;
  bool in_64_bit_mode() const override;
  bool runs_program() const override;
  std::optional<std::uint8_t> byte(LinearAddr at) const override;

 private:
  const Machine& machine_;
};

}  // namespace tools
}  // namespace citcat
