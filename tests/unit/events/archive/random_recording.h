#pragma once
// Random recordings with every field in use, and their comparison field by field.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "events/recording.h"

namespace citcat::test {

class RandomRecording {
 public:
  explicit RandomRecording(std::uint64_t seed) : random_(seed) {}

  Recording recording();
  BusTransaction transaction(std::uint64_t index);

 private:
  std::uint64_t number(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }
  bool coin() { return number(2) == 0; }
  std::string text();
  Position position() { return {random_() >> number(64), word() >> number(32)}; }
  BusAnchor anchor() { return {number(1000), number(1000), number(100), random_()}; }
  Segment segment();
  void fill_cpu(CpuState& state);
  void fill_image(MemoryImage& image);
  void fill_events(Recording& recording);

  std::mt19937_64 random_;
};

void expect_equal(const Recording& expected, const Recording& found);
void expect_equal(const MemoryImage& expected, const MemoryImage& found);
/// `found` came from an archive: reads and fetches have lost their data.
void expect_equal_evidence(const BusTransaction& expected, const BusTransaction& found);

}  // namespace citcat::test
