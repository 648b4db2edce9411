#pragma once
// The common part of exporters of profiles: the run as a tree of call paths, written at its end.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/analyses/call_follower.h"
#include "tools/analyses/call_tree.h"
#include "tools/analyses/procedure_table.h"
#include "tools/export/call_paths.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {

class ProfileTool : public StepTool, private CallFollowerListener {
 public:
  /// `names` may be null.
  ProfileTool(ExportFile file, std::string command, const NameSource* names)
      : StepTool(std::move(file)),
        command_(std::move(command)),
        names_(names),
        procedures_(names) {}

  void* code(const StaticBlock& block) final;
  void run(void* mine, const Execution& execution, const Context& context) final;
  void event(const MachineEvent& event, const Context& context) final;
  /// Calls are followed from the beginning on, and so are the names of processes.
  bool merges() const final { return false; }

 protected:
  /// Writes the whole profile; the file is finished afterwards.
  virtual void write(const CallPaths& paths) = 0;
  /// What was run, for formats that name it.
  const std::string& command() const { return command_; }
  const NameSource* names() const { return names_; }

 private:
  /// A piece of code, to both who follow.
  struct Piece {
    void* stepped = nullptr;
    void* followed = nullptr;
  };

  void step(const Step& /*step*/) final {}
  void end() final;

  CallPath began(std::uint32_t space) final;
  CallPath handles(CallPath under, const KernelEntry& entry) final;
  CallPath entered(CallPath under, ProcedureNumber procedure, bool is_base) final;
  void left(const CallFrame& /*frame*/, std::uint64_t /*instructions*/, bool /*outermost*/,
            bool /*outermost_arc*/) final {}
  void called(ProcedureNumber /*caller*/, ProcedureNumber /*procedure*/) final {}
  void executed(ProcedureNumber procedure, std::uint64_t instructions) final {
    tree_.executed(follower_.stacks(), procedure, instructions);
  }
  void executed_further(ProcedureNumber /*procedure*/, std::uint64_t instructions) final {
    tree_.executed_further(instructions);
  }
  void taken_back(ProcedureNumber /*procedure*/) final { tree_.taken_back(); }

  std::string command_;
  const NameSource* names_;
  ProcedureTable procedures_;
  CallFollower follower_{procedures_, *this};
  CallTree tree_;
  std::deque<Piece> pieces_;
};

/// make() of a row.
template <class T>
std::unique_ptr<Tool> make_profile(ToolOptions& options, const Setup& setup) {
  return std::make_unique<T>(ExportFile(options, setup), options.text("command", "recording"),
                             setup.names);
}
template <class T>
std::unique_ptr<Tool> part_of_profile(const ExportFile& file, const std::string& command,
                                      const NameSource* names) {
  return std::make_unique<T>(file.anew(), command, names);
}

inline constexpr const char* kProfileOptions =
    "to=FILE  output file\ncommand=TEXT  what was run, for viewers that show it";

}  // namespace citcat::tools
