#include "replay/slice/pushed_frame.h"

#include <array>

namespace citcat {
namespace {

/// The stores as words: one that lies in two pages was reported in two pieces, the lower first.
std::vector<PushedWord> stored_words(std::span<const LoggedAccess> accesses) {
  std::vector<PushedWord> words;
  bool open = false;  // the last one may go on in the next page
  for (const LoggedAccess& a : accesses) {
    if (!a.write || a.size > 8) continue;
    const std::uint32_t before = open ? words.back().size : 0;
    const std::uint32_t both = before + a.size;
    const bool joins =
        open && a.physical.offset_in_page() == 0 && (both == 2 || both == 4 || both == 8);
    if (!joins) words.emplace_back();
    PushedWord& word = words.back();
    for (std::uint32_t i = 0; i < a.size; ++i) word.bytes[word.size++] = a.physical.plus32(i);
    open = !joins && a.physical.offset_in_page() + a.size == kPageSize;
  }
  return words;
}

/// By their places in pages: the frames of two pages may lie anywhere.
bool lies_below(const PushedWord& word, const PushedWord& other) {
  const PhysAddr behind = word.bytes[word.size - 1].plus32(1);
  return behind.offset_in_page() == other.bytes[0].offset_in_page();
}

}  // namespace

std::vector<FrameSlot> frame_of(std::size_t count) {
  constexpr std::array<FrameSlot, 10> kAll{
      FrameSlot::gs, FrameSlot::fs,    FrameSlot::ds, FrameSlot::es, FrameSlot::ss,
      FrameSlot::sp, FrameSlot::flags, FrameSlot::cs, FrameSlot::ip, FrameSlot::error};
  switch (count) {
    case 3:
    case 5:
    case 9:
      return {kAll.end() - 1 - static_cast<std::ptrdiff_t>(count), kAll.end() - 1};
    case 4:
    case 6:
    case 10:
      return {kAll.end() - static_cast<std::ptrdiff_t>(count), kAll.end()};
    default:
      return {};
  }
}

std::vector<PushedWord> frame_among(std::span<const LoggedAccess> accesses) {
  std::vector<PushedWord> best, run;
  for (const PushedWord& word : stored_words(accesses)) {
    const bool goes_on =
        !run.empty() && run.back().size == word.size && lies_below(word, run.back());
    if (!goes_on) run.clear();
    run.push_back(word);
    if (run.size() > best.size()) best = run;
  }
  return best;
}

}  // namespace citcat
