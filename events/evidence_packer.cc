#include "events/evidence_packer.h"

#include <atomic>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "formats/handover.h"

namespace citcat {
namespace {

/// Rows that go round between the threads, in so many pieces.
constexpr std::size_t kPieces = 4;
/// A thread is started when more than this was added.
constexpr std::uint64_t kFewRows = kEvidenceChunkTransactions;
static_assert(kEvidenceChunkTransactions % EvidenceRows::kMost == 0);

}  // namespace

struct EvidencePacker::Thread {
  explicit Thread(EvidencePacker& packer) : worker([this, &packer] { run(packer); }) {
    for (std::size_t i = 0; i + 1 < kPieces; ++i) packed.put(std::make_unique<EvidenceRows>());
  }
  ~Thread() { finish(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void run(EvidencePacker& packer) {
    while (std::optional<std::unique_ptr<EvidenceRows>> rows = added.take()) {
      try {
        if (!error) packer.pack(**rows);
      } catch (...) {
        error = std::current_exception();
        failed = true;
      }
      (*rows)->clear();
      packed.put(std::move(*rows));
    }
  }
  /// Waits until everything is packed. `error` may be looked at from then on.
  void finish() {
    added.close();
    if (worker.joinable()) worker.join();
  }

  Handover<std::unique_ptr<EvidenceRows>> added{kPieces / 2}, packed{kPieces / 2};
  std::exception_ptr error;
  std::atomic<bool> failed = false;
  std::thread worker;  ///< last: it uses the others
};

EvidencePacker::EvidencePacker(ChunkSink sink)
    : sink_(std::move(sink)), columns_(idle_->take()), rows_(std::make_unique<EvidenceRows>()) {}

EvidencePacker::~EvidencePacker() = default;

void EvidencePacker::add(std::span<const BusTransaction> transactions) {
  while (!transactions.empty()) {
    transactions = transactions.subspan(rows_->add(transactions));
    if (rows_->full()) hand_over();
  }
}

void EvidencePacker::hand_over() {
  handed_over_ += rows_->size();
  if (handed_over_ <= kFewRows) {
    pack(*rows_);
    rows_->clear();
    return;
  }
  if (!thread_) thread_ = std::make_unique<Thread>(*this);
  if (thread_->failed) {
    thread_->finish();
    std::rethrow_exception(thread_->error);
  }
  thread_->added.put(std::move(rows_));
  rows_ = std::move(*thread_->packed.take());
}

void EvidencePacker::flush() {
  if (thread_) {
    thread_->finish();
    const std::exception_ptr error = thread_->error;
    thread_.reset();
    if (error) std::rethrow_exception(error);
  }
  pack(*rows_);
  rows_->clear();
  handed_over_ = 0;
  if (columns_->size() != 0) give_chunk();
}

/// On either thread.
void EvidencePacker::pack(const EvidenceRows& rows) {
  columns_->add(rows);
  if (columns_->full()) give_chunk();
}

void EvidencePacker::give_chunk() { sink_(std::exchange(columns_, idle_->take()), idle_); }

}  // namespace citcat
