#include "golden/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace citcat::testing {
namespace {

[[noreturn]] void exec_child(const char* program, const std::vector<std::string>& arguments,
                             const std::filesystem::path& where, const std::string& out,
                             const std::string& err) {
  const int input = open("/dev/null", O_RDONLY);
  const int output = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int errors = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (input < 0 || output < 0 || errors < 0 || dup2(input, STDIN_FILENO) < 0 ||
      dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 ||
      chdir(where.c_str()) != 0) {
    _exit(125);
  }
  std::vector<char*> argv{const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program, argv.data());
  _exit(126);
}

ProcessResult run_program(const char* program, const std::vector<std::string>& arguments,
                          const std::filesystem::path& where) {
  const TemporaryFolder folder;
  const std::filesystem::path out = folder.path() / "out";
  const std::filesystem::path err = folder.path() / "err";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) exec_child(program, arguments, where, out, err);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  ProcessResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

}  // namespace

ProcessResult run_citcat(const std::vector<std::string>& arguments,
                         const std::filesystem::path& where) {
  return run_program(CITCAT_PROGRAM, arguments, where);
}

ProcessResult run_shell(const std::string& script, const std::filesystem::path& where) {
  const std::string head = "set -o pipefail; CITCAT='" CITCAT_PROGRAM "'; ";
  return run_program("/usr/bin/timeout", {"60", "/bin/bash", "-c", head + script}, where);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "citcat-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace citcat::testing
