#include "events/archive/recording_selection.h"

#include <algorithm>
#include <string>
#include <utility>

#include "events/archive/recording_codec.h"
#include "formats/io/byte_writer.h"

namespace citcat {
namespace {

/// Recordings appear in the order of their numbers, so that a number says how many there are.
std::size_t decode_selection(ByteReader& in, std::size_t known) {
  const std::size_t number = in.count("number of a recording", known);
  in.expect_end("the selection of a recording");
  return number;
}

}  // namespace

std::vector<std::uint8_t> encode_selection(std::size_t number) {
  ByteWriter out;
  out.varint(number);
  return out.take();
}

const std::vector<std::size_t>& selections_of(const ContainerReader& container) {
  struct Kept {
    std::string path;
    Hash128 content;
    std::vector<std::size_t> selections;
  };
  thread_local Kept kept;
  if (kept.path == container.path() && kept.content == container.content_hash())
    return kept.selections;
  Kept found{container.path(), container.content_hash(), {}};
  std::size_t recordings = 1;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kSelectChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    found.selections.push_back(decode_selection(in, recordings));
    recordings = std::max(recordings, found.selections.back() + 1);
  }
  kept = std::move(found);
  return kept.selections;
}

}  // namespace citcat
