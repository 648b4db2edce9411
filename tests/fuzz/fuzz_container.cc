// ContainerReader, scan_container() and salvage_container() on any bytes. A chunk counts only with
// the right hashes, which no mutation finds; so wherever the bytes look like a header, its hashes
// are made right first.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "events/archive/container.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

namespace {

constexpr std::size_t kFileHeaderBytes = 24;
constexpr std::size_t kChunkHeaderBytes = 56;

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// Rewrites the hashes of everything that begins like a chunk.
void repair_hashes(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kFileHeaderBytes) return;
  put(bytes, 16, citcat::hash64(std::span(bytes).first(16)));
  for (std::size_t at = kFileHeaderBytes; at + kChunkHeaderBytes <= bytes.size(); ++at) {
    if (bytes[at] != 0xc7 || bytes[at + 1] != 'C' || bytes[at + 2] != 'K') continue;
    std::uint64_t stored = 0;
    for (std::size_t i = 0; i < 8; ++i) stored |= std::uint64_t{bytes[at + 16 + i]} << (8 * i);
    if (stored > bytes.size() - at - kChunkHeaderBytes) continue;
    const citcat::Hash128 hash = citcat::hash128(
        std::span(bytes).subspan(at + kChunkHeaderBytes, static_cast<std::size_t>(stored)));
    put(bytes, at + 32, hash.low);
    put(bytes, at + 40, hash.high);
    put(bytes, at + 48, citcat::hash64(std::span(bytes).subspan(at, 48)));
  }
}

void read_all(const std::string& path) {
  try {
    const citcat::ContainerReader reader(path);
    for (const citcat::ChunkInfo& chunk : reader.chunks()) reader.read(chunk);
  } catch (const citcat::FormatError&) {
  }
}

void salvage(const std::string& path) {
  const citcat::fuzz::FileInMemory saved;
  try {
    citcat::salvage_container(path, saved.path());
    if (!citcat::scan_container(saved.path()).sound()) std::abort();
  } catch (const citcat::FormatError&) {
  }
}

}  // namespace

CITCAT_FUZZ_TARGET(container) {
  std::vector<std::uint8_t> bytes(data, data + size);
  repair_hashes(bytes);
  const citcat::fuzz::FileInMemory file(bytes);
  read_all(file.path());
  salvage(file.path());
  return 0;
}
