#include "formats/io/hash.h"

#include <xxhash.h>
#if defined(__x86_64__)
// The same functions for the widest registers that the processor has.
#include <xxh_x86dispatch.h>
#endif

#include <new>

namespace citcat {

namespace {

Hash128 from_library(XXH128_hash_t hash) { return {hash.low64, hash.high64}; }

}  // namespace

struct Hasher128::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3;
};

std::string Hash128::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

Hash128 hash128(std::span<const std::uint8_t> bytes) {
  return from_library(XXH3_128bits(bytes.data(), bytes.size()));
}

std::uint64_t hash64(std::span<const std::uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hasher128::Hasher128() : state_(std::make_unique<State>()) {
  state_->xxh3.reset(XXH3_createState());
  if (!state_->xxh3) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh3.get());
}

Hasher128::~Hasher128() = default;

void Hasher128::update(std::span<const std::uint8_t> bytes) {
  XXH3_128bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
}

Hash128 Hasher128::value() const { return from_library(XXH3_128bits_digest(state_->xxh3.get())); }

}  // namespace citcat
