#pragma once
// The common facts about all instructions of a class, a row for each class.

#include <array>
#include <cstddef>
#include <cstdint>

#include "x86/decode/instruction_class.h"

namespace citcat {

/// What a processor asks for before it touches an operand (Intel SDM vol. 2, the exceptions of each
/// instruction). Classes whose operands are not touched by the engine ask for it when they execute.
enum class Permission : std::uint8_t {
  none,
  iopl_in_v86,  ///< IOPL 3 in virtual-8086 mode
  ring0,
  ring0_protected,  ///< and #UD outside protected mode
  vector_unit,      ///< CR0.EM and TS, CR4.OSFXSR
};

/// What an instruction reads of descriptor tables, through the engine.
enum class DescriptorUse : std::uint8_t {
  none,
  loads,    ///< the descriptor of the selector that it loads
  returns,  ///< in protected mode, those of the frame that it returns by
};

struct ClassFacts {
  bool transfers = false;   ///< may continue elsewhere than at the next instruction
  bool ends_block = false;  ///< input, output, HLT, and what changes how the next one executes
  Permission permission = Permission::none;
  DescriptorUse descriptors = DescriptorUse::none;
  bool always_prepared = false;  ///< something is to be checked even without an operand in memory
};

namespace class_facts_rows {

struct Row {
  InstructionClass kind;
  ClassFacts facts;
};

inline constexpr auto kRows = [] {
  using enum InstructionClass;
  using enum Permission;
  constexpr DescriptorUse loads = DescriptorUse::loads, returns = DescriptorUse::returns;
  constexpr ClassFacts transfer{.transfers = true};
  constexpr ClassFacts last{.ends_block = true};
  constexpr ClassFacts port{.ends_block = true, .always_prepared = true};
  constexpr ClassFacts system{.ends_block = true, .permission = ring0};
  constexpr ClassFacts task{.ends_block = true,
                            .permission = ring0_protected,
                            .descriptors = loads,
                            .always_prepared = true};
  return std::to_array<Row>({
      {ins, last},
      {outs, last},
      {in, port},
      {out, port},
      {hlt, last},
      {jcc, transfer},
      {loop, transfer},
      {jump, transfer},
      {call, transfer},
      {ret, transfer},
      {far_jump, {.transfers = true, .always_prepared = true}},
      {far_call, transfer},
      {far_return, {.transfers = true, .descriptors = returns}},
      {iret, {.transfers = true, .permission = iopl_in_v86, .descriptors = returns}},
      {int_n, transfer},
      {int3, transfer},
      {into, transfer},
      {icebp, transfer},
      {sysenter, transfer},
      {sysexit, transfer},
      {syscall, transfer},
      {sysret, transfer},
      {swapgs, last},
      {segment_base, last},
      {rsm, transfer},
      {loadall, transfer},
      {pop_segment, {.descriptors = loads}},
      {mov_to_segment, {.descriptors = loads, .always_prepared = true}},
      {load_far_pointer, {.descriptors = loads}},
      {mov_to_cr, last},
      {mov_to_dr, last},
      {lmsw, system},
      {smsw, last},
      {clts, last},
      {invlpg, system},
      {invpcid, system},
      {access_flag, last},
      {cache_flush, last},
      {lgdt, system},
      {lidt, system},
      {lldt, task},
      {ltr, task},
      {cpuid, last},
      {rdtsc, last},
      {rdtscp, last},
      {rdpmc, last},
      {rdpid, last},
      {random, last},
      {rdmsr, last},
      {wrmsr, last},
      {xgetbv, last},
      {xsetbv, last},
      {cli, last},
      {sti, last},
      {pushf, {.permission = iopl_in_v86}},
      {popf, {.ends_block = true, .permission = iopl_in_v86}},
      {mmx, {.permission = vector_unit}},
      {sse, {.permission = vector_unit}},
  });
}();

inline constexpr auto kByClass = [] {
  std::array<ClassFacts, static_cast<std::size_t>(InstructionClass::stmxcsr) + 1> facts{};
  for (const Row& row : kRows) facts[static_cast<std::size_t>(row.kind)] = row.facts;
  return facts;
}();

}  // namespace class_facts_rows

/// Classes without a row have the facts of ClassFacts{}.
constexpr const ClassFacts& class_facts(InstructionClass kind) {
  return class_facts_rows::kByClass[static_cast<std::size_t>(kind)];
}

}  // namespace citcat
