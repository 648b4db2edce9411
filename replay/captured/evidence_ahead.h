#pragma once
// Reads the evidence ahead of the replay, on a second thread where that is faster: decompresses and
// decodes it, joins the parts of lines, and finds what memory held where the bus shows a read.
// Behind a write-back cache this takes an eighth of the time of replay and comparison
// (docs/measurements/README.md).

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "events/recording.h"
#include "formats/memory/blocks_ahead.h"
#include "formats/memory/short_queue.h"
#include "replay/captured/captured_memory.h"
#include "replay/captured/repeated_transfer.h"

namespace citcat {

/// Further facts about a captured transaction.
struct CapturedContext {
  std::uint32_t known = 0;  ///< bit i: byte i of what is read is known, and in its data
  std::uint8_t parts = 1;   ///< transactions of the capture that it is
  bool unwritten = false;   ///< the captured side has not written to the frame of this read
  bool repeated = false;    ///< RepeatedTransfer::observe()
};

/// Goes through evidence once, from its beginning. The first transactions are taken in on the
/// calling thread, so that short evidence needs no second one. For one thread; not to be used where
/// the evidence, or what it shows of memory, is ever gone back in or corrected.
class EvidenceAhead final : public EvidenceReader {
 public:
  struct Options {
    bool joins_lines = false;  ///< as EvidenceReader::next_line() does
    bool on_a_thread = true;   ///< of its own, where the evidence is long
    /// So many of the first are taken in, but not given, and none of instructions before `from`.
    std::uint64_t passed_over = 0, from = 0;
  };
  /// `image` and `schedule` must outlive the object, and nothing may change them.
  EvidenceAhead(std::unique_ptr<EvidenceReader> reader, const MemoryImage& image,
                const Schedule& schedule, const Options& options);
  ~EvidenceAhead() override;

  // Both throw what the reader throws, after all transactions before it.
  bool next(BusTransaction& out) override { return next_line(out) != 0; }
  std::uint8_t next_line(BusTransaction& out) override;
  std::span<const BusTransaction> upcoming() const override {
    return std::span(block_->transactions).subspan(next_, block_->size - next_);
  }
  /// The context of the transaction given last.
  const CapturedContext& context() const { return block_->contexts[next_ - 1]; }
  /// How many were given or passed over.
  std::uint64_t given() const { return given_before_ + next_; }
  /// The last fetches of code of instructions before `from`, of which code after it may come. Known
  /// once something was given.
  static constexpr std::size_t kFetchesKept = 32;
  std::span<const BusTransaction> fetched_before() const {
    return {fetched_before_.begin(), fetched_before_.end()};
  }
  /// When all was given: what it shows memory to hold after that.
  const MemoryImage& memory_at_end();

 private:
  /// What one thread hands to the other.
  struct Block {
    std::vector<BusTransaction> transactions;
    std::vector<CapturedContext> contexts;
    std::size_t size = 0;      ///< of both, which are longer
    bool last = false;         ///< of the evidence
    std::exception_ptr error;  ///< what came after them, if they are the last
  };

  void fill(Block& block, std::size_t most);
  void pass_over(Block& block);
  bool read(BusTransaction& t, CapturedContext& context);
  bool take_in(BusTransaction& t, CapturedContext& context);
  void take_in_several(Block& block, std::size_t most);
  void complete(BusTransaction& t, CapturedContext& context);
  bool next_block();
  void start_thread();

  const std::unique_ptr<EvidenceReader> reader_;
  const MemoryImage& image_;
  const Schedule& schedule_;
  const bool joins_lines_, on_a_thread_;
  // Used by the thread that takes in the evidence.
  std::unique_ptr<CapturedMemory> memory_;  ///< null before the first transaction
  RepeatedTransfer repeated_;
  ShortQueue<BusTransaction> fetched_before_;
  std::uint64_t passed_over_;  ///< still to be taken in without being given
  std::uint64_t from_;         ///< the same: of instructions before it

  std::uint64_t given_before_;    ///< before this block
  std::uint64_t read_here_ = 0;   ///< since a second thread was thought of last
  std::shared_ptr<Block> block_;  ///< whose transactions are given
  std::size_t next_ = 0;
  std::unique_ptr<BlocksAhead<Block>> ahead_;  ///< last: it uses the others
};

}  // namespace citcat
