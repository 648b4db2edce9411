#pragma once
// What the bus unit of a processor of 16 bits makes of what it executes: fetches ahead into a queue
// of bytes, cycles of the width of the bus, and the reports of the queue's status, clock by clock.
// With wait states, idle clocks and other masters at random.

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "events/bus_transaction.h"
#include "golden/pins/model_processor.h"

namespace citcat::testing {

struct BusUnitTraits {
  unsigned bus_bytes = 1, queue_bytes = 4;
  bool has_queue_status = true;
  bool has_waits = true;
  bool empties_at_first = true;  ///< the queue, before the first fetch
};

enum class ClockPhase : std::uint8_t { idle, t1, t2, wait, t3, t4 };
enum class QueueReport : std::uint8_t { none, first_byte, emptied, further_byte };

/// A period of CLK.
struct PinClock {
  std::size_t cycle = 0;  ///< of BusUnit::cycles, but of an idle one
  ClockPhase phase = ClockPhase::idle;
  QueueReport queue = QueueReport::none;
  bool locked = false;
  bool held = false;     ///< another master has the bus
  bool request = false;  ///< INTR
};

class BusUnit {
 public:
  /// Fetches from `memory`, first from `start`.
  BusUnit(const BusUnitTraits& traits, const std::vector<std::uint8_t>& memory, std::uint32_t start,
          unsigned seed);

  void run(const ModelStep& step);
  /// Another master has the bus for some clocks.
  void hold();
  /// Some clocks in which nothing happens.
  void idle(unsigned clocks);

  std::vector<PinClock> clocks;
  std::vector<BusTransaction> cycles;

 private:
  struct Queued {
    std::uint64_t ready = 0;  ///< clock from which on it can be taken
  };

  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::size_t append(const BusTransaction& cycle, bool locked);
  void fetch();
  void fetch_ahead();
  void take(QueueReport kind);
  void report(QueueReport kind, std::size_t not_before);
  void access(const ModelAccess& access, bool locked);
  void jump(std::uint32_t to);

  BusUnitTraits traits_;
  const std::vector<std::uint8_t>& memory_;
  std::mt19937_64 random_;
  std::deque<Queued> queue_;
  std::uint32_t fetched_;
  std::size_t next_report_ = 0;  ///< no report is before this clock
  std::size_t last_begin_ = 0;   ///< of the last cycle
  std::size_t unit_free_ = 0;    ///< the execution unit waits until this clock
};

}  // namespace citcat::testing
