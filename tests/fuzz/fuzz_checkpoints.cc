// Indexes and payloads of checkpoints, below their hashes: the first byte selects a decoder and
// says how many frames a payload is said to have.

#include <cstdint>

#include "events/archive/checkpoint_series.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(checkpoints) {
  if (size == 0) return 0;
  try {
    citcat::ByteReader in({data + 1, size - 1}, "input");
    if (data[0] % 2 == 0) {
      citcat::decode_checkpoint_index(in);
    } else {
      citcat::decode_checkpoint(in, data[0] / 2U);
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
