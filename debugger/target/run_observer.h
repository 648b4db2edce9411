#pragma once
// The observer of the timeline's session: passes what it receives to the current listener.

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"

namespace citcat {

class RunObserver final : public Observer {
 public:
  /// Null: there is no listener, and ordinary code passes at full speed. `code`: how it receives
  /// plain code.
  void set_listener(Observer* listener, Detail code) {
    listener_ = listener;
    code_ = code;
  }
  /// While it is deaf, the listener hears nothing (TimelineOptions::again).
  void set_deaf(bool deaf) { deaf_ = deaf; }
  const Machine* machine() const { return machine_; }

  Interest interest() const override { return {.code = Detail::blocks}; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  Interest interest_from(std::uint64_t instruction) override {
    return {.code = listens() ? code_ : Detail::nothing, .until = instruction + kAskAgain};
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (listens()) listener_->instruction(e, now);
  }
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override {
    if (listens()) listener_->iterations(first, count, step, now);
  }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override {
    if (listens()) listener_->ran(blocks, first, count);
  }
  void passed(std::uint64_t from, std::uint64_t to) override {
    if (listens()) listener_->passed(from, to);
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override {
    if (listens()) listener_->io_read(port, size, value, now);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                Position now) override {
    if (listens()) listener_->io_write(port, size, value, now);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    if (listens()) listener_->delivered(event, now);
  }
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override {
    if (listens()) listener_->external_write(a, bytes, now);
  }
  void translation_dropped(LinearAddr page, Position now) override {
    if (listener_ != nullptr) listener_->translation_dropped(page, now);
  }
  void halted(Position now) override {
    if (listens()) listener_->halted(now);
  }
  void shutdown(Position now) override {
    if (listens()) listener_->shutdown(now);
  }
  void address_space(AddressSpaceId cr3, Position now) override {
    if (listens()) listener_->address_space(cr3, now);
  }

 private:
  /// The listener may change between two moves: a run that begins asks anew at the latest here.
  static constexpr std::uint64_t kAskAgain = std::uint64_t{1} << 16;

  bool listens() const { return listener_ != nullptr && !deaf_; }

  Observer* listener_ = nullptr;
  bool deaf_ = false;
  Detail code_ = Detail::nothing;
  const Machine* machine_ = nullptr;
};

}  // namespace citcat
