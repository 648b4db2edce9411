// Writes the files about the command line that an installation has: manual pages and the completion
// of bash, zsh and fish.
//
//   citcat-pages FOLDER      makes FOLDER/man1/citcat*.1, FOLDER/bash/citcat, FOLDER/zsh/_citcat
//   and
//                            FOLDER/fish/citcat.fish, in place of all that FOLDER had

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "cli/command_line.h"
#include "cli/pages/completion.h"
#include "cli/pages/man_page.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

void write_pages(const fs::path& folder) {
  CommandLine line;
  const std::vector<CommandDescription> commands = describe_commands(line.app());
  fs::remove_all(folder);
  write(folder / "man1/citcat.1", program_page(commands));
  for (const CommandDescription& command : commands) {
    write(folder / "man1" / ("citcat-" + command.name + ".1"), command_page(command));
  }
  write(folder / "bash/citcat", bash_completion(commands));
  write(folder / "zsh/_citcat", zsh_completion(commands));
  write(folder / "fish/citcat.fish", fish_completion(commands));
}

}  // namespace
}  // namespace citcat

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: citcat-pages FOLDER\n";
    return 2;
  }
  try {
    citcat::write_pages(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "citcat-pages: " << error.what() << "\n";
    return 4;
  }
}
