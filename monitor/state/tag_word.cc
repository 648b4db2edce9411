#include "monitor/state/tag_word.h"

namespace citcat::monitor {
namespace {

// Offsets in the image: the upper byte of the status word, which has the top of the stack in bits 3
// to 5, and the abridged tag word.
constexpr unsigned kStatusAt = 3, kTagsAt = 4;
constexpr unsigned kTopShift = 3, kTopMask = 7;

}  // namespace

void TagWord::set(State state) {
  state_ = state;
  is_other_ = false;
}

void TagWord::empty() {
  if (state_) set({0, state_->top});
  is_other_ = false;
}

void TagWord::load_image(std::span<const std::uint8_t> image) {
  const unsigned top = image[kStatusAt] >> kTopShift & kTopMask;
  set({image[kTagsAt], static_cast<std::uint8_t>(top)});
}

void TagWord::forget() {
  state_.reset();
  is_other_ = false;
}

void TagWord::mmx_faulted() {
  if (state_ != kMmx) is_other_ = true;
}

bool TagWord::store(std::span<std::uint8_t> block) const {
  if (!is_other_) return true;
  if (!state_) return false;
  const unsigned others = block[kStatusAt] & ~(kTopMask << kTopShift);
  block[kStatusAt] = static_cast<std::uint8_t>(others | unsigned{state_->top} << kTopShift);
  block[kTagsAt] = state_->in_use;
  return true;
}

}  // namespace citcat::monitor
