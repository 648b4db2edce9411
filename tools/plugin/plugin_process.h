#pragma once
// The process in which an isolated tool runs, as the host sees it.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/plugin/plugin_library.h"
#include "tools/plugin/plugin_messages.h"

namespace citcat::tools {

class ClosedHost;

/// Talks to one process. Whatever that does - crashes, ends, hangs, answers nonsense - is a
/// PluginFailure here, and the process is gone then.
class PluginProcess {
 public:
  /// Starts this program again as the process of a tool: `arguments` follow kPluginServerArgument.
  /// `path` names the tool in messages. It may take `limit` to answer or to read a segment. Throws
  /// IoError where no process can be made.
  PluginProcess(std::string path, const std::vector<std::string>& arguments,
                std::chrono::milliseconds limit);
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  /// What the tool says of itself, once, before anything else. Throws UsageError where the tool was
  /// refused, PluginFailure.
  PluginDescription description();

  /// Puts a message, made of these pieces, after the others. Throws PluginFailure.
  void send(PluginMessage kind, std::initializer_list<std::span<const std::uint8_t>> pieces);
  /// Sends what asks, and waits for the answer. Throws PluginFailure.
  std::vector<std::uint8_t> ask(PluginMessage kind, PluginAnswer expected);
  /// Says that there is nothing more, and waits for it to end. Throws PluginFailure where it does
  /// not, or differently from by returning.
  void finish();

 private:
  struct Answer {
    PluginAnswer kind;
    std::vector<std::uint8_t> bytes;
  };

  void start(const std::vector<std::string>& arguments);
  void hand_over();
  void check_done(Answer answer);
  Answer next_answer();
  void read(std::span<std::uint8_t> into);
  [[noreturn]] void fail(const std::string& what);
  std::optional<int> wait_for_end(std::chrono::milliseconds limit);
  int take_up();
  std::string how_it_ended();
  void end();

  std::string path_;
  std::chrono::milliseconds limit_;
  std::unique_ptr<ClosedHost> closed_;
  pid_t process_ = -1;
  int socket_ = -1;
  std::uint8_t* memory_ = nullptr;
  std::size_t segment_ = 0;      ///< being filled
  std::size_t used_ = 0;         ///< bytes of it
  std::size_t handed_over_ = 0;  ///< segments that the tool has not read yet
};

/// Why a tool's process gave no results; what() is one line.
class PluginFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace citcat::tools
