#include "capture/import/moo_execution.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "capture/bus/cycle_definitions.h"
#include "capture/bus/execution_tracker.h"
#include "capture/bus/hex.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::uint32_t kAddressMask = 0xfffff;
constexpr std::size_t kQueueOfBytes = 4, kQueueOfWords = 6;  // 8086 Family User's Manual, 4-2

// MooCycle::t_state and MooCycle::bus_status.
constexpr std::uint8_t kT1 = 1, kT3 = 3, kTw = 5;
constexpr std::uint8_t kPassiveStatus = 7;
constexpr std::uint8_t kPinHighByte = 1;  ///< BHE#, active low, of MooCycle::pins1

/// S2 to S0 (Intel 8086 data sheet, table "Status").
constexpr std::array<BusOp, 7> kMooOps = {BusOp::interrupt_acknowledge,
                                          BusOp::io_read,
                                          BusOp::io_write,
                                          BusOp::data_read,
                                          BusOp::data_write,
                                          BusOp::halt,
                                          BusOp::code_read};

std::uint32_t register_of(const MooTest& test, std::string_view name) {
  const auto value = test.initial.find(name);
  if (!value) throw FormatError("INIT", 0, "expected the register " + std::string(name));
  return *value;
}

class MooExecution {
 public:
  MooExecution(const MooTest& test, CpuModel cpu, std::uint32_t bus_bytes)
      : test_(test),
        bus_bytes_(bus_bytes),
        tracker_({"cycles", bus_bytes == 2 ? kQueueOfWords : kQueueOfBytes, kAddressMask, true, "",
                  cpu}) {}

  std::vector<BusTransaction> run() {
    begin();
    for (row_ = 0; row_ < test_.cycles.size(); ++row_) follow(test_.cycles[row_]);
    end();
    std::vector<BusTransaction> all;
    for (BusTransaction t; tracker_.take(t);) all.push_back(t);
    return all;
  }

 private:
  void begin() {
    std::vector<std::uint8_t> queue = test_.initial.queue.value_or(std::vector<std::uint8_t>{});
    const bool takes_first = !test_.cycles.empty() && is_taken(test_.cycles.front());
    // Tests that begin with an empty queue have taken the first byte just before.
    if (queue.empty() && takes_first) queue.push_back(test_.cycles.front().queue_byte);
    const PhysAddr segment{register_of(test_, "cs") << 4};
    const auto ip = static_cast<std::uint16_t>(register_of(test_, "ip"));
    const std::size_t most = bus_bytes_ == 2 ? kQueueOfWords : kQueueOfBytes;
    if (queue.size() > most) {
      throw FormatError("INIT", 0,
                        "expected at most " + std::to_string(most) + " bytes in the queue, found " +
                            std::to_string(queue.size()));
    }
    tracker_.begin_with({segment, ip, queue}, bus_bytes_);
    const auto behind = static_cast<std::uint16_t>(ip + queue.size());
    next_code_ = segment.plus32(behind).masked32(kAddressMask);
  }

  static bool is_taken(const MooCycle& cycle) {
    const auto status = static_cast<QueueStatus>(cycle.queue_op & 3);
    return status == QueueStatus::first_byte || status == QueueStatus::next_byte;
  }

  void follow(const MooCycle& cycle) {
    const bool begins = cycle.t_state == kT1 && cycle.bus_status < kMooOps.size();
    const bool goes_on = row_ == 0 && cycle.t_state > kT1 && cycle.bus_status < kMooOps.size();
    if (begins) begin_cycle(cycle);
    if (goes_on) begin_before(cycle);
    const bool transfers = cycle.t_state == kT3 || cycle.t_state == kTw;
    // The status is passive where the cycle needs no more wait states.
    if (open_ && transfers && cycle.bus_status == kPassiveStatus) end_cycle(cycle);
    take_from_queue(cycle);
  }

  void take_from_queue(const MooCycle& cycle) {
    if (is_taken(cycle)) {
      const std::vector<std::uint8_t> held = tracker_.queue();
      if (!held.empty() && held.front() != cycle.queue_byte) {
        throw FormatError("cycles", row_,
                          "expected the byte " + hex(held.front(), 2) +
                              " from the queue, as it was fetched, found " +
                              hex(cycle.queue_byte, 2));
      }
    }
    tracker_.queue_status(static_cast<QueueStatus>(cycle.queue_op & 3), row_);
  }

  void begin_cycle(const MooCycle& cycle) {
    open(kMooOps[cycle.bus_status], PhysAddr{cycle.address}.masked32(kAddressMask),
         (cycle.pins1 & kPinHighByte) == 0);
  }

  /// The first row shows a later state of a cycle: the one that fetches what comes after the
  /// queue.
  void begin_before(const MooCycle& cycle) {
    if (kMooOps[cycle.bus_status] != BusOp::code_read) {
      throw FormatError("cycles", row_,
                        "expected the first state of a bus cycle, found a later "
                        "one of " +
                            std::string(bus_op_name(kMooOps[cycle.bus_status])));
    }
    open(BusOp::code_read, next_code_, true);
  }

  void open(BusOp op, PhysAddr address, bool high_byte) {
    BusTransaction t;
    t.op = op;
    t.clock = row_;
    t.flags = kClockKnown;
    const bool moves_data = op != BusOp::interrupt_acknowledge && op != BusOp::halt;
    if (moves_data) {
      const bool odd = address.offset_in(2) != 0;
      if (bus_bytes_ == 2 && odd && !high_byte) {
        throw FormatError(
            "cycles", row_,
            "expected BHE# or an even address, found neither at " + hex(address.value, 5));
      }
      t.address = address;
      t.size = bus_bytes_ == 2 && high_byte && !odd ? 2 : 1;
    }
    opened_ = t;
    tracker_.begin_cycle(t);
    open_ = true;
  }

  void end_cycle(const MooCycle& cycle) {
    const std::array<std::uint8_t, 2> lanes = {static_cast<std::uint8_t>(cycle.data),
                                               static_cast<std::uint8_t>(cycle.data >> 8)};
    const bool odd_lane = bus_bytes_ == 2 && opened_.address.offset_in(2) != 0;
    const auto bytes = std::span(lanes).subspan(odd_lane ? 1 : 0);
    tracker_.end_cycle(bytes.first(opened_.size == 2 ? 2 : 1), row_);
    open_ = false;
    const bool is_last = row_ + 1 == test_.cycles.size();
    if (is_last && opened_.op == BusOp::code_read) fetched_last_ = opened_.size;
  }

  void end() {
    const bool halted = std::any_of(test_.cycles.begin(), test_.cycles.end(), [](const auto& c) {
      return c.t_state == kT1 && c.bus_status < kMooOps.size() &&
             kMooOps[c.bus_status] == BusOp::halt;
    });
    if (!halted && !tracker_.queue().empty()) {
      tracker_.queue_status(QueueStatus::first_byte, test_.cycles.size());
    }
    std::vector<std::uint8_t> left = tracker_.queue();
    left.resize(left.size() - std::min(left.size(), fetched_last_));
    if (test_.final.queue && *test_.final.queue != left) {
      throw FormatError("FINA", 0,
                        "expected the queue that the rows leave (" + text(left) + "), found " +
                            text(*test_.final.queue));
    }
    tracker_.finish();
  }

  static std::string text(const std::vector<std::uint8_t>& bytes) {
    std::string all;
    for (const std::uint8_t byte : bytes) all += (all.empty() ? "" : " ") + hex(byte, 2);
    return all.empty() ? "nothing" : all;
  }

  const MooTest& test_;
  std::uint32_t bus_bytes_;
  ExecutionTracker tracker_;
  std::size_t row_ = 0;
  bool open_ = false;
  BusTransaction opened_;
  std::size_t fetched_last_ = 0;  ///< bytes that would enter the queue after the last row
  PhysAddr next_code_;
};

}  // namespace

std::vector<BusTransaction> executed_transactions(const MooTest& test, CpuModel cpu,
                                                  std::uint32_t bus_bytes) {
  return MooExecution(test, cpu, bus_bytes).run();
}

}  // namespace citcat
