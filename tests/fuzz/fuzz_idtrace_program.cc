// The readers of IDtrace's `.blk`, `.cnt` and of the code beside them, on any bytes: the size of
// the first and of the second, 16 bits each, then the three one after another. Blocks that are
// accepted must come out of IdtraceBlockWriter as they went in.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"
#include "formats/idtrace/count_file.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"
#include "unit/vector_sink.h"

namespace {

using Bytes = std::span<const std::uint8_t>;

std::unique_ptr<citcat::InputStream> stream(Bytes bytes) {
  return std::make_unique<citcat::InputStream>(bytes, "input");
}

void write_again(const citcat::IdtraceBlocks& blocks) {
  citcat::IdtraceBlockWriter writer;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const citcat::IdtraceBlock& block = blocks[i];
    if (block.instructions.size() > citcat::kIdtraceMaxWritten) return;
    if (writer.add(block.address, block.instructions) != block.position) std::abort();
    if (blocks.at(block.position) != &block) std::abort();
  }
  citcat::VectorSink sink;
  writer.write(sink, blocks.text_offset(), blocks.magic());
  const auto again = citcat::IdtraceBlocks::load(stream(sink.all));
  if (again.size() != blocks.size() || again.magic() != blocks.magic()) std::abort();
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (again[i].instructions != blocks[i].instructions) std::abort();
  }
}

void read_all(Bytes block_file, Bytes count_file, Bytes code_file) {
  citcat::looks_like_idtrace_blocks(block_file, true);
  citcat::looks_like_idtrace_blocks(block_file, false);
  const auto blocks = citcat::IdtraceBlocks::load(stream(block_file));
  write_again(blocks);
  try {
    citcat::IdtraceCounts::load(stream(count_file), blocks.size()).require(blocks, "input");
  } catch (const citcat::FormatError&) {
  }
  const auto code = citcat::IdtraceCode::load(stream(code_file), blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (code.code(blocks[i]).size() != blocks[i].code_bytes()) std::abort();
    if (code.bits(blocks[i]) != 16 && code.bits(blocks[i]) != 32) std::abort();
  }
}

/// Two bytes, the lowest first.
std::size_t size_at(const std::uint8_t* bytes) {
  return static_cast<std::size_t>(bytes[0] | bytes[1] << 8);
}

}  // namespace

CITCAT_FUZZ_TARGET(idtrace_program) {
  if (size < 4) return 0;
  const Bytes rest(data + 4, size - 4);
  const std::size_t first = std::min(size_at(data), rest.size());
  const std::size_t second = std::min(size_at(data + 2), rest.size() - first);
  try {
    read_all(rest.first(first), rest.subspan(first, second), rest.subspan(first + second));
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
