#pragma once
// citcat view --export: the page with a stretch of a run inside, in one file that needs nothing
// else (docs/formats/view-page.md).

#include <cstdint>
#include <optional>
#include <string>

#include "view/model/run_view.h"

namespace citcat::view {

struct ExportRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  ///< the first instruction that is not shown
};

/// Most instructions of one page: a browser holds each of them in memory.
inline constexpr std::uint64_t kMostExported = 8'000'000;

/// The page as text; nullopt where RunViewOptions::interrupted ended it. Throws UsageError where
/// the run does not have the range, or it is too long.
std::optional<std::string> exported_page(RunView& view, const ExportRange& range);

}  // namespace citcat::view
