#pragma once
// How MMX and SSE instructions make the elements of their results. Private to the room.

#include <Zydis/Zydis.h>

#include <cstdint>
#include <optional>

namespace citcat::flow {

/// Which bytes of its operands make an element of the result. "First" is the operand that receives
/// the result, "second" the other one; elements are numbered from the lowest byte.
struct VectorShape {
  enum class Kind : std::uint8_t {
    both,          ///< element i, of element i of both
    each,          ///< element i, of element i of the second, whose size is `from`; zeros above
    low_both,      ///< element 0, of element 0 of both; the others are kept
    low,           ///< element 0, of element 0 of the second, likewise
    two_low,       ///< elements 0 and 1, of those of the second; the others are kept
    shift,         ///< element i, of element i of the first and of the whole count
    low_of_pairs,  ///< element i, of the low half of element i of both
    neighbours,    ///< of two neighbours, first those of the first, then those of the second
    unpack_low,    ///< elements of both in turn, from the lowest one on
    unpack_high,   ///< the same from the middle on
    compare,       ///< flags, of element 0 of both
    to_integer,    ///< a whole general register, of element 0 of the second
    signs,         ///< of the highest byte of each element: the bits of a general register
  } kind = Kind::both;
  std::uint8_t to = 1;    ///< bytes of an element
  std::uint8_t from = 1;  ///< bytes of an element of the second operand
};

/// nullopt if the instruction has no such shape.
std::optional<VectorShape> vector_shape(ZydisMnemonic mnemonic);

}  // namespace citcat::flow
