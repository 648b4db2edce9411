#include "monitor/qemu/probe.h"

#include <cstdio>
#include <string>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/qemu/monitor.h"

namespace citcat::monitor {
namespace {

bool write_file(const std::string& path, const void* data, std::size_t size) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(data, 1, size, file) == size;
  return std::fclose(file) == 0 && written;
}

}  // namespace

void write_probe() {
  const std::string text = monitor->now->registers.dump();
  const std::string& path = monitor->options.probe;
  const GuestMemory& memory = monitor->memory;
  const bool good =
      write_file(path + ".txt", text.data(), text.size()) &&
      write_file(path + ".bin", memory.live(monitor->window), CITCAT_WINDOW_MIN_BYTES) &&
      write_file(path + ".ram", memory.live(0), memory.low_bytes());
  monitor->sink.say(good ? "probe written" : "error the probe could not be written");
}

}  // namespace citcat::monitor
