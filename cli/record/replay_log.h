#pragma once
// QEMU's record/replay log, as far as citcat reads it: how long the run was, and when the machine
// and the outside world sent something.
//
// Format (QEMU, replay/): u32 version, u64, then events of one byte and its data, big-endian.
// Between these there are counts of executed instructions. Checked with the logs of QEMU 10.0.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/io/file_descriptor.h"

namespace citcat {

struct ReplayLog {
  /// A byte or more that the machine has sent to, or got from, a serial port.
  struct Sent {
    std::uint64_t instructions = 0;
    std::uint64_t bytes = 0;
  };
  struct Typed {
    std::uint64_t instructions = 0;
    std::string text;
  };

  bool understood = false;  ///< everything in it: what follows is right
  bool complete = false;    ///< QEMU has ended it
  std::uint64_t instructions = 0;
  std::vector<Sent> sent;
  std::vector<Typed> typed;
  std::uint64_t keys = 0;     ///< keyboard and mouse
  std::uint64_t packets = 0;  ///< of networks
  std::uint64_t disk_requests = 0;
};

/// A place in a log, between two events, and what there was before it.
struct ReplayPlace {
  std::uint64_t offset = 0;  ///< in the file; 0: its beginning
  std::uint64_t instructions = 0;
  std::uint64_t sent = 0;           ///< bytes to serial ports
  std::uint64_t disk_requests = 0;  ///< that have ended
};

/// Reads a log, as it grows.
class ReplayLogReader {
 public:
  /// Throws IoError where there is no such file. `from`: as place() has said before. `grows`: the
  /// emulator is still writing; it writes the version last.
  explicit ReplayLogReader(const std::string& path, const ReplayPlace& from = {},
                           bool grows = false);

  /// Takes the whole events that there are by now and that begin before the offset `end`.
  const ReplayLog& read_on(std::uint64_t end = UINT64_MAX);
  /// Behind the last event that was taken.
  const ReplayPlace& place() const { return place_; }
  /// Forgets what was said before a place.
  void forget_before(const ReplayPlace& place);

 private:
  bool fill();

  std::string path_;
  bool grows_;
  FileDescriptor file_;
  ReplayPlace place_;
  ReplayLog log_;
  std::string bytes_;  ///< of the file, from place_ on
};

/// Completes the log of an emulator that was killed: it ends at `place`, as if a signal had ended
/// the emulator in order. False, with errno, where it cannot be written.
bool complete_replay_log(const std::string& path, const ReplayPlace& place);

/// Reads a log. Throws IoError where there is no such file.
ReplayLog read_replay_log(const std::string& path);

}  // namespace citcat
