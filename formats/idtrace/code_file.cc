#include "formats/idtrace/code_file.h"

#include <algorithm>
#include <array>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"

namespace citcat {
namespace {

constexpr std::array<std::uint8_t, 8> kCodeMagic{'C', 'I', 'T', 'C', 'A', 'T', 'B', 'C'};
constexpr std::uint32_t kCodeVersion = 1;
constexpr std::size_t kCodeHeader = kCodeMagic.size() + 4 + 4 + 8;
/// Programs are smaller, and so is the code of those that ran together.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

std::vector<std::uint8_t> read_all(InputStream& input) {
  std::vector<std::uint8_t> bytes;
  for (auto block = input.next_block(); !block.empty(); block = input.next_block()) {
    if (bytes.size() + block.size() > kMaxBytes) {
      throw FormatError(input.name(), bytes.size(), "expected at most 1 GiB of code, found more");
    }
    bytes.insert(bytes.end(), block.begin(), block.end());
  }
  return bytes;
}

}  // namespace

IdtraceCode IdtraceCode::load(const std::string& path, const IdtraceBlocks& blocks) {
  return load(std::make_unique<InputStream>(path), blocks);
}

IdtraceCode IdtraceCode::load(std::unique_ptr<InputStream> input, const IdtraceBlocks& blocks) {
  IdtraceCode code;
  code.blocks_ = &blocks;
  code.name_ = input->name();
  code.bytes_ = read_all(*input);
  const bool ours = code.bytes_.size() >= kCodeMagic.size() &&
                    std::equal(kCodeMagic.begin(), kCodeMagic.end(), code.bytes_.begin());
  if (!ours) return code;
  ByteReader in(code.bytes_, code.name_);
  in.skip(kCodeMagic.size(), "magic");
  const std::uint32_t version = in.u32("version");
  if (version != kCodeVersion) {
    throw FormatError(code.name_, kCodeMagic.size(),
                      "version: expected 1, found " + std::to_string(version));
  }
  const std::uint32_t magic = in.u32("magic");
  if (magic != blocks.magic().original) {
    throw FormatError(code.name_, kCodeMagic.size() + 4,
                      "magic: expected that of " + blocks.name() + ", found another");
  }
  const std::uint64_t hash = in.u64("hash");
  const auto content = std::span(code.bytes_).subspan(kCodeHeader);
  if (hash != hash64(content)) {
    throw FormatError(code.name_, kCodeMagic.size() + 8,
                      "hash: expected that of the code, found another");
  }
  code.find_blocks(kCodeHeader);
  return code;
}

void IdtraceCode::find_blocks(std::size_t at) {
  for (std::size_t i = 0; i < blocks_->size(); ++i) {
    const std::size_t end = at + 1 + (*blocks_)[i].code_bytes();
    if (end > bytes_.size()) {
      throw FormatError(name_, at,
                        "expected the code of " + std::to_string(blocks_->size()) +
                            " blocks, found the end after " + std::to_string(i));
    }
    if (bytes_[at] != 16 && bytes_[at] != 32) {
      throw FormatError(name_, at, "bits: expected 16 or 32, found " + std::to_string(bytes_[at]));
    }
    places_.push_back(at);
    at = end;
  }
  if (at != bytes_.size()) {
    throw FormatError(name_, at, "expected the end after the code of all blocks, found more bytes");
  }
}

std::span<const std::uint8_t> IdtraceCode::code(const IdtraceBlock& block) const {
  const std::uint32_t size = block.code_bytes();
  if (!places_.empty()) {
    return std::span(bytes_).subspan(places_[blocks_->index_of(block)] + 1, size);
  }
  const std::uint32_t at = block.address - blocks_->text_offset();
  if (at > bytes_.size() || size > bytes_.size() - at) {
    throw FormatError(name_, at,
                      "expected " + std::to_string(size) + " bytes of code of the block at " +
                          blocks_->name() + ":" + std::to_string(block.position) +
                          ", found the end");
  }
  return std::span(bytes_).subspan(at, size);
}

unsigned IdtraceCode::bits(const IdtraceBlock& block) const {
  constexpr unsigned kOfIdtrace = 32;  // its programs were those of 32-bit systems
  return places_.empty() ? kOfIdtrace : bytes_[places_[blocks_->index_of(block)]];
}

void IdtraceCodeWriter::add(unsigned bits, std::span<const std::uint8_t> code) {
  bytes_.push_back(static_cast<std::uint8_t>(bits));
  bytes_.insert(bytes_.end(), code.begin(), code.end());
}

std::uint32_t IdtraceCodeWriter::magic() const {
  return static_cast<std::uint32_t>(hash64(bytes_));
}

void IdtraceCodeWriter::write(ByteSink& sink) const {
  ByteWriter header;
  header.bytes(kCodeMagic);
  header.u32(kCodeVersion);
  header.u32(magic());
  header.u64(hash64(bytes_));
  sink.write(header.view());
  if (!bytes_.empty()) sink.write(bytes_);
}

}  // namespace citcat
