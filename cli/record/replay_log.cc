#include "cli/record/replay_log.h"

#include <cstddef>

#include "formats/io/stored_bytes.h"

namespace citcat {
namespace {

// QEMU 10.0, replay/replay-internal.h and include/system/replay.h.
constexpr std::uint32_t kVersion = 0xe0200c;
enum Event : std::uint8_t {
  kInstructions = 0,
  kException = 2,
  kFirstAsync = 3,
  kLastAsync = 9,
  kFirstShutdown = 10,
  kLastShutdown = 0x15,
  kCharWrite = 0x16,
  kCharReadAll = 0x17,
  kCharReadAllError = 0x18,
  kRandom = 0x1b,
  kFirstClock = 0x1c,
  kLastClock = 0x1d,
  kFirstCheckpoint = 0x1e,
  kLastCheckpoint = 0x26,
  kEnd = 0x27,
};
enum Async : std::uint8_t { kBh, kBhOnce, kInput, kInputSync, kCharRead, kBlock, kNet };

/// A file that may end anywhere.
class LogBytes {
 public:
  explicit LogBytes(const std::string& path) : bytes_(path, path), buffer_(std::size_t{1} << 20) {}

  bool ended() const { return ended_; }
  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < size; ++n) value = value << 8 | byte();
    return value;
  }
  std::string array() {
    std::string out;
    for (auto left = number(4); left > 0 && !ended_; --left) out += static_cast<char>(byte());
    return out;
  }
  std::uint8_t byte() {
    if (at_ == held_) {
      held_ = ended_ ? 0 : bytes_.take(buffer_);
      at_ = 0;
      ended_ = held_ == 0;
    }
    return ended_ ? 0 : buffer_[at_++];
  }

 private:
  StoredBytes bytes_;
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0, held_ = 0;
  bool ended_ = false;
};

class LogReader {
 public:
  explicit LogReader(const std::string& path) : bytes_(path) {}

  ReplayLog read() {
    constexpr unsigned kRestOfHead = 8;
    out_.understood = bytes_.number(4) == kVersion;
    (void)bytes_.number(kRestOfHead);
    while (out_.understood && !out_.complete) {
      const std::uint8_t event = bytes_.byte();
      if (bytes_.ended()) break;
      out_.understood = take(event);
    }
    return std::move(out_);
  }

 private:
  bool take(std::uint8_t event) {
    if (event == kInstructions) {
      out_.instructions += bytes_.number(4);
    } else if (event >= kFirstAsync && event <= kLastAsync) {
      return take_async(static_cast<std::uint8_t>(event - kFirstAsync));
    } else if (event == kCharWrite) {
      out_.sent.push_back({out_.instructions, bytes_.number(4)});
      (void)bytes_.number(4);
    } else if (event == kCharReadAll) {
      (void)bytes_.array();
    } else if (event == kCharReadAllError) {
      (void)bytes_.number(4);
    } else if (event == kRandom) {
      (void)bytes_.number(4);
      (void)bytes_.array();
    } else if (event == kFirstClock || event == kLastClock) {
      (void)bytes_.number(8);
    } else if (event == kEnd) {
      out_.complete = true;
    } else {
      return event <= kException || (event >= kFirstShutdown && event <= kLastShutdown) ||
             (event >= kFirstCheckpoint && event <= kLastCheckpoint);
    }
    return true;
  }

  bool take_async(std::uint8_t kind) {
    switch (kind) {
      case kBh:
      case kBhOnce:
        (void)bytes_.number(8);
        break;
      case kBlock:
        ++out_.disk_requests;
        (void)bytes_.number(8);
        break;
      case kInput:
        ++out_.keys;
        return take_input();
      case kCharRead:
        (void)bytes_.byte();
        out_.typed.push_back({out_.instructions, bytes_.array()});
        break;
      case kNet:
        ++out_.packets;
        (void)bytes_.number(1 + 4);
        (void)bytes_.array();
        break;
      default:
        break;
    }
    return true;
  }

  /// Keys, buttons, movements (QEMU, replay/replay-input.c).
  bool take_input() {
    const std::uint64_t kind = bytes_.number(4);
    constexpr std::uint64_t kKey = 0, kButton = 1, kTouch = 4;
    if (kind == kKey)
      (void)bytes_.number(bytes_.number(4) == 0 ? 8 : 4), (void)bytes_.byte();
    else if (kind == kButton)
      (void)bytes_.number(4), (void)bytes_.byte();
    else if (kind < kTouch)
      (void)bytes_.number(4), (void)bytes_.number(8);
    return kind < kTouch;
  }

  LogBytes bytes_;
  ReplayLog out_;
};

}  // namespace

ReplayLog read_replay_log(const std::string& path) { return LogReader(path).read(); }

}  // namespace citcat
