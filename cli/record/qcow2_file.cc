#include "cli/record/qcow2_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/file_descriptor.h"

namespace citcat {
namespace {

constexpr std::string_view kMagic("QFI\xfb", 4);
constexpr unsigned kClusterBits = 16;
constexpr std::uint64_t kCluster = std::uint64_t{1} << kClusterBits;
constexpr std::uint64_t kSector = 512;
constexpr unsigned kHeadBytes = 104;
constexpr std::uint64_t kOffsetBits = 0x00fffffffffffe00;

void put(std::string& out, std::uint64_t value, unsigned bytes) {
  for (unsigned n = bytes; n-- > 0;) out += static_cast<char>(value >> (8 * n));
}

std::uint64_t number(std::string_view bytes, std::size_t at, unsigned size) {
  std::uint64_t value = 0;
  for (unsigned n = 0; n < size; ++n)
    value = value << 8 |
            (at + n < bytes.size() ? static_cast<std::uint8_t>(bytes[at + n]) : std::uint8_t{0});
  return value;
}

class ImageBytes {
 public:
  explicit ImageBytes(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_.value() < 0) fail();
  }
  /// Fewer at the end of the file.
  std::string at(std::uint64_t offset, std::size_t size) const {
    if (offset > static_cast<std::uint64_t>(INT64_MAX)) return "";
    std::string bytes(size, '\0');
    const ssize_t got = ::pread(file_.value(), bytes.data(), size, static_cast<off_t>(offset));
    if (got < 0) fail();
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  std::uint64_t size() const {
    struct stat status {};
    if (fstat(file_.value(), &status) != 0) fail();
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  [[noreturn]] void fail() const { throw IoError(path_ + ": " + std::strerror(errno)); }
  std::string path_;
  FileDescriptor file_;
};

/// One entry of the table of snapshots.
struct Snapshot {
  std::uint64_t table = 0;  ///< its first level
  std::uint64_t entries = 0;
  std::uint64_t state_bytes = 0;
};

std::optional<Snapshot> find_snapshot(const ImageBytes& image, std::string_view head,
                                      const std::string& name) {
  constexpr std::size_t kFixed = 40, kMost = 1024;
  std::uint64_t at = number(head, 64, 8);
  for (std::uint64_t left = std::min<std::uint64_t>(number(head, 60, 4), kMost); left > 0; --left) {
    const std::string entry = image.at(at, 2 * kMost);
    const auto id = static_cast<std::size_t>(number(entry, 12, 2));
    const auto size = static_cast<std::size_t>(number(entry, 14, 2));
    const auto extra = static_cast<std::size_t>(number(entry, 36, 4));
    const std::size_t behind = kFixed + extra + id + size;
    if (behind > entry.size()) return std::nullopt;
    if (entry.compare(kFixed + extra + id, size, name) == 0)
      return Snapshot{number(entry, 0, 8), number(entry, 8, 4),
                      extra >= 8 ? number(entry, kFixed, 8) : number(entry, 32, 4)};
    at += (behind + 7) / 8 * 8;
  }
  return std::nullopt;
}

/// The clusters of a snapshot behind the end of its disk, where the machine's state is.
class StateClusters {
 public:
  StateClusters(const ImageBytes& image, const Snapshot& snapshot, std::uint64_t disk_bytes)
      : image_(image), snapshot_(snapshot), first_((disk_bytes + kSpan - 1) / kSpan) {}

  std::string cluster(std::uint64_t n) {
    const std::uint64_t entry = first_ + n / kEntries;
    if (entry >= snapshot_.entries) return "";
    if (entry != held_) {
      const std::uint64_t table =
          number(image_.at(snapshot_.table + 8 * entry, 8), 0, 8) & kOffsetBits;
      second_ = table == 0 ? "" : image_.at(table, kCluster);
      held_ = entry;
    }
    const std::uint64_t place =
        number(second_, static_cast<std::size_t>(n % kEntries) * 8, 8) & kOffsetBits;
    return place == 0 ? std::string(kCluster, '\0') : image_.at(place, kCluster);
  }

 private:
  static constexpr std::uint64_t kEntries = kCluster / 8, kSpan = kEntries * kCluster;
  const ImageBytes& image_;
  const Snapshot snapshot_;
  std::uint64_t first_, held_ = UINT64_MAX;
  std::string second_;  ///< a table of the second level
};

/// The section that QEMU's record/replay leaves in a machine's state: its head with the name and
/// version 3, its data, of which the last three fields are the place in the log, the next request
/// of a disk and an event's number, and its end (QEMU 10, replay/replay-snapshot.c; of the
/// framing, migration/savevm.c).
bool take_section(std::string_view bytes, MachineState& out) {
  constexpr std::string_view kName("\x06replay\0\0\0\0\0\0\0\x03", 15);
  constexpr std::size_t kHeadOfSection = 5, kLeast = 45, kMost = 128;
  const std::size_t at = bytes.rfind(kName);
  if (at == std::string_view::npos || at < kHeadOfSection) return false;
  std::string end("\x7e");
  end += bytes.substr(at - 4, 4);
  const std::size_t begin = at + kName.size();
  const std::size_t behind = bytes.find(end, begin + kLeast);
  if (behind == std::string_view::npos || behind > begin + kMost) return false;
  out.log_offset = number(bytes, behind - 24, 8);
  out.disk_requests = number(bytes, behind - 16, 8);
  return true;
}

}  // namespace

DiskImage disk_image(const std::string& path) {
  const ImageBytes file(path);
  const std::string head = file.at(0, kHeadBytes);
  if (!head.starts_with(kMagic)) return {false, (file.size() + kSector - 1) / kSector * kSector};
  if (head.size() < 72) throw FormatError(path, head.size(), "expected the head of a qcow2 image");
  return {true, number(head, 24, 8)};
}

void write_qcow2(const std::string& path, std::uint64_t bytes, const std::string& below,
                 bool below_is_qcow2) {
  constexpr std::uint64_t kSpan = kCluster * kCluster / 8;
  const std::uint64_t size = (bytes + kSector - 1) / kSector * kSector;
  const std::uint64_t entries = std::max<std::uint64_t>((size + kSpan - 1) / kSpan, 1);
  const std::uint64_t clusters = 3 + (entries * 8 + kCluster - 1) / kCluster;
  std::string more;  // the extensions of the head: the format of what is below
  if (!below.empty()) {
    const std::string format = below_is_qcow2 ? "qcow2" : "raw";
    put(more, 0xe2792aca, 4);
    put(more, format.size(), 4);
    more += format;
    more.resize((more.size() + 7) / 8 * 8);
  }
  more.resize(more.size() + 8);
  std::string out(kMagic);
  put(out, 3, 4);
  put(out, below.empty() ? 0 : kHeadBytes + more.size(), 8);
  put(out, below.size(), 4);
  put(out, kClusterBits, 4);
  put(out, size, 8);
  put(out, 0, 4);  // not encrypted
  put(out, entries, 4);
  put(out, 3 * kCluster, 8);  // the table of the first level
  put(out, kCluster, 8);      // that of reference counts, of one cluster
  put(out, 1, 4);
  put(out, 0, 4 + 8);      // no snapshots
  put(out, 0, 8 + 8 + 8);  // no features
  put(out, 4, 4);          // reference counts of 16 bits
  put(out, kHeadBytes, 4);
  out += more + below;
  out.resize(kCluster);
  put(out, 2 * kCluster, 8);
  out.resize(2 * kCluster);
  for (std::uint64_t n = 0; n < clusters; ++n) put(out, 1, 2);
  out.resize(clusters * kCluster);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  errno = file.value() < 0 ? errno : ENOSPC;  // of a write that stops early
  if (file.value() < 0 ||
      ::write(file.value(), out.data(), out.size()) != static_cast<ssize_t>(out.size()))
    throw IoError(path + ": " + std::strerror(errno));
}

std::optional<MachineState> find_machine_state(const std::string& path, const std::string& name) {
  const ImageBytes image(path);
  const std::string head = image.at(0, kHeadBytes);
  if (!head.starts_with(kMagic) || number(head, 20, 4) != kClusterBits) return std::nullopt;
  const auto snapshot = find_snapshot(image, head, name);
  if (!snapshot) return std::nullopt;
  MachineState out;
  out.bytes = snapshot->state_bytes;
  StateClusters clusters(image, *snapshot, number(head, 24, 8));
  // It stands behind the memory, not far from the end.
  constexpr std::uint64_t kMostClusters = 1024;
  std::string bytes;
  const std::uint64_t end = (out.bytes + kCluster - 1) / kCluster;
  for (std::uint64_t n = end; n > end - std::min(end, kMostClusters);) {
    --n;
    const std::string more = clusters.cluster(n);
    bytes = more + bytes.substr(0, std::min<std::size_t>(bytes.size(), kCluster));
    if (take_section(bytes, out)) return out;
  }
  return std::nullopt;
}

}  // namespace citcat
