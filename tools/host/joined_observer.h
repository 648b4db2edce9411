#pragma once
// Two observers of a replay as one.

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"

namespace citcat::tools {

/// With the interest of the first alone: what the first receives does not depend on the second,
/// which receives the same.
class JoinedObserver final : public Observer {
 public:
  /// Both must outlive the object.
  JoinedObserver(Observer& first, Observer& second) : first_(first), second_(second) {}

  Interest interest() const override { return first_.interest(); }
  Interest interest_from(std::uint64_t instruction) override {
    return first_.interest_from(instruction);
  }
  void watch(const Machine& machine) override {
    first_.watch(machine);
    second_.watch(machine);
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    first_.instruction(e, now);
    second_.instruction(e, now);
  }
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override {
    first_.iterations(first, count, step, now);
    second_.iterations(first, count, step, now);
  }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override {
    first_.ran(blocks, first, count);
    second_.ran(blocks, first, count);
  }
  void counted(const ExecutedBlock& block, std::uint64_t executions) override {
    first_.counted(block, executions);
  }
  void passed(std::uint64_t from, std::uint64_t to) override {
    first_.passed(from, to);
    second_.passed(from, to);
  }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override { first_.fetch(a, size, now); }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    first_.read(a, size, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    first_.write(a, bytes, kind, now);
  }
  void mapping(LinearAddr page, PhysAddr frame, Position now) override {
    first_.mapping(page, frame, now);
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override {
    first_.io_read(port, size, value, now);
    second_.io_read(port, size, value, now);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                Position now) override {
    first_.io_write(port, size, value, now);
    second_.io_write(port, size, value, now);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    first_.delivered(event, now);
    second_.delivered(event, now);
  }
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override {
    first_.external_write(a, bytes, now);
    second_.external_write(a, bytes, now);
  }
  void translation_dropped(LinearAddr page, Position now) override {
    first_.translation_dropped(page, now);
    second_.translation_dropped(page, now);
  }
  void halted(Position now) override {
    first_.halted(now);
    second_.halted(now);
  }
  void cache_flushed(bool write_back, Position now) override {
    first_.cache_flushed(write_back, now);
    second_.cache_flushed(write_back, now);
  }
  void shutdown(Position now) override {
    first_.shutdown(now);
    second_.shutdown(now);
  }
  void address_space(AddressSpaceId cr3, Position now) override {
    first_.address_space(cr3, now);
    second_.address_space(cr3, now);
  }

 private:
  Observer& first_;
  Observer& second_;
};

}  // namespace citcat::tools
