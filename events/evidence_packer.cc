#include "events/evidence_packer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "formats/handover.h"

namespace citcat {
namespace {

/// Transactions without an owner that are handed over at a time.
constexpr std::size_t kGathered = 2048;
/// Pieces of them that go round between the threads.
constexpr std::size_t kPieces = 4;
/// Pieces that wake the thread. Who owns them must have more.
constexpr std::size_t kEnough = 2;
/// A thread is started when more than this was added.
constexpr std::uint64_t kFewTransactions = kEvidenceChunkTransactions;

}  // namespace

struct EvidencePacker::Thread {
  explicit Thread(EvidencePacker& packer) : worker([this, &packer] { run(packer); }) {}
  ~Thread() { finish(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void run(EvidencePacker& packer) {
    while (std::optional<Piece> piece = added.take()) {
      try {
        if (!error) packer.pack(piece->transactions);
      } catch (...) {
        error = std::current_exception();
        failed = true;
      }
    }
  }
  /// Waits until everything is packed. `error` may be looked at from then on.
  void finish() {
    added.close();
    if (worker.joinable()) worker.join();
  }

  Handover<Piece> added{kEnough};
  std::exception_ptr error;
  std::atomic<bool> failed = false;
  std::thread worker;  ///< last: it uses the others
};

EvidencePacker::EvidencePacker(ChunkSink sink)
    : sink_(std::move(sink)), encoder_(idle_->take()), copies_(kPieces, kPieces / 2) {}

EvidencePacker::~EvidencePacker() = default;

void EvidencePacker::add(std::span<const BusTransaction> transactions,
                         const std::shared_ptr<const void>& owner) {
  if (!owner) {
    gather(transactions);
  } else if (!transactions.empty()) {
    hand_over_gathered();
    hand_over({transactions, owner});
  }
}

void EvidencePacker::gather(std::span<const BusTransaction> transactions) {
  while (!transactions.empty()) {
    if (!gathered_) {
      gathered_ = copies_.take();
      gathered_->clear();
      gathered_->reserve(kGathered);
    }
    const auto taken =
        transactions.first(std::min(transactions.size(), kGathered - gathered_->size()));
    gathered_->insert(gathered_->end(), taken.begin(), taken.end());
    transactions = transactions.subspan(taken.size());
    if (gathered_->size() == kGathered) hand_over_gathered();
  }
}

void EvidencePacker::hand_over_gathered() {
  if (!gathered_) return;
  const std::span<const BusTransaction> transactions = *gathered_;
  hand_over({transactions, std::exchange(gathered_, nullptr)});
}

void EvidencePacker::hand_over(Piece piece) {
  handed_over_ += piece.transactions.size();
  if (!thread_ && handed_over_ <= kFewTransactions) {
    pack(piece.transactions);
    return;
  }
  if (!thread_) thread_ = std::make_unique<Thread>(*this);
  if (thread_->failed) {
    thread_->finish();
    std::rethrow_exception(thread_->error);
  }
  thread_->added.put(std::move(piece));
}

void EvidencePacker::flush() {
  hand_over_gathered();
  if (thread_) {
    thread_->finish();
    const std::exception_ptr error = thread_->error;
    thread_.reset();
    if (error) std::rethrow_exception(error);
  }
  handed_over_ = 0;
  if (encoder_->size() != 0) give_chunk();
}

/// On either thread.
void EvidencePacker::pack(std::span<const BusTransaction> transactions) {
  while (!transactions.empty()) {
    const auto taken = transactions.first(
        std::min(transactions.size(), kEvidenceChunkTransactions - encoder_->size()));
    encoder_->add(taken);
    if (encoder_->full()) give_chunk();
    transactions = transactions.subspan(taken.size());
  }
}

void EvidencePacker::give_chunk() { sink_(std::exchange(encoder_, idle_->take()), idle_); }

}  // namespace citcat
