#pragma once
// citcat view --export and citcat report: the page with stretches of runs inside, in one file that
// needs nothing else (docs/formats/view-page.md).

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "view/model/run_view.h"

namespace citcat::view {

struct ExportRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  ///< the first instruction that is not shown
};

/// One run of a page.
struct ExportedRun {
  RunView* view = nullptr;
  ExportRange range;  ///< the page holds every step of it; may be empty if it is not all
  ExportRange all;    ///< what the page tells of, which may be more than it holds steps of
  /// What was found before, as the answer to `run` has it: the verdict, and why the replay left its
  /// evidence; null: what `view` knows.
  Json verdict, divergence;
};

/// Most instructions of one page: a browser holds each of them in memory.
inline constexpr std::uint64_t kMostExported = 8'000'000;

/// The page as text; nullopt where RunViewOptions::interrupted ended it. `together`: the answer to
/// `runs`; `figures`: what the second screen shows, or null. Throws UsageError where a run does not
/// have its range, or it is too long.
std::optional<std::string> exported_page(std::span<const ExportedRun> runs, const Json& together,
                                         const Json& figures);

}  // namespace citcat::view
