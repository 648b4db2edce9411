#include "formats/io/input.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/io/mapped_file.h"
#include "formats/io/memory_limit.h"
#include "formats/io/once_input.h"

namespace citcat {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
/// An xz or zstd header of a few bytes may ask for any window; more than the largest that the tools
/// use by themselves (zstd --ultra: 128 MiB, xz -9: 65 MiB) is refused.
constexpr std::uint64_t kMaxDecoderMemory = std::uint64_t{1} << 28;
constexpr int kMaxZstdWindowLog = 27;

bool starts_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

/// RFC 1952, 2.3.1 (and method 8, the only one defined).
constexpr std::array<std::uint8_t, 3> kGzipMagic{0x1f, 0x8b, 8};
/// The .xz File Format, 2.1.1.1.
constexpr std::array<std::uint8_t, 6> kXzMagic{0xfd, '7', 'z', 'X', 'Z', 0};
/// RFC 8878, 3.1.1; a file may also begin with one of 16 kinds of skippable frame (3.1.2).
constexpr std::array<std::uint8_t, 4> kZstdMagic{0x28, 0xb5, 0x2f, 0xfd};
constexpr std::array<std::uint8_t, 3> kZstdSkippableTail{0x2a, 0x4d, 0x18};

/// A skippable frame (RFC 8878, 3.1.2) of 16 bytes that begins so.
constexpr std::array<std::uint8_t, kStoredKtMagicBytes> kStoredKtMagic{
    0x50, 0x2a, 0x4d, 0x18, 0x10, 0, 0, 0, 'C', 'I', 'T', 'C', 'A', 'T', 'K', 'T'};

/// Set before main(), and constant from then on.
InputStream::SegmentDecoders segment_decoders = nullptr;

Compression detect(std::span<const std::uint8_t> bytes) {
  if (starts_with(bytes, kGzipMagic)) return Compression::gzip;
  if (starts_with(bytes, kXzMagic)) return Compression::xz;
  if (starts_with(bytes, kStoredKtMagic)) return Compression::stored_kt;
  if (starts_with(bytes, kZstdMagic)) return Compression::zstd;
  if (bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 &&
      starts_with(bytes.subspan(1), kZstdSkippableTail)) {
    return Compression::zstd;
  }
  return Compression::none;
}

}  // namespace

std::string_view compression_name(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::gzip:
      return "gzip";
    case Compression::xz:
      return "xz";
    case Compression::zstd:
      return "zstd";
    case Compression::stored_kt:
      return "stored KT";
  }
  return "?";
}

/// The bytes as stored: a descriptor read in large pieces, or memory. Counts and hashes them.
class InputStream::Source {
 public:
  Source(int descriptor, bool owned, std::string name)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)), buffer_(kBufferBytes) {}
  Source(std::shared_ptr<OnceInput> once, std::string name)
      : Source(once->descriptor(), false, std::move(name)) {
    once_ = std::move(once);
  }
  Source(std::span<const std::uint8_t> memory, std::string name)
      : name_(std::move(name)), memory_(memory) {}
  ~Source() {
    if (owned_) ::close(descriptor_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Unconsumed bytes; reads more when there are none. Empty at the end of the file.
  std::span<const std::uint8_t> available() {
    if (begin_ == end_) refill();
    return window().subspan(begin_, end_ - begin_);
  }
  void consume(std::size_t n) { begin_ += n; }
  /// What is not compressed can be handed out where it lies: memory, or a file that can be mapped.
  bool lies_still() {
    if (once_) return false;
    if (descriptor_ >= 0) file_ = MappedFile::open(descriptor_, name_);
    return descriptor_ < 0 || file_ != nullptr;
  }
  /// Of those: `unread`, which was returned last, and more bytes behind it; no more at the end.
  /// Nothing at first returns all that was looked at to find the compression.
  std::span<const std::uint8_t> extend(std::span<const std::uint8_t> unread) {
    if (!file_) return std::exchange(begin_, end_) != end_ ? memory_ : unread;
    if (std::exchange(begin_, end_) != end_) return file_->at(0, total_).first(total_);
    return extend_mapped(unread);
  }
  /// Moves unconsumed bytes to `out`, those of a file without a buffer between. 0 at the end.
  std::size_t take(std::span<std::uint8_t> out) {
    if (begin_ == end_ && descriptor_ >= 0 && total_ != 0) {
      const std::size_t got = read_descriptor(out, 0);
      total_ += got;
      hasher_.update(out.first(got));
      return got;
    }
    const auto in = available();
    const std::size_t n = std::min(in.size(), out.size());
    std::copy_n(in.begin(), n, out.begin());
    consume(n);
    return n;
  }

  /// Goes on at an offset of the file; before anything was consumed.
  void seek(std::uint64_t offset) {
    if (::lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) {
      throw IoError(name_ + ": cannot seek: " + std::strerror(errno));
    }
    begin_ = end_ = 0;
  }
  const std::string& name() const { return name_; }
  /// Offset of the first unconsumed byte.
  std::uint64_t position() const { return total_ - (end_ - begin_); }
  std::uint64_t total() const { return total_; }
  Hash128 hash() const { return hasher_.value(); }

  [[noreturn]] void fail(Compression compression, const std::string& message) const {
    throw FormatError(name_, position(),
                      "in the " + std::string(compression_name(compression)) +
                          " compressed file (offset before decompression): " + message);
  }

 private:
  std::span<const std::uint8_t> window() const {
    return descriptor_ < 0 ? memory_ : std::span<const std::uint8_t>(buffer_);
  }

  void refill() {
    if (descriptor_ < 0) {
      // Hashed in one piece, at the first look.
      if (end_ == 0) advance(0, memory_.size());
      return;
    }
    // A pipe may deliver its first bytes one by one; the magic number is wanted whole.
    const std::size_t wanted = total_ == 0 ? kStoredKtMagicBytes : 1;
    std::size_t got = 0;
    while (got < wanted) {
      const std::size_t piece = read_descriptor(std::span(buffer_).subspan(got), got);
      if (piece == 0) break;
      got += piece;
    }
    advance(0, got);
  }

  /// `ahead`: bytes that were read and are not yet counted.
  std::size_t read_descriptor(std::span<std::uint8_t> out, std::size_t ahead) {
    if (once_) return once_->read(total_ + ahead, out);
    for (;;) {
      const ssize_t got = ::read(descriptor_, out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) throw IoError(name_ + ": cannot read: " + std::strerror(errno));
    }
  }

  std::span<const std::uint8_t> extend_mapped(std::span<const std::uint8_t> unread) {
    if (total_ == file_->size()) {
      file_->check_unchanged();
      return unread;
    }
    const auto all = file_->at(total_ - unread.size(), unread.size() + 1);
    const auto known = all.first(std::min(all.size(), unread.size() + kBufferBytes));
    const auto more = known.subspan(unread.size());
    total_ += more.size();
    hasher_.update(more);
    file_->check_read();
    return known;
  }

  void advance(std::size_t begin, std::size_t end) {
    begin_ = begin;
    end_ = end;
    total_ += end - begin;
    hasher_.update(window().subspan(begin, end - begin));
  }

  int descriptor_ = -1;
  bool owned_ = false;
  std::shared_ptr<OnceInput> once_;  ///< null unless the descriptor is such an input's
  std::string name_;
  std::vector<std::uint8_t> buffer_;
  std::span<const std::uint8_t> memory_;
  std::unique_ptr<MappedFile> file_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t total_ = 0;
  Hasher128 hasher_;
};

/// Turns stored bytes into plain ones. decode() returns 0 only at the clean end of the last member.
class InputStream::Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual std::size_t decode(Source& source, std::span<std::uint8_t> out) = 0;
};

class InputStream::GzipDecoder : public Decoder {
 public:
  GzipDecoder() {
    // 16: a gzip header and trailer (with CRC-32) are expected around the deflate stream.
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  std::size_t decode(Source& source, std::span<std::uint8_t> out) override {
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      const auto in = source.available();
      if (in.empty()) {
        if (!inside_member_) return 0;
        source.fail(Compression::gzip, "expected more data, found the end of the file");
      }
      if (!inside_member_ && !begin_member(source, in)) continue;
      step(source, in);
    }
    return out.size() - stream_.avail_out;
  }

 private:
  /// Between members: gzip allows padding with zeros after the last one (as tape drives left it).
  bool begin_member(Source& source, std::span<const std::uint8_t> in) {
    if (in[0] == 0 && members_ > 0) {
      source.consume(1);
      return false;
    }
    inflateReset(&stream_);
    inside_member_ = true;
    return true;
  }

  void step(Source& source, std::span<const std::uint8_t> in) {
    // zlib's interface is not const-correct; it only reads.
    stream_.next_in = const_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    source.consume(in.size() - stream_.avail_in);
    if (status == Z_STREAM_END) {
      inside_member_ = false;
      ++members_;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      source.fail(Compression::gzip, stream_.msg != nullptr ? stream_.msg : "damaged data");
    }
  }

  z_stream stream_{};
  bool inside_member_ = false;
  std::uint64_t members_ = 0;
};

class InputStream::XzDecoder : public Decoder {
 public:
  XzDecoder() {
    if (lzma_stream_decoder(&stream_, kMaxDecoderMemory, LZMA_CONCATENATED) != LZMA_OK) {
      throw std::bad_alloc();
    }
  }
  ~XzDecoder() override { lzma_end(&stream_); }

  std::size_t decode(Source& source, std::span<std::uint8_t> out) override {
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    while (stream_.avail_out == out.size() && !ended_) step(source);
    return out.size() - stream_.avail_out;
  }

 private:
  void step(Source& source) {
    const auto in = source.available();
    stream_.next_in = in.data();
    stream_.avail_in = in.size();
    const lzma_ret status = lzma_code(&stream_, in.empty() ? LZMA_FINISH : LZMA_RUN);
    source.consume(in.size() - stream_.avail_in);
    switch (status) {
      case LZMA_OK:
        return;
      case LZMA_STREAM_END:
        ended_ = true;
        return;
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        source.fail(Compression::xz, "needs more than " + std::to_string(kMaxDecoderMemory) +
                                         " bytes of memory to decompress");
      case LZMA_BUF_ERROR:
        source.fail(Compression::xz, "expected more data, found the end of the file");
      default:
        source.fail(Compression::xz, "damaged data");
    }
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

class InputStream::ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  }

  std::size_t decode(Source& source, std::span<std::uint8_t> out) override {
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos == 0) {
      const auto in = source.available();
      // The library keeps plain bytes back when `out` is full; they come without further input.
      if (in.empty() && !pending_output_) {
        if (!inside_frame_) return 0;
        source.fail(Compression::zstd, "expected more data, found the end of the file");
      }
      ZSTD_inBuffer from{in.data(), in.size(), 0};
      const std::size_t status = ZSTD_decompressStream(context_.get(), &target, &from);
      source.consume(from.pos);
      if (ZSTD_isError(status)) source.fail(Compression::zstd, ZSTD_getErrorName(status));
      // 0: a frame is complete and all of it was handed out.
      inside_frame_ = status != 0;
      pending_output_ = inside_frame_ && target.pos == target.size;
    }
    return target.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool inside_frame_ = false;
  bool pending_output_ = false;
};

/// Segments of a stored trace, one after the other. The content of its frames is a sequence of u64
/// length and that many bytes; length zero ends it, followed by u64 instructions and u64 KT bytes.
class InputStream::KtDecoder : public Decoder {
 public:
  explicit KtDecoder(bool from_beginning) : check_totals_(from_beginning) {}

  std::size_t decode(Source& source, std::span<std::uint8_t> out) override {
    while (at_ == piece_.size()) {
      if (!next_piece(source)) return 0;
    }
    const std::size_t n = std::min(out.size(), piece_.size() - at_);
    std::memcpy(out.data(), std::span(piece_).subspan(at_).data(), n);
    at_ += n;
    total_bytes_ += n;
    return n;
  }

 private:
  /// A segment costs much less than a byte an instruction, except where code is all new.
  static constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 28;

  bool next_piece(Source& source) {
    at_ = 0;
    piece_.clear();
    if (ended_) return false;
    if (!segment_ && !begin_segment(source)) return false;
    segment_->next(piece_);
    if (piece_.empty()) segment_.reset();
    return true;
  }

  bool begin_segment(Source& source) {
    const std::uint64_t size = read_u64(source);
    if (size == 0) return end(source);
    if (size > kMaxSegmentBytes) {
      source.fail(Compression::stored_kt, "expected a segment, found an impossible length");
    }
    std::vector<std::uint8_t> content;
    while (content.size() < size) {
      const std::size_t begin = content.size();
      content.resize(begin +
                     static_cast<std::size_t>(std::min<std::uint64_t>(size - begin, kBufferBytes)));
      read_plain(source, std::span(content).subspan(begin));
    }
    if (segment_decoders == nullptr) {
      source.fail(Compression::stored_kt, "this program has no decoder for stored traces");
    }
    segment_ = segment_decoders(std::move(content), source.name());
    return true;
  }

  bool end(Source& source) {
    read_u64(source);
    const std::uint64_t bytes = read_u64(source);
    if (check_totals_ && bytes != total_bytes_) {
      source.fail(Compression::stored_kt, "expected " + std::to_string(bytes) +
                                              " KT bytes, found " + std::to_string(total_bytes_));
    }
    std::uint8_t more = 0;
    if (zstd_.decode(source, std::span(&more, 1)) != 0) {
      source.fail(Compression::stored_kt, "expected the end, found more segments");
    }
    ended_ = true;
    return false;
  }

  std::uint64_t read_u64(Source& source) {
    std::array<std::uint8_t, 8> bytes{};
    read_plain(source, bytes);
    return ByteReader(bytes, source.name()).u64("segment length");
  }

  void read_plain(Source& source, std::span<std::uint8_t> out) {
    while (!out.empty()) {
      const std::size_t got = zstd_.decode(source, out);
      if (got == 0) source.fail(Compression::stored_kt, "expected more segments, found the end");
      out = out.subspan(got);
    }
  }

  ZstdDecoder zstd_;
  std::unique_ptr<SegmentDecoder> segment_;
  std::vector<std::uint8_t> piece_;
  std::size_t at_ = 0;
  std::uint64_t total_bytes_ = 0;
  bool check_totals_;
  bool ended_ = false;
};

void InputStream::decode_segments_by(SegmentDecoders make) { segment_decoders = make; }

InputStream::InputStream(const std::string& path, Use use)
    : name_(path == "-" ? "(standard input)" : path) {
  const auto once = OnceInput::of(path);
  if (once && !once->spooled()) {
    if (use == Use::whole) once->take();
    source_ = std::make_unique<Source>(once, name_);
  } else {
    open_file(path);
  }
  start(detect(source_->available()));
}

InputStream::InputStream(const std::string& path, std::uint64_t file_offset) : name_(path) {
  open_file(path);
  const bool plain_frames = detect(source_->available()) == Compression::zstd;
  source_->seek(file_offset);
  start(plain_frames ? Compression::zstd : Compression::stored_kt);
  if (!plain_frames) decoder_ = std::make_unique<KtDecoder>(false);
}

InputStream::InputStream(std::span<const std::uint8_t> stored, std::string name)
    : name_(std::move(name)), source_(std::make_unique<Source>(stored, name_)) {
  start(detect(source_->available()));
}

InputStream::~InputStream() = default;

void InputStream::open_file(const std::string& path) {
  const int descriptor = ::open(system_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw IoError(name_ + ": cannot open: " + std::strerror(errno));
  source_ = std::make_unique<Source>(descriptor, true, name_);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    throw IoError(name_ + ": expected a file, found a directory");
  }
}

void InputStream::start(Compression compression) {
  compression_ = compression;
  switch (compression_) {
    case Compression::none:
      in_place_ = source_->lies_still();
      break;
    case Compression::gzip:
      decoder_ = std::make_unique<GzipDecoder>();
      break;
    case Compression::xz:
      decoder_ = std::make_unique<XzDecoder>();
      break;
    case Compression::zstd:
      decoder_ = std::make_unique<ZstdDecoder>();
      break;
    case Compression::stored_kt:
      decoder_ = std::make_unique<KtDecoder>(true);
      break;
  }
}

std::size_t InputStream::produce(std::span<std::uint8_t> out) {
  return decoder_ ? decoder_->decode(*source_, out) : source_->take(out);
}

/// Makes `unread_` longer; false at the end. There will be room for `wanted` bytes.
bool InputStream::fill(std::size_t wanted) {
  const std::size_t kept = unread_.size();
  if (in_place_) {
    unread_ = source_->extend(unread_);
    return unread_.size() != kept;
  }
  if (buffer_.size() < std::max(wanted, kBufferBytes)) {
    std::vector<std::uint8_t> larger(std::max(wanted, kBufferBytes));
    std::copy(unread_.begin(), unread_.end(), larger.begin());
    buffer_ = std::move(larger);
  } else {
    std::copy(unread_.begin(), unread_.end(), buffer_.begin());
  }
  const std::size_t got = produce(std::span(buffer_).subspan(kept));
  unread_ = std::span<const std::uint8_t>(buffer_).first(kept + got);
  return got != 0;
}

std::size_t InputStream::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto block = peek(1);
    if (block.empty()) break;
    const std::size_t n = std::min(unread_.size(), out.size() - done);
    std::memcpy(out.subspan(done).data(), unread_.data(), n);
    consume(n);
    done += n;
  }
  return done;
}

void InputStream::read_exact(std::span<std::uint8_t> out, std::string_view field) {
  const std::uint64_t start = offset_;
  const std::size_t got = read(out);
  if (got == out.size()) return;
  throw FormatError(name_, start,
                    std::string(field) + ": expected " + std::to_string(out.size()) +
                        " bytes, found " + std::to_string(got));
}

std::span<const std::uint8_t> InputStream::peek(std::size_t n) {
  CITCAT_ASSERT(n <= kMaxPeek);
  while (unread_.size() < n && fill(n)) {
  }
  return unread_.first(std::min(n, unread_.size()));
}

std::span<const std::uint8_t> InputStream::next_block() {
  if (peek(1).empty()) return {};
  const auto block = unread_;
  consume(block.size());
  return block;
}

void InputStream::consume(std::size_t n) {
  CITCAT_ASSERT(n <= unread_.size());
  unread_ = unread_.subspan(n);
  offset_ += n;
}

std::uint64_t InputStream::stored_bytes() const { return source_->total(); }

Hash128 InputStream::stored_hash() const { return source_->hash(); }

std::vector<std::uint8_t> read_head(const std::string& path, std::size_t n) {
  InputStream input(path, InputStream::Use::head);
  const auto head = input.peek(n);
  return {head.begin(), head.end()};
}

std::vector<std::uint8_t> read_whole_file(const std::string& path, std::uint64_t max_bytes) {
  InputStream input(path);
  std::vector<std::uint8_t> all;
  for (auto block = input.next_block(); !block.empty(); block = input.next_block()) {
    require_memory(all.size() + block.size(), input.name(), all.size(), "the whole file");
    if (block.size() > max_bytes - all.size()) {
      throw FormatError(input.name(), all.size(),
                        "expected at most " + std::to_string(max_bytes) + " bytes, found more");
    }
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

}  // namespace citcat
