#pragma once
// Where a replay stands among the transactions that it makes in order, for interrupts that nobody
// counted to.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "events/port_transfers.h"
#include "events/recording.h"
#include "replay/infer/interrupt_evidence.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "replay/verify/cache_follower.h"

namespace citcat {

/// Counts what anchors are made of, and ends a run at the first access that the bus shows behind a
/// given anchor only.
class AnchorGate final : public Sink {
 public:
  struct Progress {
    std::uint64_t writes = 0, io = 0;  ///< as in BusAnchor
    std::uint64_t stores = 0;          ///< on the bus or not
    /// Addresses of the bytes of data read since the last of these or interrupt, page walks left
    /// out.
    std::vector<std::uint32_t> reads;
  };

  explicit AnchorGate(PortCount ports) : ports_(ports) {}
  void attach(Machine& machine) { machine_ = &machine; }
  void follow_reads() { follows_reads_ = true; }
  /// Of stores only those that pass the cache are on the bus.
  void behind(const CacheFollower& cache) { cache_ = &cache; }
  void set_limit(const BusAnchor* limit) { limit_ = limit; }
  bool closed() const { return closed_; }
  void reopen() { closed_ = false; }
  /// The first address read from a system table since forget_system_reads().
  std::optional<std::uint32_t> first_system_read() const { return first_system_read_; }
  void forget_system_reads() { first_system_read_.reset(); }
  const Progress& progress() const { return progress_; }
  void restore(const Progress& progress) { progress_ = progress; }
  bool at(const BusAnchor& anchor) const {
    return progress_.writes == anchor.writes && progress_.io == anchor.io;
  }
  bool is_table(PhysAddr address) const { return tables_.count(address.page()) != 0; }

  bool wants_reads() const override { return follows_reads_; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) override {
    if (kind == AccessKind::walk) {
      tables_.insert(captured(a) / kPageSize);
      return;
    }
    if (kind == AccessKind::system && !first_system_read_) first_system_read_ = captured(a);
    if (progress_.reads.size() >= InterruptEvidence::kReadBytes) return;
    for (std::uint32_t i = 0; i < size; ++i) progress_.reads.push_back(captured(a.plus32(i)));
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    progress_.reads.clear();
    ++progress_.stores;
    if (cache_ != nullptr && !cache_->writes_through(PhysAddr{captured(a)})) return;
    progress_.writes += bytes.size();
    check();
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t, Position) override {
    access_port(port, size);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t, Position) override {
    access_port(port, size);
  }
  void delivered(const DeliveredEvent& event, Position) override {
    if (event.kind != DeliveredEvent::Kind::exception &&
        event.kind != DeliveredEvent::Kind::software) {
      progress_.reads.clear();
      if (on_delivery_) on_delivery_();
    }
  }
  /// Called when an interrupt is about to be delivered.
  void on_delivery(std::function<void()> call) { on_delivery_ = std::move(call); }

 private:
  std::uint32_t captured(PhysAddr a) const { return machine_->memory().captured(a).low32(); }
  void access_port(std::uint16_t port, std::uint32_t size) {
    progress_.reads.clear();
    progress_.io += ports_.of(port, size);
    check();
  }
  void check() {
    if (limit_ == nullptr) return;
    if (progress_.writes <= limit_->writes && progress_.io <= limit_->io) return;
    closed_ = true;
    throw EvidenceEnd{};
  }

  PortCount ports_;
  Machine* machine_ = nullptr;
  const CacheFollower* cache_ = nullptr;
  std::function<void()> on_delivery_;
  const BusAnchor* limit_ = nullptr;
  bool follows_reads_ = false, closed_ = false;
  Progress progress_;
  std::optional<std::uint32_t> first_system_read_;
  std::unordered_set<std::uint32_t> tables_;  ///< frames of page tables
};

}  // namespace citcat
