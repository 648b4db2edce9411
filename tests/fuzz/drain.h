#pragma once
// What fuzz targets do with a source of samples: read it to its end or to its error.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat::fuzz {

/// Opens and reads everything; only citcat's own exceptions are allowed out of a reader.
template <typename Open>
void drain_samples(Open open) {
  try {
    const std::unique_ptr<SampleSource> source = open();
    SampleBlock block;
    while (source->next(block)) {
      CITCAT_ASSERT(!block.bytes.empty());
      CITCAT_ASSERT(block.bytes.size() % source->info().unit_bytes == 0);
    }
    source->warnings();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
}

inline std::unique_ptr<InputStream> stream(const std::uint8_t* data, std::size_t size) {
  return std::make_unique<InputStream>(std::span<const std::uint8_t>(data, size), "fuzz");
}

}  // namespace citcat::fuzz
