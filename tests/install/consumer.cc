// Uses a type of each installed layer, so that headers, libraries and what they stand on must all
// be found.
#include <events/machine/memory_image.h>
#include <formats/io/error.h>

#include <iostream>

int main() {
  citcat::MemoryImage image;
  image.set(citcat::PhysAddr{0x7c00}, 0xf4);
  if (image.byte(citcat::PhysAddr{0x7c00}) != 0xf4) return 1;
  try {
    throw citcat::FormatError("boot.sr", 12, "expected a sample, found the end");
  } catch (const citcat::Error& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
