#pragma once
// The run as most other formats need it, instruction by instruction, with what is known about each
// when it is reported.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "events/machine/address_space.h"
#include "tools/host/tool.h"
#include "x86/decode/addressed_accesses.h"

namespace citcat::tools {

/// An access as the instruction made it, across a page's end too.
struct StepAccess {
  LinearAddr linear;
  PhysAddr physical;  ///< of its first byte
  std::uint32_t size = 0;
  bool write = false;
};

/// What every step needs of its instruction. StaticInstruction, which has it too, is so large that
/// the host's caches hold little of a run.
struct StepCode {
  /// `known_of_it`: StepCode::known. `its_accesses`: how many follow from its addresses, or
  /// kUnknown.
  StepCode(const StaticInstruction& code, std::uint64_t known_of_it,
           std::size_t its_accesses = kUnknown)
      : instruction(&code),
        linear(code.linear),
        known(known_of_it),
        length(code.info.length),
        addresses(code.info.ea_count),
        accesses(static_cast<std::uint8_t>(its_accesses)),
        control_flow(code.info.control_flow),
        bits64(code.info.bits64),
        displacement(code.info.target_displacement) {}

  const StaticInstruction* instruction;
  LinearAddr linear;
  std::uint64_t known;  ///< what the tool keeps of it: StepTool::know()
  std::uint8_t length;
  std::uint8_t addresses;  ///< DecodedInstruction::ea_count
  std::uint8_t accesses;   ///< in StepRun::accesses
  bool control_flow : 4;
  bool bits64 : 4;
  std::int32_t displacement;  ///< DecodedInstruction::target_displacement

  static constexpr std::uint8_t kUnknown = 0xff;  ///< of `accesses`
  /// Of the next instruction.
  LinearAddr behind() const {
    return bits64 ? LinearAddr{linear.value + length} : linear.plus32(length);
  }
};

static_assert(sizeof(StepCode) == 32);  // two in a line of the host's cache

/// An instruction, or an iteration of a REP, before it is known where the run goes on.
struct ToldStep {
  const StepCode* code = nullptr;
  Position position;
  std::uint32_t level = 0;           ///< that it ran at
  AddressSpaceId address_space = 0;  ///< CR3
  bool isolated_tables = false;      ///< Context::has_isolated_tables()
  std::string_view facts;            ///< what else its tool wants to know
};

/// An instruction, or an iteration of a REP.
struct Step : ToldStep {
  std::span<const StepAccess> accesses;
  LinearAddr next;  ///< of the instruction that the run goes on with
  /// It is a further iteration: the instruction was fetched before.
  bool further = false;
  /// With it an instruction has completed. Not so of iterations but the last, nor of a REP that an
  /// interrupt was taken in: it is begun anew.
  bool completes = true;
  bool is_last = false;  ///< nothing is reported after it, and `next` is not known
};

/// Instructions that completed one after the other, and of which nothing else is told.
struct StepStretch {
  std::uint64_t first = 0, end = 0;
  std::uint32_t level = 0;
  AddressSpaceId address_space = 0;
  bool isolated_tables = false;  ///< Context::has_isolated_tables()
};

/// What one instruction of a StepRun accessed.
class RunAccesses {
 public:
  RunAccesses(const AddressedAccess* accesses, std::size_t count, const LinearAddr* addresses)
      : accesses_(accesses), count_(count), addresses_(addresses) {}
  std::size_t size() const { return count_; }
  /// StepAccess::physical is not known.
  StepAccess operator[](std::size_t i) const {
    const AddressedAccess& a = accesses_[i];
    const auto offset = static_cast<std::uint64_t>(std::int64_t{a.offset});
    return {LinearAddr{addresses_[a.address].value + offset}, PhysAddr{}, a.size, a.write};
  }

 private:
  const AddressedAccess* accesses_;
  std::size_t count_;
  const LinearAddr* addresses_;
};

/// Instructions that lie, and completed, one after another; only the last may transfer control. No
/// access of theirs is further than its page.
struct StepRun {
  std::span<const StepCode> code;
  const AddressedAccess* accesses = nullptr;  ///< of all of them, in their order
  std::size_t access_count = 0;
  const LinearAddr* addresses = nullptr;  ///< effective ones, StepCode::addresses of each
  Position first;
  std::uint32_t level = 0;
  AddressSpaceId address_space = 0;
  LinearAddr next;       ///< of the instruction that the run goes on with
  bool is_last = false;  ///< nothing is told after it, and `next` is not known

  /// Calls visit(const StepCode&, const RunAccesses&) for each of them.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const AddressedAccess* access = accesses;
    const LinearAddr* address = addresses;
    for (const StepCode& each : code) {
      visit(each, RunAccesses(access, each.accesses, address));
      access += each.accesses;
      address += each.addresses;
    }
  }
};

/// An event where the steps around it are known.
struct StepEvent {
  MachineEvent event;
  std::uint32_t level = 0;           ///< after it
  AddressSpaceId address_space = 0;  ///< the same
  std::uint32_t eax = 0;             ///< at it: of a system call, its number
  LinearAddr stack;                  ///< the stack pointer after it
};

struct ToldEvent {
  StepEvent event;
  bool bits64 = false;  ///< of the code that runs there
  std::string facts;    ///< what else its tool wants to know
};

/// The counts of all exporters, which can be compared with each other.
struct StepTotals {
  std::uint64_t instructions = 0;  ///< completed
  std::uint64_t fetched = 0;       ///< instructions begun
  std::uint64_t further = 0;       ///< further iterations of REP
  std::uint64_t reads = 0, writes = 0;
  std::uint64_t user = 0;      ///< of those fetched, at level 3
  std::uint64_t left_out = 0;  ///< accesses for which the format has no place

  void add(const Step& step);
  void add(const StepTotals& more);
  /// `accesses`: they were reported.
  void report(Report& out, bool accesses) const;
};

}  // namespace citcat::tools
