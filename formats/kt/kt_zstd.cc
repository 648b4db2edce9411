#include "formats/kt/kt_zstd.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "formats/io/error.h"
#include "formats/kt/kt_shape.h"

namespace citcat {

namespace {

void check_zstd(std::size_t status) {
  if (!ZSTD_isError(status)) return;
  throw InternalError(std::string("zstd: cannot compress: ") + ZSTD_getErrorName(status));
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

/// For a frame: pieces come in some 300 KiB.
constexpr std::size_t kRoom = SeekableKtSink::kFrameBytes + (std::size_t{1} << 19);

}  // namespace

/// What compresses one frame after another, and its memory.
class SeekableKtSink::Compressor {
 public:
  Compressor() : context_(ZSTD_createCCtx()) {
    if (!context_) throw std::bad_alloc();
    // Most of a frame is elsewhere in it already: a window of all of it leaves half of what the
    // level's own leaves, in less time. Smaller tables than the level's stay in the processor's
    // cache (docs/performance.md).
    set(ZSTD_c_compressionLevel, 3);
    set(ZSTD_c_windowLog, std::bit_width(kFrameBytes) - 1);
    set(ZSTD_c_hashLog, 16);
    set(ZSTD_c_chainLog, 15);
    set(ZSTD_c_checksumFlag, 1);
    records_.reserve(kRoom);
  }

  /// To be filled before compress().
  std::vector<std::uint8_t>& records() { return records_; }
  /// The frame, until it is called again.
  std::span<const std::uint8_t> compress() {
    const std::size_t room = ZSTD_compressBound(records_.size());
    if (room > room_) {
      stored_.reset(new std::uint8_t[room]);  // left as it is: most of it is never used
      room_ = room;
    }
    const std::size_t size =
        ZSTD_compress2(context_.get(), stored_.get(), room_, records_.data(), records_.size());
    check_zstd(size);
    return {stored_.get(), size};
  }

 private:
  void set(ZSTD_cParameter parameter, int value) {
    check_zstd(ZSTD_CCtx_setParameter(context_.get(), parameter, value));
  }

  std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
  std::vector<std::uint8_t> records_;
  std::unique_ptr<std::uint8_t[]> stored_;
  std::size_t room_ = 0;
};

SeekableKtSink::SeekableKtSink(std::unique_ptr<ByteSink> target) : target_(std::move(target)) {
  records_.reserve(kRoom);
}

SeekableKtSink::~SeekableKtSink() {
  if (finished_) return;
  try {
    cut_frame();
    drain(0);
  } catch (const std::exception&) {
    // What led here is reported already; the file is shorter by what could not be written.
  }
}

void SeekableKtSink::write(std::span<const std::uint8_t> bytes) {
  records_.insert(records_.end(), bytes.begin(), bytes.end());
  if (records_.size() >= kFrameBytes) cut_frame();
}

void SeekableKtSink::write_records(std::span<const std::uint8_t> records,
                                   std::uint64_t instructions) {
  if (whole_.bytes == records_.size()) {
    whole_.bytes += records.size();
    whole_.instructions += instructions;
  }
  write(records);
}

void SeekableKtSink::cut_frame() {
  const std::span<const std::uint8_t> all(records_);
  while (whole_.bytes < all.size()) {
    const KtShape record = kt_shape(all.subspan(whole_.bytes), kt_bytes_ + whole_.bytes, form_);
    if (record.bytes == 0) break;
    whole_.bytes += record.bytes;
    whole_.instructions += record.instruction ? 1 : 0;
  }
  if (whole_.bytes == 0) return;
  book_.set_form(form_);
  const KtPlace place = book_.pass(all.first(whole_.bytes));
  begin_frame(book_.take(), place);
}

/// Compresses the whole records, which may be none.
void SeekableKtSink::begin_frame(std::vector<std::uint8_t> notes, const KtPlace& place) {
  const std::span<const std::uint8_t> all(records_);
  drain(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  Frame frame;
  frame.notes = std::move(notes);
  frame.segment.place = place;
  frame.compressor = compressors_.take();
  std::vector<std::uint8_t>& records = frame.compressor->records();
  records.assign(all.begin() + static_cast<std::ptrdiff_t>(whole_.bytes), all.end());
  records.swap(records_);
  records.resize(whole_.bytes);
  frame.segment.first_instruction = instructions_;
  frame.segment.instructions = whole_.instructions;
  frame.segment.kt_offset = kt_bytes_;
  frame.segment.kt_bytes = frame.segment.content_bytes = whole_.bytes;
  instructions_ += whole_.instructions;
  kt_bytes_ += whole_.bytes;
  whole_ = {};
  frame.stored = std::async(std::launch::async,
                            [&compressor = *frame.compressor] { return compressor.compress(); });
  pending_.push_back(std::move(frame));
}

void SeekableKtSink::drain(std::size_t leave) {
  while (pending_.size() > leave) {
    Frame frame = std::move(pending_.front());
    pending_.pop_front();
    const std::span<const std::uint8_t> stored = frame.stored.get();
    KtSegment segment = frame.segment;
    segment.file_offset = file_bytes_;
    segment.stored_bytes = stored.size();
    write_frame(stored, segment.content_bytes);
    if (!frame.notes.empty()) {
      segment.notes_offset = file_bytes_;
      segment.notes_bytes = frame.notes.size();
      write_frame(frame.notes, 0);
    }
    segments_.push_back(segment);
    compressors_.give_back(frame.compressor);
  }
}

void SeekableKtSink::write_frame(std::span<const std::uint8_t> stored,
                                 std::uint64_t content_bytes) {
  target_->write(stored);
  frames_.push_back({stored.size(), content_bytes});
  file_bytes_ += stored.size();
}

void SeekableKtSink::finish() {
  finished_ = true;
  cut_frame();
  if (!records_.empty()) {
    throw FormatError("KT", kt_bytes_, "expected whole records, found the last one cut");
  }
  // What happened after the last record.
  if (book_.has_rest()) {
    const KtPlace place = book_.pass({});
    begin_frame(book_.take_all(), place);
  }
  drain(0);
  target_->write(encode_kt_index(segments_, std::move(frames_)));
  target_->finish();
}

}  // namespace citcat
