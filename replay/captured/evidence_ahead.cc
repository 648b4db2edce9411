#include "replay/captured/evidence_ahead.h"

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "formats/memory/handover.h"
#include "formats/memory/pool.h"

namespace citcat {

namespace {

/// Transactions in a block that the calling thread takes in: few enough to stay in the first-level
/// cache.
constexpr std::size_t kBlock = 64;
/// In one that another thread takes in: handing it over takes as long as some ten of them.
constexpr std::size_t kHandedBlock = 512;
/// Blocks that wake a thread that waits for some.
constexpr std::size_t kEnoughAhead = 2;
/// Blocks that go round; all of them together, 240 KiB, stay in the second-level cache.
constexpr std::size_t kBlocks = 6;
static_assert(kBlocks >= (kEnoughAhead - 1) + 1 + kEnoughAhead);
/// A thread is started for longer evidence than this.
constexpr std::uint64_t kFewTransactions = 1 << 12;

/// Whoever uses the library has its signals handled on threads of its own. What an instruction of
/// this one raises is this one's all the same.
void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  for (const int raised : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) sigdelset(&all, raised);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct EvidenceAhead::Thread {
  explicit Thread(EvidenceAhead& evidence) : worker([this, &evidence] { run(evidence); }) {}
  ~Thread() {
    idle.close();
    worker.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void run(EvidenceAhead& evidence) {
    leave_signals_to_others();
    bool last = false;
    while (!last) {
      std::shared_ptr<Block> block = idle.take();
      if (!block) break;
      evidence.fill(*block, kHandedBlock);
      last = block->last;
      taken_in.put(std::move(block));
    }
    taken_in.close();
  }

  Pool<Block> idle{kBlocks, kEnoughAhead};
  Handover<std::shared_ptr<Block>> taken_in{kEnoughAhead};
  std::thread worker;  ///< last: it uses the others
};

EvidenceAhead::EvidenceAhead(std::unique_ptr<EvidenceReader> reader, const MemoryImage& image,
                             const Schedule& schedule, const CapturedContextOptions& options)
    : reader_(std::move(reader)),
      image_(image),
      schedule_(schedule),
      options_(options),
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
  next_ = 0;
  if (!thread_ && read_here_ >= kFewTransactions) start_thread();
  if (thread_) {
    block_.reset();
    block_ = std::move(*thread_->taken_in.take());
  } else {
    fill(*block_, kBlock);
    read_here_ += block_->size;
  }
  return block_->size != 0 || next_block();
}

/// Where the system gives no thread, evidence is taken in here as before.
void EvidenceAhead::start_thread() {
  try {
    thread_ = std::make_unique<Thread>(*this);
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
    for (; block.size < most && !block.last; ++block.size) {
      BusTransaction& t = block.transactions[block.size];
      CapturedContext& context = block.contexts[block.size];
      context = {};
      t = {};
      context.parts = options_.joins_lines ? reader_->next_line(t) : std::uint8_t{reader_->next(t)};
      if (context.parts == 0) {
        block.last = true;
        return;
      }
      complete(t, context);
    }
  } catch (...) {
    block.error = std::current_exception();
    block.last = true;
  }
}

void EvidenceAhead::complete(BusTransaction& t, CapturedContext& context) {
  context.repeated = repeated_.observe(t);
  if (t.op == BusOp::data_write) return write(t.address, t.bytes());
  if (t.op != BusOp::code_read && t.op != BusOp::data_read) return;
  memory_->take_external_writes(t.index,
                                [this](const ExternalWrite& w) { write(w.address, w.data); });
  if (t.size == 0 || !t.has(kPositionKnown)) return;
  context.unwritten = !written_frames_.contains(t.address.page());
  const bool code = t.op == BusOp::code_read;
  context.shown = options_.shows_all || (code && !context.unwritten);
  if (context.shown) context.known = show(memory_->image(), t);
}

void EvidenceAhead::write(PhysAddr a, std::span<const std::uint8_t> bytes) {
  const auto end = a.offset_in_page() + static_cast<std::uint32_t>(bytes.size());
  for (std::uint32_t at = 0; at < end; at += kPageSize) {
    written_frames_.insert(a.page_begin().plus32(at).page());
  }
  memory_->set(a, bytes);
}

}  // namespace citcat
