#pragma once
// QEMU's format of disk images, as far as needed to begin one on top of another file, and to find
// the state of a machine that QEMU saved in one (QEMU, docs/interop/qcow2.rst).

#include <cstdint>
#include <optional>
#include <string>

namespace citcat {

/// The size of the disk in an image, and whether the image is qcow2; raw otherwise. Throws IoError,
/// and FormatError for a damaged head.
struct DiskImage {
  bool is_qcow2 = false;
  std::uint64_t bytes = 0;
};
DiskImage disk_image(const std::string& path);

/// Makes an image without contents. `below`: the file that shows through it; empty: nothing does.
/// Throws IoError.
void write_qcow2(const std::string& path, std::uint64_t bytes, const std::string& below = "",
                 bool below_is_qcow2 = false);

/// The state of a machine that `savevm` has left in an image.
struct MachineState {
  std::uint64_t bytes = 0;
  std::uint64_t log_offset = 0;     ///< the machine goes on from here in QEMU's record/replay log
  std::uint64_t disk_requests = 0;  ///< that were begun before
};

/// Finds the state of this name. Nullopt where there is none, or it is of a QEMU that writes it
/// otherwise. Throws IoError.
std::optional<MachineState> find_machine_state(const std::string& path, const std::string& name);

}  // namespace citcat
