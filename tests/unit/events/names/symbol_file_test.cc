#include "events/names/symbol_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

#include "events/names/symbols.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

class SymbolFile : public TemporaryFolder {
 protected:
  std::vector<SymbolModule> load_text(const std::string& text, const std::string& suffix = "") {
    store("map", text);
    return load_symbols(std::vector<std::string>{path("map") + suffix});
  }
};

TEST_F(SymbolFile, KallsymsGivesTheKernelAndEachOfItsModules) {
  const auto modules = load_text(
      "c1000000 T startup_32\nc1000000 T _text\nc1001000 t local\nc1800000 D jiffies\n"
      "00000005 A __an_absolute\nf8801000 t ext4_open\t[ext4]\nf8810000 T sd_probe [sd_mod]\n");
  ASSERT_EQ(modules.size(), 3u);
  EXPECT_EQ(modules[0].name, "vmlinux");
  ASSERT_EQ(modules[0].symbols.size(), 4u);
  // Where one place has two names, the one without an underscore is preferred.
  EXPECT_EQ(modules[0].symbols[0].name, "startup_32");
  EXPECT_EQ(modules[0].symbols[2].binding, SymbolBinding::local);
  EXPECT_EQ(modules[0].symbols[3].kind, SymbolKind::data);
  EXPECT_EQ(modules[1].name, "ext4");
  EXPECT_EQ(modules[1].symbols[0].address, LinearAddr{0xf8801000});
  EXPECT_EQ(modules[2].name, "sd_mod");
}

TEST_F(SymbolFile, WhatNmPrintsOfUndefinedSymbolsIsLeftOut) {
  const auto modules = load_text("         U printf\n08049000 T main\n");
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].symbols.size(), 1u);
}

TEST_F(SymbolFile, AProcessCanBeNamedAndAFileOfThatNameIsMeantItself) {
  EXPECT_EQ(load_text("08049000 T main\n", ":sort")[0].process, "sort");
  store("map:sort", "08049000 T other\n");
  EXPECT_EQ(load_text("08049000 T main\n", ":sort")[0].symbols[0].name, "other");
}

TEST_F(SymbolFile, AddressesThatTheKernelHidesAreRefused) {
  EXPECT_THAT(message_of([&] { load_text("00000000 T a\n00000000 T b\n"); }),
              HasSubstr("found only zeros"));
}

TEST_F(SymbolFile, WhatIsNoListIsRefusedWithItsLine) {
  EXPECT_THAT(message_of([&] { load_text("c1000000 T a\nnothing\n"); }),
              HasSubstr("map:2: expected \"ADDRESS LETTER NAME\""));
  EXPECT_THAT(message_of([&] { load_text("c1000000 T a b\n"); }), HasSubstr("map:1: "));
  EXPECT_THAT(message_of([&] { load_text("c1000000 Q a\n"); }), HasSubstr("as nm prints it"));
  EXPECT_THAT(message_of([&] { load_text(""); }), HasSubstr("expected names of code, found none"));
  EXPECT_THAT(message_of([&] { load_text("c1000000 T a\n", "@1000"); }), HasSubstr("found a list"));
  EXPECT_THAT(message_of([&] { load_text("c1000000 T a\n", "@10x"); }),
              HasSubstr("hexadecimal address of a page"));
}

/// Programs of the binutils, which the compiler needs anyway.
class ElfFile : public SymbolFile {
 protected:
  void SetUp() override {
    store("prog.s",
          ".globl _start,_Z3foov\n.text\n_start: call _Z3foov\n.type _Z3foov,@function\n"
          "_Z3foov: ret\n.size _Z3foov,.-_Z3foov\n.type own,@function\nown: nop\n nop\n"
          ".size own,.-own\n.weak soft\n.type soft,@function\nsoft: ret\n"
          ".data\n.globl counter\n.type counter,@object\n.size counter,4\ncounter: .long 5\n"
          ".set absolute, 77\n");
    run("as --32 -o " + path("prog.o") + " " + path("prog.s"));
    run("ld -m elf_i386 -o " + path("prog") + " " + path("prog.o"));
    run("ld -m elf_i386 -pie -o " + path("pie") + " " + path("prog.o"));
  }
  static void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0); }
  /// What nm says of the file: name -> address.
  std::map<std::string, std::uint32_t> by_nm(const std::string& name) const {
    run("nm --defined-only " + path(name) + " >" + path("nm"));
    std::istringstream lines(load("nm"));
    std::map<std::string, std::uint32_t> result;
    std::string address, letter, symbol;
    while (lines >> address >> letter >> symbol) {
      if (letter != "a" && letter != "A") {
        result[symbol] = static_cast<std::uint32_t>(std::stoul(address, nullptr, 16));
      }
    }
    return result;
  }
  static std::map<std::string, std::uint32_t> addresses(const SymbolModule& module) {
    std::map<std::string, std::uint32_t> result;
    for (const Symbol& s : module.symbols) {
      result[s.name] = static_cast<std::uint32_t>(s.address.value);
    }
    return result;
  }
};

TEST_F(ElfFile, AProgramHasTheSymbolsThatNmPrints) {
  const auto modules = load_symbols(std::vector<std::string>{path("prog")});
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].name, "prog");
  EXPECT_EQ(addresses(modules[0]), by_nm("prog"));
  const Symbols symbols(modules);
  const auto own = symbols.named("own");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->symbol->size, 2u);
  EXPECT_EQ(own->symbol->binding, SymbolBinding::local);
  EXPECT_EQ(symbols.named("soft")->symbol->binding, SymbolBinding::weak);
  EXPECT_EQ(symbols.named("_start")->symbol->kind, SymbolKind::code);
  EXPECT_EQ(symbols.named("counter")->symbol->kind, SymbolKind::data);
  EXPECT_EQ(symbols.code("prog", "foo()").size(), 1u);
}

TEST_F(ElfFile, ABaseMovesAllSymbols) {
  EXPECT_THAT(message_of([&] { load_symbols(std::vector<std::string>{path("pie")}); }),
              HasSubstr("say where it did"));
  const auto modules = load_symbols(std::vector<std::string>{path("pie") + "@b7f00000:sort"});
  EXPECT_EQ(modules[0].process, "sort");
  auto expected = by_nm("pie");
  for (auto& [name, address] : expected) address += 0xb7f00000;
  EXPECT_EQ(addresses(modules[0]), expected);
}

TEST_F(ElfFile, OfAStrippedProgramThoseForTheDynamicLinkerAreLeft) {
  run("strip " + path("prog"));
  EXPECT_THAT(message_of([&] { load_symbols(std::vector<std::string>{path("prog")}); }),
              HasSubstr("was stripped"));
  run("ld -m elf_i386 -shared -o " + path("lib.so") + " " + path("prog.o"));
  run("strip " + path("lib.so"));
  const auto modules = load_symbols(std::vector<std::string>{path("lib.so") + "@b7000000"});
  const Symbols symbols(modules);
  EXPECT_TRUE(symbols.named("_Z3foov"));
  EXPECT_FALSE(symbols.named("own"));
}

TEST_F(ElfFile, ObjectFilesAndDamagedOnesAreRefused) {
  EXPECT_THAT(message_of([&] { load_symbols(std::vector<std::string>{path("prog.o")}); }),
              HasSubstr("an object file"));
  const std::string whole = load("prog");
  for (std::size_t size = 4; size < whole.size(); size += 97) {
    store("cut", whole.substr(0, size));
    EXPECT_THAT(message_of([&] { load_symbols(std::vector<std::string>{path("cut")}); }),
                HasSubstr("cut:"))
        << size;
  }
}

}  // namespace
}  // namespace citcat
