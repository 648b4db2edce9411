#pragma once
// Evidence on its way into the archive: packing its columns takes as long as deriving it, so where
// there is much of it, another thread does that.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "events/bus_transaction.h"
#include "events/evidence_codec.h"
#include "formats/pool.h"
#include "formats/recycler.h"

namespace citcat {

/// Makes evidence chunks of a stream of transactions.
class EvidencePacker {
 public:
  /// Takes a complete chunk: `chunk` may be encoded on any thread and is then given back to
  /// `idle`. Called by one thread at a time, not always the same.
  using ChunkSink = std::function<void(std::shared_ptr<EvidenceEncoder> chunk,
                                       std::shared_ptr<Recycler<EvidenceEncoder>> idle)>;
  explicit EvidencePacker(ChunkSink sink);
  /// Drops what was not flushed.
  ~EvidencePacker();
  EvidencePacker(const EvidencePacker&) = delete;
  EvidencePacker& operator=(const EvidencePacker&) = delete;

  /// The next transactions. Throws what the sink threw for earlier ones. They are kept, not copied,
  /// where there is an `owner`: see EvidenceWriter::write_shared().
  void add(std::span<const BusTransaction> transactions,
           const std::shared_ptr<const void>& owner = nullptr);
  /// Ends the chunk. What was added has reached the sink when this returns; until the next add()
  /// nobody calls it.
  void flush();

 private:
  struct Thread;
  struct Piece {
    std::span<const BusTransaction> transactions;
    std::shared_ptr<const void> owner;
  };
  using Copies = std::vector<BusTransaction>;

  void gather(std::span<const BusTransaction> transactions);
  void hand_over_gathered();
  void hand_over(Piece piece);
  void pack(std::span<const BusTransaction> transactions);
  void give_chunk();

  ChunkSink sink_;
  std::shared_ptr<Recycler<EvidenceEncoder>> idle_ = std::make_shared<Recycler<EvidenceEncoder>>();
  std::shared_ptr<EvidenceEncoder> encoder_;  ///< of the chunk that grows; the thread's, if any
  Pool<Copies> copies_;
  std::shared_ptr<Copies> gathered_;  ///< without an owner and not yet handed over; may be null
  std::uint64_t handed_over_ = 0;     ///< transactions since the last flush
  std::unique_ptr<Thread> thread_;
};

}  // namespace citcat
