#include "events/names/symbols.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "events/names/demangle.h"

namespace citcat {
namespace {

Symbol symbol(const std::string& name, std::uint32_t address, std::uint64_t size = 0,
              SymbolKind kind = SymbolKind::code) {
  return {name, LinearAddr{address}, size, kind, SymbolBinding::global};
}

SymbolModule module_of(std::vector<Symbol> symbols, std::string name = "vmlinux",
                       std::string process = "") {
  SymbolModule module{std::move(name), std::move(process), std::move(symbols)};
  settle_symbols(module);
  return module;
}

std::string found(const Symbols& symbols, std::uint32_t at, const std::string& process = "") {
  const auto place = symbols.find(LinearAddr{at}, process);
  return place ? place->module->name + ":" + place_name(*place) : "";
}

TEST(Symbols, OneWithoutASizeGoesOnToTheNextOrToTheEndOfItsPage) {
  const Symbols symbols({module_of({symbol("first", 0xc0001000), symbol("second", 0xc0001100)})});
  EXPECT_EQ(found(symbols, 0xc0000fff), "");
  EXPECT_EQ(found(symbols, 0xc0001000), "vmlinux:first");
  EXPECT_EQ(found(symbols, 0xc00010ff), "vmlinux:first+0xff");
  EXPECT_EQ(found(symbols, 0xc0001100), "vmlinux:second");
  EXPECT_EQ(found(symbols, 0xc0001fff), "vmlinux:second+0xeff");
  EXPECT_EQ(found(symbols, 0xc0002000), "");
}

TEST(Symbols, WhatLiesBehindOneWithASizeIsNobodys) {
  const Symbols symbols({module_of({symbol("a", 0x1000, 0x10), symbol("b", 0x1020, 0x10)})});
  EXPECT_EQ(found(symbols, 0x100f), "vmlinux:a+0xf");
  EXPECT_EQ(found(symbols, 0x1010), "");
  EXPECT_EQ(found(symbols, 0x1020), "vmlinux:b");
  EXPECT_EQ(found(symbols, 0x1030), "");
}

TEST(Symbols, TheInnermostWithASizeIsFound) {
  const Symbols symbols({module_of({symbol("outer", 0x1000, 0x100), symbol("inner", 0x1010, 0x10),
                                    symbol("label", 0x1040), symbol("same", 0x1000)})});
  EXPECT_EQ(found(symbols, 0x1000), "vmlinux:outer");
  EXPECT_EQ(found(symbols, 0x101f), "vmlinux:inner+0xf");
  EXPECT_EQ(found(symbols, 0x1020), "vmlinux:outer+0x20");
  EXPECT_EQ(found(symbols, 0x1041), "vmlinux:outer+0x41");
}

TEST(Symbols, TheLastByteOfTheAddressSpaceHasItsName) {
  const Symbols symbols({module_of({symbol("sized", 0xfffff000, 0x1000), symbol("low", 0x1000)})});
  EXPECT_EQ(found(symbols, 0xffffffff), "vmlinux:sized+0xfff");
  const Symbols open({module_of({symbol("open", 0xfffff000)})});
  EXPECT_EQ(found(open, 0xffffffff), "vmlinux:open+0xfff");
}

TEST(Symbols, TheProcessThatRunsIsAskedBeforeTheKernel) {
  const Symbols symbols({module_of({symbol("kernel", 0x1000, 0x100)}),
                         module_of({symbol("main", 0x1000, 0x10)}, "sort", "sort")});
  EXPECT_EQ(found(symbols, 0x1008), "vmlinux:kernel+0x8");
  EXPECT_EQ(found(symbols, 0x1008, "sort"), "sort:main+0x8");
  EXPECT_EQ(found(symbols, 0x1018, "sort"), "vmlinux:kernel+0x18");
  EXPECT_EQ(found(symbols, 0x1008, "cat"), "vmlinux:kernel+0x8");
}

TEST(Symbols, PatternsFindCodeByItsNameAsItStandsAndDemangled) {
  const Symbols symbols({module_of({symbol("do_execve", 0x1000, 16), symbol("do_exit", 0x1010),
                                    symbol("do_data", 0x3000, 4, SymbolKind::data),
                                    symbol("_ZN3Foo3barEi", 0x2000, 8)}),
                         module_of({symbol("do_ext4", 0x9000, 4)}, "ext4")});
  const auto kernel = symbols.code("vmlinux", "do_*");
  ASSERT_EQ(kernel.size(), 2u);
  EXPECT_EQ(kernel[0].symbol->name, "do_execve");
  EXPECT_EQ(kernel[0].first, LinearAddr{0x1000});
  EXPECT_EQ(kernel[0].last, LinearAddr{0x100f});
  EXPECT_EQ(kernel[1].last, LinearAddr{0x1fff});
  EXPECT_EQ(symbols.code("*", "do_*").size(), 3u);
  ASSERT_EQ(symbols.code("vmlinux", "Foo::bar*").size(), 1u);
  EXPECT_EQ(symbols.code("vmlinux", "_ZN3Foo3barEi").size(), 1u);
  EXPECT_TRUE(symbols.code("ext3", "*").empty());
}

/// The definition, looked up by going through all symbols.
std::optional<std::string> slowly(const SymbolModule& module, std::uint32_t at) {
  const Symbol* sized = nullptr;
  const Symbol* open = nullptr;
  for (const Symbol& s : module.symbols) {
    if (s.address.value > at) continue;
    const std::uint64_t end = s.address.value + s.size;
    if (s.size != 0 && at < end &&
        (sized == nullptr || end < sized->address.value + sized->size ||
         (end == sized->address.value + sized->size && s.address > sized->address))) {
      sized = &s;
    }
    if (s.size == 0 && (open == nullptr || s.address > open->address)) open = &s;
  }
  if (sized != nullptr) return sized->name;
  if (open == nullptr || at > (open->address.value | 0xfffu)) {
    const bool last = open != nullptr && module.symbols.back().address == open->address;
    if (open == nullptr || last) return std::nullopt;
  }
  // Another symbol between it and the address ends it, and so does one that it lies in.
  for (const Symbol& s : module.symbols) {
    if (s.address > open->address && s.address.value <= at) return std::nullopt;
    if (s.address <= open->address && s.address.value + s.size > open->address.value) {
      return std::nullopt;
    }
  }
  return open->name;
}

TEST(Symbols, RandomModulesAreFoundAsTheDefinitionSays) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Symbol> list;
    for (int i = 0; i < 12; ++i) {
      list.push_back(symbol("s" + std::to_string(i), 0x1000 + random() % 64,
                            random() % 3 == 0 ? 0 : 1 + random() % 20));
    }
    const SymbolModule module = module_of(list);
    const Symbols symbols({module});
    for (std::uint32_t at = 0xff8; at < 0x1080; ++at) {
      const auto place = symbols.find(LinearAddr{at});
      EXPECT_EQ(place ? std::optional(place->symbol->name) : std::nullopt, slowly(module, at))
          << "round " << round << " at " << at;
    }
  }
}

TEST(Demangle, TellsWhatNamesOfCppMeanAndLeavesOthersAlone) {
  EXPECT_EQ(demangled("_ZN3Foo3barEi"), "Foo::bar(int)");
  EXPECT_EQ(demangled("schedule"), "schedule");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
  EXPECT_EQ(demangled("_Z" + std::string(100000, 'N')), "_Z" + std::string(100000, 'N'));
}

}  // namespace
}  // namespace citcat
