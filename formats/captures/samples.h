#pragma once
// The common form of all logic-analyser files: the levels of some named channels at rising sample
// numbers. Readers of such files are SampleSources; bus decoders need to know no more than this.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// Most channels of one capture. The largest analysers have some hundreds.
inline constexpr std::size_t kMaxChannels = 4096;

struct SampleInfo {
  std::string name;                   ///< of the file, for messages
  std::vector<std::string> channels;  ///< bit i of a sample is the level of channels[i]
  std::size_t unit_bytes = 0;         ///< bytes of a sample, at least channels / 8 rounded up
  double sample_rate_hz = 0;          ///< 0 when the file does not say; often rounded text
};

/// Some consecutive samples, oldest first. The spans are valid until the source is asked again.
struct SampleBlock {
  std::uint64_t first = 0;              ///< number of the first sample, from 0
  std::span<const std::uint8_t> bytes;  ///< samples of unit_bytes each, bit i%8 of byte i/8
  /// Sample number of each sample, strictly rising, for files that hold changes only; empty when
  /// the samples are numbered on from `first`. Between two numbers the levels stay.
  std::span<const std::uint64_t> numbers;
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;

  /// Complete before the first next().
  virtual const SampleInfo& info() const = 0;

  /// The next block, never an empty one; false at the clean end. FormatError otherwise.
  virtual bool next(SampleBlock& out) = 0;

  /// What was odd in what has been read so far, one line each: unknown levels, for example.
  virtual std::vector<std::string> warnings() const { return {}; }
};

/// "9.52381 MHz", "1 kHz", "500000" as hertz; 0 for text that is not a rate.
double parse_sample_rate(const std::string& text);

}  // namespace citcat
