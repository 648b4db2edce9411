#include "debugger/protocol/packet_reader.h"

#include <utility>

namespace citcat::gdb {

namespace {

constexpr char kInterrupt = 3;

}  // namespace

void PacketReader::add(std::string_view bytes) {
  for (const char c : bytes) add(c);
}

void PacketReader::add(char c) {
  switch (state_) {
    case State::between:
      if (c == '$') {
        state_ = State::body;
        body_.clear();
        too_long_ = false;
      } else if (c == kInterrupt) {
        ready_.push_back({Incoming::Kind::interrupt, ""});
      } else if (c == '+' || c == '-') {
        ready_.push_back({c == '+' ? Incoming::Kind::ack : Incoming::Kind::nak, ""});
      }
      return;
    case State::body:
      if (c == '#') {
        state_ = State::first_digit;
      } else if (c == '$') {
        // The end of the one before was lost.
        body_.clear();
        too_long_ = false;
      } else if (body_.size() < kMaxPacketBytes) {
        body_ += c;
      } else {
        too_long_ = true;
      }
      return;
    case State::first_digit:
      first_ = c;
      state_ = State::second_digit;
      return;
    case State::second_digit:
      state_ = State::between;
      finish(c);
      return;
  }
}

void PacketReader::finish(char second) {
  const auto sum = bytes_of(std::string{first_, second});
  const bool whole = !too_long_ && sum && sum->front() == packet_sum(body_);
  const auto data = whole ? data_of(body_) : std::nullopt;
  if (data) {
    ready_.push_back({Incoming::Kind::packet, *data});
  } else {
    ready_.push_back({Incoming::Kind::damaged, ""});
  }
}

bool PacketReader::take(Incoming& out) {
  if (ready_.empty()) return false;
  out = std::move(ready_.front());
  ready_.pop_front();
  return true;
}

}  // namespace citcat::gdb
