#pragma once
// The KT trace format: IDtrace report, Appendix B, as settled in docs/formats/kt.md. Records back
// to back, no file header, little-endian, each a multiple of four bytes:
//
//   instruction  u32 eip | u8 E<<4|N | N instruction bytes | (3-N)&3 zeros | E x u32 address
//   process      u32 pid | u8 80h | 3 zeros
//   translation  u32 page frame number | u32 page virtual address + 81h
//
// The wide form, of processors with 64-bit registers, begins with kKtWideMark, and its records are
// multiples of eight bytes (docs/formats/kt.md, "Traces of 64 bits").

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/kt/kt_note.h"
#include "formats/kt/kt_record.h"
#include "formats/kt/trace_sink.h"

namespace citcat {

/// eip, type and 15 bytes, then two addresses.
inline constexpr std::size_t kKtMaxRecordBytes =
    4 + 1 + kKtMaxInstructionBytes + 4 * kKtMaxAddresses;
inline constexpr std::uint8_t kKtProcess = 0x80;
inline constexpr std::uint8_t kKtTranslation = 0x81;

/// The beginning of a trace in the wide form: "KT64", a type that is reserved in the other one, the
/// version of the form.
inline constexpr std::array<std::uint8_t, 8> kKtWideMark = {'K', 'T', '6', '4', 0x82, 1, 0, 0};
inline constexpr std::size_t kKtMaxWideRecordBytes = 24 + 8 * kKtMaxAddresses;

/// Which of the two forms a trace has.
enum class KtForm : std::uint8_t { narrow, wide };
/// Whether a trace that begins so has the wide form.
inline bool begins_with_wide_mark(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= kKtWideMark.size() &&
         std::equal(kKtWideMark.begin(), kKtWideMark.end(), bytes.begin());
}

/// Bytes of an instruction record before its addresses: 5 + N, filled up to a multiple of four.
constexpr std::size_t kt_fixed_bytes(std::size_t instruction_bytes) {
  return (5 + instruction_bytes + 3) & ~std::size_t{3};
}
/// The same in the wide form: 9 + N, filled up to a multiple of eight.
constexpr std::size_t kt_wide_fixed_bytes(std::size_t instruction_bytes) {
  return (9 + instruction_bytes + 7) & ~std::size_t{7};
}

/// An instruction record prepared once and written many times: only the addresses change between
/// executions of the same instruction.
class KtTemplate {
 public:
  KtTemplate() = default;
  /// `code` is 1..15 bytes, `address_count` 0..2: what KT cannot hold throws UsageError.
  KtTemplate(std::uint32_t eip, std::span<const std::uint8_t> code, unsigned address_count);

  std::uint32_t eip() const;
  unsigned address_count() const { return address_count_; }
  /// Without the addresses.
  std::span<const std::uint8_t> fixed_part() const { return {record_.data(), fixed_}; }
  std::size_t record_bytes() const { return std::size_t{fixed_} + 4 * address_count_; }

 private:
  friend class KtWriter;
  /// The fixed part, zero padded; three words so that the writer copies without a loop.
  alignas(8) std::array<std::uint8_t, 24> record_{};
  std::uint8_t fixed_ = 8;
  std::uint8_t address_count_ = 0;
};

/// Writes KT to a sink in large pieces that hold whole records, so that interrupted output is a
/// shorter trace and not a broken one.
class KtWriter {
 public:
  /// The sink must outlive the writer.
  explicit KtWriter(ByteSink& sink)
      : sink_(sink), trace_(as_trace_sink(sink)), buffer_(kBufferBytes + kSlack) {}
  /// In the wide form, where `begins` a trace. Throws UsageError where the sink is a form of file
  /// that holds 32 bits alone.
  KtWriter(ByteSink& sink, KtForm form, bool begins = true);
  KtWriter(const KtWriter&) = delete;
  KtWriter& operator=(const KtWriter&) = delete;

  /// The fast way. Addresses beyond the template's count are ignored.
  void instruction(const KtTemplate& record, std::uint32_t address0 = 0,
                   std::uint32_t address1 = 0) {
    std::uint8_t* const out = room();
    std::memcpy(out, record.record_.data(), sizeof record.record_);
    std::memcpy(out + record.fixed_, &address0, 4);
    std::memcpy(out + record.fixed_ + 4, &address1, 4);
    used_ += record.record_bytes();
    ++instructions_;
  }
  void instruction(const KtInstruction& instruction);
  /// The address space changes: instructions that follow belong to process `pid`.
  void process(std::uint32_t pid);
  /// The page at virtual address `page` (its low 12 bits are dropped) lies in page frame `frame`.
  void translation(std::uint32_t frame, std::uint64_t page);
  bool is_wide() const { return form_ == KtForm::wide; }

  /// Where whole records, kMaxPiece bytes at most, may be put and then handed over with commit(),
  /// as long as has_room(). What is after those handed over may be anything.
  std::uint8_t* next() { return buffer_.data() + used_; }
  bool has_room() const { return used_ < kBufferBytes; }
  /// Bytes in which a piece may begin as long as has_room().
  std::size_t room_left() const { return kBufferBytes - used_; }
  void make_room() {
    if (!has_room()) [[unlikely]]
      flush();
  }
  void commit(std::size_t bytes, std::uint64_t instructions) {
    used_ += bytes;
    instructions_ += instructions;
  }
  static constexpr std::size_t kMaxPiece = std::size_t{1} << 16;

  /// Records that were made elsewhere with the same rules; must be whole records.
  void raw(std::span<const std::uint8_t> records, std::uint64_t instructions);

  /// Whether the sink keeps notes.
  bool keeps_notes() const { return trace_ != nullptr && trace_->keeps_notes(); }
  /// A note that is before the next record, or `ahead` bytes after the last one.
  void note(KtNote note, std::uint64_t ahead = 0) {
    note.at = size() + ahead;
    if (trace_ != nullptr) trace_->note(note);
  }

  std::uint64_t instructions() const { return instructions_; }
  /// Bytes of KT so far, before compression.
  std::uint64_t size() const { return flushed_ + used_; }

  /// Hands everything to the sink. The destructor does not: call it before finishing the sink.
  void flush();

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  /// What one record or piece may write beyond the point where the buffer counts as full.
  static constexpr std::size_t kSlack = 64 + kMaxPiece;

  std::uint8_t* room() {
    make_room();
    return next();
  }

  void wide_instruction(const KtInstruction& instruction);
  void wide_words(std::initializer_list<std::uint64_t> words);

  ByteSink& sink_;
  KtForm form_ = KtForm::narrow;
  TraceSink* trace_;  ///< the same, where it knows of records
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  std::uint64_t flushed_ = 0;
  std::uint64_t instructions_ = 0, instructions_flushed_ = 0;
};

/// Reads KT (compressed or not) record by record.
class KtReader {
 public:
  explicit KtReader(const std::string& path) : input_(path) {}
  /// From the segment whose frame lies at `file_offset`: see formats/kt/kt_index.h.
  KtReader(const std::string& path, std::uint64_t file_offset) : input_(path, file_offset) {}
  /// From memory the caller keeps alive.
  KtReader(std::span<const std::uint8_t> bytes, std::string name)
      : input_(bytes, std::move(name)) {}

  /// False at the clean end. A reserved type, N = 0, E = 3, an invalid page address, or an end
  /// inside a record throw FormatError with the record's offset. Padding may hold anything.
  bool next(KtRecord& out);
  /// Offset of the record next() reads next.
  std::uint64_t offset() const { return input_.offset(); }
  /// What comes are records of that form, without the mark: for readers that begin within a trace.
  void set_form(KtForm form) {
    form_ = form;
    begun_ = true;
  }
  /// The form of the trace; the reader must be at its beginning.
  KtForm form() {
    take_mark();
    return form_;
  }
  /// Which form the trace has, known once next() was called.
  bool is_wide() const { return form_ == KtForm::wide; }
  /// The stream below, for its hash and sizes.
  const InputStream& input() const { return input_; }

 private:
  void read_instruction(std::span<const std::uint8_t> head, KtRecord& out);
  void take_mark();
  bool next_wide(KtRecord& out);
  void read_wide_instruction(std::uint64_t ip, unsigned type, KtRecord& out);
  std::span<const std::uint8_t> need(std::size_t n, const char* what);
  [[noreturn]] void fail(const std::string& message) const;

  InputStream input_;
  KtForm form_ = KtForm::narrow;
  bool begun_ = false;
};

}  // namespace citcat
