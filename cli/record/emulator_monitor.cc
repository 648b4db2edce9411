#include "cli/record/emulator_monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// Writing the memory of a large machine takes its time.
constexpr std::chrono::seconds kAnswerIn{120};

}  // namespace

EmulatorMonitor::EmulatorMonitor() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError(std::string("socketpair: ") + std::strerror(errno));
  ours_ = FileDescriptor(ends[0]);
  theirs_ = FileDescriptor(ends[1]);
}

void EmulatorMonitor::end() const { (void)shutdown(ours_.value(), SHUT_RDWR); }

std::vector<std::string> EmulatorMonitor::options() const {
  return {"-chardev", fmt::format("socket,id=citcat-keeper,fd={}", emulators_end()), "-mon",
          "chardev=citcat-keeper,mode=control"};
}

std::optional<std::string> EmulatorMonitor::next_line(std::chrono::steady_clock::time_point end) {
  while (received_.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd ready{ours_.value(), POLLIN, 0};
    const int polled = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return std::nullopt;
    std::array<char, 4096> bytes;
    const ssize_t size = ::read(ours_.value(), bytes.data(), bytes.size());
    if (size <= 0) return std::nullopt;
    received_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  const std::size_t size = received_.find('\n');
  std::string line = received_.substr(0, size);
  received_.erase(0, size + 1);
  return line;
}

/// The answer to a request, between events.
std::optional<std::string> EmulatorMonitor::ask(const std::string& request) {
  const auto end = std::chrono::steady_clock::now() + kAnswerIn;
  if (!greeted_) {
    greeted_ = true;
    if (!next_line(end) || !ask(R"({"execute":"qmp_capabilities"})")) return std::nullopt;
  }
  if (send(ours_.value(), (request + "\n").data(), request.size() + 1, MSG_NOSIGNAL) < 0)
    return std::nullopt;
  while (auto line = next_line(end))
    if (line->find("\"event\"") == std::string::npos) return line;
  return std::nullopt;
}

bool EmulatorMonitor::execute(const std::string& command) {
  const auto answer = ask(nlohmann::json{{"execute", command}}.dump());
  return answer && answer->find("\"error\"") == std::string::npos;
}

std::optional<std::string> EmulatorMonitor::say(const std::string& line) {
  const auto answer = ask(
      nlohmann::json{{"execute", "human-monitor-command"}, {"arguments", {{"command-line", line}}}}
          .dump());
  if (!answer) return std::nullopt;
  const auto json = nlohmann::json::parse(*answer, nullptr, false);
  if (json.is_object() && json.contains("return") && json["return"].is_string()) {
    std::string text = json["return"];
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
  }
  return "the command failed: " + *answer;
}

std::optional<std::uint64_t> EmulatorMonitor::instructions() {
  const auto answer = ask(R"({"execute":"query-replay"})");
  if (!answer) return std::nullopt;
  const auto json = nlohmann::json::parse(*answer, nullptr, false);
  if (!json.is_object() || !json.contains("return") || !json["return"].is_object() ||
      !json["return"].contains("icount"))
    return std::nullopt;
  return json["return"]["icount"].get<std::uint64_t>();
}

}  // namespace citcat
