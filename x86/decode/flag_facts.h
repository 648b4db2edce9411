#pragma once
// The effects of instructions on the arithmetic flags: the facts that rows of the table of opcodes
// name. Intel SDM vol. 1, appendix A, and vol. 2 for each instruction.

#include <cstdint>

namespace citcat {

inline constexpr std::uint32_t kCf = 0x001, kPf = 0x004, kAf = 0x010, kZf = 0x040, kSf = 0x080,
                               kOf = 0x800;
/// OF SF ZF AF PF CF.
inline constexpr std::uint32_t kArithmeticFlags = kCf | kPf | kAf | kZf | kSf | kOf;

/// Which rule decides the flags that the manuals leave undefined (x86/undefined_flags.h).
enum class FlagRule : std::uint8_t {
  none,  ///< all flags defined, or none touched
  logic,
  shift_left,
  shift_right,
  shift_arithmetic,
  rotate_left,
  rotate_right,
  rotate_carry_left,
  rotate_carry_right,
  set_bits,  ///< D0/6 to D3/6 of an 8088
  double_shift,
  mul,
  imul,
  imul_two_operand,
  div,
  idiv,
  daa,
  das,
  aaa,
  aas,
  aam,
  aad,
  bit_scan,
  bit_test,
};

/// Masks of EFLAGS, of the six arithmetic flags only.
struct FlagFacts {
  FlagRule rule = FlagRule::none;
  std::uint32_t read = 0;     ///< the result depends on them
  std::uint32_t written = 0;  ///< given a value, defined or not; by a shift, unless its count is 0
  std::uint32_t undefined = 0;  ///< those of them whose value no manual defines, for any count
};

/// By the names that the table of opcodes uses.
namespace flag_facts {

inline constexpr std::uint32_t kAll = kArithmeticFlags;

inline constexpr FlagFacts keep{};
inline constexpr FlagFacts arith{FlagRule::none, 0, kAll, 0};
inline constexpr FlagFacts adc{FlagRule::none, kCf, kAll, 0};
inline constexpr FlagFacts inc{FlagRule::none, 0, kAll & ~kCf, 0};
inline constexpr FlagFacts logic{FlagRule::logic, 0, kAll, kAf};
inline constexpr FlagFacts carry{FlagRule::none, 0, kCf, 0};  ///< CLC, STC
inline constexpr FlagFacts cmc{FlagRule::none, kCf, kCf, 0};  ///< ADCX too
inline constexpr FlagFacts adox{FlagRule::none, kOf, kOf, 0};
inline constexpr FlagFacts bits{FlagRule::none, 0, kAll, kAf | kPf};  ///< ANDN, BLSR, BZHI
inline constexpr FlagFacts bextr{FlagRule::none, 0, kAll, kSf | kAf | kPf};
inline constexpr FlagFacts count_zeros{FlagRule::none, 0, kAll, kOf | kSf | kAf | kPf};  ///< TZCNT
inline constexpr FlagFacts test1{FlagRule::none, 0, kAll, kSf | kAf | kPf};              ///< NEC's
inline constexpr FlagFacts decimal{FlagRule::none, 0, kAll, kOf | kSf | kAf | kPf};      ///< NEC's
inline constexpr FlagFacts zero{FlagRule::none, 0, kZf, 0};  ///< LAR, ARPL, CMPXCHG8B
inline constexpr FlagFacts compare_real{FlagRule::none, 0, kZf | kPf | kCf, 0};  ///< FCOMI
inline constexpr FlagFacts sahf{FlagRule::none, 0, kAll & ~kOf, 0};
inline constexpr FlagFacts lahf{FlagRule::none, kAll & ~kOf, 0, 0};
inline constexpr FlagFacts pushf{FlagRule::none, kAll, 0, 0};

// Conditions.
inline constexpr FlagFacts if_o{FlagRule::none, kOf, 0, 0};
inline constexpr FlagFacts if_b{FlagRule::none, kCf, 0, 0};
inline constexpr FlagFacts if_z{FlagRule::none, kZf, 0, 0};
inline constexpr FlagFacts if_be{FlagRule::none, kCf | kZf, 0, 0};
inline constexpr FlagFacts if_s{FlagRule::none, kSf, 0, 0};
inline constexpr FlagFacts if_p{FlagRule::none, kPf, 0, 0};
inline constexpr FlagFacts if_l{FlagRule::none, kSf | kOf, 0, 0};
inline constexpr FlagFacts if_le{FlagRule::none, kZf | kSf | kOf, 0, 0};

// Shifts and rotations: what is undefined depends on the count (flag_effects.h).
inline constexpr FlagFacts shl{FlagRule::shift_left, 0, kAll, kAf | kOf | kCf};
inline constexpr FlagFacts shr{FlagRule::shift_right, 0, kAll, kAf | kOf | kCf};
inline constexpr FlagFacts sar{FlagRule::shift_arithmetic, 0, kAll, kAf | kOf};
inline constexpr FlagFacts rol{FlagRule::rotate_left, 0, kCf | kOf, kOf};
inline constexpr FlagFacts ror{FlagRule::rotate_right, 0, kCf | kOf, kOf};
inline constexpr FlagFacts rcl{FlagRule::rotate_carry_left, kCf, kCf | kOf, kOf};
inline constexpr FlagFacts rcr{FlagRule::rotate_carry_right, kCf, kCf | kOf, kOf};
inline constexpr FlagFacts double_shift{FlagRule::double_shift, 0, kAll, kAll};

inline constexpr std::uint32_t kOfProduct = kSf | kZf | kAf | kPf;
inline constexpr FlagFacts mul{FlagRule::mul, 0, kAll, kOfProduct};
inline constexpr FlagFacts imul{FlagRule::imul, 0, kAll, kOfProduct};
inline constexpr FlagFacts imul2{FlagRule::imul_two_operand, 0, kAll, kOfProduct};
inline constexpr FlagFacts div{FlagRule::div, 0, kAll, kAll};
inline constexpr FlagFacts idiv{FlagRule::idiv, 0, kAll, kAll};
inline constexpr FlagFacts daa{FlagRule::daa, kCf | kAf, kAll, kOf};
inline constexpr FlagFacts das{FlagRule::das, kCf | kAf, kAll, kOf};
inline constexpr FlagFacts aaa{FlagRule::aaa, kAf, kAll, kOf | kSf | kZf | kPf};
inline constexpr FlagFacts aas{FlagRule::aas, kAf, kAll, kOf | kSf | kZf | kPf};
inline constexpr FlagFacts aam{FlagRule::aam, 0, kAll, kOf | kAf | kCf};
inline constexpr FlagFacts aad{FlagRule::aad, 0, kAll, kOf | kAf | kCf};
inline constexpr FlagFacts bit_scan{FlagRule::bit_scan, 0, kAll, kAll & ~kZf};
inline constexpr FlagFacts bit_test{FlagRule::bit_test, 0, kAll & ~kZf, kOf | kSf | kAf | kPf};

}  // namespace flag_facts

}  // namespace citcat
