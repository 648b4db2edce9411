#pragma once
// The verdict about a machine of several processors: that of each processor alone, and whether all
// of them saw the same memory.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "events/archive/machine_file.h"
#include "events/machine/memory_image.h"
#include "events/processors/cross_check.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

/// Memory at the very end.
struct MachineMemory {
  std::uint64_t bytes = 0, different = 0;
  std::optional<PhysAddr> first;  ///< that differs, where that is known
};

/// One processor alone.
struct ProcessorVerdict {
  bool match = false;
  std::uint64_t instructions = 0;
  nlohmann::ordered_json json;          ///< as `verify --json` has it of one
  std::vector<std::string> divergence;  ///< as text; empty where it matches
  std::string remarks;                  ///< the same: what else is to be said of it, in lines
  MachineMemory memory;                 ///< of what only it holds
  /// Lines that it has changed in its cache without the bus showing it.
  std::vector<PhysAddr> changed_lines;
};

/// The verdict as text, to pass it from one process to another.
std::string to_text(const ProcessorVerdict& verdict);
ProcessorVerdict processor_verdict_of(const std::string& text);

struct MachineVerdict {
  std::vector<ProcessorVerdict> processors;
  CrossCheckResult bus;
  /// The recording has digests in place of evidence: what they saw of each other is no longer
  /// known.
  bool has_digests = false;
  std::optional<MachineMemory> memory;
  bool match() const;
};

/// Checks what the processors took from each other; `files` as open_processors() gives them.
CrossCheckResult cross_check(const MachineFile& machine, const std::vector<RecordingFile>& files,
                             CrossCheck& check);
/// Checks what each processor stored in its cache, and adds contradictions to `verdict.bus`.
void check_stores(const MachineFile& machine, const CrossCheck& check,
                  const ComparisonPolicy& policy, MachineVerdict& verdict);
/// The part of `captured` that a processor may have changed last, in its cache.
MemoryImage owned_part(const MemoryImage& captured, const CrossCheck& check, std::size_t processor);
/// `captured` against what the bus left of the rest, and what the processors found of theirs.
MachineMemory compare_memory(const MemoryImage& captured, const CrossCheck& check,
                             const std::vector<ProcessorVerdict>& processors);

nlohmann::ordered_json machine_verdict_json(const MachineVerdict& verdict);
void print_machine_verdict(const MachineVerdict& verdict, const Console& console);

}  // namespace citcat
