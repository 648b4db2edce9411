// Prints the version of the Unicorn library it is linked with, for cmake/FindUnicorn.cmake.
#include <unicorn/unicorn.h>

#include <cstdio>

int main() {
  // The packed form is major, minor, patch, extra from the top byte down. uc_version(&major,
  // &minor) would leave out the patch level.
  const unsigned packed = uc_version(nullptr, nullptr);
  std::printf("%u.%u.%u\n", packed >> 24, (packed >> 16) & 0xff, (packed >> 8) & 0xff);
  return 0;
}
