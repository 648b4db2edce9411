#pragma once
// The registers of a processor in the groups in which an editor shows them.

#include <optional>
#include <string>
#include <vector>

#include "debugger/adapter/debuggee.h"

namespace citcat::dap {

enum class RegisterGroup : std::uint8_t { general, segments, floating_point, vectors, system };
inline constexpr RegisterGroup kRegisterGroups[] = {RegisterGroup::general, RegisterGroup::segments,
                                                    RegisterGroup::floating_point,
                                                    RegisterGroup::vectors, RegisterGroup::system};
const char* group_name(RegisterGroup group);

struct ShownRegister {
  std::string name, value;               ///< "unknown" if it is not known
  std::optional<std::uint64_t> pointer;  ///< its value, where it may be an address of memory
};

/// Those that are there, in their order; a processor may have none of a group.
std::vector<ShownRegister> registers_of(const Debuggee& debuggee, RegisterGroup group);
/// The value of a register of up to 64 bits, by its name or the name of its lower half; nullopt
/// where there is none of that name.
struct NamedRegister {
  std::optional<std::uint64_t> value;  ///< nothing if it is not known
  unsigned bytes = 4;
};
std::optional<NamedRegister> register_named(const Debuggee& debuggee, const std::string& name);

}  // namespace citcat::dap
