#pragma once
// Where a value came from: back from an instruction through registers and memory to what no
// instruction of the stretch made - captured reads, ports, the state at its start.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/diagnose/run_history.h"
#include "x86/instruction_flow.h"

namespace citcat {

/// What a lineage begins with.
struct LineageSource {
  enum class Kind : std::uint8_t {
    memory,    ///< a byte that no instruction of the stretch stored
    external,  ///< a byte that another bus master stored: `number` of the external write
    port,      ///< `number` of the port read
    internal,  ///< RDTSC and its like at `step`
    reg,       ///< a register that no instruction of the stretch set: `number`
  };
  Kind kind = Kind::memory;
  PhysAddr address;
  std::uint64_t number = 0;
  /// How far it is from what was asked for: a step by a value counts one, by an address or a
  /// decision more.
  unsigned distance = 0;
  bool uncertain = false;  ///< on the way are results that processors compute differently
  /// Steps of the history from the one that took it to the one that was asked about.
  std::vector<std::size_t> path;
};

class ValueLineage {
 public:
  /// `history` must outlive the lineage and not change.
  explicit ValueLineage(const RunHistory& history);

  /// What the lineage is of; distances begin at `distance`.
  void ask_memory(PhysAddr byte, unsigned distance);
  /// Everything that the step with this number computes, writes or is steered by.
  void ask_step(std::size_t step, unsigned values, unsigned addresses);
  /// The flags a conditional jump looked at, or where an indirect one took its target from.
  void ask_decision(std::size_t step, unsigned distance) { ask_step(step, distance, distance); }

  /// Where a byte that instructions only moved was read: nearest first. Empty when the store that
  /// left it at `byte` computed it.
  struct Moved {
    PhysAddr from;
    std::size_t step = 0;  ///< that read it
  };
  std::vector<Moved> moved_from(PhysAddr byte);

  /// Nearest first, at most `most`; each only once.
  std::vector<LineageSource> sources(std::size_t most);

 private:
  /// A register (below 32) or a byte of memory as it was before a step.
  struct Node {
    std::uint64_t location = 0;
    std::size_t before = 0;
    unsigned distance = 0;
    bool uncertain = false;
    std::size_t parent = 0;  ///< in nodes_; its own number for what was asked for
    std::size_t used_by = 0;
  };
  static constexpr std::uint64_t kMemory = std::uint64_t{1} << 63;

  void add(std::uint64_t location, std::size_t before, unsigned distance, bool uncertain,
           std::size_t parent, std::size_t used_by);
  void add_registers(std::uint32_t set, std::size_t step, unsigned distance, bool uncertain,
                     std::size_t parent);
  void expand(std::size_t node, std::vector<LineageSource>& found);
  void follow(std::size_t node, std::size_t step, std::vector<LineageSource>& found);
  std::size_t last_write(std::uint64_t location, std::size_t before);
  const InstructionFlow& flow(std::size_t step);
  void add_register_writer(std::size_t step);
  std::optional<Moved> move_into(PhysAddr byte, std::size_t before);
  LineageSource source(LineageSource::Kind kind, std::size_t node) const;

  const RunHistory& history_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> stores_;  ///< steps, by byte
  std::array<std::vector<std::uint32_t>, 32> register_writers_;           ///< steps, by register
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, InstructionFlow>> flows_;
  std::vector<Node> nodes_;
  std::vector<std::pair<unsigned, std::size_t>> queue_;  ///< heap: distance, number in nodes_
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> seen_;
};

}  // namespace citcat
