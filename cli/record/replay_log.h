#pragma once
// QEMU's record/replay log, as far as citcat reads it: how long the run was, and when the machine
// and the outside world sent something.
//
// Format (QEMU, replay/): u32 version, u64, then events of one byte and its data, big-endian.
// Between these there are counts of executed instructions. Checked with the logs of QEMU 10.0.

#include <cstdint>
#include <string>
#include <vector>

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

/// Reads a log. Throws IoError where there is no such file.
ReplayLog read_replay_log(const std::string& path);

}  // namespace citcat
