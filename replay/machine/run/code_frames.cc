#include "replay/machine/run/code_frames.h"

namespace citcat {

void CodeFrames::note_code(std::uint32_t frame) {
  if (cpu_.memory.holds_code(frame)) return;
  cpu_.memory.note_code(frame);
  cpu_.engine.flush_tlb();
}

bool CodeFrames::begins_to_patch(std::uint32_t frame) {
  if (!cpu_.by_blocks || !cpu_.memory.holds_code(frame) || cpu_.memory.is_patched(frame))
    return false;
  patched_frame_ = frame;
  return true;
}

void CodeFrames::note_patches() {
  if (patched_frame_ == kNoFrame) return;
  cpu_.memory.note_patches(patched_frame_);
  cpu_.engine.invalidate_code(PhysAddr{patched_frame_ * kPageSize}, kPageSize);
  patched_frame_ = kNoFrame;
}

}  // namespace citcat
