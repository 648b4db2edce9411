#include "cli/view/viewed_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/interrupt.h"
#include "formats/io/atomic_file.h"
#include "tools/guest/recording_symbols.h"
#include "view/model/answer_text.h"

namespace citcat {

namespace {

using Json = nlohmann::ordered_json;

std::string plain_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

ViewedRecording::ViewedRecording(PlacedRecording placed, const std::string& name,
                                 const std::vector<std::string>& symbols,
                                 view::RunViewOptions options)
    : placed_(std::move(placed)),
      symbols_(std::make_unique<const Symbols>(tools::known_symbols(placed_.file, symbols))) {
  make_view(name, std::move(options));
}

ViewedRecording::ViewedRecording(PlacedRecording placed, const std::string& name,
                                 std::unique_ptr<const Symbols> symbols,
                                 view::RunViewOptions options)
    : placed_(std::move(placed)), symbols_(std::move(symbols)) {
  make_view(name, std::move(options));
}

void ViewedRecording::make_view(const std::string& name, view::RunViewOptions options) {
  options.name = plain_name(name);
  options.interrupted = interrupt_requested;
  view_ = std::make_unique<view::RunView>(placed_.file, *symbols_, std::move(options));
}

void ViewedRecording::look_to(std::uint64_t instruction) {
  for (;;) {
    check_interrupt();
    const std::uint64_t done = view_->index().told_to();
    if (done >= instruction) return;
    if (!view_->look_further(std::min(kLookedAtOnce, instruction - done))) return;
  }
}

Json runs_together(const std::vector<std::string>& names, const Json* parting) {
  Json json = {{"runs", Json::array()}, {"compared", parting != nullptr}};
  for (const std::string& name : names) json["runs"].push_back(plain_name(name));
  if (parting != nullptr && !parting->is_null()) json["parting"] = *parting;
  view::make_printable(json);
  return json;
}

void write_page(const std::string& path, const std::vector<view::ExportedRun>& runs,
                const Json& together, const Json& figures, const Console& console) {
  const std::optional<std::string> page = view::exported_page(runs, together, figures);
  if (!page) throw Interrupted();
  AtomicFile file(path);
  file.write({reinterpret_cast<const std::uint8_t*>(page->data()), page->size()});
  file.commit();
  console.note(fmt::format("{}: {} bytes", path, page->size()));
}

}  // namespace citcat
