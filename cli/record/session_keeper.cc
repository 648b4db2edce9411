#include "cli/record/session_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/record/monitor_receiver.h"
#include "formats/io/error.h"
#include "formats/io/file_descriptor.h"

namespace citcat {
namespace {

constexpr std::size_t kMostMoments = 12;
constexpr std::chrono::seconds kShortest{5};  // between two states
constexpr std::chrono::milliseconds kTryAgainIn{20}, kLongestPause{320};
constexpr std::uint64_t kPage = 4096;

std::uint64_t stored_bytes(const std::string& path) {
  struct stat status {};
  constexpr std::uint64_t kBlock = 512;
  return stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                          : 0;
}

/// Gives the space of whole pages back; the bytes are zeros then. Where the file system cannot do
/// that, they stay.
void punch(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  begin = (begin + kPage - 1) / kPage * kPage;
  end = end / kPage * kPage;
  if (begin >= end) return;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.value() >= 0)
    (void)fallocate(file.value(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(begin), static_cast<off_t>(end - begin));
}

}  // namespace

SessionKeeper::SessionKeeper(const LiveSession& session, std::uint64_t limit,
                             const Console& console)
    : session_(session), limit_(limit), console_(console) {}

void SessionKeeper::begin() {
  monitor_.begin();
  if (store() != Stored::yes) throw IoError("--keep: QEMU does not answer");
  log_.emplace(session_.log(), ReplayPlace{}, true);
  head_ = moments_.front().state.log_offset + kPage;
}

/// Has the machine stop, its state written, and the states removed that are too many.
SessionKeeper::Stored SessionKeeper::store() {
  const bool first = moments_.empty();
  if (!first && !monitor_.execute("stop")) return Stored::no_answer;
  // A request of a disk that is under way would be lost. When it has ended, QEMU knows that its
  // log does not have the end yet, and refuses.
  std::this_thread::sleep_for(pause_);
  Moment moment;
  moment.kept.name = fmt::format("citcat-{}", stored_);
  const auto said = monitor_.say("savevm " + moment.kept.name);
  if (!said) return Stored::no_answer;
  if (first && !said->empty())
    throw IoError("--keep: the state of this machine cannot be kept: " + *said);
  // Otherwise QEMU says that it must be tried again, or that the disk is full.
  if (said->empty()) {
    const auto state = find_machine_state(session_.state(), moment.kept.name);
    if (!state) throw IoError("--keep: this QEMU writes the state of a machine in an unknown way");
    ++stored_;
    moment.state = *state;
    moment.when = Clock::now();
    largest_ = std::max(largest_, state->bytes);
    moments_.push_back(std::move(moment));
    for (const std::string& name : choose_dropped())
      if (!monitor_.say("delvm " + name)) return Stored::no_answer;
  }
  if (!monitor_.execute("cont")) return Stored::no_answer;
  release_log();
  return said->empty() ? Stored::yes : Stored::not_now;
}

/// Looks at states as soon as the log goes beyond them: whether all requests of disks that were
/// begun before had ended.
void SessionKeeper::check_stored() {
  for (std::size_t n = 0; n < moments_.size(); ++n) {
    Moment& moment = moments_[n];
    if (moment.sure) continue;
    log_->read_on(moment.state.log_offset);
    const ReplayPlace& place = log_->place();
    if (place.offset < moment.state.log_offset) return;
    if (place.offset == moment.state.log_offset &&
        place.disk_requests == moment.state.disk_requests) {
      moment.sure = true;
      moment.kept.place = place;
      pause_ = std::chrono::milliseconds(5);
      continue;
    }
    pause_ = std::min(2 * pause_, kLongestPause);
    spoiled_.push_back(moment.kept.name);
    moments_.erase(moments_.begin() + static_cast<std::ptrdiff_t>(n--));
  }
}

std::uint64_t SessionKeeper::used() const {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(session_.folder, error))
    bytes += stored_bytes(entry.path().string());
  return bytes;
}

/// A new state has been stored: the names of those that go. With what is left there is room for
/// the next one.
std::vector<std::string> SessionKeeper::choose_dropped() {
  std::vector<std::string> names = std::exchange(spoiled_, {});
  std::uint64_t bytes = used() + largest_;
  const auto drop = [&](std::size_t n) {
    names.push_back(moments_[n].kept.name);
    bytes -= std::min(bytes, moments_[n].state.bytes);
    moments_.erase(moments_.begin() + static_cast<std::ptrdiff_t>(n));
  };
  while (moments_.size() > 2 && (bytes > limit_ || moments_.size() > kMostMoments)) {
    const std::uint64_t log = moments_.back().state.log_offset - moments_.front().state.log_offset;
    if (log < limit_ / 2 && moments_.size() > 3) {
      // States take the most: one of those that are closest to each other.
      std::size_t closest = 1;
      const auto span = [&](std::size_t n) { return moments_[n + 1].when - moments_[n - 1].when; };
      for (std::size_t n = 2; n + 1 < moments_.size(); ++n)
        if (span(n) < span(closest)) closest = n;
      drop(closest);
    } else if (moments_[1].sure) {
      bytes -= std::min(bytes, moments_[1].state.log_offset - moments_[0].state.log_offset);
      drop(0);
    } else {
      break;
    }
  }
  if (moments_.size() == 2 && bytes > limit_ + largest_ && moments_[1].sure) drop(0);
  if (bytes > limit_ + largest_ && !std::exchange(told_, true))
    console_.warn(fmt::format(
        "--keep: the machine's state and what it has written to its disks take {} MiB, more than "
        "is to be kept; the session is as short as it can be",
        bytes >> 20));
  return names;
}

/// Gives up the log, and the console's text, before the oldest state.
void SessionKeeper::release_log() {
  if (moments_.empty() || !moments_.front().sure) return;
  const ReplayPlace& oldest = moments_.front().kept.place;
  punch(session_.log(), head_, oldest.offset);
  log_->forget_before(oldest);
  std::error_code error;
  // With more ports than one, nobody knows which byte is whose.
  const auto console = std::filesystem::file_size(session_.console(), error);
  if (!error && console >= oldest.sent) punch(session_.console(), 0, oldest.sent);
}

bool SessionKeeper::look() {
  check_stored();
  if (Clock::now() < next_) return true;
  // A state is no reason to end a session for want of space.
  constexpr std::uint64_t kMoreThanLast = std::uint64_t{64} << 20;
  if (free_space(session_.log()) < 2 * largest_ + kMoreThanLast + kDiskReserve) {
    next_ = Clock::now() + kShortest;
    return true;
  }
  const Stored stored = store();
  const auto span =
      moments_.empty() ? Clock::duration{} : moments_.back().when - moments_.front().when;
  next_ = Clock::now() + (stored == Stored::not_now
                              ? Clock::duration(kTryAgainIn)
                              : std::max<Clock::duration>(kShortest, span / (kMostMoments / 2)));
  return stored != Stored::no_answer;
}

std::vector<KeptMoment> SessionKeeper::finish() {
  if (!log_) return {};
  check_stored();
  const ReplayLog& log = log_->read_on();
  if (log.understood && !log.complete && log_->place().offset != 0) {
    if (!complete_replay_log(session_.log(), log_->place())) return {};
  }
  std::vector<KeptMoment> kept;
  for (const Moment& moment : moments_)
    if (moment.sure) kept.push_back(moment.kept);
  return kept;
}

}  // namespace citcat
