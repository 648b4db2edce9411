#pragma once
// KT in plain zstd frames that any zstd reads, with an index of instructions (docs/formats/kt.md,
// "Seekable zstd").

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "formats/kt/kt.h"
#include "formats/kt/kt_index.h"
#include "formats/kt/kt_note_book.h"
#include "formats/kt/trace_sink.h"
#include "formats/memory/recycler.h"

namespace citcat {

/// Writes KT given in any pieces as zstd frames of about kFrameBytes, each of whole records and
/// with a checksum, compressed beside the caller; after each what was noted of it. Destroyed
/// before finish(), it still writes the records it was given: a shorter trace without index. Bytes
/// that are no KT throw FormatError.
class SeekableKtSink final : public TraceSink {
 public:
  static constexpr std::size_t kFrameBytes = std::size_t{1} << 23;

  explicit SeekableKtSink(std::unique_ptr<ByteSink> target);
  ~SeekableKtSink() override;
  void write(std::span<const std::uint8_t> bytes) override;
  void write_records(std::span<const std::uint8_t> records, std::uint64_t instructions) override;
  bool takes_wide() override {
    form_ = KtForm::wide;
    book_.set_form(form_);
    return true;
  }
  bool keeps_notes() const override { return true; }
  void note(const KtNote& note) override { book_.add(note); }
  void finish() override;

 private:
  class Compressor;
  struct Frame {
    KtSegment segment;
    std::vector<std::uint8_t> notes;
    std::shared_ptr<Compressor> compressor;
    std::future<std::span<const std::uint8_t>> stored;
  };
  /// Whole records at the beginning of the frame being filled.
  struct Whole {
    std::size_t bytes = 0;
    std::uint64_t instructions = 0;
  };
  void cut_frame();
  void begin_frame(std::vector<std::uint8_t> notes, const KtPlace& place);
  void write_frame(std::span<const std::uint8_t> stored, std::uint64_t content_bytes);
  void drain(std::size_t leave);

  std::unique_ptr<ByteSink> target_;
  bool finished_ = false;
  Recycler<Compressor> compressors_;
  std::vector<std::uint8_t> records_;  ///< of the frame being filled
  Whole whole_;                        ///< of these, as far as looked at
  std::deque<Frame> pending_;
  KtForm form_ = KtForm::narrow;
  KtNoteBook book_;
  std::vector<KtSegment> segments_;
  std::vector<SeekTableEntry> frames_;
  std::uint64_t instructions_ = 0, kt_bytes_ = 0, file_bytes_ = 0;
};

}  // namespace citcat
