#pragma once
// Where in the life of the machine something happens: which process, at which level, within which
// interrupts.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "events/address.h"
#include "events/position.h"
#include "replay/machine/observer.h"

namespace citcat {
class Machine;
}

namespace citcat::tools {

/// Kept by the host, which tells it what happens; read by scope and tools. Deliveries are followed
/// by where their frames lie, not by counting: an IRET closes the delivery that pushed the frame it
/// pops, and goes back to what was open when that was delivered. Where the kernel switches tasks
/// within a handler, what follows counts as part of it up to the next IRET.
class Context {
 public:
  /// An open exception, interrupt or software interrupt.
  struct Open {
    DeliveredEvent::Kind kind = DeliveredEvent::Kind::exception;
    std::uint8_t vector = 0;
    std::uint32_t level = 0;            ///< that it came from
    std::shared_ptr<const Open> outer;  ///< open when it was delivered; may be null
  };

  /// The machine at the moment that is told of: behind the instruction or block, or at the event.
  const Machine& machine() const { return *machine_; }
  /// CR3, which stands for the process.
  std::uint32_t address_space() const { return address_space_; }
  /// The current privilege level, 0 to 3, of what runs.
  std::uint32_t level() const { return level_; }
  /// The innermost delivery that has not returned; null at level 3, and where none is known.
  const Open* open() const { return open_.get(); }
  /// The innermost that is an interrupt from outside, NMI or SMI; null where there is none.
  const Open* interrupt() const;
  /// How many interrupts from outside, NMIs and SMIs are open.
  std::uint32_t interrupt_depth() const;

  // For the host.
  void watch(const Machine& machine);
  /// What runs next, or ran, does so in this state of the machine.
  void refresh();
  void address_space_loaded(std::uint32_t cr3) { address_space_ = cr3; }
  /// The machine stands behind the delivery.
  void delivered(const DeliveredEvent& event);
  /// The machine stands behind an IRET that popped its frame at `frame`.
  void returned(LinearAddr frame);

 private:
  const Machine* machine_ = nullptr;
  std::uint32_t address_space_ = 0;
  std::uint32_t level_ = 0;
  std::shared_ptr<const Open> open_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const Open>> frames_;  ///< by where they lie
};

}  // namespace citcat::tools
