#pragma once
// The identity of a file for the system, whatever its name.

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

namespace citcat {

using FileIdentity = std::pair<dev_t, ino_t>;

inline FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}
/// The identity of the ordinary file of this name; nothing where there is none.
inline std::optional<FileIdentity> identity_of_file(const std::string& name) {
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return identity_of(status);
}

}  // namespace citcat
