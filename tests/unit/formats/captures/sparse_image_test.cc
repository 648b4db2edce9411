#include "formats/captures/sparse_image.h"

#include <gtest/gtest.h>

#include <map>
#include <span>

#include "events/machine/memory_file.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

class MemoryFile : public TemporaryFolder {
 protected:
  std::map<std::uint64_t, std::uint8_t> read(const std::string& name) {
    MemoryFileReader reader(path(name));
    form_ = reader.form();
    std::map<std::uint64_t, std::uint8_t> bytes;
    MemoryFileReader::Part part;
    while (reader.next(part)) {
      for (std::size_t i = 0; i < part.bytes.size(); ++i) {
        bytes[part.address + i] = part.bytes[i];
      }
    }
    return bytes;
  }
  /// A page record: address, then 4096 times `fill`.
  static std::string page(std::uint32_t address, char fill) {
    std::string record;
    for (int i = 0; i < 4; ++i) record += static_cast<char>(address >> (8 * i));
    return record + std::string(4096, fill);
  }
  void save_ranges(const std::string& name) {
    MemoryFileWriter writer(open_sink(path(name)));
    const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5};
    writer.write(0x10, bytes);
    writer.write(0xfffffffb, bytes);
    writer.finish();
  }
  MemoryFileForm form_ = MemoryFileForm::raw;
};

TEST_F(MemoryFile, RawBytesBeginAtZero) {
  store("flat.img", std::string(70000, '\7') + "x");
  const auto bytes = read("flat.img");
  EXPECT_EQ(form_, MemoryFileForm::raw);
  EXPECT_EQ(bytes.size(), 70001u);
  EXPECT_EQ(bytes.at(70000), 'x');
}

TEST_F(MemoryFile, AFlatImageOfZerosIsRaw) {
  store("zero.img", std::string(1 << 20, '\0'));
  EXPECT_EQ(read("zero.img").size(), std::size_t{1} << 20);
  EXPECT_EQ(form_, MemoryFileForm::raw);
}

TEST_F(MemoryFile, PageRecordsKeepTheirAddresses) {
  store("pages.bin", page(0, 'a') + page(0x3000, 'b') + page(0xfffff000, 'c'));
  const auto bytes = read("pages.bin");
  EXPECT_EQ(form_, MemoryFileForm::pages);
  EXPECT_EQ(bytes.size(), 3u * 4096);
  EXPECT_EQ(bytes.at(0x3fff), 'b');
  EXPECT_EQ(bytes.at(0xffffffff), 'c');
}

TEST_F(MemoryFile, PageRecordsOutOfOrderOrCutAreRefused) {
  std::string many;
  for (std::uint32_t i = 0; i < 300; ++i) many += page(i * 4096, 'a');
  store("order.bin", many + page(0x1000, 'b'));
  EXPECT_THROW(read("order.bin"), FormatError);
  store("cut.bin", page(0, 'a') + page(0x1000, 'b').substr(0, 100));
  EXPECT_THROW(read("cut.bin"), FormatError);
}

TEST_F(MemoryFile, RangesComeBackAsWritten) {
  save_ranges("ranges.mem");
  const auto bytes = read("ranges.mem");
  EXPECT_EQ(form_, MemoryFileForm::ranges);
  EXPECT_EQ(bytes.size(), 10u);
  EXPECT_EQ(bytes.at(0x14), 5);
  EXPECT_EQ(bytes.at(0xffffffff), 5);
}

TEST_F(MemoryFile, RangesCutOrChangedAnywhereAreRefused) {
  save_ranges("ranges.mem");
  const std::string whole = load("ranges.mem");
  constexpr std::size_t kMagic = 8;  // without it the file is raw bytes
  for (std::size_t length = kMagic; length < whole.size(); ++length) {
    store("cut.mem", whole.substr(0, length));
    EXPECT_THROW(read("cut.mem"), FormatError) << length;
  }
  for (std::size_t at = kMagic; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    store("bad.mem", damaged);
    EXPECT_THROW(read("bad.mem"), FormatError) << at;
  }
}

TEST_F(MemoryFile, ImagesWithHolesSurviveTheFile) {
  MemoryImage image;
  MemoryFileWriter writer(open_sink(path("holes.mem.zst")), false);
  for (const std::uint32_t address : {0u, 1u, 0xfffu, 0x1000u, 0x2005u, 0xfffffffeu}) {
    const auto value = static_cast<std::uint8_t>(address * 7 + 1);
    image.set(PhysAddr{address}, value);
    writer.write(address, std::span(&value, 1));
  }
  writer.finish();
  const MemoryImage again = load_memory_image(path("holes.mem.zst"));
  EXPECT_EQ(again.byte_count(), image.byte_count());
  EXPECT_EQ(again.byte(PhysAddr{0x1000}), image.byte(PhysAddr{0x1000}));
  EXPECT_EQ(again.byte(PhysAddr{0xfffffffe}), image.byte(PhysAddr{0xfffffffe}));
  EXPECT_EQ(again.byte(PhysAddr{2}), std::nullopt);
}

}  // namespace
}  // namespace citcat::test
