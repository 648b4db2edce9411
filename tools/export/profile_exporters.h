#pragma once
// What the exporters of profiles share: a run as a tree of call paths, written at its end.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/export/call_paths.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {

class ProfileTool : public StepTool {
 public:
  /// `names` may be null.
  ProfileTool(ExportFile file, std::string command, const NameSource* names)
      : file_(std::move(file)), command_(std::move(command)), names_(names), paths_(names) {}

 protected:
  /// Writes the whole profile; the file is finished afterwards.
  virtual void write(const CallPaths& paths) = 0;
  ExportFile& file() { return file_; }
  const ExportFile& file() const { return file_; }
  /// What was run, for formats that name it.
  const std::string& command() const { return command_; }
  const NameSource* names() const { return names_; }

 private:
  void step(const Step& step) final { paths_.step(step, context()); }
  void happened(const StepEvent& h) final { paths_.happened(h); }
  void end() final {
    write(paths_);
    file_.finish();
  }

  ExportFile file_;
  std::string command_;
  const NameSource* names_;
  CallPaths paths_;
};

/// Nodes from the outermost to `node`, without the root.
std::vector<std::uint32_t> path_of(const CallPaths& paths, std::uint32_t node);
/// What ran in each node and in what it called.
std::vector<std::uint64_t> inclusive_of(const CallPaths& paths);

/// make() of a row.
template <class T>
std::unique_ptr<Tool> make_profile(ToolOptions& options, const Setup& setup) {
  return std::make_unique<T>(ExportFile(options, setup), options.text("command", "recording"),
                             setup.names);
}
template <class T>
std::unique_ptr<Tool> part_of_profile(const ExportFile& file, const std::string& command,
                                      const NameSource* names) {
  return std::make_unique<T>(ExportFile(file.path()), command, names);
}

inline constexpr const char* kProfileOptions =
    "to=FILE  where it goes\ncommand=TEXT  what was run, for viewers that show it";

}  // namespace citcat::tools
