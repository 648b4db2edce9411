// The integer instructions of BMI1, BMI2, LZCNT, MOVBE and ADX against the processor of the host.

#include "x86/newer_integers.h"

#include <cpuid.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "x86/decode/flag_facts.h"

namespace citcat {
namespace {

bool host_has_all() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBmi1 = 1u << 3, kBmi2 = 1u << 8, kAdx = 1u << 19, kMovbe = 1u << 22,
                     kLzcnt = 1u << 5;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((b & (kBmi1 | kBmi2 | kAdx)) != (kBmi1 | kBmi2 | kAdx)) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kMovbe) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & kLzcnt) != 0;
}

/// One instruction on the host, with `a` and `b` for its sources and the flags before it; the stack
/// pointer first leaves alone what lies below it.
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define ON_HOST(NAME, TEXT)                                                                 \
  NewerIntegerResult NAME(const NewerIntegerInput& in) {                                    \
    std::uint64_t a = in.first, b = in.second, value = in.first, low = 0, f = in.flags;     \
    asm volatile("lea -128(%%rsp), %%rsp\n\tpush %[f]\n\tpopfq\n\tmov %[a], %%rdx\n\t" TEXT \
                 "\n\tpushfq\n\tpop %[f]\n\tlea 128(%%rsp), %%rsp"                          \
                 : [f] "+r"(f), [v] "+r"(value), [l] "+r"(low)                              \
                 : [a] "r"(a), [b] "r"(b)                                                   \
                 : "rdx", "cc", "memory");                                                  \
    return {value, low, static_cast<std::uint32_t>(f)};                                     \
  }

#define BOTH(NAME, TEXT64, TEXT32) \
  ON_HOST(NAME##64, TEXT64)        \
  ON_HOST(NAME##32, TEXT32)
// NOLINTEND(cppcoreguidelines-macro-usage)

BOTH(andn, "andn %[b], %[a], %[v]", "andn %k[b], %k[a], %k[v]")
BOTH(blsi, "blsi %[a], %[v]", "blsi %k[a], %k[v]")
BOTH(blsmsk, "blsmsk %[a], %[v]", "blsmsk %k[a], %k[v]")
BOTH(blsr, "blsr %[a], %[v]", "blsr %k[a], %k[v]")
BOTH(bextr, "bextr %[b], %[a], %[v]", "bextr %k[b], %k[a], %k[v]")
BOTH(bzhi, "bzhi %[b], %[a], %[v]", "bzhi %k[b], %k[a], %k[v]")
BOTH(pext, "pext %[b], %[a], %[v]", "pext %k[b], %k[a], %k[v]")
BOTH(pdep, "pdep %[b], %[a], %[v]", "pdep %k[b], %k[a], %k[v]")
BOTH(mulx, "mulx %[b], %[l], %[v]", "mulx %k[b], %k[l], %k[v]")
BOTH(sarx, "sarx %[b], %[a], %[v]", "sarx %k[b], %k[a], %k[v]")
BOTH(shlx, "shlx %[b], %[a], %[v]", "shlx %k[b], %k[a], %k[v]")
BOTH(shrx, "shrx %[b], %[a], %[v]", "shrx %k[b], %k[a], %k[v]")
BOTH(tzcnt, "tzcnt %[a], %[v]", "tzcnt %k[a], %k[v]")
BOTH(lzcnt, "lzcnt %[a], %[v]", "lzcnt %k[a], %k[v]")
BOTH(adcx, "adcx %[b], %[v]", "adcx %k[b], %k[v]")
BOTH(adox, "adox %[b], %[v]", "adox %k[b], %k[v]")
ON_HOST(tzcnt16, "movzwl %w[v], %k[v]\n\ttzcnt %w[a], %w[v]\n\tmovzwl %w[v], %k[v]")
ON_HOST(lzcnt16, "movzwl %w[v], %k[v]\n\tlzcnt %w[a], %w[v]\n\tmovzwl %w[v], %k[v]")

struct IntegerRow {
  const char* name;
  Operation operation;
  unsigned bits;
  NewerIntegerResult (*on_host)(const NewerIntegerInput&);
  std::uint32_t undefined = 0;
};

constexpr std::uint32_t kOfBits = flag_facts::bits.undefined,
                        kOfCount = flag_facts::count_zeros.undefined,
                        kOfField = flag_facts::bextr.undefined;
constexpr IntegerRow kIntegerRows[] = {
    {"ANDN", Operation::andn, 64, andn64, kOfBits},
    {"ANDN", Operation::andn, 32, andn32, kOfBits},
    {"BLSI", Operation::blsi, 64, blsi64, kOfBits},
    {"BLSI", Operation::blsi, 32, blsi32, kOfBits},
    {"BLSMSK", Operation::blsmsk, 64, blsmsk64, kOfBits},
    {"BLSMSK", Operation::blsmsk, 32, blsmsk32, kOfBits},
    {"BLSR", Operation::blsr, 64, blsr64, kOfBits},
    {"BLSR", Operation::blsr, 32, blsr32, kOfBits},
    {"BEXTR", Operation::bextr, 64, bextr64, kOfField},
    {"BEXTR", Operation::bextr, 32, bextr32, kOfField},
    {"BZHI", Operation::bzhi, 64, bzhi64, kOfBits},
    {"BZHI", Operation::bzhi, 32, bzhi32, kOfBits},
    {"PEXT", Operation::pext, 64, pext64},
    {"PEXT", Operation::pext, 32, pext32},
    {"PDEP", Operation::pdep, 64, pdep64},
    {"PDEP", Operation::pdep, 32, pdep32},
    {"MULX", Operation::mulx, 64, mulx64},
    {"MULX", Operation::mulx, 32, mulx32},
    {"SARX", Operation::sarx, 64, sarx64},
    {"SARX", Operation::sarx, 32, sarx32},
    {"SHLX", Operation::shlx, 64, shlx64},
    {"SHLX", Operation::shlx, 32, shlx32},
    {"SHRX", Operation::shrx, 64, shrx64},
    {"SHRX", Operation::shrx, 32, shrx32},
    {"TZCNT", Operation::tzcnt, 64, tzcnt64, kOfCount},
    {"TZCNT", Operation::tzcnt, 32, tzcnt32, kOfCount},
    {"TZCNT", Operation::tzcnt, 16, tzcnt16, kOfCount},
    {"LZCNT", Operation::lzcnt, 64, lzcnt64, kOfCount},
    {"LZCNT", Operation::lzcnt, 32, lzcnt32, kOfCount},
    {"LZCNT", Operation::lzcnt, 16, lzcnt16, kOfCount},
    {"ADCX", Operation::adcx, 64, adcx64},
    {"ADCX", Operation::adcx, 32, adcx32},
    {"ADOX", Operation::adox, 64, adox64},
    {"ADOX", Operation::adox, 32, adox32},
};

class RandomInput {
 public:
  NewerIntegerInput next(unsigned bits) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
    constexpr std::uint32_t kAlways = 0x202;
    return {number() & mask, number() & mask, bits,
            kAlways | (static_cast<std::uint32_t>(random_()) & kArithmeticFlags)};
  }

 private:
  /// Numbers with few ones or zeros are as frequent as any others.
  std::uint64_t number() {
    const std::uint64_t any = random_();
    switch (random_() % 5) {
      case 0:
        return any & random_() & random_() & random_();
      case 1:
        return ~(any & random_() & random_() & random_());
      case 2:
        return any % 300;
      case 3:
        return any % 2 == 0 ? 0 : ~std::uint64_t{0};
      default:
        return any;
    }
  }
  std::mt19937_64 random_{7};
};

TEST(NewerIntegers, ComputeWhatTheHostsProcessorDoes) {
  if (!host_has_all()) GTEST_SKIP() << "the host's processor lacks BMI1, BMI2, LZCNT, MOVBE or ADX";
  RandomInput random;
  for (const IntegerRow& row : kIntegerRows) {
    for (int i = 0; i < 3000; ++i) {
      const NewerIntegerInput in = random.next(row.bits);
      const NewerIntegerResult host = row.on_host(in), ours = newer_integer(row.operation, in);
      const std::uint32_t compared = kArithmeticFlags & ~row.undefined;
      ASSERT_EQ(ours.value, host.value)
          << row.name << row.bits << " " << in.first << " " << in.second;
      ASSERT_EQ(ours.low, host.low) << row.name << row.bits;
      ASSERT_EQ(ours.flags & compared, host.flags & compared)
          << row.name << row.bits << " " << in.first << " " << in.second;
    }
  }
}

TEST(NewerIntegers, RotationsAndSwapsOfEachSize) {
  const auto made = [](Operation operation, std::uint64_t a, std::uint64_t b, unsigned bits) {
    return newer_integer(operation, {a, b, bits, 2}).value;
  };
  EXPECT_EQ(made(Operation::rorx, 0x12345678, 8, 32), 0x78123456u);
  EXPECT_EQ(made(Operation::rorx, 0x12345678, 32, 32), 0x12345678u);
  EXPECT_EQ(made(Operation::rorx, 0x123456789abcdef0, 4, 64), 0x0123456789abcdefu);
  EXPECT_EQ(made(Operation::movbe, 0x1234, 0, 16), 0x3412u);
  EXPECT_EQ(made(Operation::movbe, 0x12345678, 0, 32), 0x78563412u);
  EXPECT_EQ(made(Operation::movbe, 0x123456789abcdef0, 0, 64), 0xf0debc9a78563412u);
}

}  // namespace
}  // namespace citcat
