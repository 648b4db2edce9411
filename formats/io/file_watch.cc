#include "formats/io/file_watch.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

FileWatch::FileWatch(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), status_(look()) {}

struct stat FileWatch::look() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw IoError(name_ + ": cannot be examined: " + std::strerror(errno));
  return status;
}

void FileWatch::check_unchanged() const {
  if (!is_regular()) return;
  const struct stat now = look();
  const bool same = now.st_size == status_.st_size &&
                    now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  if (!same) throw IoError(name_ + ": changed while it was read");
}

}  // namespace citcat
