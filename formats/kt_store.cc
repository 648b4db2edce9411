#include "formats/kt_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/error.h"
#include "formats/random_access_file.h"
#include "formats/zstd_stream.h"

namespace citcat {

namespace {

// Skippable frames (RFC 8878, 3.1.2) hold what zstd itself does not need: the beginning, our index,
// and the seek table of zstd's seekable format (contrib/seekable_format in its sources).
constexpr std::uint32_t kSkippableMagic = 0x184d2a50;
constexpr std::uint32_t kSeekTableFrameMagic = 0x184d2a5e;
constexpr std::uint32_t kSeekTableMagic = 0x8f92eab1;
constexpr std::size_t kSeekTableFooterBytes = 9;

constexpr std::array<std::uint8_t, 8> kHeaderText{'C', 'I', 'T', 'C', 'A', 'T', 'K', 'T'};
constexpr std::array<std::uint8_t, 8> kIndexText{'C', 'C', 'K', 'T', 'I', 'N', 'D', 'X'};
/// 1: first version.
constexpr std::uint32_t kVersion = 1;
/// Frame header, text, version, four zeros.
constexpr std::size_t kHeaderBytes = 8 + 8 + 4 + 4;

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kQueuedBlocks = 8;
constexpr std::size_t kDecodedBytes = std::size_t{1} << 16;
constexpr ZstdOptions kFrameCompression{3, 0};
constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 32;

std::vector<std::uint8_t> skippable_frame(std::uint32_t magic, std::span<const std::uint8_t> body) {
  ByteWriter out;
  out.u32(magic);
  out.u32(static_cast<std::uint32_t>(body.size()));
  out.bytes(body);
  return out.take();
}

std::vector<std::uint8_t> header_frame() {
  ByteWriter body;
  body.bytes(kHeaderText);
  body.u32(kVersion);
  body.u32(0);
  return skippable_frame(kSkippableMagic, body.view());
}

/// Length of the record that begins with these five bytes.
std::size_t record_bytes(std::span<const std::uint8_t> head) {
  if (head[4] >= 0x40) return 8;
  return kt_fixed_bytes(head[4] & 15U) + std::size_t{4} * (head[4] >> 4);
}

void write_hash(ByteWriter& out, const Hash128& hash) {
  out.u64(hash.low);
  out.u64(hash.high);
}

}  // namespace

bool is_stored_kt(std::span<const std::uint8_t> prefix) {
  const std::vector<std::uint8_t> header = header_frame();
  return prefix.size() >= kStoredKtMagicBytes &&
         std::equal(header.begin(), header.begin() + kStoredKtMagicBytes, prefix.begin());
}

// ---- One segment
// ---------------------------------------------------------------------------------

KtSegmentEncoder::KtSegmentEncoder() : model_(std::make_unique<KtModel>()) {}
KtSegmentEncoder::~KtSegmentEncoder() = default;

bool KtSegmentEncoder::full() const {
  return instructions_ >= kKtSegmentInstructions ||
         model_->template_count() + 1 >= KtModel::kMaxTemplates;
}

std::size_t KtSegmentEncoder::add(std::span<const std::uint8_t> records, std::size_t size) {
  std::size_t at = 0;
  while (at < size && !full()) {
    const auto record = records.subspan(at, KtModel::kSlack);
    instructions_ += record[4] < 0x40 ? 1 : 0;
    at += model_->encode(coder_, record);
    ++records_;
  }
  hasher_.update(records.first(at));
  kt_bytes_ += at;
  return at;
}

std::vector<std::uint8_t> KtSegmentEncoder::finish() {
  model_->finish_runs();
  ByteWriter out;
  out.varint(records_);
  out.varint(instructions_);
  out.varint(kt_bytes_);
  write_hash(out, hasher_.value());
  out.varint(model_->runs().size());
  for (const std::uint64_t run : model_->runs()) out.varint(run);
  const std::vector<std::uint8_t> coded = coder_.finish();
  out.varint(coded.size());
  out.bytes(coded);
  return out.take();
}

KtSegmentDecoder::KtSegmentDecoder(std::vector<std::uint8_t> content, std::string name)
    : content_(std::move(content)), name_(std::move(name)), model_(std::make_unique<KtModel>()) {
  ByteReader in(content_, name_);
  records_left_ = in.count("records", kMaxRecords);
  in.count("instructions", records_left_);
  bytes_left_ = in.count("KT bytes", records_left_ * kKtMaxRecordBytes);
  expected_hash_.low = in.u64("KT hash");
  expected_hash_.high = in.u64("KT hash");
  const std::size_t runs = in.count("runs", in.remaining());
  model_->runs().reserve(runs);
  for (std::size_t i = 0; i < runs; ++i) model_->runs().push_back(in.varint("run"));
  const std::size_t coded = in.count("coded bytes", in.remaining());
  coder_ = std::make_unique<RangeDecoder>(in.bytes(coded, "coded bytes"));
  in.expect_end("the segment");
}

KtSegmentDecoder::~KtSegmentDecoder() = default;

void KtSegmentDecoder::next(std::vector<std::uint8_t>& out) {
  out.resize(kDecodedBytes + KtModel::kSlack);
  std::size_t at = 0;
  while (at < kDecodedBytes && records_left_ != 0) {
    at += model_->decode(*coder_, std::span(out).subspan(at, KtModel::kSlack));
    --records_left_;
  }
  out.resize(at);
  if (at > bytes_left_) throw FormatError(name_, 0, "expected fewer records, found damaged data");
  bytes_left_ -= at;
  hasher_.update(out);
  if (records_left_ != 0 || (bytes_left_ == 0 && hasher_.value() == expected_hash_)) return;
  throw FormatError(name_, 0, "expected the KT its hash is of, found another");
}

// ---- Writing
// -------------------------------------------------------------------------------------

StoredKtSink::StoredKtSink(std::unique_ptr<ByteSink> target) : target_(std::move(target)) {
  const std::vector<std::uint8_t> header = header_frame();
  target_->write(header);
  file_bytes_ = header.size();
  worker_ = std::thread([this] { run_worker(); });
}

StoredKtSink::~StoredKtSink() { stop_worker(); }

void StoredKtSink::write(std::span<const std::uint8_t> bytes) {
  block_.insert(block_.end(), bytes.begin(), bytes.end());
  if (block_.size() >= kBlockBytes) hand_over();
}

void StoredKtSink::hand_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < kQueuedBlocks || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  queue_.push_back(std::exchange(block_, {}));
  changed_.notify_all();
}

void StoredKtSink::stop_worker() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

void StoredKtSink::run_worker() {
  try {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !queue_.empty() || ended_; });
      if (queue_.empty()) return;
      std::vector<std::uint8_t> block = std::move(queue_.front());
      queue_.pop_front();
      changed_.notify_all();
      lock.unlock();
      encode(std::move(block));
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

void StoredKtSink::encode(std::vector<std::uint8_t> records) {
  records.insert(records.begin(), rest_.begin(), rest_.end());
  // Whole records only; the beginning of the last one waits for its rest.
  std::size_t whole = 0;
  while (records.size() - whole >= 5) {
    const std::size_t size = record_bytes(std::span(records).subspan(whole, 5));
    if (size > records.size() - whole) break;
    whole += size;
  }
  rest_.assign(records.begin() + static_cast<std::ptrdiff_t>(whole), records.end());
  records.resize(whole + KtModel::kSlack);
  std::size_t at = 0;
  while (at < whole) {
    if (!encoder_) encoder_ = std::make_unique<KtSegmentEncoder>();
    at += encoder_->add(std::span(records).subspan(at), whole - at);
    if (encoder_->full()) write_segment();
  }
}

void StoredKtSink::write_segment() {
  KtSegment segment;
  segment.first_instruction = instructions_;
  segment.kt_offset = kt_bytes_;
  segment.instructions = encoder_->instructions();
  segment.kt_bytes = encoder_->kt_bytes();
  instructions_ += segment.instructions;
  kt_bytes_ += segment.kt_bytes;
  const std::vector<std::uint8_t> content = encoder_->finish();
  encoder_.reset();
  ByteWriter framed;
  framed.u64(content.size());
  framed.bytes(content);
  write_frame(framed.view(), segment);
  segments_.push_back(segment);
}

void StoredKtSink::write_frame(std::span<const std::uint8_t> content, KtSegment& segment) {
  const std::vector<std::uint8_t> frame = zstd_compress(content, kFrameCompression);
  segment.file_offset = file_bytes_;
  segment.stored_bytes = frame.size();
  segment.content_bytes = content.size();
  target_->write(frame);
  file_bytes_ += frame.size();
}

void StoredKtSink::finish() {
  hand_over();
  stop_worker();
  if (failure_) std::rethrow_exception(failure_);
  if (!rest_.empty()) {
    throw FormatError("KT", kt_bytes_, "expected whole records, found the last one cut");
  }
  if (encoder_) write_segment();
  write_end();
  target_->finish();
}

/// A segment of length zero with the totals ends the content; then come the two indexes.
void StoredKtSink::write_end() {
  KtSegment end;
  ByteWriter content;
  content.u64(0);
  content.u64(instructions_);
  content.u64(kt_bytes_);
  write_frame(content.view(), end);
  ByteWriter index;
  index.bytes(kIndexText);
  index.u32(static_cast<std::uint32_t>(segments_.size()));
  for (const KtSegment& segment : segments_) {
    index.u64(segment.instructions);
    index.u64(segment.kt_bytes);
    index.u64(segment.file_offset);
    index.u64(segment.stored_bytes);
    index.u64(segment.content_bytes);
  }
  index.u64(hash64(index.view()));
  const std::vector<std::uint8_t> index_frame = skippable_frame(kSkippableMagic, index.view());
  target_->write(index_frame);

  // In the seek table every frame has an entry; those without content have size 0.
  ByteWriter table;
  const auto entry = [&table](std::uint64_t stored, std::uint64_t content_bytes) {
    table.u32(static_cast<std::uint32_t>(stored));
    table.u32(static_cast<std::uint32_t>(content_bytes));
  };
  entry(kHeaderBytes, 0);
  for (const KtSegment& segment : segments_) entry(segment.stored_bytes, segment.content_bytes);
  entry(end.stored_bytes, end.content_bytes);
  entry(index_frame.size(), 0);
  table.u32(static_cast<std::uint32_t>(segments_.size() + 3));
  table.u8(0);  // no checksums here: the frames' content is under its own hash
  table.u32(kSeekTableMagic);
  target_->write(skippable_frame(kSeekTableFrameMagic, table.view()));
}

// ---- Index
// ---------------------------------------------------------------------------------------

namespace {

/// Number of frames, from the last bytes of the file.
std::uint64_t frame_count(const RandomAccessFile& file) {
  if (file.size() < kHeaderBytes + kSeekTableFooterBytes) {
    throw FormatError(file.path(), file.size(), "expected a stored KT trace, found its end cut");
  }
  const std::uint64_t at = file.size() - kSeekTableFooterBytes;
  const auto bytes = file.read(at, kSeekTableFooterBytes, "seek table");
  ByteReader in(bytes, file.path(), at);
  const std::uint64_t frames = in.u32("number of frames");
  in.u8("seek table descriptor");
  if (in.u32("seek table magic") != kSeekTableMagic || frames < 3) {
    in.fail_at(at, "expected the seek table of a stored KT trace, found something else");
  }
  return frames;
}

}  // namespace

std::vector<KtSegment> read_kt_index(const std::string& path) {
  const RandomAccessFile file(path);
  const std::uint64_t frames = frame_count(file);
  const std::uint64_t segments = frames - 3;
  const std::uint64_t table_bytes = 8 + frames * 8 + kSeekTableFooterBytes;
  const std::uint64_t index_bytes = 8 + kIndexText.size() + 4 + segments * 40 + 8;
  if (file.size() < table_bytes + index_bytes) {
    throw FormatError(path, file.size(), "expected the index of a stored KT trace, found it cut");
  }
  const std::uint64_t at = file.size() - table_bytes - index_bytes;
  const auto bytes = file.read(at, index_bytes, "index");
  ByteReader in(bytes, path, at);
  in.skip(8, "index frame header");
  const auto body = in.bytes(index_bytes - 8 - 8, "index");
  if (!std::equal(kIndexText.begin(), kIndexText.end(), body.begin()) ||
      in.u64("index hash") != hash64(body)) {
    in.fail_at(at, "expected the index of a stored KT trace, found something else");
  }
  ByteReader rows(body.subspan(kIndexText.size() + 4), path, at);
  std::vector<KtSegment> result;
  KtSegment segment;
  for (std::uint64_t i = 0; i < segments; ++i) {
    segment.first_instruction += segment.instructions;
    segment.kt_offset += segment.kt_bytes;
    segment.instructions = rows.u64("instructions");
    segment.kt_bytes = rows.u64("KT bytes");
    segment.file_offset = rows.u64("frame offset");
    segment.stored_bytes = rows.u64("frame size");
    segment.content_bytes = rows.u64("content size");
    result.push_back(segment);
  }
  return result;
}

}  // namespace citcat
