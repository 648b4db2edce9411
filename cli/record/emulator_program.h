#pragma once
// Finds the emulator, and checks that the monitor can use its plugin interface.

#include <optional>
#include <string>
#include <utility>

namespace citcat {

/// "QEMU emulator version 10.0.2 (Debian …)" as {10, 0}; nullopt of any other text.
std::optional<std::pair<int, int>> emulator_version(const std::string& text);

/// The first line of what `program --version` prints; "" where it prints nothing.
std::string emulator_banner(const std::string& program);

/// Whether the emulator has a display of this kind, "gtk"; true where it does not say.
bool has_display(const std::string& program, const std::string& kind);

struct EmulatorProgram {
  std::string path;    ///< to be started
  std::string change;  ///< a sentence where it is not the one that was asked for
};

/// The program as it was named, or the QEMU that scripts/setup-monitor has fetched if there is no
/// program of that name. Where CITCAT_QEMU_SUITE names a suite of Debian, a name without a folder
/// stands for the QEMU of that suite, and IoError is thrown where it has not been fetched. Throws
/// UsageError for an emulator of another architecture and for a QEMU that is too old, with what to
/// write instead.
EmulatorProgram find_emulator(const std::string& named);

}  // namespace citcat
