#include "formats/io/zip_reader.h"

#include <libdeflate.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

// More members than any analyser writes: a session of 1 TB in chunks of 4 MiB.
constexpr zip_int64_t kMaxZipEntries = 1 << 18;

// Members up to this size are decompressed whole, by a library that does nothing else and is more
// than twice as fast. Analysers write chunks of 2 to 4 MiB.
constexpr std::uint64_t kWholeBytes = std::uint64_t{1} << 24;
// Held for all members that are open together; some formats have one for each channel.
constexpr std::uint64_t kHeldBytes = std::uint64_t{1} << 25;

// Without its end a ZIP file cannot be told from something else.
const std::string kExpectedZip =
    "expected a whole ZIP file (its directory stands at its end), found: ";

std::string zip_error_text(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

struct ZipReader::Archive {
  struct Free {
    void operator()(libdeflate_decompressor* it) const { libdeflate_free_decompressor(it); }
  };

  zip_t* handle = nullptr;
  std::unique_ptr<libdeflate_decompressor, Free> inflater;  ///< once one is wanted
  std::vector<std::uint8_t> packed;                         ///< of the member looked at last
  std::vector<std::uint8_t> spare;                          ///< of a member that was closed
  std::uint64_t held = 0;  ///< bytes of members that are open, plain and in memory

  Archive() = default;
  ~Archive() {
    if (handle != nullptr) zip_discard(handle);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  bool take_packed(std::size_t entry, std::uint64_t size);
  bool take_plain(std::size_t entry, std::vector<std::uint8_t>& plain);
};

/// Reads a member as it is stored.
bool ZipReader::Archive::take_packed(std::size_t entry, std::uint64_t size) {
  zip_file_t* const file = zip_fopen_index(handle, entry, ZIP_FL_COMPRESSED);
  if (file == nullptr) return false;
  packed.resize(static_cast<std::size_t>(size));
  const zip_int64_t got = zip_fread(file, packed.data(), packed.size());
  zip_fclose(file);
  return got == static_cast<zip_int64_t>(packed.size());
}

/// The whole member, where it is small and nothing at all is wrong with it. False otherwise, and it
/// is for the slower way to say what is wrong, and where.
bool ZipReader::Archive::take_plain(std::size_t entry, std::vector<std::uint8_t>& plain) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat_index(handle, entry, 0, &stat) != 0) return false;
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC |
                                   ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((stat.valid & kNeeded) != kNeeded || stat.comp_method != ZIP_CM_DEFLATE ||
      stat.encryption_method != ZIP_EM_NONE)
    return false;
  if (stat.size > kWholeBytes || stat.comp_size > kWholeBytes || held + stat.size > kHeldBytes)
    return false;
  if (!take_packed(entry, stat.comp_size)) return false;
  if (!inflater) inflater.reset(libdeflate_alloc_decompressor());
  if (!inflater) throw std::bad_alloc();
  plain = std::move(spare);
  plain.resize(static_cast<std::size_t>(stat.size));
  // Without a place for how much it made, that has to be as much as there is room for.
  const libdeflate_result result = libdeflate_deflate_decompress(
      inflater.get(), packed.data(), packed.size(), plain.data(), plain.size(), nullptr);
  if (result != LIBDEFLATE_SUCCESS || libdeflate_crc32(0, plain.data(), plain.size()) != stat.crc)
    return false;
  held += plain.size();
  return true;
}

struct ZipReader::Member::State {
  Archive* archive = nullptr;
  zip_file_t* handle = nullptr;     ///< null where the member is in memory
  std::vector<std::uint8_t> plain;  ///< all of it
  std::string name;
  std::uint64_t offset = 0;

  State() = default;
  ~State() {
    if (handle != nullptr) {
      zip_fclose(handle);
    } else if (archive != nullptr) {
      archive->held -= plain.size();
      archive->spare = std::move(plain);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

ZipReader::ZipReader(const std::string& path) : name_(path), archive_(new Archive) {
  int code = 0;
  // The directory of a ZIP file stands at its end.
  make_rereadable(path);
  errno = 0;
  archive_->handle = zip_open(system_path(path).c_str(), ZIP_RDONLY, &code);
  if (archive_->handle == nullptr) {
    // What the system itself cannot read; that a file ends too early is a matter of its format.
    const bool unreadable = (code == ZIP_ER_READ || code == ZIP_ER_SEEK) && errno == EIO;
    if (code == ZIP_ER_OPEN || code == ZIP_ER_NOENT || unreadable)
      throw IoError(path + ": cannot open: " + zip_error_text(code));
    throw FormatError(path, 0, kExpectedZip + zip_error_text(code));
  }
  load_directory();
}

ZipReader::ZipReader(std::string name, std::span<const std::uint8_t> bytes)
    : name_(std::move(name)), archive_(new Archive) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) {
    archive_->handle = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (archive_->handle == nullptr) zip_source_free(source);
  }
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive_->handle == nullptr) throw FormatError(name_, 0, kExpectedZip + text);
  load_directory();
}

ZipReader::~ZipReader() = default;

void ZipReader::load_directory() {
  const zip_int64_t count = zip_get_num_entries(archive_->handle, 0);
  if (count < 0 || count > kMaxZipEntries)
    throw FormatError(name_, 0,
                      "expected at most " + std::to_string(kMaxZipEntries) + " members, found " +
                          std::to_string(count));
  entries_.reserve(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive_->handle, static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & ZIP_STAT_NAME) == 0)
      throw FormatError(name_, 0, "member " + std::to_string(i) + " has no readable entry");
    entries_.push_back({stat.name, (stat.valid & ZIP_STAT_SIZE) != 0 ? stat.size : 0});
  }
}

int ZipReader::find(const std::string& member) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == member) return static_cast<int>(i);
  return -1;
}

std::string ZipReader::read_text(const std::string& member, std::size_t max_bytes) const {
  const int entry = find(member);
  if (entry < 0) throw FormatError(name_, 0, "expected a member '" + member + "', found none");
  Member stream(*this, static_cast<std::size_t>(entry));
  std::string text;
  std::array<std::uint8_t, 4096> part;
  for (;;) {
    const std::size_t n = stream.read(part);
    text.append(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
    if (text.size() > max_bytes)
      throw FormatError(stream.name(), max_bytes,
                        "expected at most " + std::to_string(max_bytes) + " bytes, found more");
    if (n < part.size()) return text;
  }
}

ZipReader::Member::Member(const ZipReader& zip, std::size_t entry) : state_(new State) {
  state_->name = zip.name() + "/" + zip.entries().at(entry).name;
  if (zip.archive_->take_plain(entry, state_->plain)) {
    state_->archive = zip.archive_.get();
    return;
  }
  state_->handle = zip_fopen_index(zip.archive_->handle, entry, 0);
  if (state_->handle == nullptr)
    throw FormatError(
        state_->name, 0,
        std::string("expected a readable member, found: ") + zip_strerror(zip.archive_->handle));
}

ZipReader::Member::~Member() = default;
ZipReader::Member::Member(Member&&) noexcept = default;
ZipReader::Member& ZipReader::Member::operator=(Member&&) noexcept = default;
const std::string& ZipReader::Member::name() const { return state_->name; }
std::uint64_t ZipReader::Member::offset() const { return state_->offset; }

std::size_t ZipReader::Member::read(std::span<std::uint8_t> out) {
  if (state_->handle == nullptr) {
    const auto bytes = read_some(out);
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return bytes.size();
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const auto rest = out.subspan(done);
    const zip_int64_t n = zip_fread(state_->handle, rest.data(), rest.size());
    if (n < 0)
      throw FormatError(
          state_->name, state_->offset,
          std::string("expected intact data, found: ") + zip_file_strerror(state_->handle));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
    state_->offset += static_cast<std::uint64_t>(n);
  }
  return done;
}

std::span<const std::uint8_t> ZipReader::Member::read_some(std::span<std::uint8_t> room) {
  if (state_->handle != nullptr) return room.first(read(room));
  const auto rest = std::span(state_->plain).subspan(static_cast<std::size_t>(state_->offset));
  const auto some = rest.first(std::min(rest.size(), room.size()));
  state_->offset += some.size();
  return some;
}

}  // namespace citcat
