#include "replay/captured/evidence_ahead.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace citcat {

namespace {

/// Transactions in a block that the calling thread takes in: few enough to stay in the first-level
/// cache.
constexpr std::size_t kBlock = 64;
/// In one that another thread takes in: handing it over takes as long as some ten of them, and all
/// that go round, 240 KiB, stay in the second-level cache.
constexpr std::size_t kHandedBlock = 512;
/// A thread is started for longer evidence than this.
constexpr std::uint64_t kFewTransactions = 1 << 12;

}  // namespace

EvidenceAhead::EvidenceAhead(std::unique_ptr<EvidenceReader> reader, const MemoryImage& image,
                             const Schedule& schedule, const Options& options)
    : reader_(std::move(reader)),
      image_(image),
      schedule_(schedule),
      joins_lines_(options.joins_lines),
      on_a_thread_(options.on_a_thread),
      passed_over_(options.passed_over),
      from_(options.from),
      given_before_(options.passed_over),
      block_(std::make_shared<Block>()) {}

EvidenceAhead::~EvidenceAhead() = default;

std::uint8_t EvidenceAhead::next_line(BusTransaction& out) {
  if (next_ == block_->size && !next_block()) return 0;
  out = block_->transactions[next_];
  return block_->contexts[next_++].parts;
}

/// Gives the block handed out last back for another one. False at the end.
bool EvidenceAhead::next_block() {
  if (block_->last) {
    if (block_->error) std::rethrow_exception(block_->error);
    return false;
  }
  given_before_ += std::exchange(next_, 0);
  if (on_a_thread_ && !ahead_ && read_here_ >= kFewTransactions) start_thread();
  if (ahead_) {
    block_.reset();
    block_ = ahead_->next();
  } else {
    fill(*block_, kBlock);
    read_here_ += block_->size;
  }
  return block_->size != 0 || next_block();
}

const MemoryImage& EvidenceAhead::memory_at_end() {
  ahead_.reset();
  memory_->take_external_writes(
      kNoTransaction - 1, [this](const ExternalWrite& w) { memory_->set(w.address, w.data); });
  return memory_->image();
}

/// Where the system gives no thread, evidence is taken in here as before.
void EvidenceAhead::start_thread() {
  try {
    ahead_ = std::make_unique<BlocksAhead<Block>>([this](Block& block) {
      fill(block, kHandedBlock);
      return !block.last;
    });
  } catch (const std::system_error&) {
    read_here_ = 0;
  }
}

void EvidenceAhead::fill(Block& block, std::size_t most) {
  block.transactions.resize(most);
  block.contexts.resize(most);
  block.size = 0;
  try {
    if (!memory_) memory_ = std::make_unique<CapturedMemory>(image_, schedule_);
    pass_over(block);
    while (block.size < most && !block.last) take_in_several(block, most);
  } catch (...) {
    block.error = std::current_exception();
    block.last = true;
  }
}

/// What several are completed with is fetched from the host's memory while they are read.
void EvidenceAhead::take_in_several(Block& block, std::size_t most) {
  constexpr std::size_t kSeveral = 16;
  const std::size_t end = std::min(most, block.size + kSeveral);
  std::size_t count = block.size;
  std::exception_ptr error;
  try {
    for (; count < end; ++count) {
      block.last = !read(block.transactions[count], block.contexts[count]);
      if (block.last) break;
      memory_->prefetch(block.transactions[count]);
    }
  } catch (...) {
    error = std::current_exception();
  }
  for (; block.size < count; ++block.size) {
    complete(block.transactions[block.size], block.contexts[block.size]);
  }
  if (error) std::rethrow_exception(error);
}

/// Takes in what is not to be given, and the first that is.
void EvidenceAhead::pass_over(Block& block) {
  BusTransaction& first = block.transactions[0];
  for (; passed_over_ != 0 && !block.last; --passed_over_)
    block.last = !take_in(first, block.contexts[0]);
  while (from_ != 0 && !block.last) {
    block.last = !take_in(first, block.contexts[0]);
    if (block.last || !first.has(kPositionKnown)) continue;
    if (first.position.instruction < from_) {
      if (first.op == BusOp::code_read) fetched_before_.push_back(first);
      if (fetched_before_.size() > kFetchesKept) fetched_before_.pop_front();
      continue;
    }
    block.size = 1;
    from_ = 0;
  }
}

/// False at the end.
bool EvidenceAhead::read(BusTransaction& t, CapturedContext& context) {
  context = {};
  t = {};
  context.parts = joins_lines_ ? reader_->next_line(t) : std::uint8_t{reader_->next(t)};
  return context.parts != 0;
}

bool EvidenceAhead::take_in(BusTransaction& t, CapturedContext& context) {
  if (!read(t, context)) return false;
  complete(t, context);
  return true;
}

void EvidenceAhead::complete(BusTransaction& t, CapturedContext& context) {
  context.repeated = repeated_.observe(t);
  if (t.op == BusOp::data_write) return memory_->set(t.address, t.bytes());
  if (t.op != BusOp::code_read && t.op != BusOp::data_read) return;
  memory_->take_external_writes(
      t.index, [this](const ExternalWrite& w) { memory_->set(w.address, w.data); });
  if (t.size == 0 || !t.has(kPositionKnown)) return;
  context.unwritten = !memory_->is_written(t.address.page());
  context.known = show(memory_->image(), t);
}

}  // namespace citcat
