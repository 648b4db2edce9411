#include "formats/io/zstd_sink.h"

#include <zstd.h>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/operations.hpp>
#include <ios>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/error.h"

namespace citcat {
namespace {

namespace io = boost::iostreams;

void check_zstd(std::size_t status, const char* what) {
  if (!ZSTD_isError(status)) return;
  throw InternalError(std::string("zstd: cannot ") + what + ": " + ZSTD_getErrorName(status));
}

/// A sink of ours as one of Boost.Iostreams.
struct SinkDevice {
  using char_type = char;
  using category = io::sink_tag;
  ByteSink* target;

  std::streamsize write(const char* bytes, std::streamsize n) {
    target->write({reinterpret_cast<const std::uint8_t*>(bytes), static_cast<std::size_t>(n)});
    return n;
  }
};

/// Makes one frame of what is written, and ends it when it is closed.
class FrameFilter {
 public:
  using char_type = char;
  struct category : io::multichar_output_filter_tag, io::closable_tag {};

  FrameFilter(int level, int workers)
      : context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
    if (!context_) throw std::bad_alloc();
    set(ZSTD_c_compressionLevel, level, "set level");
    set(ZSTD_c_checksumFlag, 1, "set checksum");
    // A library built without threads refuses; it then compresses in the caller's thread.
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, workers);
  }

  template <typename Sink>
  std::streamsize write(Sink& sink, const char* bytes, std::streamsize n) {
    compress(sink, bytes, static_cast<std::size_t>(n), ZSTD_e_continue);
    return n;
  }
  template <typename Sink>
  void close(Sink& sink) {
    compress(sink, nullptr, 0, ZSTD_e_end);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  void set(ZSTD_cParameter parameter, int value, const char* what) {
    check_zstd(ZSTD_CCtx_setParameter(context_.get(), parameter, value), what);
  }

  template <typename Sink>
  void compress(Sink& sink, const char* bytes, std::size_t n, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{bytes, n, 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &out, &in, how);
      check_zstd(left, "compress");
      if (out.pos != 0) io::write(sink, buffer_.data(), static_cast<std::streamsize>(out.pos));
    } while (how == ZSTD_e_end ? left != 0 : in.pos != in.size);
  }

  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<char> buffer_;
};

}  // namespace

struct ZstdSink::Chain {
  FrameFilter filter;
  SinkDevice device;
};

ZstdSink::ZstdSink(std::unique_ptr<ByteSink> target, int level, int workers)
    : target_(std::move(target)),
      chain_(new Chain{FrameFilter(level, workers), SinkDevice{target_.get()}}) {}

ZstdSink::~ZstdSink() = default;

void ZstdSink::write(std::span<const std::uint8_t> bytes) {
  io::write(chain_->filter, chain_->device, reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void ZstdSink::finish() {
  io::close(chain_->filter, chain_->device, std::ios::out);
  target_->finish();
}

}  // namespace citcat
