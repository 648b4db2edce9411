// Session files, which are ZIP files, below their checksums: no mutation of text finds them, and
// what fuzz_sigrok and fuzz_dsview try seldom goes beyond. The input is members: a byte and as many
// of the name, two for the size, the content.

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/captures/dsview.h"
#include "formats/captures/sigrok.h"
#include "formats/io/byte_writer.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

namespace {

using Bytes = std::span<const std::uint8_t>;

struct Member {
  Bytes name, content;
};

/// The next `n` bytes of the input, as far as there are so many.
Bytes take(Bytes& input, std::size_t n) {
  const Bytes taken = input.first(std::min(n, input.size()));
  input = input.subspan(taken.size());
  return taken;
}

std::vector<Member> members_of(Bytes input) {
  std::vector<Member> members;
  while (!input.empty()) {
    const Bytes name = take(input, take(input, 1)[0]);
    const Bytes size = take(input, 2);
    if (size.size() < 2) break;
    members.push_back({name, take(input, size[0] + std::size_t{size[1]} * 256)});
  }
  return members;
}

/// What local header and directory say alike, from the version needed on (APPNOTE.TXT, 4.3.7).
void write_common(citcat::ByteWriter& out, const Member& member) {
  constexpr std::uint16_t kVersion = 20, kStored = 0, kDate = 0x21;
  const auto size = static_cast<std::uint32_t>(member.content.size());
  out.u16(kVersion);
  out.u16(0);  // flags
  out.u16(kStored);
  out.u16(0);  // time
  out.u16(kDate);
  out.u32(static_cast<std::uint32_t>(::crc32(0, member.content.data(), size)));
  out.u32(size);
  out.u32(size);
  out.u16(static_cast<std::uint16_t>(member.name.size()));
  out.u16(0);  // extra field
}

std::vector<std::uint8_t> zip_of(const std::vector<Member>& members) {
  citcat::ByteWriter zip, directory;
  for (const Member& member : members) {
    directory.u32(0x02014b50);
    directory.u16(20);  // made by
    write_common(directory, member);
    for (int i = 0; i < 5; ++i) directory.u16(0);  // comment, disk, attributes
    directory.u32(static_cast<std::uint32_t>(zip.view().size()));
    directory.bytes(member.name);
    zip.u32(0x04034b50);
    write_common(zip, member);
    zip.bytes(member.name);
    zip.bytes(member.content);
  }
  const auto begin = static_cast<std::uint32_t>(zip.view().size());
  zip.bytes(directory.view());
  zip.u32(0x06054b50);
  zip.u32(0);  // disks
  for (int i = 0; i < 2; ++i) zip.u16(static_cast<std::uint16_t>(members.size()));
  zip.u32(static_cast<std::uint32_t>(directory.view().size()));
  zip.u32(begin);
  zip.u16(0);  // comment
  return zip.take();
}

}  // namespace

CITCAT_FUZZ_TARGET(session) {
  const std::vector<std::uint8_t> zip = zip_of(members_of({data, size}));
  citcat::fuzz::drain_samples([&] { return citcat::open_sigrok("fuzz", zip); });
  citcat::fuzz::drain_samples([&] { return citcat::open_dsview("fuzz", zip); });
  return 0;
}
