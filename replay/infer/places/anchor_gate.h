#pragma once
// The place that a replay has reached among the transactions that it makes in order, for interrupts
// without a count.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "events/port_transfers.h"
#include "events/recording.h"
#include "replay/infer/places/interrupt_evidence.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "replay/verify/cache_follower.h"

namespace citcat {

/// Counts the transactions that anchors are made of, and ends a run before the first access that
/// belongs after a given anchor. Where there is a cache, this observer passes everything on to it,
/// because it must ask whether a store goes to the bus before the cache learns of the store.
class AnchorGate final : public Observer {
 public:
  struct Progress {
    std::uint64_t writes = 0, io = 0;  ///< as in BusAnchor
    std::uint64_t stores = 0;          ///< on the bus or not
    /// Addresses of the bytes of data read since the last of these or interrupt, page walks left
    /// out.
    std::vector<std::uint64_t> reads;
  };

  explicit AnchorGate(PortCount ports) : ports_(ports) {}
  void watch(const Machine& machine) override {
    machine_ = &machine;
    if (cache_ != nullptr) cache_->watch(machine);
  }
  /// What it ends; before the run begins.
  void ends(RunControl& control) { control_ = &control; }
  void follow_reads() { follows_reads_ = true; }
  /// Only stores that pass the cache are on the bus.
  void behind(CacheFollower& cache) { cache_ = &cache; }
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

  Interest interest() const override {
    Interest i = Interest::changes();
    i.reads = follows_reads_ || cache_ != nullptr;
    return i.before_judged();
  }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override {
    if (cache_ != nullptr) cache_->fetch(a, size, now);
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    count_read(a, size, kind);
    if (cache_ != nullptr) cache_->read(a, size, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    progress_.reads.clear();
    ++progress_.stores;
    if (cache_ == nullptr || cache_->writes_through(PhysAddr{captured(a)})) {
      progress_.writes += bytes.size();
      if (!may_go_on(now)) return;
    }
    if (cache_ != nullptr) cache_->write(a, bytes, kind, now);
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t, Position now) override {
    access_port(port, size, now);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t, Position now) override {
    access_port(port, size, now);
  }
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override {
    if (cache_ != nullptr) cache_->external_write(a, bytes, now);
  }
  void cache_flushed(bool write_back, Position now) override {
    if (cache_ != nullptr) cache_->cache_flushed(write_back, now);
  }
  void address_space(AddressSpaceId cr3, Position now) override {
    if (cache_ != nullptr) cache_->address_space(cr3, now);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    if (event.kind != DeliveredEvent::Kind::exception &&
        event.kind != DeliveredEvent::Kind::software) {
      progress_.reads.clear();
      if (on_delivery_) on_delivery_();
    }
    if (cache_ != nullptr) cache_->delivered(event, now);
  }
  /// Called when an interrupt is about to be delivered.
  void on_delivery(std::function<void()> call) { on_delivery_ = std::move(call); }

 private:
  std::uint64_t captured(PhysAddr a) const { return machine_->memory().captured(a).value; }
  void count_read(PhysAddr a, std::uint32_t size, AccessKind kind) {
    if (kind == AccessKind::walk) {
      tables_.insert(captured(a) / kPageSize);
      return;
    }
    if (kind == AccessKind::system && !first_system_read_) first_system_read_ = captured(a);
    if (progress_.reads.size() >= InterruptEvidence::kReadBytes) return;
    for (std::uint32_t i = 0; i < size; ++i) progress_.reads.push_back(captured(a.plus32(i)));
  }
  void access_port(std::uint16_t port, std::uint32_t size, Position now) {
    progress_.reads.clear();
    progress_.io += ports_.of(port, size);
    may_go_on(now);
  }
  /// False where the access just counted is after the limit.
  bool may_go_on(Position now) {
    if (limit_ == nullptr) return true;
    if (progress_.writes <= limit_->writes && progress_.io <= limit_->io) return true;
    closed_ = true;
    control_->stop_before(now);
    return false;
  }

  PortCount ports_;
  const Machine* machine_ = nullptr;
  RunControl* control_ = nullptr;
  CacheFollower* cache_ = nullptr;
  std::function<void()> on_delivery_;
  const BusAnchor* limit_ = nullptr;
  bool follows_reads_ = false, closed_ = false;
  Progress progress_;
  std::optional<std::uint32_t> first_system_read_;
  std::unordered_set<FrameNumber> tables_;  ///< frames of page tables
};

}  // namespace citcat
