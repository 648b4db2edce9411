#include "debugger/dap/line.h"

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
  reader_.add(line_.read());
  return !line_.gone();
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
    if (line_.gone() || !read_more()) return false;
  }
}

bool Line::is_interrupted() {
  for (;;) {
    while (waiting_.size() < kMostWaiting) {
      auto next = reader_.take();
      if (!next) break;
      waiting_.push_back(std::move(*next));
      if (interrupts(waiting_.back())) return true;
    }
    if (line_.gone()) return true;
    if (waiting_.size() >= kMostWaiting || !line_.has_input()) return false;
    read_more();
  }
}

void Line::send(Json message) {
  message["seq"] = ++sent_;
  line_.write(framed(message));
}

}  // namespace citcat::dap
