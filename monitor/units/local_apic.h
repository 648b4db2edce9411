#pragma once
// Messages that one of several processors sends to others: what is written to the interrupt command
// register of its local APIC.

#include <cstdint>
#include <span>

#include "monitor/bus/record_sink.h"

namespace citcat::monitor {

class LocalApic {
 public:
  explicit LocalApic(RecordSink& sink) : sink_(sink) {}

  /// A store to a device, which may be its own.
  void note_store(std::uint64_t address, std::span<const std::uint8_t> bytes);
  void note_wrmsr(std::uint32_t msr, std::uint32_t low, std::uint32_t high);

 private:
  void send(std::uint32_t command, std::uint32_t destination);

  RecordSink& sink_;
  std::uint32_t destination_ = 0;  ///< the upper half of the command register
};

}  // namespace citcat::monitor
