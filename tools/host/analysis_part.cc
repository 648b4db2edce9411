#include "tools/host/analysis_part.h"

#include <algorithm>
#include <string_view>

#include "formats/io/atomic_file.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/io/input.h"

namespace citcat::tools {

namespace {

constexpr std::string_view kMagic = "CITCATAP";
constexpr std::uint32_t kPartVersion = 3;
constexpr std::uint64_t kMaxText = 1u << 16, kMaxTools = 1u << 10;
constexpr std::size_t kHashBytes = 16;

void put_hash(ByteWriter& out, std::span<const std::uint8_t> bytes) {
  const Hash128 hash = hash128(bytes);
  out.u64(hash.low);
  out.u64(hash.high);
}

}  // namespace

bool is_analysis_part(const std::string& path) {
  try {
    InputStream in(path);
    const auto bytes = in.next_block();
    return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
  } catch (const FormatError&) {
    return false;  // not even compressed as it says
  }
}

void write_analysis_part(const std::string& path, const AnalysisPart& part) {
  ByteWriter out;
  for (const char c : kMagic) out.u8(static_cast<std::uint8_t>(c));
  out.u32(kPartVersion);
  out.string(part.recording);
  out.string(part.identity);
  out.varint(part.tools.size());
  for (const std::string& tool : part.tools) out.string(tool);
  out.string(part.where);
  out.string(part.by);
  out.string(part.window);
  out.varint(part.number);
  out.varint(part.count);
  for (const std::uint64_t n : {part.whole_from, part.whole_to, part.from, part.to}) out.varint(n);
  out.u8(part.stopped ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(part.machine.model));
  out.u32(part.machine.ram_bytes);
  out.u32(part.machine.address_mask);
  out.u8(part.machine.ignores_cd ? 1 : 0);
  out.varint(part.state.size());
  out.bytes(part.state);
  put_hash(out, out.view());
  AtomicFile file(path);
  file.write(out.view());
  file.commit();
}

AnalysisPart parse_analysis_part(std::span<const std::uint8_t> bytes, const std::string& name) {
  ByteReader in(bytes, name);
  const auto magic = in.bytes(kMagic.size(), "magic");
  if (!std::equal(kMagic.begin(), kMagic.end(), magic.begin())) {
    in.fail_at(0, "expected a share of an analysis");
  }
  const std::uint32_t version = in.u32("version");
  if (version != kPartVersion) {
    in.fail_at(kMagic.size(), "expected version " + std::to_string(kPartVersion) + ", found " +
                                  std::to_string(version));
  }
  if (in.remaining() < kHashBytes) in.fail("expected a hash at the end");
  ByteReader tail(bytes.last(kHashBytes), name, bytes.size() - kHashBytes);
  const Hash128 hash = hash128(bytes.first(bytes.size() - kHashBytes));
  if (tail.u64("hash") != hash.low || tail.u64("hash") != hash.high) {
    in.fail_at(bytes.size() - kHashBytes, "the hash is not that of the bytes before it");
  }
  AnalysisPart part;
  part.recording = in.string("hash of the recording", kMaxText);
  part.identity = in.string("identity", kMaxText);
  const std::size_t tools = in.count("number of tools", kMaxTools);
  for (std::size_t i = 0; i < tools; ++i) part.tools.push_back(in.string("tool", kMaxText));
  part.where = in.string("scope", kMaxText);
  part.by = in.string("splits", kMaxText);
  part.window = in.string("windows", kMaxText);
  part.number = static_cast<std::uint32_t>(in.count("number of the share", 0xffffffff));
  part.count = static_cast<std::uint32_t>(in.count("count of shares", 0xffffffff));
  for (std::uint64_t* const n : {&part.whole_from, &part.whole_to, &part.from, &part.to}) {
    *n = in.varint("instruction");
  }
  part.stopped = in.u8("whether it stopped") != 0;
  const std::uint8_t model = in.u8("processor");
  if (model > static_cast<std::uint8_t>(kLastCpuModel)) in.fail("expected a processor");
  part.machine.model = static_cast<CpuModel>(model);
  part.machine.ram_bytes = in.u32("memory size");
  part.machine.address_mask = in.u32("address lines");
  part.machine.ignores_cd = in.u8("whether CR0.CD is ignored") != 0;
  const std::uint64_t state = in.varint("size of the state");
  const auto rest = in.bytes(state, "state");
  part.state.assign(rest.begin(), rest.end());
  in.skip(kHashBytes, "hash");
  in.expect_end("a share of an analysis");
  return part;
}

AnalysisPart read_analysis_part(const std::string& path) {
  std::vector<std::uint8_t> bytes;
  InputStream in(path);
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    bytes.insert(bytes.end(), block.begin(), block.end());
  }
  return parse_analysis_part(bytes, path);
}

}  // namespace citcat::tools
