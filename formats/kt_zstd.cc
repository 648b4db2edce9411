#include "formats/kt_zstd.h"

#include <zstd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "formats/error.h"
#include "formats/kt.h"

namespace citcat {

namespace {

void check_zstd(std::size_t status) {
  if (!ZSTD_isError(status)) return;
  throw InternalError(std::string("zstd: cannot compress: ") + ZSTD_getErrorName(status));
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

std::vector<std::uint8_t> compress(std::span<const std::uint8_t> plain, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  check_zstd(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level));
  check_zstd(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  std::vector<std::uint8_t> stored(ZSTD_compressBound(plain.size()));
  const std::size_t size =
      ZSTD_compress2(context.get(), stored.data(), stored.size(), plain.data(), plain.size());
  check_zstd(size);
  stored.resize(size);
  return stored;
}

/// Whole records at the beginning of `bytes`.
struct WholeRecords {
  std::size_t bytes = 0;
  std::uint64_t instructions = 0;
};

WholeRecords whole_records(std::span<const std::uint8_t> bytes) {
  WholeRecords whole;
  while (bytes.size() - whole.bytes >= 5) {
    const std::uint8_t type = bytes[whole.bytes + 4];
    const bool instruction = type < 0x30 && (type & 15) != 0;
    if (!instruction && type != kKtProcess && type != kKtTranslation) {
      throw FormatError("KT", whole.bytes + 4,
                        "record type: expected 00h-2fh, 80h or 81h, found " + std::to_string(type));
    }
    const std::size_t size =
        instruction ? kt_fixed_bytes(type & 15U) + std::size_t{4} * (type >> 4) : 8;
    if (size > bytes.size() - whole.bytes) break;
    whole.bytes += size;
    whole.instructions += instruction ? 1 : 0;
  }
  return whole;
}

}  // namespace

SeekableKtSink::SeekableKtSink(std::unique_ptr<ByteSink> target, int level)
    : target_(std::move(target)), level_(level) {}

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

void SeekableKtSink::cut_frame() {
  const WholeRecords whole = whole_records(records_);
  if (whole.bytes == 0) return;
  std::vector<std::uint8_t> plain(std::exchange(records_, {}));
  records_.assign(plain.begin() + static_cast<std::ptrdiff_t>(whole.bytes), plain.end());
  plain.resize(whole.bytes);
  Frame frame;
  frame.segment.first_instruction = instructions_;
  frame.segment.instructions = whole.instructions;
  frame.segment.kt_offset = kt_bytes_;
  frame.segment.kt_bytes = frame.segment.content_bytes = plain.size();
  instructions_ += whole.instructions;
  kt_bytes_ += plain.size();
  drain(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  frame.stored = std::async(std::launch::async, [plain = std::move(plain), level = level_] {
    return compress(plain, level);
  });
  pending_.push_back(std::move(frame));
}

void SeekableKtSink::drain(std::size_t leave) {
  while (pending_.size() > leave) {
    const std::vector<std::uint8_t> stored = pending_.front().stored.get();
    KtSegment segment = pending_.front().segment;
    pending_.pop_front();
    segment.file_offset = file_bytes_;
    segment.stored_bytes = stored.size();
    target_->write(stored);
    file_bytes_ += stored.size();
    segments_.push_back(segment);
  }
}

void SeekableKtSink::finish() {
  finished_ = true;
  cut_frame();
  if (!records_.empty()) {
    throw FormatError("KT", kt_bytes_, "expected whole records, found the last one cut");
  }
  drain(0);
  std::vector<SeekTableEntry> frames;
  for (const KtSegment& s : segments_) frames.push_back({s.stored_bytes, s.content_bytes});
  target_->write(encode_kt_index(segments_, std::move(frames)));
  target_->finish();
}

}  // namespace citcat
