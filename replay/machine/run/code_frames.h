#pragma once
// Page frames that hold translated code.

#include <cstdint>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// The engine is told of a frame before it executes code from it (note_code()), and forgets what it
/// translated of a frame before the first store to that.
class CodeFrames {
 public:
  /// All must outlive the object.
  explicit CodeFrames(CpuContext& cpu) : cpu_(cpu) {}

  /// Code of this frame is being translated: from now on stores to it are checked.
  void note_code(std::uint32_t frame);
  /// The engine asks for a page to store to. True when its frame holds code and none of it was
  /// stored to before: the engine is then stopped, and what it translated of the frame is planned
  /// anew (BlockPlanner::may_be_made_twice()).
  bool begins_to_patch(std::uint32_t frame);
  /// After the engine stopped for that.
  void note_patches();

 private:
  static constexpr std::uint32_t kNoFrame = ~std::uint32_t{0};  ///< never a frame's number

  CpuContext& cpu_;

  /// Number of a frame that holds code and is about to be stored to for the first time.
  std::uint32_t patched_frame_ = kNoFrame;
};

}  // namespace citcat
