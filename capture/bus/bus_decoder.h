#pragma once
// From pin levels to bus transactions: one decoder for each processor bus, chosen from a table.

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/bus/pins.h"
#include "events/bus_transaction.h"
#include "events/event_count.h"
#include "events/machine/cpu_state.h"
#include "formats/captures/samples.h"

namespace citcat {

/// One bus cycle as the pins showed it, before it is interpreted: for lint and for listings.
struct PinCycle {
  BusOp op = BusOp::code_read;
  std::uint64_t begin = 0;  ///< sample in which status and address appeared
  std::uint64_t end = 0;    ///< sample from which the data was taken
  PhysAddr address;         ///< or port
  std::uint64_t data = 0;
  std::uint8_t lanes = 1;  ///< bit i: data byte i was driven
  std::uint32_t wait_clocks = 0;
  bool interrupt_request = false;  ///< level of INTR at its begin, when probed
};

/// When the levels of the pins are taken.
enum class ClockEdge : std::uint8_t {
  rising,   ///< at the first sample with CLK high, data at the last one
  falling,  ///< the same with CLK inverted
  every,    ///< every sample is one clock: an analyser clocked by the machine
};

/// Which channel is which pin, in the order of BusDescription::pins.
struct PinAssignment {
  std::vector<PinChoice> pins;
  ClockEdge edge = ClockEdge::rising;
  std::uint32_t address_mask = 0xffffffff;  ///< address bits that were captured
  unsigned clocks_per_state = 0;     ///< periods of the probed clock in a bus state; 0: the usual
  CpuModel cpu = CpuModel::unknown;  ///< one of the bus's
};

struct BusDescription;

/// The channels of a capture as one bus sees them.
struct PinSet {
  const BusDescription& bus;
  const PinAssignment& assignment;

  /// Where the pin with this name is; it must be one of bus.pins().
  const PinChoice& pin(const std::string& name) const;
  bool has(const std::string& name) const { return pin(name).channel >= 0; }
  /// Gathers the named pins, the first one in bit 0.
  PinGather gather(const std::vector<std::string>& names) const;
  /// Gathers pins `stem``first`..`stem``last`, the first one in bit 0.
  PinGather gather(const std::string& stem, int first, int last) const;
  /// The bits, of those given, whose pins were not captured: of active-low inputs, to be taken as
  /// high.
  std::uint64_t absent(std::initializer_list<std::pair<const char*, unsigned>> bits) const;
};

class BusDecoder {
 public:
  virtual ~BusDecoder() = default;
  BusDecoder() = default;
  BusDecoder(const BusDecoder&) = delete;
  BusDecoder& operator=(const BusDecoder&) = delete;

  /// Takes the next samples. Throws FormatError, with the sample's number as the offset, for
  /// levels that no processor of this kind can show.
  virtual void decode(const SampleBlock& block) = 0;
  /// No more samples: what can be completed is.
  virtual void finish() = 0;
  /// Hands out what is complete, in bus order; false when more samples are needed.
  virtual bool take(BusTransaction& out) = 0;

  virtual bool has_positions() const { return false; }
  /// What the positions of transactions count.
  virtual CountUnit counts() const { return CountUnit::instructions; }
  /// Oddities so far, one line each.
  virtual std::vector<std::string> warnings() const { return {}; }

  /// Called with every completed cycle, in order.
  std::function<void(const PinCycle&)> on_cycle;
};

/// One row of the table of buses.
struct BusDescription {
  std::string_view id;           ///< e.g. "8088-max"
  std::string_view description;  ///< one line
  CpuModel cpu;
  std::uint32_t bus_bytes;
  const std::vector<PinDescription>& (*pins)();
  std::uint32_t address_mask;  ///< all address bits of this processor
  ClockEdge edge;              ///< the usual one
  /// Address line that shows low in the rest of the cycle, so that an unconnected probe cannot be
  /// distinguished from a low address; nullptr when there is none.
  const char* dead_line;
  std::unique_ptr<BusDecoder> (*make)(const SampleInfo& samples, const PinSet& pins);
  /// Only a channel map can choose this bus: its pins are also those of another.
  bool by_name_only = false;

  /// True for `cpu`, which is assumed if the processor is not known, and for others with its pins
  /// (CITCAT_PROCESSORS).
  bool is_of(CpuModel model) const;
};

/// All buses, in the order in which an automatic choice prefers them.
std::span<const BusDescription> bus_descriptions();
const BusDescription* find_bus(std::string_view id);

}  // namespace citcat
