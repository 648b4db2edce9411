#pragma once
// Stored KT: the trace through KtModel, in zstd frames, with an index of instructions
// (docs/formats/kt.md, "Stored traces"). An InputStream reads it as the KT that it contains.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "formats/io/byte_writer.h"
#include "formats/io/hash.h"
#include "formats/io/segment_stream.h"
#include "formats/kt/kt_index.h"
#include "formats/kt/kt_model.h"
#include "formats/kt/kt_note_book.h"
#include "formats/kt/trace_sink.h"

namespace citcat {

/// Instructions of a segment: what a reader must decode at most to reach one of them. Longer
/// segments compress better, because each learns the program from scratch.
inline constexpr std::uint64_t kKtSegmentInstructions = std::uint64_t{1} << 24;

/// Encodes one segment.
class KtSegmentEncoder {
 public:
  /// `begins`: the trace, at whose beginning a mark may be.
  explicit KtSegmentEncoder(KtForm form = KtForm::narrow, bool begins = false);
  ~KtSegmentEncoder();
  /// The next records. `records` has whole records and, after them, KtModel::kSlack more bytes;
  /// `size` counts the records only. Returns what it took, less than `size` when the segment is
  /// full. Throws FormatError if they are not KT.
  std::size_t add(std::span<const std::uint8_t> records, std::size_t size);
  bool full() const;
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t kt_bytes() const { return kt_bytes_; }
  /// The segment's content. The encoder is of no use afterwards.
  std::vector<std::uint8_t> finish();

 private:
  bool has_mark(std::span<const std::uint8_t> records) const;

  KtForm form_;
  bool begins_, marked_ = false;
  std::unique_ptr<KtModel> model_;
  RangeEncoder coder_;
  Hasher128 hasher_;
  std::uint64_t records_ = 0, instructions_ = 0, kt_bytes_ = 0;
};

/// Decodes one segment piece by piece.
class KtSegmentDecoder final : public SegmentDecoder {
 public:
  /// Takes the content of a segment's frame. FormatError names `name`.
  KtSegmentDecoder(std::vector<std::uint8_t> content, std::string name);
  ~KtSegmentDecoder() override;
  /// Replaces `out` by the next records, about 64 KiB; empty at the end, when the hash agreed.
  void next(std::vector<std::uint8_t>& out) override;

 private:
  void read_records(ByteReader& in);

  std::vector<std::uint8_t> content_;
  std::string name_;
  KtForm form_ = KtForm::narrow;
  bool marked_ = false;
  std::unique_ptr<KtModel> model_;
  std::unique_ptr<RangeDecoder> coder_;
  Hasher128 hasher_;
  std::uint64_t decoded_bytes_ = 0;  ///< of KT, so far
  Hash128 expected_hash_;
  std::uint64_t records_left_ = 0, bytes_left_ = 0;
};

/// Writes a stored trace from KT given in any pieces, encoding on a thread of its own. Interrupted,
/// the file lacks its end, and readers say so after the last whole segment.
class StoredKtSink final : public TraceSink {
 public:
  explicit StoredKtSink(std::unique_ptr<ByteSink> target);
  /// Writes what came so far of an unfinished trace, without an end and an index.
  ~StoredKtSink() override;
  void write(std::span<const std::uint8_t> bytes) override;
  void write_records(std::span<const std::uint8_t> records, std::uint64_t instructions) override;
  bool keeps_notes() const override { return true; }
  void note(const KtNote& note) override { given_.notes.push_back(note); }
  bool takes_wide() override {
    form_ = KtForm::wide;
    return true;
  }
  void finish() override;

 private:
  /// What the caller hands to the worker: KT, and what was noted of it or is after it.
  struct Block {
    std::vector<std::uint8_t> records;
    std::vector<KtNote> notes;
    bool whole = true;  ///< each piece of it was whole records
  };
  void add(std::span<const std::uint8_t> bytes, bool whole);
  void hand_over();
  void stop_worker();
  void run_worker();
  void encode(Block block);
  std::size_t count_whole(std::span<const std::uint8_t> records) const;
  void write_segment(std::vector<std::uint8_t> notes);
  void write_header();
  void write_frame(std::span<const std::uint8_t> content, KtSegment& segment);
  void write_end();

  std::unique_ptr<ByteSink> target_;
  KtForm form_ = KtForm::narrow;  ///< not changed once anything was written
  Block given_;                   ///< but not yet handed to the worker

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> queue_;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::thread worker_;

  // The worker's, and finish()'s after it ended.
  std::vector<std::uint8_t> rest_;  ///< the beginning of a record that is not whole yet
  std::unique_ptr<KtSegmentEncoder> encoder_;
  KtNoteBook book_;
  KtPlace place_;  ///< of the segment being encoded
  std::vector<KtSegment> segments_;
  std::vector<SeekTableEntry> frames_;
  std::uint64_t file_bytes_ = 0, instructions_ = 0, kt_bytes_ = 0;
};

}  // namespace citcat
