#include "cli/record/console_relay.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <span>

#include "cli/record/console_keys.h"

namespace citcat {
namespace {

/// Half of what the port of a PC holds, at a rate that a machine keeps up with.
constexpr unsigned kPiece = 8;
constexpr std::chrono::milliseconds kPause{10};

/// As QEMU sets its own terminal: output lines still end in a carriage return.
termios one_by_one(termios terminal) {
  cfmakeraw(&terminal);
  terminal.c_oflag |= OPOST;
  return terminal;
}

}  // namespace

ConsoleRelay::ConsoleRelay() {
  termios terminal{};
  if (isatty(STDIN_FILENO) == 0 || tcgetattr(STDIN_FILENO, &terminal) != 0) return;
  before_ = terminal;
  const termios raw = one_by_one(terminal);
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

void ConsoleRelay::begin() {
  pipe_.read = FileDescriptor();
  thread_ = std::thread([this] { relay(); });
}

ConsoleRelay::~ConsoleRelay() {
  end_.write = FileDescriptor();
  if (thread_.joinable()) thread_.join();
  if (before_) tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

/// Until there is nothing more, nobody reads it, or the relay is to end.
void ConsoleRelay::relay() {
  // A pipe that nobody reads any more says so by EPIPE, and other signals are for the other thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ConsoleKeys keys;
  std::array<char, 4096> typed;
  std::array<pollfd, 2> ends{{{STDIN_FILENO, POLLIN, 0}, {end_.read.value(), POLLIN, 0}}};
  while (poll(ends.data(), ends.size(), -1) >= 0 || errno == EINTR) {
    if (ends[1].revents != 0) return;
    if (ends[0].revents == 0) continue;
    const ssize_t size = ::read(STDIN_FILENO, typed.data(), typed.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    for (const char key : std::span(typed).first(static_cast<std::size_t>(size))) {
      const std::optional<char> byte = before_ ? keys.take(key) : key;
      if (keys.asks_end()) asks_end_ = true;
      if (byte && !send(*byte)) return;
    }
    sent_ = 0;
  }
  pipe_.write = FileDescriptor();
}

/// False where the relay is to end.
bool ConsoleRelay::send(char byte) {
  if (sent_++ == kPiece) {
    pollfd end{end_.read.value(), POLLIN, 0};
    if (poll(&end, 1, static_cast<int>(kPause.count())) > 0) return false;
    sent_ = 1;
  }
  std::array<pollfd, 2> ends{{{pipe_.write.value(), POLLOUT, 0}, {end_.read.value(), POLLIN, 0}}};
  while (poll(ends.data(), ends.size(), -1) < 0)
    if (errno != EINTR) return false;
  return ends[1].revents == 0 && ::write(pipe_.write.value(), &byte, 1) == 1;
}

}  // namespace citcat
