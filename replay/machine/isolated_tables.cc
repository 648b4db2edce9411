#include "replay/machine/isolated_tables.h"

#include <array>
#include <cstddef>
#include <optional>

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

namespace {

std::optional<std::uint64_t> entry_of(const Machine& machine, PhysAddr at) {
  std::uint64_t entry = 0;
  for (unsigned i = 0; i < sizeof entry; ++i) {
    const auto byte = machine.memory().defined_byte(PhysAddr{at.value + i});
    if (!byte) return std::nullopt;
    entry |= std::uint64_t{*byte} << 8 * i;
  }
  return entry;
}

/// The physical address of `at`. The page of `known` needs no look-up: the TLB keeps global pages,
/// so that the page tables in use may never have been read for it.
std::optional<PhysAddr> place_of(const Machine& machine, const TableLoad& known, LinearAddr at) {
  if (at.page() != known.linear.page()) return machine.find(at);
  return PhysAddr{known.physical.value - known.physical.offset_in_page() + at.offset_in_page()};
}

/// The instruction at `at`. Its length is 0 if its bytes are not known.
DecodedInstruction instruction_at(const Machine& machine, const TableLoad& before, LinearAddr at) {
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::size_t known = 0;
  for (; known < bytes.size(); ++known) {
    const auto physical = place_of(machine, before, LinearAddr{at.value + known});
    const auto byte = physical ? machine.memory().defined_byte(*physical) : std::nullopt;
    if (!byte) break;
    bytes[known] = *byte;
  }
  CodeMode mode;
  mode.bits64 = true;
  mode.real_or_v86 = false;
  return decode_instruction(std::span(bytes).first(known), mode, machine.model());
}

}  // namespace

bool runs_with_isolated_tables(const Machine& machine) {
  // Intel SDM vol. 3, table 4-15: entries of a table of the highest level.
  constexpr std::uint64_t kPresent = 1, kNoExecute = std::uint64_t{1} << 63,
                          kTable = 0x000f'ffff'ffff'f000;
  constexpr unsigned kProgramsEntries = 256;  // the lower half of the addresses
  const Engine& engine = machine.engine();
  const AddressSpaceId user = engine.address_space();
  const bool runs_program = (engine.hflags() & kHfCpl) == 3;
  if (!runs_program || !in_long_mode(engine) || (user & kUserTables) == 0) return false;
  for (unsigned i = 0; i < kProgramsEntries; ++i) {
    const auto in_user = entry_of(machine, PhysAddr{user + 8 * i});
    const auto in_kernel = entry_of(machine, PhysAddr{(user & ~kUserTables) + 8 * i});
    if (!in_user || !in_kernel || (*in_user & *in_kernel & kPresent) == 0) continue;
    return (*in_user & kTable) == (*in_kernel & kTable) && (*in_kernel & kNoExecute) != 0 &&
           (*in_user & kNoExecute) == 0;
  }
  return false;
}

bool is_leaving_kernel(const Machine& machine, const TableLoad& load) {
  constexpr int kFarthest = 32;  // instructions; Linux 6.1 takes about ten
  LinearAddr at = load.next;
  for (int left = kFarthest; left > 0; --left) {
    const DecodedInstruction next = instruction_at(machine, load, at);
    if (next.state != DecodeState::ok || next.length == 0) return false;
    if (next.kind == InstructionClass::sysret || next.kind == InstructionClass::iret) return true;
    at = LinearAddr{at.value + next.length};
    if (next.kind == InstructionClass::jump && !next.indirect)
      at =
          LinearAddr{at.value + static_cast<std::uint64_t>(std::int64_t{next.target_displacement})};
    else if (next.control_flow && next.kind != InstructionClass::jcc)
      return false;
  }
  return false;
}

}  // namespace citcat
