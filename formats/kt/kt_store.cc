#include "formats/kt/kt_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/io/zstd_stream.h"
#include "formats/kt/kt_form_model.h"

namespace citcat {

namespace {

constexpr std::array<std::uint8_t, 8> kHeaderText{'C', 'I', 'T', 'C', 'A', 'T', 'K', 'T'};
/// 1: first version. 2: frames of notes after those of segments, and the second version of the
/// index; both lie in skippable frames, and what a reader of version 1 decodes is the same. 3:
/// records of the wide form.
constexpr std::uint32_t kStoreVersion = 2, kWideVersion = 3;
/// In the number of a segment's records: they are of the wide form; and its mark is before
/// them.
constexpr std::uint64_t kWideRecords = std::uint64_t{1} << 40,
                        kMarkedRecords = std::uint64_t{1} << 41;
constexpr std::size_t kStoreBlock = std::size_t{1} << 20;
constexpr std::size_t kQueuedBlocks = 8;
constexpr std::size_t kDecodedBytes = std::size_t{1} << 16;
constexpr ZstdOptions kFrameCompression{3, 0};
constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 32;

std::vector<std::uint8_t> header_frame(KtForm form) {
  ByteWriter body;
  body.bytes(kHeaderText);
  body.u32(form == KtForm::wide ? kWideVersion : kStoreVersion);
  body.u32(0);
  return skippable_frame(kSkippableMagic, body.view());
}

/// Bytes from which the length of a record is known.
std::size_t head_bytes(KtForm form) { return form == KtForm::wide ? 9 : 5; }

/// Length of the record that begins with these, head_bytes() at least.
std::size_t record_bytes(std::span<const std::uint8_t> head, KtForm form) {
  return form == KtForm::wide ? kt_record_bytes<KtWideRecords>(head[8])
                              : kt_record_bytes<KtNarrowRecords>(head[4]);
}

void write_hash(ByteWriter& out, const Hash128& hash) {
  out.u64(hash.low);
  out.u64(hash.high);
}

}  // namespace

// ---- One segment --------------------------------------------------------------------------------

KtSegmentEncoder::KtSegmentEncoder(KtForm form, bool begins)
    : form_(form), begins_(begins), model_(KtModel::make(form)) {}
KtSegmentEncoder::~KtSegmentEncoder() = default;

bool KtSegmentEncoder::full() const {
  return instructions_ >= kKtSegmentInstructions || model_->is_full();
}

std::size_t KtSegmentEncoder::add(std::span<const std::uint8_t> records, std::size_t size) {
  std::size_t at = 0;
  if (has_mark(records)) {
    marked_ = true;
    at = kKtWideMark.size();
  }
  const KtModel::Coded coded = model_->encode(coder_, records.subspan(at), size - at,
                                              kKtSegmentInstructions - instructions_);
  at += coded.bytes;
  instructions_ += coded.instructions;
  records_ += coded.records;
  hasher_.update(records.first(at));
  kt_bytes_ += at;
  return at;
}

/// Before the first record of the trace.
bool KtSegmentEncoder::has_mark(std::span<const std::uint8_t> records) const {
  return begins_ && kt_bytes_ == 0 && form_ == KtForm::wide && begins_with_wide_mark(records);
}

std::vector<std::uint8_t> KtSegmentEncoder::finish() {
  model_->finish_runs();
  ByteWriter out;
  const std::uint64_t form = form_ == KtForm::wide ? kWideRecords : 0;
  out.varint(records_ | form | (marked_ ? kMarkedRecords : 0));
  out.varint(instructions_);
  out.varint(kt_bytes_);
  write_hash(out, hasher_.value());
  out.varint(model_->run_count());
  out.bytes(model_->runs().view());
  const std::vector<std::uint8_t> coded = coder_.finish();
  out.varint(coded.size());
  out.bytes(coded);
  return out.take();
}

KtSegmentDecoder::KtSegmentDecoder(std::vector<std::uint8_t> content, std::string name)
    : content_(std::move(content)), name_(std::move(name)) {
  ByteReader in(content_, name_);
  read_records(in);
  model_ = KtModel::make(form_);
  in.count("instructions", records_left_);
  const std::uint64_t most = form_ == KtForm::wide ? kKtMaxWideRecordBytes : kKtMaxRecordBytes;
  bytes_left_ = in.count("KT bytes", records_left_ * most + (marked_ ? kKtWideMark.size() : 0));
  expected_hash_.low = in.u64("KT hash");
  expected_hash_.high = in.u64("KT hash");
  // Each run but the last one is ended by a record of its own.
  const std::size_t runs = in.count("runs", records_left_ + 1);
  const std::uint64_t first_run = in.offset();
  in.skip_varints(runs, "runs");
  const auto run_bytes = std::span(content_).subspan(first_run, in.offset() - first_run);
  model_->read_runs_from(ByteReader(run_bytes, name_, first_run));
  const std::size_t coded = in.count("coded bytes", in.remaining());
  coder_ = std::make_unique<RangeDecoder>(in.bytes(coded, "coded bytes"));
  in.expect_end("the segment");
}

KtSegmentDecoder::~KtSegmentDecoder() = default;

/// Their number, and what form they have.
void KtSegmentDecoder::read_records(ByteReader& in) {
  ByteReader ahead = in;
  const std::uint64_t number = ahead.varint("records");
  const std::uint64_t form = number & (kWideRecords | kMarkedRecords);
  const bool wide = (form & kWideRecords) != 0 && (number ^ form) <= kMaxRecords;
  if (!wide) {
    records_left_ = in.count("records", kMaxRecords);
    return;
  }
  in = ahead;
  form_ = KtForm::wide;
  marked_ = (form & kMarkedRecords) != 0;
  records_left_ = number ^ form;
}

void KtSegmentDecoder::next(std::vector<std::uint8_t>& out) {
  out.resize(kDecodedBytes + KtModel::kSlack);
  KtModel::Coded done;
  if (marked_ && decoded_bytes_ == 0) {
    done.bytes = kKtWideMark.size();
    std::copy(kKtWideMark.begin(), kKtWideMark.end(), out.begin());
  }
  try {
    model_->decode(*coder_, out, kDecodedBytes, records_left_, done);
  } catch (const DamagedSegment&) {
    throw FormatError(
        name_, decoded_bytes_ + done.bytes,
        "in a segment, after so many bytes of its KT: expected a record, found damaged "
        "data");
  }
  records_left_ -= done.records;
  const std::size_t at = done.bytes;
  out.resize(at);
  if (at > bytes_left_) throw FormatError(name_, 0, "expected fewer records, found damaged data");
  bytes_left_ -= at;
  hasher_.update(out);
  decoded_bytes_ += at;
  if (records_left_ != 0 || (bytes_left_ == 0 && hasher_.value() == expected_hash_)) return;
  throw FormatError(name_, 0, "expected KT with the stored hash, found other KT");
}

// ---- Writing
// -------------------------------------------------------------------------------------

StoredKtSink::StoredKtSink(std::unique_ptr<ByteSink> target) : target_(std::move(target)) {
  worker_ = std::thread([this] { run_worker(); });
}

StoredKtSink::~StoredKtSink() {
  if (!worker_.joinable()) return;
  try {
    hand_over();
    stop_worker();
    if (!failure_ && encoder_) write_segment(book_.take_all());
  } catch (const std::exception&) {
    // What led here is reported already; the file is shorter by what could not be written.
  }
  stop_worker();
}

void StoredKtSink::write(std::span<const std::uint8_t> bytes) { add(bytes, false); }

void StoredKtSink::write_records(std::span<const std::uint8_t> records,
                                 std::uint64_t /*instructions*/) {
  add(records, true);
}

void StoredKtSink::add(std::span<const std::uint8_t> bytes, bool whole) {
  std::vector<std::uint8_t>& records = given_.records;
  records.reserve(kStoreBlock + bytes.size() + KtModel::kSlack);
  records.insert(records.end(), bytes.begin(), bytes.end());
  given_.whole &= whole;
  if (records.size() >= kStoreBlock) hand_over();
}

void StoredKtSink::hand_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < kQueuedBlocks || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  queue_.push_back(std::exchange(given_, {}));
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
      Block block = std::move(queue_.front());
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

void StoredKtSink::encode(Block block) {
  for (const KtNote& note : block.notes) book_.add(note);
  std::vector<std::uint8_t>& records = block.records;
  block.whole &= rest_.empty();
  records.insert(records.begin(), rest_.begin(), rest_.end());
  // What is put together of shares does not say so beforehand.
  if (kt_bytes_ == 0 && !encoder_ && begins_with_wide_mark(records)) form_ = KtForm::wide;
  book_.set_form(form_);
  const std::size_t whole = block.whole ? records.size() : count_whole(records);
  rest_.assign(records.begin() + static_cast<std::ptrdiff_t>(whole), records.end());
  records.resize(whole + KtModel::kSlack);
  std::size_t at = 0;
  while (at < whole) {
    const bool begins = !encoder_;
    if (begins) encoder_ = std::make_unique<KtSegmentEncoder>(form_, kt_bytes_ == 0);
    const std::size_t taken = encoder_->add(std::span(records).subspan(at), whole - at);
    const KtPlace first = book_.pass(std::span(records).subspan(at, taken));
    if (begins) place_ = first;
    at += taken;
    if (encoder_->full()) write_segment(book_.take());
  }
}

/// Bytes of whole records; the beginning of the last one waits for its rest.
std::size_t StoredKtSink::count_whole(std::span<const std::uint8_t> records) const {
  const std::size_t head = head_bytes(form_);
  const bool begins = form_ == KtForm::wide && kt_bytes_ == 0 && !encoder_;
  std::size_t whole = begins && begins_with_wide_mark(records) ? kKtWideMark.size() : 0;
  while (records.size() - whole >= head) {
    const std::size_t size = record_bytes(records.subspan(whole, head), form_);
    if (size > records.size() - whole) break;
    whole += size;
  }
  return whole;
}

void StoredKtSink::write_segment(std::vector<std::uint8_t> notes) {
  KtSegment segment;
  segment.place = place_;
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
  if (!notes.empty()) {
    segment.notes_offset = file_bytes_;
    segment.notes_bytes = notes.size();
    target_->write(notes);
    frames_.push_back({notes.size(), 0});
    file_bytes_ += notes.size();
  }
  segments_.push_back(segment);
}

/// With what it begins, so that a trace without records leaves nothing when it is abandoned.
void StoredKtSink::write_header() {
  const std::vector<std::uint8_t> header = header_frame(form_);
  target_->write(header);
  file_bytes_ = header.size();
  frames_.push_back({header.size(), 0});
}

void StoredKtSink::write_frame(std::span<const std::uint8_t> content, KtSegment& segment) {
  if (file_bytes_ == 0) write_header();
  const std::vector<std::uint8_t> frame = zstd_compress(content, kFrameCompression);
  segment.file_offset = file_bytes_;
  segment.stored_bytes = frame.size();
  segment.content_bytes = content.size();
  target_->write(frame);
  frames_.push_back({frame.size(), content.size()});
  file_bytes_ += frame.size();
}

void StoredKtSink::finish() {
  hand_over();
  stop_worker();
  if (failure_) std::rethrow_exception(failure_);
  if (!rest_.empty()) {
    throw FormatError("KT", kt_bytes_, "expected whole records, found the last one cut");
  }
  if (!encoder_ && book_.has_rest()) {  // what happened after the last record
    encoder_ = std::make_unique<KtSegmentEncoder>(form_);
    place_ = book_.pass({});
  }
  if (encoder_) write_segment(book_.take_all());
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
  target_->write(encode_kt_index(segments_, std::move(frames_)));
}

}  // namespace citcat
