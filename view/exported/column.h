#pragma once
// A column of numbers of one kind - the address that an instruction accesses, the value that it
// leaves in a register - each foreseen by something that is known before it; what is written is how
// far off that was, which is mostly nothing.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/io/byte_writer.h"

namespace citcat::view {

/// What predicts the next number of a column. Numbers from kFirstInput on: the input of that
/// number, as far off as it was the last time.
enum class Foresight : std::uint8_t {
  last,    ///< the number before it
  stride,  ///< as far from it as that from the one before
};
inline constexpr std::uint8_t kFirstInput = 2;

class Column {
 public:
  /// First all numbers are weighed, to choose what foresees them best. `inputs`: what is known
  /// before the number, always of the same kinds.
  void weigh(std::uint64_t value, std::span<const std::uint64_t> inputs);
  /// Ends the weighing.
  void choose();
  /// Then they are written.
  void write(std::uint64_t value, std::span<const std::uint64_t> inputs);

  std::uint8_t foresight() const { return foresight_; }
  std::span<const std::uint8_t> written() const { return out_.view(); }

 private:
  std::uint64_t foreseen(std::uint8_t by, std::span<const std::uint64_t> inputs) const;
  void remember(std::uint64_t value, std::span<const std::uint64_t> inputs);

  std::vector<std::uint64_t> cost_;         ///< bytes that each would take
  std::vector<std::uint64_t> last_inputs_;  ///< when the last number came
  std::uint64_t last_ = 0, before_ = 0;
  std::uint8_t foresight_ = 0;
  ByteWriter out_;
};

}  // namespace citcat::view
