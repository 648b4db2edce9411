#pragma once
// What is written, in memory.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/io/byte_sink.h"

namespace citcat {

class VectorSink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> bytes) override {
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  void finish() override {}
  std::vector<std::uint8_t> all;
};

}  // namespace citcat
