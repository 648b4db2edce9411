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

void save_memory_image(const MemoryImage& image, const std::string& path) {
  const bool wide = !image.empty() && image.pages().rbegin()->first * kPageSize >> 32 != 0;
  MemoryFileWriter writer(open_sink(path), wide);
  for (const auto& [number, page] : image.pages()) {
    for (std::uint32_t begin = 0; begin < kPageSize;) {
      if (!page->valid[begin]) {
        ++begin;
        continue;
      }
      std::uint32_t end = begin;
      while (end < kPageSize && page->valid[end]) ++end;
      writer.write(number * kPageSize + begin, std::span(page->data).subspan(begin, end - begin));
      begin = end;
    }
  }
  writer.finish();
}

}  // namespace citcat
