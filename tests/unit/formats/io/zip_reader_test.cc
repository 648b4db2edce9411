// Members of ZIP files: small ones are decompressed whole, others as they are read. Nobody can
// tell, neither by what they hold nor by what is said of damage.

#include "formats/io/zip_reader.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "formats/io/error.h"

namespace citcat::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A ZIP file in memory, of one member.
Bytes zip_of(const Bytes& plain, zip_int32_t method = ZIP_CM_DEFLATE) {
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(target);
  zip_t* const zip = zip_open_from_source(target, ZIP_TRUNCATE, nullptr);
  zip_source_t* const source = zip_source_buffer(zip, plain.data(), plain.size(), 0);
  const auto entry = static_cast<zip_uint64_t>(zip_file_add(zip, "member", source, 0));
  zip_set_file_compression(zip, entry, method, 1);
  zip_close(zip);
  zip_stat_t stat;
  zip_source_stat(target, &stat);
  Bytes all(static_cast<std::size_t>(stat.size));
  zip_source_open(target);
  zip_source_read(target, all.data(), all.size());
  zip_source_close(target);
  zip_source_free(target);
  return all;
}

/// Bytes that compress to a third or so.
Bytes sample_bytes(std::size_t size) {
  Bytes bytes(size);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 29);
  }
  return bytes;
}

/// All of the member, or what stands in the message of the error.
std::string read_all(const Bytes& file, std::size_t at_a_time, Bytes& out) {
  try {
    const ZipReader zip("z", file);
    ZipReader::Member member(zip, 0);
    Bytes room(at_a_time);
    out.clear();
    for (auto some = member.read_some(room); !some.empty(); some = member.read_some(room))
      out.insert(out.end(), some.begin(), some.end());
    EXPECT_EQ(member.offset(), out.size());
  } catch (const FormatError& error) {
    return error.what();
  }
  return {};
}

constexpr std::size_t kSmall = 300'000, kLarge = (std::size_t{1} << 24) + 12345;

TEST(ZipMember, HoldsTheSameWhateverItsSizeAndMethod) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kSmall, kLarge}) {
    const Bytes plain = sample_bytes(size);
    for (const zip_int32_t method : {ZIP_CM_DEFLATE, ZIP_CM_STORE}) {
      const Bytes file = zip_of(plain, method);
      Bytes found;
      EXPECT_EQ(read_all(file, 70'000, found), "");
      EXPECT_TRUE(found == plain) << size;
      const ZipReader zip("z", file);
      ZipReader::Member member(zip, 0);
      Bytes copied(size + 10);
      EXPECT_EQ(member.read(copied), size);
      EXPECT_TRUE(std::equal(plain.begin(), plain.end(), copied.begin()));
    }
  }
}

/// Where the compressed bytes of the member begin: behind its header and name.
constexpr std::size_t kDataAt = 30 + 6;

TEST(ZipMember, DamageIsReportedWhereItShows) {
  const Bytes plain = sample_bytes(kSmall);
  const Bytes whole = zip_of(plain);
  for (std::size_t at = kDataAt; at < kDataAt + 50'000; at += 997) {
    Bytes file = whole, found;
    file[at] ^= 0x10;
    const std::string error = read_all(file, 1000, found);
    EXPECT_NE(error.find("expected intact data"), std::string::npos) << at << ": " << error;
    // What came before the damage was handed out.
    EXPECT_TRUE(
        std::equal(found.begin(), found.begin() + 1000 * (found.size() != 0), plain.begin()));
  }
}

/// Changes a byte of the member's entry in the directory, and of its header in front of the data.
/// `at`: where it is in the entry (APPNOTE.TXT 4.3.12); in the header it comes two bytes earlier.
void change_entry(Bytes& file, std::size_t at, std::uint8_t by) {
  constexpr std::array<std::uint8_t, 4> kEntry{'P', 'K', 1, 2};
  const auto entry = std::search(file.begin(), file.end(), kEntry.begin(), kEntry.end());
  ASSERT_NE(entry, file.end());
  entry[static_cast<std::ptrdiff_t>(at)] ^= by;
  file[at - 2] ^= by;
}

TEST(ZipMember, AWrongChecksumIsDamage) {
  const Bytes plain = sample_bytes(kSmall);
  Bytes file = zip_of(plain, ZIP_CM_STORE), found;
  file[kDataAt + 1000] ^= 1;
  EXPECT_EQ(read_all(file, 1000, found),
            "z/member:300000: expected intact data, found a wrong checksum");
  EXPECT_EQ(found.size(), plain.size());
}

TEST(ZipMember, ThatIsShorterThanTheDirectoryClaimsIsDamage) {
  constexpr std::size_t kPlainSize = 24;
  Bytes file = zip_of(sample_bytes(kSmall)), found;
  change_entry(file, kPlainSize + 3, 1);
  EXPECT_EQ(read_all(file, 1000, found),
            "z/member:300000: expected intact data, 17077216 bytes, found its end");
}

TEST(ZipMember, ThatIsEncryptedIsRefused) {
  constexpr std::size_t kFlags = 8;
  for (const zip_int32_t method : {ZIP_CM_DEFLATE, ZIP_CM_STORE}) {
    Bytes file = zip_of(sample_bytes(kSmall), method), found;
    change_entry(file, kFlags, 1);
    EXPECT_EQ(read_all(file, 1000, found),
              "z/member:0: expected a readable member, found: an encrypted one");
  }
}

TEST(ZipMember, OfAnUnknownMethodIsRefused) {
  constexpr std::size_t kMethod = 10;
  Bytes file = zip_of(sample_bytes(kSmall)), found;
  change_entry(file, kMethod, 8 ^ 93);
  EXPECT_EQ(read_all(file, 1000, found),
            "z/member:0: expected a readable member, found: compression method 93");
}

TEST(ZipFile, WithoutItsEndIsNone) {
  Bytes file = zip_of(sample_bytes(kSmall)), found;
  file.resize(file.size() - 30);
  EXPECT_EQ(read_all(file, 1000, found),
            "z:0: expected a whole ZIP file (its directory stands at its end), found no such "
            "directory");
}

TEST(ZipMember, ManyAreOpenTogether) {
  const Bytes plain = sample_bytes((std::size_t{1} << 23) + 1);
  const Bytes file = zip_of(plain);
  const ZipReader zip("z", file);
  std::vector<ZipReader::Member> members;
  for (int i = 0; i < 6; ++i) members.emplace_back(zip, 0);
  Bytes found(plain.size());
  for (ZipReader::Member& member : members) {
    EXPECT_EQ(member.read(found), plain.size());
    EXPECT_TRUE(found == plain);
  }
}

}  // namespace
}  // namespace citcat::test
