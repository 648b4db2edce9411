#pragma once
// Programs whose pins are drawn: they make every kind of bus cycle, at even and odd addresses.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "golden/pins/model_processor.h"

namespace citcat::testing {

/// Machine code with labels.
class CodeText {
 public:
  void bytes(std::initializer_list<int> list) {
    for (const int byte : list) code_.push_back(static_cast<std::uint8_t>(byte));
  }
  void label(const std::string& name) { labels_[name] = code_.size(); }
  /// An opcode with the distance to a label in a byte, or in a word.
  void near(int opcode, const std::string& to, unsigned distance_bytes = 1);
  std::vector<std::uint8_t> finish() const;

 private:
  struct Fixup {
    std::size_t at = 0;
    unsigned bytes = 1;
    std::string to;
  };
  std::vector<std::uint8_t> code_;
  std::map<std::string, std::size_t> labels_;
  std::vector<Fixup> fixups_;
};

/// Where the program begins, behind the jump at FFFF:0000; and a byte in a buffer that another bus
/// master writes to.
inline constexpr std::uint16_t kProgramSegment = 0xf000, kProgramOffset = 0xe000;
inline constexpr std::uint32_t kForeignBuffer = 0x3060;
/// Its handler counts, and tells an interrupt controller.
inline constexpr std::uint8_t kProgramVector = 8;

/// Puts the program for a processor with these traits, its handlers and the bytes of its ports
/// there. `odd_stack`: words lie at odd addresses. It ends with interrupts disabled, in a HLT.
void load_program(ModelProcessor& processor, const ModelTraits& traits, bool odd_stack);

/// Puts a longer program there, whose code is in pieces all over the memory, with subroutines,
/// loops and data between; each seed makes another one. It ends in the same way.
void load_long_program(ModelProcessor& processor, unsigned seed);

}  // namespace citcat::testing
