#pragma once
// The text on the screen of a PC: characters in the memory of its display adapter.

#include <string>

#include "view/model/run_view.h"

namespace citcat::view {

/// {"columns", "rows", "lines"} as the screen is at the moment where the run is; null where
/// memory holds no text there that is known.
Json text_screen(const RunView& view);

/// What an exported page must have to show it at any later moment: for the colour adapter and the
/// monochrome one [register that is written next, where the screen begins in characters], as
/// programs have set them before `instruction`; and the frames of their memory.
Json screen_starts(const RunView& view, std::uint64_t instruction);
inline constexpr FrameNumber kFirstScreenFrame = 0xb0, kLastScreenFrame = 0xbf;

}  // namespace citcat::view
