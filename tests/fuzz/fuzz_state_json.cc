// load_state_json() on any bytes.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "events/cpu_state.h"
#include "formats/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/dev/shm/citcat-fuzz-state-" + std::to_string(::getpid());
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return 0;
  std::fwrite(data, 1, size, file);
  std::fclose(file);
  try {
    citcat::load_state_json(path);
  } catch (const citcat::FormatError&) {
  }
  ::unlink(path.c_str());
  return 0;
}
