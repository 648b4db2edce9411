#pragma once
// All transactions of a machine with several processors, in the order of the bus. Each processor's
// recording has its own; the clocks, which all processors share, say how they are interleaved.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/memory_image.h"
#include "events/processors/bus_note.h"
#include "events/recording.h"

namespace citcat {

/// The part of one processor. `recording` must outlive who reads it.
struct ProcessorShare {
  const Recording* recording = nullptr;
  std::unique_ptr<EvidenceReader> evidence;
};

/// One transaction, or a note.
struct SharedEvent {
  std::uint8_t processor = 0;
  std::optional<BusNote> note;
  /// The transaction. A read has its data, which come from the processor's recording, because the
  /// evidence has none.
  BusTransaction t;
  /// When and where the transaction's processor drives its next one; nullopt if there is none.
  struct Next {
    Position position;
    std::uint64_t clock = 0;
  };
  std::optional<Next> next;
  /// The external write of the processor's recording that this read is the first to show.
  std::optional<std::size_t> external;
  std::bitset<kMaxTransactionBytes> changed;  ///< bytes that external writes of this read are of
  /// The same of one that the recording leaves out. It goes on the one that the processor's read
  /// before showed when it lies right after it.
  std::optional<ExternalWrite> derived;
};

class SharedBus {
 public:
  /// `notes` in the order of their clocks.
  SharedBus(std::vector<ProcessorShare> shares, std::vector<BusNote> notes);
  /// For recordings that leave out external writes which follow from what other processors wrote.
  /// `ram_bytes` as for is_device().
  SharedBus(std::vector<ProcessorShare> shares, std::vector<BusNote> notes,
            std::uint32_t ram_bytes);
  SharedBus(SharedBus&&) noexcept;
  ~SharedBus();

  /// False at the end. FormatError where the evidence is damaged.
  bool next(SharedEvent& out);

 private:
  class Share;
  class Memory;

  std::vector<std::unique_ptr<Share>> shares_;
  std::vector<BusNote> notes_;
  std::unique_ptr<Memory> memory_;  ///< of all, where external writes are derived
  std::uint32_t ram_bytes_ = 0;
  std::size_t next_note_ = 0;
  std::uint8_t last_ = 0;
};

}  // namespace citcat
