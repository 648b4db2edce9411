#pragma once
// Where two recorded runs separate, by control flow: the first instruction that one executes and
// the other does not, handlers of interrupts from outside left out, because these come at other
// moments.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sql/rows/row_source.h"

namespace citcat::sql {

/// An instruction of one of them.
struct ComparedInstruction {
  std::uint64_t position = 0;
  LinearAddr address;
  std::string bytes, text, process;
  std::uint32_t level = 0;
};

class PlainRun;
/// The current one of a run.
ComparedInstruction compared_instruction(const PlainRun& run);

/// Something that has another value in the one than in the other.
struct ComparedValue {
  std::string name;  ///< register, or the linear address of a byte
  std::optional<std::uint64_t> a, b;
};

struct RunDifference {
  std::uint64_t compared = 0;  ///< instructions that both executed
  /// Handlers of interrupts that were left out: only one run entered them, or both did and took
  /// different paths.
  std::uint64_t handlers = 0;
  bool differs = false;
  /// Where they part; of one that ends there, nothing.
  std::optional<ComparedInstruction> a, b;
  /// The last instruction that both executed, and what was different before it: registers, and
  /// bytes of memory that the last instructions accessed.
  std::optional<ComparedInstruction> last_a, last_b;
  std::vector<ComparedValue> registers, memory;
};

/// The runs from these positions on.
RunDifference difference_of(RowSource& a, std::uint64_t from_a, RowSource& b, std::uint64_t from_b);

}  // namespace citcat::sql
