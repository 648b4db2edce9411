#pragma once
// Recordings that somebody looks at: in a browser, or in a file that is made for one.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/placed_recording.h"
#include "events/names/symbols.h"
#include "view/exported/exported_page.h"
#include "view/model/run_view.h"

namespace citcat {

/// Instructions that are looked at at once: a few milliseconds, some tens where the engine has to
/// execute one after another.
inline constexpr std::uint64_t kLookedAtOnce = std::uint64_t{1} << 16;

/// RunViewOptions::checkpoint_every of what is written to a file.
inline constexpr std::uint64_t kHardlyEver = std::uint64_t{1} << 26;

class ViewedRecording {
 public:
  /// `symbols`: files of names. The options' name is `name` without its folders.
  ViewedRecording(PlacedRecording placed, const std::string& name,
                  const std::vector<std::string>& symbols, view::RunViewOptions options);
  /// With these names, which include those of the recording.
  ViewedRecording(PlacedRecording placed, const std::string& name,
                  std::unique_ptr<const Symbols> symbols, view::RunViewOptions options);
  view::RunView& view() { return *view_; }
  const PlacedRecording& placed() const { return placed_; }
  /// Gets to know the run, up to this instruction at most. Throws Interrupted.
  void look_to(std::uint64_t instruction);

 private:
  void make_view(const std::string& name, view::RunViewOptions options);

  PlacedRecording placed_;
  std::unique_ptr<const Symbols> symbols_;
  std::unique_ptr<view::RunView> view_;
};

/// The answer to the question `runs`: the names of the runs of a page, and whether two are shown
/// side by side, with where they part.
nlohmann::ordered_json runs_together(const std::vector<std::string>& names,
                                     const nlohmann::ordered_json* parting);

/// Writes the page to `path`. Throws Interrupted.
void write_page(const std::string& path, const std::vector<view::ExportedRun>& runs,
                const nlohmann::ordered_json& together, const nlohmann::ordered_json& figures,
                const Console& console);

}  // namespace citcat
