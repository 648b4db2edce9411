#pragma once
// The segments of a stored trace, one after the other, as the plain KT that they hold.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// Decodes a segment of a stored trace piece by piece.
class SegmentDecoder {
 public:
  virtual ~SegmentDecoder() = default;
  /// Replaces `out` by the next bytes; empty at the end.
  virtual void next(std::vector<std::uint8_t>& out) = 0;
};

/// Makes a decoder of a segment's content; errors name `name`.
using SegmentDecoders = std::unique_ptr<SegmentDecoder> (*)(std::vector<std::uint8_t> content,
                                                            const std::string& name);
/// Registers the decoder of stored traces; formats/kt does so before main(). Without it they are
/// refused with FormatError.
void decode_segments_by(SegmentDecoders make);

/// The content of a stored trace's frames is a sequence of u64 length and a segment of that many
/// bytes; length zero ends it, followed by u64 instructions and u64 KT bytes (docs/formats/kt.md).
class SegmentStream {
 public:
  /// Fills a part of what it is given with decompressed bytes; 0 at the end.
  using Pull = std::function<std::size_t(std::span<std::uint8_t>)>;
  /// Throws FormatError with what was expected and found.
  using Fail = std::function<void(const std::string&)>;

  /// `check_totals`: the stream begins with the trace, so that the size at its end is that of all.
  SegmentStream(std::string name, bool check_totals, Fail fail);

  /// From now on a stream that is cut ends after its last whole segment, and is no error.
  void allow_cut() { may_be_cut_ = true; }
  /// The next bytes of KT; 0 at the end.
  std::size_t read(const Pull& pull, std::span<std::uint8_t> out);

 private:
  bool next_piece(const Pull& pull);
  bool begin_segment(const Pull& pull);
  bool end(const Pull& pull);
  bool read_u64(const Pull& pull, std::uint64_t& value);
  /// False where the stream ends before, which is an error unless it may be cut.
  bool read_exact(const Pull& pull, std::span<std::uint8_t> out);

  std::string name_;
  bool check_totals_;
  Fail fail_;
  std::unique_ptr<SegmentDecoder> segment_;
  std::vector<std::uint8_t> piece_;
  std::size_t at_ = 0;
  std::uint64_t total_bytes_ = 0;
  bool ended_ = false, may_be_cut_ = false;
};

}  // namespace citcat
