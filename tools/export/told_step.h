#pragma once
// The run as most other formats need it, instruction by instruction, with what is known about each
// when it is reported.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "events/machine/address_space.h"
#include "tools/host/tool.h"

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
  StepCode(const StaticInstruction& code, std::uint32_t its_number)
      : instruction(&code),
        linear(code.linear),
        behind(code.behind()),
        physical(code.physical),
        number(its_number),
        length(code.info.length),
        control_flow(code.info.control_flow) {}

  const StaticInstruction* instruction;
  LinearAddr linear;
  LinearAddr behind;  ///< of the next instruction
  PhysAddr physical;
  /// Stands for the instruction: a tool keeps in a table what it knows of it.
  std::uint32_t number;
  std::uint8_t length;
  bool control_flow;
};

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
