#pragma once
// Evidence on its way into the archive: packing its columns takes longer than deriving it, so where
// there is much of it, another thread does that.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "events/bus_transaction.h"
#include "events/evidence_codec.h"
#include "formats/recycler.h"

namespace citcat {

/// Makes evidence chunks of a stream of transactions.
class EvidencePacker {
 public:
  /// Takes a complete chunk: `columns` may be encoded on any thread and is then given back to
  /// `idle`. Called by one thread at a time, not always the same.
  using ChunkSink = std::function<void(std::shared_ptr<EvidenceColumns> columns,
                                       std::shared_ptr<Recycler<EvidenceColumns>> idle)>;
  explicit EvidencePacker(ChunkSink sink);
  /// Drops what was not flushed.
  ~EvidencePacker();
  EvidencePacker(const EvidencePacker&) = delete;
  EvidencePacker& operator=(const EvidencePacker&) = delete;

  /// The next transactions. Throws what the sink threw for earlier ones.
  void add(std::span<const BusTransaction> transactions);
  /// Ends the chunk. What was added has reached the sink when this returns; until the next add()
  /// nobody calls it.
  void flush();

 private:
  struct Thread;

  void hand_over();
  void pack(const EvidenceRows& rows);
  void give_chunk();

  ChunkSink sink_;
  std::shared_ptr<Recycler<EvidenceColumns>> idle_ = std::make_shared<Recycler<EvidenceColumns>>();
  std::shared_ptr<EvidenceColumns> columns_;  ///< of the chunk that grows; the thread's, if any
  std::unique_ptr<EvidenceRows> rows_;        ///< not yet handed over
  std::uint64_t handed_over_ = 0;             ///< rows since the last flush
  std::unique_ptr<Thread> thread_;
};

}  // namespace citcat
