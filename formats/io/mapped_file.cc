#include "formats/io/mapped_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// Of this size are the largest pages that the system's cache has; pieces begin where one can.
constexpr std::uint64_t kLargePage = std::uint64_t{1} << 21;
constexpr std::uint64_t kPieceBytes = 4 * kLargePage;
std::atomic<bool> allowed{false};
static_assert(kPieceBytes >= kLargePage + MappedFile::kMaxAtOnce);

}  // namespace

void MappedFile::allow() { allowed = true; }

std::unique_ptr<MappedFile> MappedFile::open(int descriptor, const std::string& name) {
  if (!allowed) return nullptr;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  if (static_cast<std::uint64_t>(status.st_size) < kLeastBytes) return nullptr;
  std::unique_ptr<MappedFile> file(new MappedFile(descriptor, name, status));
  if (!file->map(0)) return nullptr;
  return file;
}

MappedFile::~MappedFile() { unmap(); }

bool MappedFile::map(std::uint64_t begin) {
  unmap();
  const auto bytes = static_cast<std::size_t>(std::min(kPieceBytes, size() - begin));
  void* const pages =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(begin));
  if (pages == MAP_FAILED) return false;
  begin_ = begin;
  piece_ = {static_cast<const std::uint8_t*>(pages), bytes};
  guard_.emplace(piece_);
  if (guard_->is_set()) return true;
  errno = EMFILE;
  return false;
}

void MappedFile::unmap() {
  guard_.reset();
  // The interface knows no pages that are only read.
  if (!piece_.empty()) ::munmap(const_cast<std::uint8_t*>(piece_.data()), piece_.size());
  piece_ = {};
}

std::span<const std::uint8_t> MappedFile::at(std::uint64_t offset, std::size_t least) {
  CITCAT_ASSERT(least <= kMaxAtOnce && offset <= size());
  const std::uint64_t end = std::min<std::uint64_t>(size(), offset + least);
  if (offset < begin_ || end > begin_ + piece_.size()) {
    if (!map(offset / kLargePage * kLargePage))
      throw IoError(name_ + ": cannot be mapped: " + std::strerror(errno));
  }
  return piece_.subspan(static_cast<std::size_t>(offset - begin_));
}

void MappedFile::check_read() const {
  if (guard_ && guard_->lost()) {
    throw IoError(name_ + ": cannot be read at or behind offset " + std::to_string(begin_) +
                  ": it became shorter meanwhile, or its disk fails");
  }
}

void MappedFile::check_unchanged() const {
  struct stat now {};
  if (::fstat(descriptor_, &now) != 0)
    throw IoError(name_ + ": cannot be looked at: " + std::strerror(errno));
  const bool same = now.st_size == status_.st_size &&
                    now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  if (!same) throw IoError(name_ + ": changed while it was read");
}

}  // namespace citcat
