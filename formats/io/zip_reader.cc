#include "formats/io/zip_reader.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <minizip/unzip.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/file_descriptor.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

// More members than any analyser writes: a session of 1 TB in chunks of 4 MiB.
constexpr std::uint64_t kMaxZipEntries = 1 << 18;

// Members up to this size are decompressed whole, by a library that does nothing else and is more
// than twice as fast. Analysers write chunks of 2 to 4 MiB.
constexpr std::uint64_t kWholeBytes = std::uint64_t{1} << 24;
// Held for all members that are open together; some formats have one for each channel.
constexpr std::uint64_t kHeldBytes = std::uint64_t{1} << 25;

// A member's name has a length of 16 bits (APPNOTE.TXT 4.4.10).
constexpr std::size_t kLongestName = 0xffff;
// Bit 0 of a member's flags (APPNOTE.TXT 4.4.4).
constexpr unsigned long kEncrypted = 1;
constexpr unsigned long kStored = 0;

/// What a ZIP file is read from: a file or memory, by any number of readers at once.
struct Source {
  FileDescriptor file;
  std::span<const std::uint8_t> memory;
  std::uint64_t size = 0;
  int error = 0;  ///< errno of the first read that failed

  std::size_t read(std::uint64_t at, void* to, std::size_t count) {
    if (at >= size) return 0;
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, size - at));
    if (file.value() < 0) {
      std::memcpy(to, memory.data() + at, count);
      return count;
    }
    std::size_t done = 0;
    while (done < count) {
      const ssize_t n = ::pread(file.value(), static_cast<char*>(to) + done, count - done,
                                static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && error == 0) error = errno;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }
};

/// A place in a Source.
struct Cursor {
  Source* source;
  std::uint64_t at = 0;
};

// The functions by which minizip reads (ioapi.h). `opaque` is the Source, `stream` the Cursor.

void* open_cursor(void* opaque, const void*, int) {
  return new (std::nothrow) Cursor{static_cast<Source*>(opaque)};
}
unsigned long read_cursor(void*, void* stream, void* to, unsigned long count) {
  auto& cursor = *static_cast<Cursor*>(stream);
  const std::size_t n = cursor.source->read(cursor.at, to, count);
  cursor.at += n;
  return n;
}
ZPOS64_T tell_cursor(void*, void* stream) { return static_cast<Cursor*>(stream)->at; }
long seek_cursor(void*, void* stream, ZPOS64_T offset, int origin) {
  auto& cursor = *static_cast<Cursor*>(stream);
  const std::uint64_t begin = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                              : origin == ZLIB_FILEFUNC_SEEK_CUR ? cursor.at
                                                                 : cursor.source->size;
  if (offset > cursor.source->size - std::min(begin, cursor.source->size)) return -1;
  cursor.at = begin + offset;
  return 0;
}
int close_cursor(void*, void* stream) {
  delete static_cast<Cursor*>(stream);
  return 0;
}
int cursor_error(void* opaque, void*) { return static_cast<Source*>(opaque)->error; }

struct CloseZip {
  void operator()(void* zip) const {
    unzCloseCurrentFile(zip);
    unzClose(zip);
  }
};
/// A reader of the file, with one member open at a time.
using ZipHandle = std::unique_ptr<void, CloseZip>;

/// Null where it is no ZIP file, or its directory is cut off.
ZipHandle open_zip(Source& source) {
  zlib_filefunc64_def functions{};
  functions.zopen64_file = open_cursor;
  functions.zread_file = read_cursor;
  functions.ztell64_file = tell_cursor;
  functions.zseek64_file = seek_cursor;
  functions.zclose_file = close_cursor;
  functions.zerror_file = cursor_error;
  functions.opaque = &source;
  return ZipHandle(unzOpen2_64("", &functions));
}

/// Whether the record at the end of the directory is whole (APPNOTE.TXT 4.3.16); minizip takes what
/// is cut off for zeros.
bool has_end(Source& source) {
  constexpr std::size_t kRecord = 22, kLongestComment = 0xffff;
  constexpr std::array<std::uint8_t, 4> kSignature{'P', 'K', 5, 6};
  const std::size_t count =
      static_cast<std::size_t>(std::min<std::uint64_t>(source.size, kRecord + kLongestComment));
  std::vector<std::uint8_t> tail(count);
  if (source.read(source.size - count, tail.data(), count) != count) return false;
  const auto record = std::find_end(tail.begin(), tail.end(), kSignature.begin(), kSignature.end());
  return tail.end() - record >= static_cast<std::ptrdiff_t>(kRecord);
}

/// What the directory says of a member, beside ZipReader::Entry.
struct Listed {
  unz64_file_pos place{};
  std::uint64_t packed = 0, plain = 0;  ///< bytes
  unsigned long method = 0, crc = 0;
  bool encrypted = false;
};

/// The member is the current one. Throws FormatError where its header cannot be read.
void open_member(void* zip, const Listed& member, bool raw, const std::string& name) {
  const auto refuse = [&name](const std::string& found) {
    throw FormatError(name, 0, "expected a readable member, found: " + found);
  };
  if (!raw && member.encrypted) refuse("an encrypted one");
  if (!raw && member.method != kStored && member.method != Z_DEFLATED) {
    refuse("compression method " + std::to_string(member.method));
  }
  int method = 0;
  if (unzGoToFilePos64(zip, &member.place) != UNZ_OK ||
      unzOpenCurrentFile2(zip, &method, nullptr, raw ? 1 : 0) != UNZ_OK) {
    refuse("a damaged header, or none");
  }
}

}  // namespace

struct ZipReader::Archive {
  struct Free {
    void operator()(libdeflate_decompressor* it) const { libdeflate_free_decompressor(it); }
  };

  Source source;
  ZipHandle zip;                                            ///< that the directory was read by
  std::vector<Listed> members;                              ///< as entries()
  std::unique_ptr<libdeflate_decompressor, Free> inflater;  ///< once one is wanted
  std::vector<std::uint8_t> packed;                         ///< of the member looked at last
  std::vector<std::uint8_t> spare;                          ///< of a member that was closed
  std::uint64_t held = 0;  ///< bytes of members that are open, plain and in memory

  void open(const std::string& name);
  bool take_packed(const Listed& member);
  bool take_plain(const Listed& member, std::vector<std::uint8_t>& plain);
};

void ZipReader::Archive::open(const std::string& name) {
  if (has_end(source)) zip = open_zip(source);
  if (source.error != 0) {
    throw IoError(name + ": cannot read: " + std::generic_category().message(source.error));
  }
  // Without its end a ZIP file cannot be known from something else.
  if (!zip) {
    throw FormatError(name, 0,
                      "expected a whole ZIP file (its directory stands at its end), found no such "
                      "directory");
  }
}

/// Reads a member as it is stored.
bool ZipReader::Archive::take_packed(const Listed& member) {
  packed.resize(static_cast<std::size_t>(member.packed));
  try {
    open_member(zip.get(), member, true, "");
  } catch (const FormatError&) {
    return false;
  }
  const int got =
      unzReadCurrentFile(zip.get(), packed.data(), static_cast<unsigned>(packed.size()));
  unzCloseCurrentFile(zip.get());
  return got >= 0 && static_cast<std::size_t>(got) == packed.size();
}

/// The whole member, where it is small and nothing at all is wrong with it. False otherwise, and it
/// is for the slower way to say what is wrong, and where.
bool ZipReader::Archive::take_plain(const Listed& member, std::vector<std::uint8_t>& plain) {
  if (member.method != Z_DEFLATED || member.encrypted) return false;
  if (member.plain > kWholeBytes || member.packed > kWholeBytes ||
      held + member.plain > kHeldBytes) {
    return false;
  }
  if (!take_packed(member)) return false;
  if (!inflater) inflater.reset(libdeflate_alloc_decompressor());
  if (!inflater) throw std::bad_alloc();
  plain = std::move(spare);
  plain.resize(static_cast<std::size_t>(member.plain));
  // Without a place for how much it made, that has to be as much as there is room for.
  const libdeflate_result result = libdeflate_deflate_decompress(
      inflater.get(), packed.data(), packed.size(), plain.data(), plain.size(), nullptr);
  if (result != LIBDEFLATE_SUCCESS || libdeflate_crc32(0, plain.data(), plain.size()) != member.crc)
    return false;
  held += plain.size();
  return true;
}

struct ZipReader::Member::State {
  Archive* archive = nullptr;  ///< null where the member is not in memory
  ZipHandle zip;               ///< else
  Source* source = nullptr;    ///< of that
  bool ended = false;
  std::vector<std::uint8_t> plain;  ///< all of it
  std::uint64_t size = 0;           ///< that the directory claims
  std::string name;
  std::uint64_t offset = 0;

  State() = default;
  ~State() {
    if (archive == nullptr) return;
    archive->held -= plain.size();
    archive->spare = std::move(plain);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void expect_end();
};

/// Nothing more comes: it must be all, and what it was.
void ZipReader::Member::State::expect_end() {
  ended = true;
  if (offset != size) {
    throw FormatError(name, offset,
                      "expected intact data, " + std::to_string(size) + " bytes, found its end");
  }
  if (unzCloseCurrentFile(zip.get()) == UNZ_CRCERROR) {
    throw FormatError(name, offset, "expected intact data, found a wrong checksum");
  }
}

ZipReader::ZipReader(const std::string& path) : name_(path), archive_(new Archive) {
  // The directory of a ZIP file is at its end.
  make_rereadable(path);
  Source& source = archive_->source;
  source.file = FileDescriptor(::open(system_path(path).c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = source.file.value() < 0 ? -1 : ::lseek(source.file.value(), 0, SEEK_END);
  if (size < 0) {
    throw IoError(path + ": cannot open: " + std::generic_category().message(errno));
  }
  source.size = static_cast<std::uint64_t>(size);
  archive_->open(path);
  load_directory();
}

ZipReader::ZipReader(std::string name, std::span<const std::uint8_t> bytes)
    : name_(std::move(name)), archive_(new Archive) {
  archive_->source.memory = bytes;
  archive_->source.size = bytes.size();
  archive_->open(name_);
  load_directory();
}

ZipReader::~ZipReader() = default;

void ZipReader::load_directory() {
  void* const zip = archive_->zip.get();
  unz_global_info64 all{};
  if (unzGetGlobalInfo64(zip, &all) != UNZ_OK || all.number_entry > kMaxZipEntries) {
    throw FormatError(name_, 0,
                      "expected at most " + std::to_string(kMaxZipEntries) + " members, found " +
                          std::to_string(all.number_entry));
  }
  std::string name(kLongestName + 1, '\0');
  for (std::uint64_t i = 0; i < all.number_entry; ++i) {
    unz_file_info64 info{};
    Listed listed;
    if ((i == 0 ? unzGoToFirstFile(zip) : unzGoToNextFile(zip)) != UNZ_OK ||
        unzGetCurrentFileInfo64(zip, &info, name.data(), name.size(), nullptr, 0, nullptr, 0) !=
            UNZ_OK ||
        unzGetFilePos64(zip, &listed.place) != UNZ_OK) {
      throw FormatError(name_, 0, "member " + std::to_string(i) + " has no readable entry");
    }
    listed.packed = info.compressed_size;
    listed.plain = info.uncompressed_size;
    listed.method = info.compression_method;
    listed.crc = info.crc;
    listed.encrypted = (info.flag & kEncrypted) != 0;
    entries_.push_back({name.c_str(), info.uncompressed_size});
    archive_->members.push_back(listed);
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
  const Listed& member = zip.archive_->members[entry];
  state_->size = member.plain;
  if (zip.archive_->take_plain(member, state_->plain)) {
    state_->archive = zip.archive_.get();
    return;
  }
  state_->source = &zip.archive_->source;
  state_->zip = open_zip(*state_->source);
  if (!state_->zip) throw IoError(state_->name + ": cannot be read again");
  open_member(state_->zip.get(), member, false, state_->name);
}

ZipReader::Member::~Member() = default;
ZipReader::Member::Member(Member&&) noexcept = default;
ZipReader::Member& ZipReader::Member::operator=(Member&&) noexcept = default;
const std::string& ZipReader::Member::name() const { return state_->name; }
std::uint64_t ZipReader::Member::offset() const { return state_->offset; }

std::size_t ZipReader::Member::read(std::span<std::uint8_t> out) {
  if (state_->archive != nullptr) {
    const auto bytes = read_some(out);
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return bytes.size();
  }
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::size_t done = 0;
  while (done < out.size() && !state_->ended) {
    const auto rest = out.subspan(done);
    const int n = unzReadCurrentFile(state_->zip.get(), rest.data(),
                                     static_cast<unsigned>(std::min(rest.size(), kPiece)));
    if (n < 0 && state_->source->error != 0) {
      throw IoError(state_->name +
                    ": cannot read: " + std::generic_category().message(state_->source->error));
    }
    if (n < 0) {
      throw FormatError(state_->name, state_->offset,
                        n == Z_DATA_ERROR
                            ? "expected intact data, found data that is not a compressed stream"
                            : "expected intact data, found the end of the file");
    }
    if (n == 0) {
      state_->expect_end();
      break;
    }
    done += static_cast<std::size_t>(n);
    state_->offset += static_cast<std::uint64_t>(n);
  }
  return done;
}

std::span<const std::uint8_t> ZipReader::Member::read_some(std::span<std::uint8_t> room) {
  if (state_->archive == nullptr) return room.first(read(room));
  const auto rest = std::span(state_->plain).subspan(static_cast<std::size_t>(state_->offset));
  const auto some = rest.first(std::min(rest.size(), room.size()));
  state_->offset += some.size();
  return some;
}

}  // namespace citcat
