#pragma once
// An editor, as `citcat dap` sees it: requests over pipes, answers and events back.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace citcat::testing {

class DapClient {
 public:
  using Json = nlohmann::json;

  /// Starts the program with `arguments` behind `dap`, in the folder `where`.
  DapClient(const std::vector<std::string>& arguments, const std::filesystem::path& where);
  ~DapClient();
  DapClient(const DapClient&) = delete;
  DapClient& operator=(const DapClient&) = delete;

  /// Sends a request, and returns the answer, with whatever it says. Events before it are kept.
  Json ask(const std::string& command, const Json& arguments = nullptr);
  /// The body of the answer, which must be a success.
  Json body(const std::string& command, const Json& arguments = nullptr);
  /// The body of the next event of that name, waited for; other events are dropped.
  Json event(const std::string& name);
  /// `ask`, and the `stopped` behind it.
  Json move(const std::string& command, Json arguments = Json::object());
  /// Sends bytes as they are.
  void send_raw(const std::string& bytes);
  /// Waits for the program's end; its exit status.
  int finish();
  /// Everything that went over the line, a message a line: "> " from here, "< " from there.
  const std::string& log() const { return log_; }

 private:
  Json receive();

  int to_ = -1, from_ = -1, process_ = -1;
  int last_ = 0;
  void (*usual_)(int) = nullptr;  ///< what SIGPIPE did
  std::string buffer_, log_;
  std::vector<Json> events_;
};

}  // namespace citcat::testing
