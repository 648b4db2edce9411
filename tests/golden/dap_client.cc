#include "golden/dap_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

namespace citcat::testing {

DapClient::DapClient(const std::vector<std::string>& arguments,
                     const std::filesystem::path& where) {
  std::array<int, 2> in{}, out{};
  if (pipe(in.data()) != 0 || pipe(out.data()) != 0) throw std::runtime_error("no pipes");
  usual_ = signal(SIGPIPE, SIG_IGN);
  process_ = fork();
  if (process_ == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (const int descriptor : {in[0], in[1], out[0], out[1]}) close(descriptor);
    if (chdir(where.c_str()) != 0) _exit(126);
    std::vector<std::string> words{CITCAT_PROGRAM, "dap"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
}

DapClient::~DapClient() {
  if (process_ > 0) finish();
  close(from_);
  signal(SIGPIPE, usual_);  // programs of other tests inherit it
}

void DapClient::send_raw(const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = write(to_, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

DapClient::Json DapClient::receive() {
  for (;;) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t length = std::stoul(buffer_.substr(buffer_.find(':') + 1));
      if (buffer_.size() >= end + 4 + length) {
        const std::string text = buffer_.substr(end + 4, length);
        buffer_.erase(0, end + 4 + length);
        log_ += "< " + text + "\n";
        return Json::parse(text);
      }
    }
    std::array<char, 4096> bytes{};
    const ssize_t n = read(from_, bytes.data(), bytes.size());
    if (n <= 0) throw std::runtime_error("citcat dap has gone; it said\n" + log_);
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

DapClient::Json DapClient::ask(const std::string& command, const Json& arguments) {
  Json request{{"seq", ++last_}, {"type", "request"}, {"command", command}};
  if (!arguments.is_null()) request["arguments"] = arguments;
  const std::string text = request.dump();
  log_ += "> " + text + "\n";
  send_raw("Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  for (;;) {
    Json message = receive();
    if (message.at("type") == "event") {
      events_.push_back(std::move(message));
      continue;
    }
    // A message that was no request is refused without a number.
    if (message.at("request_seq") == 0) continue;
    EXPECT_EQ(message.at("request_seq"), last_) << log_;
    return message;
  }
}

DapClient::Json DapClient::body(const std::string& command, const Json& arguments) {
  const Json answer = ask(command, arguments);
  EXPECT_TRUE(answer.at("success").get<bool>()) << answer;
  return answer.value("body", Json::object());
}

DapClient::Json DapClient::event(const std::string& name) {
  for (;;) {
    while (!events_.empty()) {
      const Json first = events_.front();
      events_.erase(events_.begin());
      if (first.at("event") == name) return first.value("body", Json::object());
    }
    Json message = receive();
    EXPECT_EQ(message.at("type"), "event") << message;
    events_.push_back(std::move(message));
  }
}

DapClient::Json DapClient::move(const std::string& command, Json arguments) {
  arguments["threadId"] = arguments.value("threadId", 1);
  events_.clear();
  body(command, arguments);
  return event("stopped");
}

int DapClient::finish() {
  close(to_);
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace citcat::testing
