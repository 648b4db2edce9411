#include "tools/host/window_control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/io/error.h"
#include "tools/host/window_words.h"

namespace citcat::tools {

namespace {

/// Instructions that are decided together: under a millisecond of any replay, and enough that
/// asking costs nothing.
constexpr std::uint64_t kStretch = 10'000;
constexpr std::size_t kMaxLine = 256;
/// Lines that are refused with a message; of more of them nobody wants to read.
constexpr unsigned kMostRefusals = 20;

}  // namespace

bool WindowControl::has(std::uint64_t instruction) {
  decide(instruction);
  const auto edge = std::upper_bound(edges_.begin(), edges_.end(), instruction);
  return (edge - edges_.begin()) % 2 != 0;
}

std::uint64_t WindowControl::next_edge(std::uint64_t instruction) {
  decide(instruction);
  const auto edge = std::upper_bound(edges_.begin(), edges_.end(), instruction);
  return edge != edges_.end() ? *edge : horizon_;
}

void WindowControl::decide(std::uint64_t instruction) {
  if (instruction < horizon_) return;
  if (input_.value() < 0) open();
  read_lines();
  horizon_ = (instruction / kStretch + 1) * kStretch;
  while (!queue_.empty()) {
    std::uint64_t at = std::max(queue_.front().at.value_or(instruction), instruction);
    if (!edges_.empty()) at = std::max(at, edges_.back());
    if (at >= horizon_) return;
    apply(queue_.front(), at);
    queue_.pop_front();
  }
}

void WindowControl::apply(const Command& command, std::uint64_t at) {
  const bool is_open = edges_.size() % 2 != 0;
  if (command.opens == is_open) return;
  // A window of nothing is none, and two without a gap are one.
  if (!edges_.empty() && edges_.back() == at) {
    edges_.pop_back();
  } else {
    edges_.push_back(at);
  }
}

void WindowControl::open() {
  output_ = std::make_unique<AtomicFile>(decisions_);
  do {
    input_ = FileDescriptor(::open(pipe_.c_str(), O_RDONLY | O_CLOEXEC));
  } while (input_.value() < 0 && errno == EINTR);
  if (input_.value() < 0) throw IoError(pipe_ + ": " + std::strerror(errno));
  const int flags = ::fcntl(input_.value(), F_GETFL);
  if (flags < 0 || ::fcntl(input_.value(), F_SETFL, flags | O_NONBLOCK) < 0) {
    throw IoError(pipe_ + ": " + std::strerror(errno));
  }
  wait_for_line();
}

void WindowControl::wait_for_line() {
  struct stat status {};
  if (::fstat(input_.value(), &status) < 0) throw IoError(pipe_ + ": " + std::strerror(errno));
  // A file has come to its end where nothing can be read; of a pipe its writers say so.
  const bool is_file = S_ISREG(status.st_mode);
  while (queue_.empty()) {
    pollfd one{input_.value(), POLLIN, 0};
    if (::poll(&one, 1, -1) < 0 && errno != EINTR) {
      throw IoError(pipe_ + ": " + std::strerror(errno));
    }
    if (one.revents == 0 || read_piece()) continue;
    if (is_file || (one.revents & POLLHUP) != 0) return;
  }
}

void WindowControl::read_lines() {
  while (read_piece()) {
  }
}

/// What is there now. False where that is nothing.
bool WindowControl::read_piece() {
  char piece[4096];
  const ssize_t n = ::read(input_.value(), piece, sizeof piece);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw IoError(pipe_ + ": " + std::strerror(errno));
  }
  // Without a piece its writer is gone; another one may come.
  if (n == 0) end_line();
  for (const char c : std::string_view(piece, static_cast<std::size_t>(n))) {
    ++offset_;
    if (c == '\n') {
      end_line();
    } else if (line_.size() <= kMaxLine) {
      line_ += c;
    }
  }
  return n > 0;
}

void WindowControl::end_line() {
  const std::uint64_t offset = std::exchange(line_begin_, offset_);
  take_line(std::exchange(line_, {}), offset);
}

void WindowControl::take_line(const std::string& line, std::uint64_t offset) {
  if (line.size() > kMaxLine) {
    return refuse(offset, "expected open or close, found a line of more than " +
                              std::to_string(kMaxLine) + " bytes");
  }
  try {
    WindowWords words(line);
    if (words.peek().empty()) return;
    Command command;
    const std::string verb = words.next();
    command.opens = verb == "open";
    if (!command.opens && verb != "close") {
      return refuse(offset, "expected open or close, found \"" + verb + "\"");
    }
    if (!words.peek().empty()) command.at = words.number();
    words.expect_end();
    queue_.push_back(command);
  } catch (const UsageError&) {
    refuse(offset, "expected open or close with a number or none, found \"" + line + "\"");
  }
}

/// The run goes on: it may have taken hours to come here.
void WindowControl::refuse(std::uint64_t offset, const std::string& message) {
  if (++refusals_ > kMostRefusals || !warn_) return;
  warn_(pipe_ + ":" + std::to_string(offset) + ": " + message + "; the line has no effect" +
        (refusals_ == kMostRefusals ? ", nor have further ones that are like it" : ""));
}

void WindowControl::finish() {
  if (input_.value() < 0) open();
  std::string text = "# Windows of a run, opened and closed through " + pipe_ + "\n";
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    text += std::to_string(edges_[i]) + (i % 2 == 0 ? "-" : "\n");
  }
  if (edges_.size() % 2 != 0) text += "\n";
  output_->write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  output_->commit();
}

}  // namespace citcat::tools
