#include "tools/plugin/plugin_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/io/file_descriptor.h"
#include "tools/plugin/confinement.h"

namespace citcat::tools {

namespace {

/// An answer larger than that is none: the process is not to be believed.
constexpr std::uint32_t kLargestAnswer = std::uint32_t{1} << 30;

/// The text for a status from waitpid().
std::string ended_text(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("called exit({})", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                     ::strsignal(WTERMSIG(status)));
}

[[noreturn]] void fail_to_start(const std::string& path, const char* what, int error) {
  throw IoError("--tool " + path + ": a process of its own: " + what + ": " + std::strerror(error));
}

/// Starts this program with nothing open but input from nowhere, its error output, the socket and
/// the memory. What the tool prints goes to the error output: the output is the host's.
int spawn(pid_t& process, int socket, int memory, std::vector<char*>& arguments) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  // Above all numbers that are assigned below, so that none is overwritten before it is copied.
  const FileDescriptor socket_copy(::fcntl(socket, F_DUPFD, 100));
  const FileDescriptor memory_copy(::fcntl(memory, F_DUPFD, 100));
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, socket_copy.value(), kPluginSocket);
  ::posix_spawn_file_actions_adddup2(&files, memory_copy.value(), kPluginMemory);
  ::posix_spawn_file_actions_addclosefrom_np(&files, kPluginMemory + 1);
  // A group of its own, which end() kills as a whole.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawn(&process, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

/// As long as tools run beside it, they cannot reach into this process; nor can others of the user.
class ClosedHost {
 public:
  ClosedHost() {
    if (tools_++ == 0) close_to_others();
  }
  ~ClosedHost() {
    if (--tools_ == 0) open_to_others();
  }
  ClosedHost(const ClosedHost&) = delete;
  ClosedHost& operator=(const ClosedHost&) = delete;

 private:
  static inline std::atomic<int> tools_ = 0;
};

PluginProcess::PluginProcess(std::string path, const std::vector<std::string>& arguments,
                             std::chrono::milliseconds limit)
    : path_(std::move(path)), limit_(limit), closed_(std::make_unique<ClosedHost>()) {
  require_shared_object(path_);
  start(arguments);
}

PluginProcess::~PluginProcess() {
  end();
  if (memory_ != nullptr) ::munmap(memory_, kSegments * kSegmentBytes);
}

void PluginProcess::start(const std::vector<std::string>& arguments) {
  constexpr std::size_t bytes = kSegments * kSegmentBytes;
  const FileDescriptor file(::memfd_create("citcat tool", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.value() < 0 || ::ftruncate(file.value(), static_cast<off_t>(bytes)) != 0) {
    fail_to_start(path_, "shared memory", errno);
  }
  void* const p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.value(), 0);
  if (p == MAP_FAILED) fail_to_start(path_, "shared memory", errno);
  memory_ = static_cast<std::uint8_t*>(p);
  // From here on only this mapping can be written: a wild pointer of the tool faults.
  if (::fcntl(file.value(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) != 0) {
    fail_to_start(path_, "shared memory", errno);
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    fail_to_start(path_, "socket", errno);
  }
  const FileDescriptor theirs(pair[1]);
  socket_ = pair[0];

  std::vector<std::string> texts{"citcat", kPluginServerArgument};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& t : texts) pointers.push_back(t.data());
  pointers.push_back(nullptr);
  if (const int error = spawn(process_, theirs.value(), file.value(), pointers)) {
    process_ = -1;
    fail_to_start(path_, "start", error);
  }
}

PluginDescription PluginProcess::description() {
  const Answer answer = next_answer();
  if (answer.kind == PluginAnswer::failed) {
    end();
    throw UsageError(std::string(answer.bytes.begin(), answer.bytes.end()));
  }
  if (answer.kind != PluginAnswer::ready) fail("answered out of turn");
  try {
    ByteReader in(answer.bytes, path_);
    PluginDescription d;
    constexpr std::uint64_t kLongest = 1 << 16;
    d.name = in.string("name", kLongest);
    d.summary = in.string("summary", kLongest);
    d.options = in.string("options", kLongest);
    d.wants = in.u32("wants");
    d.merges = in.u8("merges") != 0;
    in.expect_end("description");
    return d;
  } catch (const FormatError& e) {
    fail(std::string("describes itself wrongly: ") + e.what());
  }
}

void PluginProcess::send(PluginMessage kind,
                         std::initializer_list<std::span<const std::uint8_t>> pieces) {
  std::size_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  const std::size_t whole = sizeof(MessageHeader) + padded(bytes);
  if (whole > kSegmentBytes) fail("cannot receive " + std::to_string(bytes) + " bytes at once");
  if (used_ + whole > kSegmentBytes) hand_over();
  std::uint8_t* at = memory_ + segment_ * kSegmentBytes + used_;
  const MessageHeader header{kind, static_cast<std::uint32_t>(bytes)};
  std::memcpy(at, &header, sizeof header);
  at += sizeof header;
  for (const auto piece : pieces) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  used_ += whole;
}

std::vector<std::uint8_t> PluginProcess::ask(PluginMessage kind, PluginAnswer expected) {
  send(kind, {});
  hand_over();
  for (;;) {
    Answer answer = next_answer();
    if (answer.kind == expected) return std::move(answer.bytes);
    check_done(std::move(answer));
  }
}

void PluginProcess::finish() {
  if (process_ < 0) throw PluginFailure("--tool " + path_ + ": its process has ended");
  if (used_ != 0) hand_over();
  while (handed_over_ != 0) check_done(next_answer());
  ::shutdown(socket_, SHUT_WR);
  const std::optional<int> status = wait_for_end(limit_);
  if (!status) fail("does not end");
  if (*status != 0) fail("ended badly: " + ended_text(*status));
  end();
}

/// A segment has been read; whatever else the answer is, is a failure.
void PluginProcess::check_done(Answer answer) {
  if (answer.kind == PluginAnswer::failed) {
    fail("failed: " + std::string(answer.bytes.begin(), answer.bytes.end()));
  }
  if (answer.kind != PluginAnswer::done || handed_over_ == 0) fail("answered out of turn");
  --handed_over_;
}

/// The segment being filled goes to the tool; the next one is free when it returns.
void PluginProcess::hand_over() {
  if (process_ < 0) throw PluginFailure("--tool " + path_ + ": its process has ended");
  const SegmentFrame frame{static_cast<std::uint32_t>(segment_), static_cast<std::uint32_t>(used_)};
  if (::send(socket_, &frame, sizeof frame, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof frame)) {
    fail(how_it_ended());
  }
  ++handed_over_;
  segment_ = (segment_ + 1) % kSegments;
  used_ = 0;
  while (handed_over_ == kSegments) check_done(next_answer());
}

PluginProcess::Answer PluginProcess::next_answer() {
  AnswerHeader header{};
  read({reinterpret_cast<std::uint8_t*>(&header), sizeof header});
  if (header.bytes > kLargestAnswer)
    fail("answered with " + std::to_string(header.bytes) + " bytes");
  Answer answer{header.kind, std::vector<std::uint8_t>(header.bytes)};
  read(answer.bytes);
  return answer;
}

void PluginProcess::read(std::span<std::uint8_t> into) {
  if (process_ < 0) throw PluginFailure("--tool " + path_ + ": its process has ended");
  while (!into.empty()) {
    pollfd wait{socket_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(limit_.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      fail(fmt::format("has not answered for {} s, so it was ended",
                       static_cast<double>(limit_.count()) / 1000));
    }
    const ssize_t n = ::recv(socket_, into.data(), into.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(how_it_ended());
    into = into.subspan(static_cast<std::size_t>(n));
  }
}

/// The status with which it ended; nullopt where it has not within the limit.
std::optional<int> PluginProcess::wait_for_end(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + limit;
  for (;;) {
    siginfo_t ended{};
    const int error =
        ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (error == 0 && ended.si_pid == process_) return take_up();
    if ((error != 0 && errno != EINTR) || Clock::now() > until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Its status, when it has ended; what it left of its group is ended too, as long as the number is
/// its own.
int PluginProcess::take_up() {
  ::kill(-process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

/// The socket is closed: the process has ended, or is about to.
std::string PluginProcess::how_it_ended() {
  const std::optional<int> status = wait_for_end(limit_);
  return status ? ended_text(*status) : "closed its connection, so it was ended";
}

void PluginProcess::fail(const std::string& what) {
  end();
  throw PluginFailure("--tool " + path_ + ": its process " + what);
}

void PluginProcess::end() {
  if (process_ > 0) {
    // The guard ends all that the tool began, first.
    ::kill(process_, SIGTERM);
    constexpr std::chrono::seconds kGuardsTime{2};
    if (!wait_for_end(kGuardsTime)) take_up();
  }
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

}  // namespace citcat::tools
