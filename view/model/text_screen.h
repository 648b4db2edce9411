#pragma once
// The text on the screen of a PC: characters in the memory of its display adapter.

#include <string>

#include "view/model/run_view.h"

namespace citcat::view {

/// {"columns", "rows", "lines"} as the screen is at the moment where the run is; null where
/// memory holds no text there that is known.
Json text_screen(const RunView& view);

}  // namespace citcat::view
