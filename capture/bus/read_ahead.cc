#include "capture/bus/read_ahead.h"

#include <algorithm>
#include <exception>

namespace citcat {
namespace {

/// Transactions in a block that this thread reads: few enough to stay in the first-level cache.
constexpr std::size_t kBlock = 128;
/// In one that another thread reads: handing it over takes as long as reading a hundred, and all
/// that go round stay in the second-level cache.
constexpr std::size_t kHandedBlock = 2048;
/// A thread is started for segments longer than this.
constexpr std::uint64_t kFewTransactions = 1 << 12;

}  // namespace

ReadAhead::ReadAhead(CaptureReader& reader)
    : reader_(reader), state_(reader.initial_state()), block_(std::make_shared<Block>()) {}

ReadAhead::~ReadAhead() = default;

std::span<BusTransaction> ReadAhead::next(std::size_t most) {
  if (at_end_) return {};
  if (thread_) return take_block();
  if (read_here_ < kFewTransactions || reader_.has_runs()) return read_here(most);
  thread_ = std::make_unique<BlocksAhead<Block>>([this](Block& block) {
    fill(reader_, block);
    return !block.last;
  });
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
    block_ = thread_->next();
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
