#pragma once
// Pin-level generators, one a bus: they draw the waveforms of given transactions, after the timing
// diagrams of the data sheets, with random wait states, idle states, pipelining, back-offs and
// interrupted bursts.

#include <memory>
#include <vector>

#include "tests/unit/capture/bus/bus_traffic.h"
#include "tests/unit/capture/bus/wave.h"

namespace citcat::test {

using Traffic = std::vector<BusTransaction>;

// What the processor asks for, as its pins say it. Copied from the data sheets, not from the
// decoder.

/// S2, S1, S0 as bits 2, 1, 0 (Intel 8086 data sheet, table "Status").
inline unsigned status_8086(BusOp op) {
  switch (op) {
    case BusOp::interrupt_acknowledge:
      return 0;
    case BusOp::io_read:
      return 1;
    case BusOp::io_write:
      return 2;
    case BusOp::halt:
      return 3;
    case BusOp::code_read:
      return 4;
    case BusOp::data_read:
      return 5;
    default:
      return 6;
  }
}

/// M/IO#, D/C#, W/R# of the i486 and the Pentium as bits 2, 1, 0 (i486 data sheet, table "Bus cycle
/// definition").
inline unsigned definition_486(BusOp op) {
  switch (op) {
    case BusOp::interrupt_acknowledge:
      return 0;
    case BusOp::halt:
    case BusOp::shutdown:
    case BusOp::flush:
    case BusOp::instruction_start:  // as a branch trace message
      return 1;
    case BusOp::io_read:
      return 2;
    case BusOp::io_write:
      return 3;
    case BusOp::code_read:
      return 4;
    case BusOp::data_read:
      return 6;
    default:
      return 7;
  }
}

std::unique_ptr<Wave> draw_8086_max(const Traffic& traffic, unsigned bus_bytes, Random& random);
std::unique_ptr<Wave> draw_8086_min(const Traffic& traffic, unsigned bus_bytes, Random& random);
std::unique_ptr<Wave> draw_286(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_386sx(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_386dx(const Traffic& traffic, Random& random);
std::unique_ptr<Wave> draw_486(const Traffic& traffic, Random& random);
/// Branch trace messages of a Pentium with and without its BT pins, and those of an AMD-K5.
/// `completions`, `branches`: IU and IV, or IBT, have been high as often as the position of each
/// acknowledge says before it begins.
enum class Tracing : std::uint8_t { low_bits, no_low_bits, k5, completions, branches };
std::unique_ptr<Wave> draw_pentium(const Traffic& traffic, Tracing tracing, Random& random);

}  // namespace citcat::test
