#pragma once
// The whole command line: every command with its options, as the program parses it and as manual
// pages and shell completion are made of it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cli/command.h"
#include "formats/io/memory_limit.h"

namespace CLI {
class App;
}  // namespace CLI

namespace citcat {

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Parses the arguments. What is to be run then, which is nothing when help or the version was
  /// asked for and has been printed. Throws UsageError, which names the nearest match for an
  /// unknown command or option.
  CommandRun parse(int argc, const char* const* argv);
  /// As given to parse(): print no notes and no progress.
  bool quiet() const { return quiet_; }
  /// As given to parse(): bytes of memory that the contents of files may take.
  std::uint64_t memory_limit() const { return memory_limit_; }

  /// With the options of all commands.
  const CLI::App& app();

 private:
  /// `group`: CommandGroup::title.
  void add_command(const Command& command, const std::string& group);
  /// Adds the options of the command of that name, if there is one and it has none yet: those of
  /// all take longer than the work of many a command.
  void define(std::string name);
  void add_help();

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, const Command*> undefined_;  ///< those without their options
  bool quiet_ = false;
  std::uint64_t memory_limit_ = kDefaultMemoryLimit;
  CommandRun chosen_;
};

}  // namespace citcat
