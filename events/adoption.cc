#include "events/adoption.h"

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat {
namespace {

constexpr std::uint8_t kAtStore = 1, kBeyond = 2;  ///< the latter: beyond 4 GiB

}  // namespace

void write_adoptions(ByteWriter& out, const std::vector<Adoption>& adoptions) {
  out.varint(adoptions.size());
  std::uint64_t before = 0;
  for (const Adoption& a : adoptions) {
    out.varint(a.position.instruction - before);
    out.varint(a.position.iteration);
    const auto upper = static_cast<std::uint32_t>(a.address.value >> 32);
    out.u8(static_cast<std::uint8_t>((a.at_store ? kAtStore : 0) | (upper != 0 ? kBeyond : 0)));
    out.u32(a.address.low32());
    if (upper != 0) out.u32(upper);
    out.u8(a.value);
    before = a.position.instruction;
  }
}

std::vector<Adoption> read_adoptions(ByteReader& in) {
  constexpr std::size_t kLeastBytes = 8;
  std::vector<Adoption> adoptions(in.count("adoptions", in.remaining() / kLeastBytes));
  std::uint64_t before = 0;
  for (Adoption& a : adoptions) {
    a.position.instruction = before + in.varint("instruction of an adoption");
    a.position.iteration =
        static_cast<std::uint32_t>(in.count("iteration of an adoption", ~std::uint32_t{0}));
    const std::uint8_t how = in.u8("moment of an adoption");
    a.at_store = (how & kAtStore) != 0;
    a.address.value = in.u32("address of an adoption");
    if ((how & kBeyond) != 0)
      a.address.value |= std::uint64_t{in.u32("address of an adoption")} << 32;
    a.value = in.u8("adopted value");
    before = a.position.instruction;
  }
  return adoptions;
}

}  // namespace citcat
