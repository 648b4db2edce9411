#include "debugger/dap/line.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/io/error.h"

namespace citcat::dap {
namespace {

bool interrupts(const std::string& message) {
  try {
    const Request request = parse_request(message);
    return request.command == "pause" || request.command == "disconnect" ||
           request.command == "terminate";
  } catch (const UsageError&) {
    return false;  // refused when it is received
  }
}

}  // namespace

/// Waits for bytes; false at the end of the line.
bool Line::read_more() {
  std::array<char, 4096> bytes;
  ssize_t n = 0;
  do {
    n = ::read(in_, bytes.data(), bytes.size());
  } while (n < 0 && errno == EINTR);
  if (n <= 0) {
    lose(n < 0 ? errno : 0);
    return false;
  }
  reader_.add({bytes.data(), static_cast<std::size_t>(n)});
  return true;
}

void Line::lose(int error) {
  gone_ = true;
  if (error != 0 && error != EPIPE && error != ECONNRESET) failure_ = std::strerror(error);
}

bool Line::receive(std::string& message) {
  if (!waiting_.empty()) {
    message = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  for (;;) {
    if (auto next = reader_.take()) {
      message = std::move(*next);
      return true;
    }
    if (gone_ || !read_more()) return false;
  }
}

bool Line::is_interrupted() {
  pollfd line{in_, POLLIN, 0};
  for (;;) {
    while (waiting_.size() < kMostWaiting) {
      auto next = reader_.take();
      if (!next) break;
      waiting_.push_back(std::move(*next));
      if (interrupts(waiting_.back())) return true;
    }
    if (gone_) return true;
    if (waiting_.size() >= kMostWaiting || poll(&line, 1, 0) <= 0) return false;
    read_more();
  }
}

void Line::send(Json message) {
  message["seq"] = ++sent_;
  const std::string text = framed(message);
  std::string_view left = text;
  while (!left.empty() && !gone_) {
    const ssize_t n = ::write(out_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      lose(n < 0 ? errno : 0);
    } else {
      left.remove_prefix(static_cast<std::size_t>(n));
    }
  }
}

}  // namespace citcat::dap
