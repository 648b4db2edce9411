#pragma once
// Finds whether the code after an instruction reads ZF before it sets it: it looks at memory as it
// is now, without executing anything.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// Follows the code with its branches, calls and returns.
class ZeroFlagSearch {
 public:
  /// `cpu` must outlive the object.
  explicit ZeroFlagSearch(CpuContext& cpu) : cpu_(cpu) {}

  /// True where the code after `info`, the instruction in flight, asks for ZF, or where that
  /// cannot be known: after an indirect branch, a change of privilege, or too many instructions.
  /// False where it goes on with what no memory holds: nothing is executed there.
  bool may_ask_behind(const DecodedInstruction& info);

 private:
  static constexpr int kMostLookedAt = 64;  ///< instructions, of all ways together

  /// One way through the code. The registers are known as far as nothing unknown was put there.
  struct Way {
    LinearAddr at;
    std::optional<std::uint64_t> stack_pointer, frame_pointer;
    /// What calls on the way have pushed, and where.
    std::vector<std::pair<std::uint64_t, LinearAddr>> returns;
  };
  bool may_ask(Way way);
  /// Moves `way` after `info`; false where that is not known.
  bool go_on(Way& way, const DecodedInstruction& info, LinearAddr target) const;
  void move_stack(Way& way, const DecodedInstruction& info) const;
  /// Follows a RET: what comes of the way.
  enum class Return : std::uint8_t { followed, nowhere, unknown };
  Return go_back(Way& way, const DecodedInstruction& info) const;
  /// nullopt where memory does not hold it.
  std::optional<LinearAddr> return_address(std::uint64_t stack_pointer, std::size_t size) const;

  CpuContext& cpu_;
  int left_ = kMostLookedAt;
  std::uint64_t first_stack_pointer_ = 0;  ///< below it only the way knows what lies on the stack
};

}  // namespace citcat
