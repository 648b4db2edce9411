#include "events/adoption.h"

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat {

void write_adoptions(ByteWriter& out, const std::vector<Adoption>& adoptions) {
  out.varint(adoptions.size());
  std::uint64_t before = 0;
  for (const Adoption& a : adoptions) {
    out.varint(a.position.instruction - before);
    out.varint(a.position.iteration);
    out.u8(a.at_store ? 1 : 0);
    out.u32(a.address.u32());
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
    a.at_store = in.u8("moment of an adoption") != 0;
    a.address.value = in.u32("address of an adoption");
    a.value = in.u8("adopted value");
    before = a.position.instruction;
  }
  return adoptions;
}

}  // namespace citcat
