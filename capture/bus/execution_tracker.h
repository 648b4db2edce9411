#pragma once
// The 8086 and 8088 report on their queue-status pins when a byte leaves the prefetch queue and
// when the queue is emptied (Intel 8086 data sheet, "Queue Status"). Replaying these reports over
// the bytes that the bus fetched yields the instructions that the processor executed, and so the
// position of everything on the bus, although no register is known.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/cpu_traits.h"
#include "formats/memory/short_queue.h"

namespace citcat {

/// QS1 QS0 as a number (Intel 8086 data sheet, table "Queue Status").
enum class QueueStatus : std::uint8_t { none = 0, first_byte = 1, emptied = 2, next_byte = 3 };

/// Advice for contradictory pins of an 8088: the end of a message.
inline constexpr const char* kProposeMap =
    "; where the channels have wrong names, `import --match-channels MAP.json` proposes a map by "
    "how "
    "they move";

/// Puts instruction starts and positions into a stream of bus cycles.
class ExecutionTracker {
 public:
  struct Setup {
    std::string name;         ///< of the capture, for messages
    std::size_t queue_bytes;  ///< 4 for the 8088, 6 for the 8086
    std::uint32_t address_mask;
    bool queue_status;        ///< false: the pins were not probed, nothing but bus order is known
    const char* advice = "";  ///< the end of messages about pins that contradict each other
    CpuModel cpu = CpuModel::i8086;
  };
  /// Bytes that the queue holds before the first cycle, and where the first of them is from.
  struct Prefetched {
    PhysAddr segment;  ///< where CS begins
    std::uint16_t ip = 0;
    std::span<const std::uint8_t> bytes;
  };
  explicit ExecutionTracker(Setup setup)
      : setup_(std::move(setup)), traits_(cpu_traits(setup_.cpu)) {}

  /// At the beginning, where the queue is known. Its bytes are handed out as the fetches, of at
  /// most `bus_bytes`, that brought them before the capture began.
  void begin_with(const Prefetched& prefetched, std::uint32_t bus_bytes);
  /// A bus cycle appears on the pins. `transaction` needs op, address, size, clock; its data come
  /// with end_cycle(). The second cycle of an interrupt acknowledge is joined with the first.
  void begin_cycle(const BusTransaction& transaction);
  /// The cycle begun last is complete; `data` are its bytes in address order. `clock` is for
  /// messages.
  void end_cycle(std::span<const std::uint8_t> data, std::uint64_t clock);
  /// The queue-status pins reported `status` at `clock`.
  void queue_status(QueueStatus status, std::uint64_t clock) {
    if (status != QueueStatus::none && setup_.queue_status) follow_queue(status, clock);
  }
  /// The capture ends: what is still waiting for more is handed out as far as it is known.
  void finish();

  bool take(BusTransaction& out);
  /// What the queue holds by now.
  std::vector<std::uint8_t> queue() const;
  std::vector<std::string> warnings() const;

 private:
  struct Item {
    BusTransaction transaction;
    bool ready = false;
  };
  struct Fetched {
    PhysAddr address;
    std::uint8_t byte = 0;
  };
  /// The instruction being executed.
  struct Current {
    std::uint64_t item = 0;  ///< sequence number of its entry in items_
    PhysAddr address;        ///< of the opcode
    PhysAddr end;            ///< address after its last byte so far
    PhysAddr first_prefix;   ///< address of the first prefix, or of the opcode
    PhysAddr last_prefix;    ///< address of the prefix just before the opcode
    std::optional<std::size_t> length;
    std::uint8_t opcode = 0;
    bool repeated = false;         ///< a REP prefix before a string instruction
    std::uint64_t read_bytes = 0;  ///< data bytes transferred since its start
    std::uint64_t written_bytes = 0;
    bool access_checked = false;
  };
  /// Between an interrupt acknowledge and the last byte of the return address it pushes.
  struct Entry {
    std::uint64_t item = 0;  ///< of the acknowledge
    bool second_cycle = false;
    bool vector_known = false;
    std::uint8_t vector = 0;
    std::uint32_t vector_bytes = 0;        ///< of the vector read so far
    std::array<std::uint8_t, 6> pushed{};  ///< FLAGS, CS, IP
    std::size_t pushed_bytes = 0;
  };

  [[noreturn]] void fail(std::uint64_t clock, const std::string& message) const;
  Item& item(std::uint64_t sequence) { return items_[sequence - first_item_]; }
  std::uint64_t push(const BusTransaction& transaction, bool ready);
  bool positions_valid() const { return synchronised_ && !positions_lost_; }
  Position position_now() const;
  std::uint32_t completed_iterations() const;

  void begin_fetch(const BusTransaction& transaction);
  bool has_loaded_cs() const;
  std::string stuck_lines(PhysAddr expected, PhysAddr found) const;
  void begin_data(const BusTransaction& transaction);
  void check_access(const BusTransaction& transaction);
  void follow_entry(const BusTransaction& transaction, std::span<const std::uint8_t> data);
  void settle_break();
  void settle_entry();
  void abandon_entry(const std::string& why);
  void follow_queue(QueueStatus status, std::uint64_t clock);
  void start_instruction(const Fetched& byte, std::uint64_t clock);
  void continue_instruction(const Fetched& byte, std::uint64_t clock);
  void close_instruction();
  void lose_positions(const std::string& why);

  Setup setup_;
  const CpuTraits& traits_;
  ShortQueue<Item> items_;
  std::uint64_t first_item_ = 0;  ///< sequence number of items_.front()
  std::uint64_t emitted_ = 0;

  bool cycle_open_ = false;
  /// The cycle on the pins.
  struct Cycle {
    BusOp op = BusOp::code_read;
    std::uint8_t size = 0;
    PhysAddr address;
  } cycle_;
  std::uint64_t cycle_item_ = 0;
  bool discard_fetch_ = false;

  ShortQueue<Fetched> queue_;
  bool synchronised_ = false;  ///< the queue was seen empty once
  std::optional<PhysAddr> next_fetch_;
  std::uint64_t seen_low_ = 0, seen_high_ = 0;  ///< address lines, in fetches
  bool flushed_ = false;

  std::uint64_t started_ = 0;  ///< instructions started, restarts of interrupted ones not counted
  bool in_prefix_ = false;
  bool rep_prefix_ = false;
  PhysAddr first_prefix_address_, prefix_address_;
  std::optional<Current> current_;
  std::optional<Entry> entry_;
  bool broken_off_ = false;  ///< the repeated instruction in progress will be restarted
  /// Position of all data cycles of an interrupt entry, once known, until the next instruction.
  std::optional<Position> entry_position_;
  std::optional<PhysAddr> return_address_;  ///< that the entry must push, if that is known

  bool positions_lost_ = false;
  std::string positions_lost_why_;
  std::uint64_t unsynchronised_reports_ = 0;
  std::uint64_t unsynchronised_interrupts_ = 0;
  std::uint64_t odd_lengths_ = 0;
};

}  // namespace citcat
