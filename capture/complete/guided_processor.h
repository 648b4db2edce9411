#pragma once
// A processor that runs from what its bus shows, and gives the whole address of each access.
// cli/complete implements it with the machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "events/machine/address.h"

namespace citcat {

/// The captured bus as the processor sees it. Each call takes the next cycles of its kind; where
/// they do not fit it throws Contradiction.
class GuidingBus {
 public:
  virtual ~GuidingBus() = default;
  /// Byte number `offset` of the code that begins at the processor's place.
  virtual std::uint8_t code(std::uint32_t offset) = 0;
  virtual void read(PhysAddr address, std::span<std::uint8_t> into) = 0;
  /// Bits of `free`, of the first word, may differ: flags that no manual defines.
  virtual void write(PhysAddr address, std::span<const std::uint8_t> bytes, std::uint16_t free) = 0;
  virtual std::uint32_t port_read(std::uint16_t port, std::uint32_t size) = 0;
  virtual void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value) = 0;
};

/// The run and the bus disagree, or the capture has ended. Passes through the processor, which can
/// only be used again from a mark.
struct Contradiction {
  std::string text;
  std::uint64_t transaction = ~std::uint64_t{0};  ///< that disagrees; all ones: none
  bool ended = false;                             ///< the capture, and nothing disagrees
};

/// Where code is fetched from.
struct CodePlace {
  std::uint16_t segment = 0, offset = 0;
  PhysAddr address() const { return plus(0); }
  /// Offsets wrap within the segment, and addresses at 1 MiB (8086 Family User's Manual, 2.3).
  PhysAddr plus(std::uint32_t bytes) const {
    return PhysAddr{(segment * 16u + ((offset + bytes) & 0xffff)) & 0xfffff};
  }
  CodePlace onward(std::uint32_t bytes) const {
    return {segment, static_cast<std::uint16_t>(offset + bytes)};
  }
  bool operator==(const CodePlace&) const = default;
};

class GuidedProcessor {
 public:
  virtual ~GuidedProcessor() = default;

  /// The offset of the next instruction, or of the repeated one between two iterations.
  virtual CodePlace place() const = 0;
  /// Between two iterations.
  virtual bool in_repeat() const = 0;
  /// Waits for an interrupt.
  virtual bool halted() const = 0;

  /// Whether it left the code that follows it, and with that the bytes in the prefetch queue.
  enum class Jump : std::uint8_t { no, yes, perhaps };
  struct Step {
    std::uint32_t length = 0;        ///< bytes of the instruction
    std::uint32_t prefix_bytes = 0;  ///< of these, before the opcode
    bool begun = false;              ///< its code was read now: not a further iteration
    bool completed = false;          ///< not between two iterations
    bool halted = false;
    Jump jump = Jump::no;  ///< perhaps: a conditional one to the instruction after it
  };
  /// Executes the next instruction, or one iteration of it, with whatever exception it raises.
  virtual Step step(GuidingBus& bus) = 0;
  /// Enters the handler of an interrupt from outside.
  virtual void interrupt(std::uint8_t vector, GuidingBus& bus) = 0;

  /// The processor between two calls, to come back to.
  class Mark {
   public:
    virtual ~Mark() = default;
  };
  virtual std::unique_ptr<Mark> mark() const = 0;
  virtual void return_to(const Mark& mark) = 0;
};

}  // namespace citcat
