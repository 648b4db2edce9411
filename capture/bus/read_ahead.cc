#include "capture/bus/read_ahead.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "formats/memory/handover.h"

namespace citcat {
namespace {

/// Transactions in a block that this thread reads: few enough to stay in the first-level cache.
constexpr std::size_t kBlock = 128;
/// In one that another thread reads: handing it over takes as long as reading a hundred.
constexpr std::size_t kHandedBlock = 2048;
/// Blocks that wake a thread that waits for some.
constexpr std::size_t kEnoughAhead = 2;
/// Blocks that go round; all of them together stay in the second-level cache. A thread that waits
/// for `kEnoughAhead` leaves one less lying on the way here, while one is looked at.
constexpr std::size_t kBlocks = 6;
static_assert(kBlocks >= (kEnoughAhead - 1) + 1 + kEnoughAhead);
/// A thread is started for segments longer than this.
constexpr std::uint64_t kFewTransactions = 1 << 12;

}  // namespace

struct ReadAhead::Thread {
  explicit Thread(CaptureReader& reader) : worker([this, &reader] { run(reader); }) {}
  ~Thread() {
    idle.close();
    worker.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void run(CaptureReader& reader) {
    bool last = false;
    while (!last) {
      std::shared_ptr<Block> block = idle.take();
      if (!block) break;
      fill(reader, *block);
      last = block->last;
      read.put(std::move(block));
    }
    read.close();
  }

  Pool<Block> idle{kBlocks, kEnoughAhead};
  Handover<std::shared_ptr<Block>> read{kEnoughAhead};
  std::thread worker;  ///< last: it uses the others
};

ReadAhead::ReadAhead(CaptureReader& reader)
    : reader_(reader), state_(reader.initial_state()), block_(std::make_shared<Block>()) {}

ReadAhead::~ReadAhead() = default;

std::span<BusTransaction> ReadAhead::next(std::size_t most) {
  if (at_end_) return {};
  if (thread_) return take_block();
  if (read_here_ < kFewTransactions || reader_.has_runs()) return read_here(most);
  thread_ = std::make_unique<Thread>(reader_);
  return take_block();
}

std::span<BusTransaction> ReadAhead::read_here(std::size_t most) {
  block_->transactions.resize(kBlock);
  block_->size = reader_.next_block(std::span(block_->transactions).first(std::min(most, kBlock)));
  read_here_ += block_->size;
  at_end_ = block_->size == 0;
  return std::span(block_->transactions).first(block_->size);
}

/// Gives the block handed out last back for the next one.
std::span<BusTransaction> ReadAhead::take_block() {
  if (!block_->last) {
    block_.reset();
    block_ = std::move(*thread_->read.take());
    if (block_->size != 0) return std::span(block_->transactions).first(block_->size);
  }
  thread_.reset();
  at_end_ = true;
  const std::exception_ptr error = block_->error;
  block_ = std::make_shared<Block>();
  if (error) std::rethrow_exception(error);
  return {};
}

void ReadAhead::fill(CaptureReader& reader, Block& block) {
  block.transactions.resize(kHandedBlock);
  block.size = 0;
  try {
    while (block.size < kHandedBlock && !block.last) {
      const std::size_t got = reader.next_block(std::span(block.transactions).subspan(block.size));
      block.size += got;
      block.last = got == 0;
    }
  } catch (...) {
    block.error = std::current_exception();
    block.last = true;
  }
  block.info = reader.info();
}

bool ReadAhead::next_segment() {
  if (!reader_.next_segment()) return false;
  at_end_ = false;
  read_here_ = 0;
  state_ = reader_.initial_state();
  return true;
}

}  // namespace citcat
