// All commands of the program.

#include "cli/command.h"

namespace citcat {

// Each is defined in a file cmd_<name>.cc. Declared here, because nothing else may use them
// directly.
extern const Command kRecordCommand;
extern const Command kImportCommand;
extern const Command kReplayCommand;
extern const Command kMergeCommand;
extern const Command kCatCommand;
extern const Command kAnalyzeCommand;
extern const Command kCountCommand;
extern const Command kBpredCommand;
extern const Command kCacheCommand;
extern const Command kSqlCommand;
extern const Command kDiffCommand;
extern const Command kCompareCommand;
extern const Command kVerifyCommand;
extern const Command kReportCommand;
extern const Command kInfoCommand;
extern const Command kDumpCommand;
extern const Command kConvertCommand;
extern const Command kLintCommand;
extern const Command kCheckCommand;
extern const Command kRepairCommand;
extern const Command kSlimCommand;
extern const Command kCheckpointCommand;
extern const Command kPlaceCommand;
extern const Command kExplainCommand;
extern const Command kViewCommand;
extern const Command kRepCommand;
extern const Command kDebugCommand;
extern const Command kDapCommand;
extern const Command kWhyCommand;
extern const Command kSessionCommand;
extern const Command kDemoCommand;

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups{
      {"Most used",
       {&kRecordCommand, &kImportCommand, &kVerifyCommand, &kViewCommand, &kAnalyzeCommand}},
      {"Ask about a run",
       {&kInfoCommand, &kSqlCommand, &kWhyCommand, &kDiffCommand, &kCompareCommand, &kReportCommand,
        &kSessionCommand}},
      {"Debug a run", {&kDebugCommand, &kDapCommand}},
      {"Write and print traces",
       {&kReplayCommand, &kCatCommand, &kDumpCommand, &kMergeCommand, &kConvertCommand}},
      {"When a replay does not match", {&kExplainCommand, &kPlaceCommand, &kLintCommand}},
      {"Look after recordings",
       {&kSlimCommand, &kCheckpointCommand, &kCheckCommand, &kRepairCommand}},
      {kFoldedGroup, {&kDemoCommand, &kCountCommand, &kBpredCommand, &kCacheCommand, &kRepCommand}},
  };
  return groups;
}

const std::vector<const Command*>& command_list() {
  static const std::vector<const Command*> all = [] {
    std::vector<const Command*> commands;
    for (const CommandGroup& group : command_groups()) {
      commands.insert(commands.end(), group.commands.begin(), group.commands.end());
    }
    return commands;
  }();
  return all;
}

}  // namespace citcat
