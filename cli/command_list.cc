// All commands of the program.

#include "cli/command.h"

namespace citcat {

// Each is defined in cli/cmd_<name>.cc. Declared here, because nothing else may use them directly.
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

const std::vector<const Command*>& command_list() {
  static const std::vector<const Command*> commands{
      &kRecordCommand,  &kImportCommand,  &kReplayCommand, &kMergeCommand,      &kCatCommand,
      &kAnalyzeCommand, &kCountCommand,   &kBpredCommand,  &kCacheCommand,      &kSqlCommand,
      &kDiffCommand,    &kCompareCommand, &kViewCommand,   &kRepCommand,        &kVerifyCommand,
      &kReportCommand,  &kInfoCommand,    &kDumpCommand,   &kConvertCommand,    &kLintCommand,
      &kCheckCommand,   &kRepairCommand,  &kSlimCommand,   &kCheckpointCommand, &kPlaceCommand,
      &kExplainCommand, &kWhyCommand,     &kDebugCommand,  &kDapCommand,        &kSessionCommand,
  };
  return commands;
}

}  // namespace citcat
