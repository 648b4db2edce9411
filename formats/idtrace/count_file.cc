#include "formats/idtrace/count_file.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::uint64_t kMostInSet = 0xffffffff;

std::string hex_word(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08xh", value);
  return text.data();
}

}  // namespace

IdtraceCounts IdtraceCounts::load(const std::string& path, std::size_t blocks) {
  return load(std::make_unique<InputStream>(path), blocks);
}

IdtraceCounts IdtraceCounts::load(std::unique_ptr<InputStream> input, std::size_t blocks) {
  IdtraceCounts counts;
  const auto u32 = [&](const char* field) {
    std::array<std::uint8_t, 4> word{};
    input->read_exact(word, field);
    return ByteReader(word, input->name()).u32(field);
  };
  counts.magic.original = u32("magic of the original");
  counts.magic.traced = u32("magic of the traced program");
  counts.executions.resize(blocks);
  while (!input->at_end()) {
    if (blocks == 0) {
      throw FormatError(input->name(), input->offset(),
                        "expected the end, because there are no blocks, found more bytes");
    }
    for (std::uint64_t& block : counts.executions) block += u32("count of a block");
    ++counts.sets;
  }
  return counts;
}

void IdtraceCounts::require(const IdtraceBlocks& blocks, const std::string& name) const {
  if (magic == blocks.magic()) return;
  throw FormatError(name, 0,
                    "magic numbers: expected those of " + blocks.name() + ", " +
                        hex_word(blocks.magic().original) + " " + hex_word(blocks.magic().traced) +
                        ", found " + hex_word(magic.original) + " " + hex_word(magic.traced));
}

void write_idtrace_counts(ByteSink& sink, const IdtraceMagic& magic,
                          std::span<const std::uint64_t> executions) {
  ByteWriter out;
  out.u32(magic.original);
  out.u32(magic.traced);
  std::vector<std::uint64_t> left(executions.begin(), executions.end());
  do {
    for (std::uint64_t& count : left) {
      const std::uint64_t here = std::min(count, kMostInSet);
      out.u32(static_cast<std::uint32_t>(here));
      count -= here;
    }
    sink.write(out.view());
    out.clear();
  } while (std::any_of(left.begin(), left.end(), [](std::uint64_t count) { return count != 0; }));
}

}  // namespace citcat
