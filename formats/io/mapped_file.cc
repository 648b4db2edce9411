#include "formats/io/mapped_file.h"

#include <algorithm>
#include <atomic>
#include <boost/iostreams/device/mapped_file.hpp>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// The size of the largest pages in the system's cache; pieces begin at such a page.
constexpr std::uint64_t kLargePage = std::uint64_t{1} << 21;
constexpr std::uint64_t kPieceBytes = 4 * kLargePage;
std::atomic<bool> allowed{false};
static_assert(kPieceBytes >= kLargePage + MappedFile::kMaxAtOnce);

}  // namespace

struct MappedFile::Window {
  boost::iostreams::mapped_file_source source;
};

MappedFile::MappedFile(int descriptor, const std::string& name, const FileWatch& watch)
    : descriptor_(descriptor), name_(name), watch_(watch), window_(std::make_unique<Window>()) {}

void MappedFile::allow() { allowed = true; }

MappedFile::~MappedFile() { unmap(); }

std::unique_ptr<MappedFile> MappedFile::open(int descriptor, const std::string& name) {
  if (!allowed) return nullptr;
  const FileWatch watch(descriptor, name);
  if (!watch.is_regular() || watch.size() < kLeastBytes) return nullptr;
  std::unique_ptr<MappedFile> file(new MappedFile(descriptor, name, watch));
  try {
    file->map(0);
  } catch (const IoError&) {
    return nullptr;
  }
  return file;
}

void MappedFile::map(std::uint64_t begin) {
  unmap();
  // The library opens by name, and the name may lead to another file by now: it is given the
  // descriptor's own (proc(5), /proc/pid/fd).
  boost::iostreams::mapped_file_params params("/proc/self/fd/" + std::to_string(descriptor_));
  params.flags = boost::iostreams::mapped_file::readonly;
  params.offset = static_cast<boost::iostreams::stream_offset>(begin);
  params.length = static_cast<std::size_t>(std::min(kPieceBytes, size() - begin));
  try {
    window_->source.open(params);
  } catch (const std::exception& error) {
    throw IoError(name_ + ": cannot be mapped: " + error.what());
  }
  begin_ = begin;
  piece_ = {reinterpret_cast<const std::uint8_t*>(window_->source.data()), params.length};
  guard_.emplace(piece_);
  if (guard_->is_set()) return;
  unmap();
  throw IoError(name_ + ": cannot be mapped: too many files are");
}

void MappedFile::unmap() {
  guard_.reset();
  if (window_->source.is_open()) window_->source.close();
  piece_ = {};
}

std::span<const std::uint8_t> MappedFile::at(std::uint64_t offset, std::size_t least) {
  CITCAT_ASSERT(least <= kMaxAtOnce && offset <= size());
  const std::uint64_t end = std::min<std::uint64_t>(size(), offset + least);
  if (offset < begin_ || end > begin_ + piece_.size()) map(offset / kLargePage * kLargePage);
  return piece_.subspan(static_cast<std::size_t>(offset - begin_));
}

void MappedFile::check_read() const {
  if (guard_ && guard_->lost()) {
    throw IoError(name_ + ": cannot be read at or after offset " + std::to_string(begin_) +
                  ": it became shorter meanwhile, or its disk fails");
  }
}

}  // namespace citcat
