#pragma once
// Encoding of evidence chunks of some ten thousand transactions each. The kind of a transaction and
// its relation to earlier ones are coded as one number, its step: programs cause few different
// steps. docs/formats/archive.md has the layout.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "events/access_run.h"
#include "events/archive/simd_evidence.h"
#include "events/bus_transaction.h"
#include "events/recording.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat {

/// The earlier transactions of a chunk that the fields of the next one are predicted from. Starts
/// as zeros.
struct EvidencePrevious {
  std::uint64_t index = 0;  ///< the next one, if none is left out
  std::uint64_t clock = 0, instruction = 0;
  std::uint32_t iteration = 0;
  /// The address after the last transaction of each operation.
  std::array<std::uint32_t, kBusOpCount> address{};
};

/// Packs transactions into an evidence chunk.
class EvidenceEncoder {
 public:
  EvidenceEncoder();
  /// There must be room for them in the chunk. Ignores the data of reads.
  void add(std::span<const BusTransaction> transactions);
  void add(const AccessRun& run);
  std::size_t size() const { return size_; }
  bool full() const { return size() == kEvidenceChunkTransactions; }
  /// The payload of an EVD2 chunk.
  std::vector<std::uint8_t> encode() const;
  /// Starts anew, but keeps its buffers.
  void clear();

 private:
  bool add_wide(const AccessRun& run);
  void add_data(const AccessRun& run);
  void add_keys(std::span<const std::uint32_t> keys);
  template <typename Fields>
  void add_block(const Fields& block);
  template <typename Fields>
  void add_addresses(const Fields& block, std::span<std::uint32_t> how);
  template <typename Fields>
  void add_indexes(const Fields& block, std::span<std::uint32_t> how);
  template <typename Fields>
  void add_steps(const Fields& block, std::span<const std::uint32_t> how);
  std::uint16_t look_up(std::uint64_t step);
  void grow_lookup();
  /// Number of the 4 GiB with these upper halves of addresses; 0 for the first.
  std::uint64_t window_of(std::uint32_t upper) { return upper == 0 ? 0 : number_window(upper); }
  std::uint64_t number_window(std::uint32_t upper);
  void write_numbers(ByteWriter& out) const;

  std::vector<std::uint64_t> steps_;    ///< distinct ones
  std::vector<std::uint32_t> windows_;  ///< upper halves of addresses, from number 1 on
  std::vector<std::uint32_t> lookup_;   ///< hash of a step -> its number in steps_ + 1; 2^n
  /// Steps met lately, each with its number in the lowest 16 bits.
  std::array<std::uint64_t, 1024> recent_{};
  /// The same for steps as SimdEvidence has them.
  std::array<std::uint64_t, 2048> recent_keys_{};
  SimdEvidence wide_;
  std::vector<std::uint16_t> number_ = std::vector<std::uint16_t>(kEvidenceChunkTransactions);
  std::size_t size_ = 0;
  EvidencePrevious previous_;
  // Fields that steps do not cover.
  std::vector<std::uint64_t> index_, iteration_;
  // The same, longer than what is used of them.
  std::vector<std::uint64_t> clock_, instruction_;
  std::size_t clocks_ = 0, instructions_ = 0;
  std::vector<std::uint8_t> address_, data_;
  std::size_t address_bytes_ = 0, data_bytes_ = 0;
};

/// A decoded evidence chunk.
class EvidenceChunk {
 public:
  EvidenceChunk() = default;
  /// Throws FormatError when `in` is not a whole payload of an EVD2 chunk.
  explicit EvidenceChunk(ByteReader& in);

  std::size_t size() const { return number_.size(); }
  /// The next transactions in order, as many as fit; returns how many, 0 after the last.
  std::size_t next_block(std::span<BusTransaction> out);
  /// The same with lines joined as EvidenceReader::next_line() has them; `parts`, as long as `out`:
  /// how many transactions each is.
  std::size_t next_lines(std::span<BusTransaction> out, std::span<std::uint8_t> parts);

 private:
  struct Step {
    BusOp op = BusOp::code_read;
    std::uint8_t size = 0;
    std::uint16_t flags = 0;
    std::uint8_t clock = 0, instruction = 0, iteration = 0;
    bool index_known = true;
    std::uint8_t data_bytes = 0;
    std::uint8_t address_bytes = 0;
    bool may_continue = false;  ///< a line, where the transaction before it is its part
    std::uint32_t address_mask = 0;
    std::uint64_t upper = 0;  ///< of the address; at first, the number of its window
  };
  /// How much of each part the transactions need.
  struct Needed {
    std::size_t index = 0, clock = 0, instruction = 0, iteration = 0;
    std::size_t address_bytes = 0, data_bytes = 0;
  };
  static Step read_step(ByteReader& in);
  void read_numbers(ByteReader& in, std::size_t count);
  void read_windows(ByteReader& in);
  Needed needed() const;
  void decode(const Step& step, BusTransaction& out);
  std::uint8_t join(BusTransaction& line);
  bool continues(const Step& step, const BusTransaction& line, std::uint32_t part) const;
  void extend(BusTransaction& line, const Step& step);
  void take_clock(const Step& step);
  void take_data(const Step& step, std::uint8_t* to);

  std::vector<Step> steps_;
  std::vector<std::uint16_t> number_;
  EvidencePrevious previous_;
  std::vector<std::uint64_t> index_, clock_, instruction_, iteration_;
  std::vector<std::uint8_t> address_, data_;
  std::size_t at_ = 0, index_at_ = 0, clock_at_ = 0, instruction_at_ = 0, iteration_at_ = 0;
  std::size_t address_at_ = 0, data_at_ = 0;
};

}  // namespace citcat
