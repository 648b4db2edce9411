#pragma once
// XXH3-128: the hash behind every integrity check. It finds accidents, not attackers.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace citcat {

/// A 128-bit XXH3 hash value (seed 0, default secret).
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  /// 32 hexadecimal digits, high half first: what `xxhsum -H2` prints.
  std::string hex() const;
};

Hash128 hash128(std::span<const std::uint8_t> bytes);
/// XXH3-64, for structures too small to spend 16 bytes on.
std::uint64_t hash64(std::span<const std::uint8_t> bytes);

/// XXH3-128 of bytes that arrive in pieces; the pieces' borders do not matter.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;

  void update(std::span<const std::uint8_t> bytes);
  /// The hash of everything so far; more may follow.
  Hash128 value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace citcat
