#include "events/machine/memory_file.h"

#include <span>

#include "formats/captures/sparse_image.h"
#include "formats/io/error.h"

namespace citcat {

MemoryImage load_memory_image(const std::string& path) {
  MemoryFileReader reader(path);
  MemoryImage image;
  MemoryFileReader::Part part;
  bool any = false;
  while (reader.next(part)) {
    image.set(PhysAddr{part.address}, part.bytes);
    any = true;
  }
  if (!any) throw FormatError(path, 0, "memory image: expected memory, found none");
  return image;
}

}  // namespace citcat
