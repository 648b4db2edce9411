#pragma once
// Where a value comes from: the instructions that made it, and what came from outside.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"
#include "events/processors/foreign_writes.h"
#include "replay/machine/observer.h"
#include "x86/flow/value_places.h"

namespace citcat {

/// Bytes of memory.
struct SliceMemory {
  PhysAddr physical;
  LinearAddr linear;  ///< 0 where it is not known
  std::uint32_t size = 0;
};

/// By which way a step, or an input, belongs to the slice: the nearest one.
enum class SliceWay : std::uint8_t {
  value = 1,  ///< the value was made of it
  address,    ///< an address on the way was
  control,    ///< a branch on the way went by it
};

struct SliceStep {
  enum class Kind : std::uint8_t { instruction, delivery } kind = Kind::instruction;
  SliceWay way = SliceWay::value;
  Position position;
  LinearAddr linear;
  PhysAddr physical;
  std::vector<std::uint8_t> code;  ///< bytes of the instruction
  int bits = 32;                   ///< of its code segment
  DeliveredEvent event;            ///< of a delivery
  PlaceSet reads, writes;          ///< as far as they matter
  std::vector<SliceMemory> loads, stores;
  PlaceSet undefined;        ///< of `writes`: flags whose value no manual defines
  bool approximate = false;  ///< what it does is not known in detail: everything may count
  /// Numbers of the steps that use what this one wrote; kResult for what was asked for.
  std::vector<std::size_t> used_by;
  static constexpr std::size_t kResult = ~std::size_t{0};
};

struct SliceInput {
  enum class Kind : std::uint8_t {
    image,       ///< memory at the start, as it was first read on the bus
    unknown,     ///< memory at the start that nobody read: its value does not count
    reg,         ///< a register at the start
    port,        ///< a read of a port
    dma,         ///< another bus master's write
    processor,   ///< another processor's write
    interrupt,   ///< an interrupt from outside
    exception,   ///< what an exception's delivery says of it
    clock,       ///< a clock, counter, or other value from inside the processor
    unfinished,  ///< what an instruction left behind that raised an exception
    code,        ///< the bytes of a step
  } kind = Kind::image;
  SliceWay way = SliceWay::value;
  PhysAddr address;        ///< of memory; the number of a port, the vector of an interrupt
  std::uint32_t size = 1;  ///< bytes
  std::string name;        ///< of a register; of a clock, its instruction
  std::optional<std::uint64_t> value;
  std::optional<Position> position;
  std::optional<std::uint64_t> transaction;  ///< the bus showed it by
  std::optional<ForeignWrite> writer;        ///< of another processor
};
/// "image", "port", ...
const char* slice_input_name(SliceInput::Kind kind);
/// "value", "address", "control".
const char* slice_way_name(SliceWay way);

struct SliceQuery {
  Position at;
  PlaceSet places;
  /// Bytes of MMX registers, MM0 where ST(0) is among places: which register of the stack each is
  /// depends on its top at the moment.
  PlaceSet mmx;
  /// Memory, by an address of the process that runs there, or by a physical one.
  struct Bytes {
    LinearAddr linear;
    std::optional<PhysAddr> physical;
    std::uint32_t size = 1;
  };
  std::vector<Bytes> memory;
  bool addresses = true;       ///< also what addresses on the way were made of
  bool stack_pointer = false;  ///< also the stack pointer where it is only an address
  bool control = false;        ///< also what branches on the way went by
  std::uint64_t limit = 1000;  ///< steps; 0: as many as there are
};

struct Slice {
  std::vector<SliceStep> steps;    ///< newest first
  std::vector<SliceInput> inputs;  ///< in the order in which they were met, newest first
  bool complete = true;            ///< else `limit` ended it
  Position reached;                ///< where that was
  PlaceSet open_places;            ///< what was not followed any further
  std::vector<SliceMemory> open_memory;
  std::uint64_t stack_pointer_given = 0;  ///< how often it was an address and not followed
  std::uint64_t exceptions_given = 0;     ///< that they were raised was not followed
  /// How much is known about the stores of other processors.
  enum class Writers : std::uint8_t {
    known,
    no_evidence,  ///< nothing
    no_order,     ///< those that changed what the processor saw
    cut_short,    ///< those before the end of a replay that ended early
  } writers = Writers::known;
};

}  // namespace citcat
