// ContainerReader, scan_container() and salvage_container() on any bytes. A chunk counts only with
// the right hashes, which no mutation finds; so wherever the bytes look like a header, its hashes
// are made right first.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "formats/container.h"
#include "formats/error.h"

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
  const std::string saved = path + "-saved";
  try {
    citcat::salvage_container(path, saved);
    if (!citcat::scan_container(saved).sound()) std::abort();
  } catch (const citcat::FormatError&) {
  }
  ::unlink(saved.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // In memory: a container is flushed to the device when it is finished.
  static const std::string path = "/dev/shm/citcat-fuzz-container-" + std::to_string(::getpid());
  std::vector<std::uint8_t> bytes(data, data + size);
  repair_hashes(bytes);
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return 0;
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  read_all(path);
  salvage(path);
  ::unlink(path.c_str());
  return 0;
}
