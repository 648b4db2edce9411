#include "bench/replay/guest.h"

#include <fstream>
#include <iterator>

#include "formats/io/error.h"

namespace citcat::bench {

Guest load_guest(const std::string& name) {
  const std::string path = std::string(CITCAT_GUESTS) + "/" + name + ".bin";
  std::ifstream in(path, std::ios::binary);
  Guest guest{name, {std::istreambuf_iterator<char>(in), {}}};
  if (guest.code.empty()) throw IoError(path + ": cannot be read");
  return guest;
}

Recording guest_recording(const Guest& guest) {
  Recording r;
  CpuState& s = r.initial;
  s.model = CpuModel::p6;
  s.cr0 = 0x11;
  s.eip = Guest::kOrigin;
  s.gpr[kEsp] = Guest::kStack;
  s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  s.ram_bytes = Guest::kMemory;
  std::vector<std::uint8_t> page(kPageSize);
  for (std::uint32_t at = 0; at < Guest::kMemory; at += kPageSize) {
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      const std::uint32_t offset = at + i - Guest::kOrigin;
      page[i] = offset < guest.code.size() ? guest.code[offset] : 0;
    }
    r.image.set(PhysAddr{at}, page);
  }
  return r;
}

}  // namespace citcat::bench
