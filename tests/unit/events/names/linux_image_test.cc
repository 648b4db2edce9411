#include "events/names/linux_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <random>

#include "events/names/kernel_place.h"
#include "events/names/symbol_file.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using Bytes = std::vector<std::uint8_t>;
using test::TemporaryFolder;

/// What scripts/kallsyms.c of Linux writes, with tokens of one or two characters.
class KernelTables {
 public:
  struct Form {
    std::size_t word = 4;         ///< bytes of an address
    bool sequences = false;       ///< three bytes a symbol behind the markers (since 6.2)
    bool addresses_last = false;  ///< since 6.4
    bool own_variables = false;   ///< absolute addresses among them (ABSOLUTE_PERCPU)
  };
  KernelTables(Form form, std::size_t symbols) : form_(form) {
    std::mt19937 random(11);
    std::uint64_t address = form.own_variables ? 0 : kBase;
    for (std::size_t i = 0; i < symbols; ++i) {
      std::string name = "s" + std::to_string(i);
      for (std::size_t n = random() % 40; n != 0; --n)
        name += static_cast<char>('a' + random() % 26);
      if (i % 300 == 7) name += std::string(200, 'x');
      names_.push_back(name);
      addresses_.push_back(address);
      address = form.own_variables && i == 4 ? kBase : address + 16 * (random() % 9);
    }
  }

  std::string expected() const {
    std::string text;
    char line[600];
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::snprintf(line, sizeof line, "%08llx T %s\n",
                    static_cast<unsigned long long>(addresses_[i]), names_[i].c_str());
      text += line;
    }
    return text;
  }

  Bytes image() {
    // Noise before and behind, in which nothing may be found.
    std::mt19937 random(3);
    for (int i = 0; i < 5000; ++i) out_.push_back(static_cast<std::uint8_t>(random()));
    if (!form_.addresses_last) put_addresses();
    put_count_and_names();
    put_tokens();
    if (form_.addresses_last) put_addresses();
    for (int i = 0; i < 5000; ++i) out_.push_back(static_cast<std::uint8_t>(random()));
    return out_;
  }

  static constexpr std::uint64_t kBase = 0xc1000000;

 private:
  void align() {
    while (out_.size() % form_.word != 0) out_.push_back(0);
  }
  void put(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void put_addresses() {
    align();
    for (const std::uint64_t a : addresses_) {
      const bool absolute = form_.own_variables && a < kBase;
      const std::uint64_t offset = absolute ? a : form_.own_variables ? kBase - 1 - a : a - kBase;
      put(offset, 4);
    }
    align();
    put(kBase, form_.word);
  }
  static std::string token(unsigned c) {
    // Characters that no name has stand for two.
    if (c >= 'a' && c <= 'z') return std::string(1, static_cast<char>(c));
    if (c >= '0' && c <= '9') return std::string(1, static_cast<char>(c));
    if (c == 'T' || c == 's') return std::string(1, static_cast<char>(c));
    return std::string(1, static_cast<char>('a' + c % 26)) + static_cast<char>('a' + c / 26);
  }
  void put_count_and_names() {
    align();
    put(names_.size(), 4);
    align();
    std::vector<std::size_t> markers;
    const std::size_t begin = out_.size();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i % 256 == 0) markers.push_back(out_.size() - begin);
      const std::string text = "T" + names_[i];
      if (text.size() > 127) {
        put(text.size() % 128 + 128, 1);
        put(text.size() / 128, 1);
      } else {
        put(text.size(), 1);
      }
      for (const char c : text) put(static_cast<std::uint8_t>(c), 1);
    }
    align();
    for (const std::size_t m : markers) put(m, 4);
    align();
    if (form_.sequences) {
      for (std::size_t i = 0; i < names_.size(); ++i) put(i * 31 % names_.size(), 3);
      align();
    }
  }
  void put_tokens() {
    const std::size_t begin = out_.size();
    std::vector<std::size_t> index;
    for (unsigned c = 0; c < 256; ++c) {
      index.push_back(out_.size() - begin);
      for (const char t : token(c)) put(static_cast<std::uint8_t>(t), 1);
      put(0, 1);
    }
    align();
    for (const std::size_t at : index) put(at, 2);
  }

  Form form_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> addresses_;
  Bytes out_;
};

TEST(LinuxImage, ItsNamesAreFoundInEveryOrderOfTheirTables) {
  for (const std::size_t word : {4u, 8u}) {
    for (const bool sequences : {false, true}) {
      for (const bool last : {false, true}) {
        KernelTables tables({word, sequences, last, false}, 3000);
        EXPECT_EQ(kallsyms_of_image(tables.image()), tables.expected())
            << word << sequences << last;
      }
    }
  }
}

TEST(LinuxImage, AProcessorsOwnVariablesHaveAbsoluteAddresses) {
  KernelTables tables({8, true, true, true}, 1000);
  EXPECT_EQ(kallsyms_of_image(tables.image()), tables.expected());
}

TEST(LinuxImage, WhatHasNoTablesHasNoNames) {
  std::mt19937 random(5);
  Bytes noise(1 << 18);
  for (std::uint8_t& b : noise) b = static_cast<std::uint8_t>(random());
  EXPECT_EQ(kallsyms_of_image(noise), "");
  EXPECT_EQ(kallsyms_of_image(Bytes(100000)), "");
  EXPECT_EQ(kallsyms_of_image({}), "");
  KernelTables tables({4, true, false, false}, 3000);
  Bytes image = tables.image();
  // One length of a name is another: nothing fits any more.
  for (std::size_t at = 5000 + 12008; at < 5000 + 12400; ++at) image[at] ^= 0x55;
  EXPECT_EQ(kallsyms_of_image(image), "");
}

class BootImage : public TemporaryFolder {
 protected:
  static Bytes pack(const Bytes& kernel, bool gzip = true) {
    Bytes file(2 * 512 + 100);
    file[0x1f1] = 1;
    const char magic[] = {'H', 'd', 'r', 'S', 0x08, 0x02};
    std::copy(std::begin(magic), std::end(magic), file.begin() + 0x202);
    Bytes packed = kernel;
    if (gzip) {
      packed.resize(kernel.size() + 1000);
      z_stream stream{};
      deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = const_cast<std::uint8_t*>(kernel.data());
      stream.avail_in = static_cast<unsigned>(kernel.size());
      stream.next_out = packed.data();
      stream.avail_out = static_cast<unsigned>(packed.size());
      deflate(&stream, Z_FINISH);
      packed.resize(stream.total_out);
      deflateEnd(&stream);
    }
    file[0x248] = 100;
    for (int i = 0; i < 4; ++i) {
      file[static_cast<std::size_t>(0x24c + i)] =
          static_cast<std::uint8_t>(packed.size() >> (8 * i));
    }
    file.insert(file.end(), packed.begin(), packed.end());
    return file;
  }
  std::string store_kernel(const std::string& name, const Bytes& bytes) {
    store(name, {bytes.begin(), bytes.end()});
    return path(name);
  }
};

TEST_F(BootImage, ItsKernelsNamesAreRead) {
  KernelTables tables({4, true, false, false}, 600);
  const auto modules =
      load_symbols(std::vector<std::string>{store_kernel("vmlinuz-1", pack(tables.image()))});
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].name, "vmlinux");
  EXPECT_EQ(modules[0].symbols.size(), 600u);
  const auto moved = load_symbols(std::vector<std::string>{path("vmlinuz-1") + "@c5000000"});
  EXPECT_EQ(moved[0].symbols[0].address.value, modules[0].symbols[0].address.value + 0x4000000);
}

TEST_F(BootImage, WhatCannotBeUnpackedOrHasNoNamesIsRefused) {
  EXPECT_THROW(load_symbols(std::vector<std::string>{store_kernel("a", pack(Bytes(50000), false))}),
               FormatError);
  EXPECT_THROW(load_symbols(std::vector<std::string>{store_kernel("b", pack(Bytes(50000)))}),
               FormatError);
  Bytes cut = pack(Bytes(50000));
  cut.resize(cut.size() - 20);
  EXPECT_THROW(load_symbols(std::vector<std::string>{store_kernel("c", cut)}), FormatError);
}

TEST_F(BootImage, TheMapBesideAKernelIsFoundWhereItHasNoNamesItself) {
  const std::string kernel = store_kernel("vmlinuz-6.1-x", pack(Bytes(50000)));
  EXPECT_EQ(find_kernel_symbols(kernel), "");
  store("System.map-6.1-x", "ffffffffffffffff B The real System.map is elsewhere\n");
  EXPECT_EQ(find_kernel_symbols(kernel), "");
  store("System.map-6.1-x", "c1000000 T _text\n");
  EXPECT_EQ(find_kernel_symbols(kernel), path("System.map-6.1-x"));
  KernelTables tables({4, false, false, false}, 600);
  store_kernel("vmlinuz-6.1-x", pack(tables.image()));
  EXPECT_EQ(find_kernel_symbols(kernel), kernel);
  EXPECT_EQ(find_kernel_symbols(path("none")), "");
}

TEST(KernelPlace, IsToldBySysenter) {
  SymbolModule kernel{"vmlinux", "", {}};
  kernel.symbols.push_back(
      {"entry_SYSENTER_32", LinearAddr{0xc191a010}, 0, SymbolKind::code, SymbolBinding::global});
  CpuState state;
  EXPECT_EQ(kernel_shift(kernel, state), std::nullopt);
  state.msrs.push_back({0x176, 0xc591a010});
  EXPECT_EQ(kernel_shift(kernel, state), 0x4000000);
  kernel.symbols[0].name = "other";
  EXPECT_EQ(kernel_shift(kernel, state), std::nullopt);
  EXPECT_TRUE(is_kernel_shift(-0x1000000));
  EXPECT_FALSE(is_kernel_shift(0x10));
}

}  // namespace
}  // namespace citcat
