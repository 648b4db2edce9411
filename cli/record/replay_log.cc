#include "cli/record/replay_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "formats/io/error.h"

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

constexpr std::uint64_t kHead = 12;
/// No event is larger: packets, and what is typed at once, are the largest.
constexpr std::size_t kMostOfEvent = std::size_t{16} << 20;

/// Bytes of a file that may end anywhere.
class LogBytes {
 public:
  explicit LogBytes(std::string_view bytes) : bytes_(bytes) {}

  bool ended() const { return ended_; }
  std::size_t taken() const { return at_; }
  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < size; ++n) value = value << 8 | byte();
    return value;
  }
  std::string array() {
    const auto size = static_cast<std::size_t>(number(4));
    const std::string_view there = bytes_.substr(std::min(at_, bytes_.size()), size);
    ended_ = ended_ || there.size() < size;
    at_ += there.size();
    return std::string(there);
  }
  std::uint8_t byte() {
    ended_ = ended_ || at_ >= bytes_.size();
    return ended_ ? 0 : static_cast<std::uint8_t>(bytes_[at_++]);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// One event.
class LogEvent {
 public:
  LogEvent(std::string_view bytes, const ReplayPlace& place) : bytes_(bytes), place_(place) {}

  enum class Result : unsigned char { taken, cut, unknown };

  Result take() {
    const bool known = take(bytes_.byte());
    if (bytes_.ended()) return Result::cut;
    place_.offset += bytes_.taken();
    return known ? Result::taken : Result::unknown;
  }
  const ReplayPlace& behind() const { return place_; }
  void add_to(ReplayLog& log) const {
    log.complete = log.complete || what_.complete;
    log.instructions = place_.instructions;
    log.sent.insert(log.sent.end(), what_.sent.begin(), what_.sent.end());
    log.typed.insert(log.typed.end(), what_.typed.begin(), what_.typed.end());
    log.keys += what_.keys;
    log.packets += what_.packets;
    log.disk_requests += what_.disk_requests;
  }
  std::size_t size() const { return bytes_.taken(); }

 private:
  bool take(std::uint8_t event) {
    if (event == kInstructions) {
      place_.instructions += bytes_.number(4);
    } else if (event >= kFirstAsync && event <= kLastAsync) {
      return take_async(static_cast<std::uint8_t>(event - kFirstAsync));
    } else if (event == kCharWrite) {
      const std::uint64_t size = bytes_.number(4);
      what_.sent.push_back({place_.instructions, size});
      place_.sent += size;
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
      what_.complete = true;
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
        ++what_.disk_requests;
        ++place_.disk_requests;
        (void)bytes_.number(8);
        break;
      case kInput:
        ++what_.keys;
        return take_input();
      case kCharRead:
        (void)bytes_.byte();
        what_.typed.push_back({place_.instructions, bytes_.array()});
        break;
      case kNet:
        ++what_.packets;
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
  ReplayPlace place_;
  ReplayLog what_;
};

}  // namespace

ReplayLogReader::ReplayLogReader(const std::string& path, const ReplayPlace& from, bool grows)
    : path_(path), grows_(grows), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), place_(from) {
  if (file_.value() < 0) throw IoError(path + ": " + std::strerror(errno));
  log_.understood = from.offset != 0;
  log_.instructions = from.instructions;
}

/// More of the file, where there is more.
bool ReplayLogReader::fill() {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  if (bytes_.size() > kMostOfEvent) return false;
  const std::size_t held = bytes_.size();
  bytes_.resize(held + kPart);
  const ssize_t size =
      ::pread(file_.value(), bytes_.data() + held, kPart, static_cast<off_t>(place_.offset + held));
  bytes_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (size < 0) throw IoError(path_ + ": " + std::strerror(errno));
  return size > 0;
}

const ReplayLog& ReplayLogReader::read_on(std::uint64_t end) {
  if (place_.offset == 0) {
    while (bytes_.size() < kHead && fill()) {
    }
    LogBytes head(bytes_);
    if (bytes_.size() < kHead) return log_;
    const std::uint64_t version = head.number(4);
    log_.understood = version == kVersion || (grows_ && version == 0);
    bytes_.erase(0, kHead);
    place_.offset = kHead;
  }
  std::size_t done = 0;
  while (log_.understood && !log_.complete && place_.offset < end) {
    LogEvent event(std::string_view(bytes_).substr(done), place_);
    const LogEvent::Result result = event.take();
    if (result == LogEvent::Result::cut) {
      bytes_.erase(0, std::exchange(done, 0));
      if (!fill()) break;
      continue;
    }
    log_.understood = result == LogEvent::Result::taken;
    if (!log_.understood) break;
    event.add_to(log_);
    place_ = event.behind();
    done += event.size();
  }
  bytes_.erase(0, done);
  return log_;
}

void ReplayLogReader::forget_before(const ReplayPlace& place) {
  std::erase_if(log_.sent, [&](const auto& one) { return one.instructions < place.instructions; });
  std::erase_if(log_.typed, [&](const auto& one) { return one.instructions < place.instructions; });
}

bool complete_replay_log(const std::string& path, const ReplayPlace& place) {
  constexpr char kEndedBySignal[] = {kFirstShutdown + 4, kEnd};
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const auto end = static_cast<off_t>(place.offset);
  std::string version;
  for (unsigned n = 4; n-- > 0;) version += static_cast<char>(kVersion >> (8 * n));
  return file.value() >= 0 && ftruncate(file.value(), end) == 0 &&
         pwrite(file.value(), kEndedBySignal, sizeof kEndedBySignal, end) ==
             static_cast<ssize_t>(sizeof kEndedBySignal) &&
         pwrite(file.value(), version.data(), version.size(), 0) ==
             static_cast<ssize_t>(version.size());
}

ReplayLog read_replay_log(const std::string& path) { return ReplayLogReader(path).read_on(); }

}  // namespace citcat
