#pragma once
// Vectors of exceptions (Intel SDM vol. 3, table 6-1).

namespace citcat::monitor {

inline constexpr unsigned kDebug = 1, kNmi = 2, kInvalidOpcode = 6, kDoubleFault = 8,
                          kTaskSegment = 10, kNotPresent = 11, kStackFault = 12, kProtection = 13,
                          kPageFault = 14;

/// Whether the exception pushes an error code.
inline bool pushes_error_code(unsigned vector) {
  return vector == kDoubleFault || (vector >= kTaskSegment && vector <= kPageFault) ||
         vector == 17 || vector == 21;
}

}  // namespace citcat::monitor
