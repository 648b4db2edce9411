#pragma once
// A bus does not name an SMI, but it shows the effects of one: the processor saves its state below
// SMBASE + 10000h and fetches from SMBASE + 8000h, all within one instruction boundary (Intel SDM
// vol. 3, 34.4 and 34.5). Nothing else a processor does looks like that.

#include <cstdint>
#include <optional>

#include "events/bus_transaction.h"
#include "events/recording.h"

namespace citcat {

class SmmEntryDetector {
 public:
  /// The beginning of an entry.
  struct Entry {
    bool position_known = false;
    Position position;
    BusAnchor anchor;
    std::uint64_t transaction = 0;
    std::uint32_t smbase = 0;
    /// Where the processor saves its SMM revision identifier (SDM vol. 3, 34.4.2).
    PhysAddr revision_at;
    std::optional<std::uint8_t> revision;  ///< low byte of it, where the stores are on the bus
  };

  /// Takes the next transaction, with its position in the recording and what is before it.
  /// Returns an entry at the first fetch of its handler.
  std::optional<Entry> add(const BusTransaction& t, const Position& position,
                           const BusAnchor& before) {
    if (t.op == BusOp::data_write) {
      if (count_ == 0 && t.address.offset_in_page() != kLastWord) [[likely]]
        return std::nullopt;
      return save(t, position, before);
    }
    if (count_ == 0 && !t.has(kStoreFill)) [[likely]]
      return std::nullopt;
    return read(t, position, before);
  }

  /// A monitor shows that an SMI has come: add() returns the entry when all of the state is saved,
  /// since the handler may be in a cache.
  void name() { named_ = true; }

  /// Addresses of an operation that may begin an entry: those with this value under the mask.
  struct Watch {
    std::uint32_t mask = 0, value = 1;  ///< none
  };
  static Watch watch_of(BusOp op, std::uint16_t flags);
  /// An entry may be going on: all that follows is to be given to add().
  bool watches() const { return count_ != 0; }

 private:
  /// Offset in its page of the first dword that is saved: SMBASE + FFFCh, SMBASE being aligned.
  static constexpr std::uint32_t kLastWord = kPageSize - 4;

  bool goes_on(const BusTransaction& t);
  std::optional<Entry> save(const BusTransaction& t, const Position& position,
                            const BusAnchor& before);
  std::optional<Entry> read(const BusTransaction& t, const Position& position,
                            const BusAnchor& before);
  void begin(const BusTransaction& t, const Position& position, const BusAnchor& before,
             std::uint32_t base, std::uint32_t next, bool fills);
  bool continues(const BusTransaction& t, const Position& position, bool fills) const;

  Entry entry_;
  std::uint32_t next_ = 0;   ///< writes: the next dword down; fills: the last line
  std::uint32_t count_ = 0;  ///< bytes written, or lines filled, in the run so far
  bool fills_ = false;
  bool named_ = false;
  bool half_ = false;  ///< of the last dword a bus of two bytes has shown the lower half
};

}  // namespace citcat
