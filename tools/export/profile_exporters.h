#pragma once
// The common part of exporters of profiles: the run as a tree of call paths, written at its end.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "formats/io/error.h"
#include "tools/analyses/call_follower.h"
#include "tools/analyses/call_tree.h"
#include "tools/analyses/procedure_table.h"
#include "tools/export/call_paths.h"
#include "tools/export/export_file.h"
#include "tools/export/told_step.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// What all exporters count in a run that is reported block by block.
class BlockTotals {
 public:
  void run(const Execution& execution, const Context& context);
  void event(const MachineEvent& event);
  /// The run is within this instruction, and does not complete it.
  void unfinished(Position at) { is_pending_ = is_pending_ && last_ != at.instruction; }
  void end() { settle(last_ + 1); }
  const StepTotals& totals() const { return totals_; }

 private:
  /// The last instruction is followed by what begins number `next` of the run.
  void settle(std::uint64_t next) {
    if (is_pending_ && next > last_) ++totals_.instructions;
    is_pending_ = false;
  }

  StepTotals totals_;
  bool is_pending_ = false;  ///< whether the last one completed is not known yet
  std::uint64_t last_ = 0;
};

class ProfileTool : public Tool, private CallFollowerListener {
 public:
  /// `names` may be null.
  ProfileTool(ExportFile file, std::string command, const NameSource* names)
      : file_(std::move(file)), command_(std::move(command)), names_(names), procedures_(names) {}

  Wants wants() const final { return CallFollower::wants(); }
  void* code(const StaticBlock& block) final { return follower_.code(block); }
  void run(void* mine, const Execution& execution, const Context& context) final {
    totals_.run(execution, context);
    follower_.run(mine, execution, context);
  }
  void event(const MachineEvent& event, const Context& context) final {
    totals_.event(event);
    follower_.event(event, context);
  }
  void left_scope(const Context& context) final { follower_.left_scope(context); }
  void unfinished(Position at) final {
    totals_.unfinished(at);
    follower_.unfinished(at);
  }
  /// Calls are followed from the beginning on, and so are the names of processes.
  bool merges() const final { return false; }
  void follow(Tool&&) final { throw InternalError("parts of a profile are put together"); }
  void save(ByteWriter&) const final {}
  void load(ByteReader&) final {}
  void report(Report& out) const final;

 protected:
  /// Writes the whole profile; the file is finished afterwards.
  virtual void write(const CallPaths& paths) = 0;
  /// What was run, for formats that name it.
  const std::string& command() const { return command_; }
  const NameSource* names() const { return names_; }
  ExportFile& file() { return file_; }
  const ExportFile& file() const { return file_; }

 private:
  CallPath began(AddressSpaceId space) final;
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

  ExportFile file_;
  std::string command_;
  const NameSource* names_;
  BlockTotals totals_;
  bool written_ = false;
  ProcedureTable procedures_;
  CallFollower follower_{procedures_, *this};
  CallTree tree_;
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
