#pragma once
// Decoders of buses with a clock: the samples are cut into clock periods, so that it does not
// matter how many samples the analyser took of each.

#include <cstdint>
#include <span>
#include <vector>

#include "capture/bus/bus_decoder.h"

namespace citcat {

class ClockedDecoder : public BusDecoder {
 public:
  void decode(const SampleBlock& block) final;
  void finish() final;

 protected:
  /// The pin named `clock_pin` cuts the periods, unless the assignment wants every sample.
  ClockedDecoder(const SampleInfo& samples, const PinSet& pins, const std::string& clock_pin);

  /// One clock period: `before` is the last sample of its inactive phase, `first` and `last` are
  /// the first and the last one of its active phase (all three are the same for one sample a
  /// clock), `begin` is the number of the first, `end` that of the first sample after the phase.
  struct Period {
    const std::uint8_t* before;
    const std::uint8_t* first;
    const std::uint8_t* last;
    std::uint64_t begin;
    std::uint64_t end;
  };
  virtual void clock(const Period& period) = 0;
  /// After the last period.
  virtual void end() = 0;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::size_t unit_;
  bool every_;
  PinLevel clock_;  ///< high in the active phase
  bool active_ = false;
  std::uint64_t begin_ = 0, last_number_ = 0;
  // Samples of a phase that reaches into the next block; `last_` is the block's last one in any
  // case.
  std::vector<std::uint8_t> before_, first_, last_;
};

}  // namespace citcat
