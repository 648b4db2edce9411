#pragma once
// The lines of a cache, or of memory seen in lines, that the code of a block lies in.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>

#include "events/machine/address.h"

namespace citcat {

/// Instructions that follow each other in a line fetch it once, unless they refer to memory in
/// between.
class CodeLines {
 public:
  /// The next instruction: `here` bytes at `first`, and `further` at `rest` in another page; 0:
  /// none. `line_of(PhysAddr)`: what addresses of one line have in common.
  template <class LineOf>
  void add(PhysAddr first, std::uint32_t here, PhysAddr rest, std::uint32_t further,
           LineOf&& line_of) {
    const std::uint32_t before = count();
    add_piece(first, here, line_of);
    if (further != 0) add_piece(rest, further, line_of);
    // Its first line may be the last one of the instruction before.
    const bool same =
        before != 0 && (before == count() || line_of(lines_[before - 1]) == line_of(first));
    const auto behind = static_cast<std::uint16_t>(count());
    of_.back() = {static_cast<std::uint16_t>(same ? before - 1 : before), behind};
    of_.push_back({behind, behind});
  }

  /// Pieces of instructions, each in a page of its own.
  std::uint32_t pieces() const { return pieces_; }
  /// The lines that all pieces lie in, counted for each piece.
  std::uint32_t touches() const { return touches_; }
  /// Calls fetch(a byte of the line, number of the line) for each line in the order of fetching,
  /// and refer(reference, number of the instruction) for the references in between. What is fetched
  /// directly after the same line is left out as far as that is known beforehand.
  template <class Reference, class Fetch, class Refer>
  void run(std::span<const Reference> references, Fetch&& fetch, Refer&& refer) const {
    const PhysAddr* const lines = lines_.data();
    const Lines* const of = of_.data();
    const auto fetch_before = [&](const PhysAddr* line, const PhysAddr* behind) {
      for (; line < behind; ++line) fetch(*line, static_cast<std::uint32_t>(line - lines));
    };
    const PhysAddr* next = lines;  ///< after the one that was used last
    const Reference* r = references.data();
    const Reference* const end = r + references.size();
    while (r != end) {
      const std::uint16_t number = r->instruction;
      fetch_before(next, lines + of[number].behind);
      do {
        refer(*r, number);
      } while (++r != end && r->instruction == number);
      // What follows uses its line again, though it may be the same.
      next = lines + of[number + 1u].first;
    }
    fetch_before(next, lines + lines_.size());
  }
  /// Calls fetch() for instruction `i` alone.
  template <class Fetch>
  void fetch_instruction(std::uint32_t i, Fetch&& fetch) const {
    for (std::uint32_t n = of_[i].first; n < of_[i].behind; ++n) fetch(lines_[n], n);
  }
  /// The first instruction with bytes in that line.
  std::uint32_t instruction_of(std::uint32_t line) const {
    std::uint32_t i = 0;
    while (of_[i].behind <= line) ++i;
    return i;
  }

 private:
  /// The lines of an instruction, as numbers in `lines_`: its first one, and that after its last.
  struct Lines {
    std::uint16_t first, behind;
  };

  std::uint32_t count() const { return static_cast<std::uint32_t>(lines_.size()); }
  template <class LineOf>
  void add_piece(PhysAddr first, std::uint32_t bytes, LineOf&& line_of) {
    ++pieces_;
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const PhysAddr at = first.plus32(i);
      if (i == 0 || line_of(at) != line_of(first.plus32(i - 1))) ++touches_;
      if (lines_.empty() || line_of(lines_.back()) != line_of(at)) lines_.push_back(at);
    }
  }

  std::uint32_t pieces_ = 0, touches_ = 0;
  // For most blocks both lie inside the object, in host cache lines that are loaded already.
  boost::container::small_vector<PhysAddr, 6> lines_;  ///< in the order of fetching; a byte of each
  /// By instruction; and what would follow the last one.
  boost::container::small_vector<Lines, 10> of_{Lines{0, 0}};
};

}  // namespace citcat
