#pragma once
// A live session: a run of an emulated machine that can be repeated. It is a folder with QEMU's
// log, what the guest sent to its first serial port, and session.json: the emulator, the machine,
// and the images that the run began with.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/record/replay_log.h"

namespace citcat {

/// A moment of a session whose beginning was given up, at which its run can be taken up.
struct KeptMoment {
  std::string name;  ///< of the machine's state
  ReplayPlace place;
};

struct LiveSession {
  struct Image {
    std::string path;
    std::uint64_t bytes = 0;
    std::string xxh3;  ///< XXH3-128 of the file, hexadecimal
  };

  std::string folder;
  std::string version;               ///< the first line of the emulator's --version
  std::vector<std::string> command;  ///< of the machine (live_command.h)
  std::string clock;                 ///< for -icount
  std::vector<Image> images;
  std::vector<KeptMoment> kept;  ///< from the oldest; empty: the whole run is there

  std::string log() const { return folder + "/qemu.rr"; }
  std::string console() const { return folder + "/console.log"; }
  std::string state() const { return folder + "/state.qcow2"; }
  /// Where what is kept begins.
  ReplayPlace beginning() const { return kept.empty() ? ReplayPlace{} : kept.front().place; }
};

/// The files that a run begins with: those named, and the images that qcow2 files among them are
/// changes of. Throws IoError where one cannot be read.
std::vector<LiveSession::Image> hashed_images(const std::vector<std::string>& paths);

/// Writes session.json into the session's folder.
void write_session(const LiveSession& session);

/// Throws IoError where there is no session, FormatError where it is damaged.
LiveSession open_session(const std::string& folder);

/// Throws IoError where the emulator, or an image, is no longer what it was; `program` is going to
/// repeat the run.
void check_session(const LiveSession& session, const std::string& program);

}  // namespace citcat
