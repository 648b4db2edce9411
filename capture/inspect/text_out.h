#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/io/byte_sink.h"

namespace citcat {

/// Collects text and hands it on in large pieces.
class TextOut {
 public:
  explicit TextOut(ByteSink& sink) : sink_(sink) {}
  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void flush() {
    sink_.write(std::span(reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()));
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;
  ByteSink& sink_;
  std::string text_;
};

}  // namespace citcat
