#include "replay/machine/run/translation_watch.h"

#include "x86/locked_bit_test.h"

namespace citcat {

void TranslationWatch::begins() {
  constexpr std::uint32_t kSeldom = 16;
  ++cpu_.stats.translations;
  if (++translations_ % kSeldom == 0) {
    cpu_.code_cache_full |= cpu_.engine.code_cache_needs_flush();
  }
}

/// Where code of the page lies to the engine: where it was told last, or where it would be told,
/// should it have forgotten.
std::array<std::optional<PhysAddr>, 2> TranslationWatch::engine_frames(LinearAddr page) {
  std::array<std::optional<PhysAddr>, 2> frames{cpu_.engine_code.frame_of(page), std::nullopt};
  if (const auto now = cpu_.mmu.look_up(page, Access::execute, cpu_.program(), Lookup::free)) {
    frames[1] = now->frame.page_begin();
  }
  for (auto& frame : frames) {
    if (frame && !cpu_.memory.is_mapped(frame->page())) frame.reset();
  }
  if (frames[0] == frames[1]) frames[1].reset();
  return frames;
}

std::span<const PhysAddr> TranslationWatch::hides(LinearAddr linear) {
  hidden_.clear();
  const LinearAddr page = linear.page_begin(), next = cpu_.onward(page, kPageSize);
  for (const auto& first : engine_frames(page)) {
    if (!first) continue;
    CodeBytes code(cpu_.memory, first->plus32(linear.offset_in_page()));
    note_hidden(code);
    if (code.in_first_page() >= kMaxInstructionBytes) continue;
    for (const auto& second : engine_frames(next)) {
      if (!second) continue;
      code.set_second_frame(*second);
      note_hidden(code);
    }
  }
  return hidden_;
}

void TranslationWatch::note_hidden(CodeBytes& code) {
  const std::size_t prefixes = prefixes_of_locked_bit_test(code.at(0), cpu_.bits64());
  for (std::uint32_t i = 0; i < prefixes; ++i) hidden_.push_back(code.physical(i));
}

void TranslationWatch::forget_code() {
  cpu_.code_cache_full = false;
  cpu_.engine.flush_code();
  ++cpu_.stats.code_forgotten;
}

}  // namespace citcat
