#include "formats/io/decompression.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/filter/bzip2.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/lzma.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/operations.hpp>
#include <string>

#include "formats/io/error.h"
#include "formats/io/segment_stream.h"
#include "formats/io/zstd_frames.h"
#include "formats/records/record_unpacker.h"

namespace citcat {
namespace {

namespace io = boost::iostreams;

constexpr std::streamsize kBufferBytes = StoredBytes::kBufferBytes;

/// Boost speaks of bytes as char, and says the end by -1.
std::span<std::uint8_t> as_bytes(char* bytes, std::streamsize n) {
  return {reinterpret_cast<std::uint8_t*>(bytes), static_cast<std::size_t>(n)};
}
std::streamsize or_end(std::size_t n) { return n == 0 ? -1 : static_cast<std::streamsize>(n); }

/// What is thrown about the compressed file. An offset is into that file.
class Complaint {
 public:
  Complaint(const StoredBytes& stored, Compression compression)
      : stored_(&stored), compression_(compression) {}

  [[noreturn]] void cut() const { raise("expected more data, found the end of the file"); }
  [[noreturn]] void damaged(const std::string& what) const {
    raise("at or before this offset: " + what);
  }
  [[noreturn]] void raise(const std::string& what) const {
    throw FormatError(stored_->name(), stored_->position(),
                      "in the " + std::string(compression_name(compression_)) +
                          " compressed file (offset before decompression): " + what);
  }

 private:
  const StoredBytes* stored_;
  Compression compression_;
};

/// The stored bytes as a source of Boost.Iostreams.
struct StoredSource {
  using char_type = char;
  using category = io::source_tag;
  StoredBytes* stored;

  std::streamsize read(char* out, std::streamsize n) {
    return or_end(stored->take(as_bytes(out, n)));
  }
};

/// Lies between a zstd file and its decompressor, changes nothing, and follows the frames. It
/// throws nothing at the end of a cut file: the decompressor still has bytes to give.
struct ZstdEndCheck {
  using char_type = char;
  using category = io::multichar_input_filter_tag;
  ZstdFrames* frames;

  template <typename Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    const std::streamsize got = io::read(source, out, n);
    if (got > 0) frames->pass(as_bytes(out, got));
    return got;
  }
};

/// Lies above the decompressor of a stored trace or of stored records.
template <typename Content>
struct ContentFilter {
  using char_type = char;
  using category = io::multichar_input_filter_tag;
  std::shared_ptr<Content> content;  // Boost copies filters

  template <typename Source>
  std::streamsize read(Source& source, char* out, std::streamsize n) {
    const auto pull = [&source](std::span<std::uint8_t> into) -> std::size_t {
      const std::streamsize got = io::read(source, reinterpret_cast<char*>(into.data()),
                                           static_cast<std::streamsize>(into.size()));
      return got == -1 ? 0 : static_cast<std::size_t>(got);
    };
    return or_end(content->read(pull, as_bytes(out, n)));
  }
};

void push_zstd(io::filtering_istream& stream, ZstdFrames* frames) {
  stream.push(io::zstd_decompressor(kBufferBytes), kBufferBytes);
  stream.push(ZstdEndCheck{frames}, kBufferBytes);
}

[[noreturn]] void explain(const Complaint& complaint, const io::gzip_error& error) {
  if (error.error() == io::gzip::bad_footer || error.zlib_error_code() == Z_BUF_ERROR) {
    complaint.cut();
  }
  if (error.error() == io::gzip::bad_crc) complaint.damaged("the data does not match its CRC-32");
  if (error.error() == io::gzip::bad_header) {
    complaint.damaged("expected a whole member or the end, found neither");
  }
  complaint.damaged("damaged data");
}

[[noreturn]] void explain(const Complaint& complaint, const io::bzip2_error& error) {
  if (error.error() == io::bzip2::unexpected_eof) complaint.cut();
  if (error.error() == io::bzip2::data_error_magic) {
    complaint.damaged("expected another stream or the end, found something else");
  }
  complaint.damaged("damaged data");
}

[[noreturn]] void explain(const Complaint& complaint, const io::lzma_error& error) {
  if (error.error() == LZMA_BUF_ERROR) complaint.cut();
  if (error.error() == LZMA_MEMLIMIT_ERROR) {
    complaint.damaged(
        "expected a file that needs at most 100 MiB to decompress, found one that "
        "needs more");
  }
  complaint.damaged("damaged data");
}

[[noreturn]] void explain(const Complaint& complaint, const io::zstd_error& error) {
  complaint.damaged(ZSTD_getErrorName(static_cast<std::size_t>(error.error())));
}

}  // namespace

struct Decompression::Chain {
  Complaint complaint;
  ZstdFrames frames;                           ///< stays at a boundary unless the file is of zstd
  std::shared_ptr<SegmentStream> segments;     ///< of a stored trace
  std::shared_ptr<RecordChunkStream> records;  ///< of stored records
  io::filtering_istream stream;
  bool may_be_cut = false;
};

Decompression::Decompression(StoredBytes& stored, Compression compression, bool from_beginning)
    : chain_(new Chain{Complaint(stored, compression), {}, {}, {}, {}, false}) {
  io::filtering_istream& stream = chain_->stream;
  switch (compression) {
    case Compression::none:
      break;
    case Compression::gzip:
      stream.push(io::gzip_decompressor(io::gzip::default_window_bits, kBufferBytes), kBufferBytes);
      break;
    case Compression::bzip2:
      stream.push(io::bzip2_decompressor(false, kBufferBytes), kBufferBytes);
      break;
    case Compression::xz:
      stream.push(io::lzma_decompressor(kBufferBytes), kBufferBytes);
      break;
    case Compression::stored_kt:
      chain_->segments = std::make_shared<SegmentStream>(
          stored.name(), from_beginning,
          [complaint = chain_->complaint](const std::string& what) { complaint.raise(what); });
      stream.push(ContentFilter<SegmentStream>{chain_->segments}, kBufferBytes);
      push_zstd(stream, &chain_->frames);
      break;
    case Compression::zstd:
      if (from_beginning && holds_stored_records(stored.head())) {
        chain_->records = std::make_shared<RecordChunkStream>(
            [complaint = chain_->complaint](const std::string& what) { complaint.raise(what); });
        stream.push(ContentFilter<RecordChunkStream>{chain_->records}, kBufferBytes);
      }
      push_zstd(stream, &chain_->frames);
      break;
  }
  stream.push(StoredSource{&stored}, kBufferBytes);
  // What is thrown inside is wanted here; a stream keeps it to itself otherwise, and it looks like
  // the end.
  stream.exceptions(std::ios::badbit);
}

Decompression::~Decompression() = default;

void Decompression::allow_cut() {
  chain_->may_be_cut = true;
  if (chain_->segments) chain_->segments->allow_cut();
  if (chain_->records) chain_->records->allow_cut();
}

std::size_t Decompression::read(std::span<std::uint8_t> out) {
  const Complaint& complaint = chain_->complaint;
  try {
    chain_->stream.read(reinterpret_cast<char*>(out.data()),
                        static_cast<std::streamsize>(out.size()));
    const auto got = static_cast<std::size_t>(chain_->stream.gcount());
    if (got == 0 && !out.empty() && !chain_->may_be_cut && !chain_->frames.at_frame_boundary()) {
      complaint.cut();
    }
    return got;
  } catch (const io::gzip_error& error) {
    explain(complaint, error);
  } catch (const io::bzip2_error& error) {
    explain(complaint, error);
  } catch (const io::lzma_error& error) {
    explain(complaint, error);
  } catch (const io::zstd_error& error) {
    explain(complaint, error);
  } catch (const std::ios::failure& error) {
    // Asked again after it had failed.
    complaint.damaged("damaged data");
  }
}

}  // namespace citcat
