#pragma once
// Behind a write-back cache nobody sees what an interrupt pushes and its handler stores, until
// lines are evicted. Then a line shows where the interrupt was, as far as nothing has been stored
// over it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Follows what interrupts and their handlers left in memory.
class FrameWatch final : public Observer {
 public:
  Interest interest() const override { return Interest::changes().before_judged(); }
  void watch(const Machine& machine) override { machine_ = &machine; }

  /// The interrupt that is delivered next is to be watched, under this number.
  void begin(std::size_t id) { s_.expected = id; }

  struct Byte {
    PhysAddr address;
    std::uint8_t value = 0;
  };
  /// What a line shows of one interrupt.
  struct Found {
    std::size_t id = 0;
    bool returned = false;  ///< the handler has come back
    std::uint64_t age = 0;  ///< instructions and iterations since it was delivered
    std::vector<Byte> bytes;
    /// Bits of the return address among them.
    std::uint64_t eip_mask = 0, eip = 0;
  };
  /// What a line that leaves the cache shows.
  std::vector<Found> written_back(PhysAddr line, std::span<const std::uint8_t> data) const;

  struct Frame {
    std::size_t id = 0;
    bool returned = false;
    std::uint64_t age = 0;
    std::uint16_t cs = 0;  ///< of the code that was interrupted
    std::uint64_t eip = 0, esp = 0;
    std::optional<PhysAddr> eip_at;
    std::uint8_t eip_size = 0;
    /// Bytes left behind, by aligned dwords: bit i is byte i.
    std::unordered_map<std::uint64_t, std::uint8_t> stored;
  };
  /// What is watched, to come back to.
  struct State {
    std::vector<Frame> frames;
    std::optional<std::size_t> expected;  ///< begun, and not delivered yet
    bool delivering = false;
  };
  const State& state() const { return s_; }
  void restore(const State& state) { s_ = state; }
  /// To be called at every boundary: the handler may have come back.
  void at_boundary();

  void delivered(const DeliveredEvent& event, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;

 private:
  const Machine* machine_ = nullptr;
  State s_;
};

}  // namespace citcat
