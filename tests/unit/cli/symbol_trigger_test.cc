#include "cli/record/symbol_trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/io/error.h"

namespace citcat {
namespace {

std::vector<SymbolModule> kernel() {
  SymbolModule module;
  module.name = "vmlinux";
  const auto add = [&module](const char* name, std::uint32_t address, SymbolKind kind) {
    module.symbols.push_back({name, LinearAddr{address}, 0, kind, SymbolBinding::global});
  };
  add("do_execve", 0xc1234560, SymbolKind::code);
  add("do_exit", 0xc1234600, SymbolKind::code);
  add("jiffies", 0xc1800000, SymbolKind::data);
  add("show", 0xc1000010, SymbolKind::code);
  add("show", 0xc1000020, SymbolKind::code);
  return {module};
}

std::string refusal(const std::string& trigger, const std::vector<SymbolModule>& modules) {
  try {
    with_address("--start", trigger, modules);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SymbolTrigger, StandsForTheAddressOfTheCode) {
  EXPECT_EQ(with_address("--start", "symbol:do_execve", kernel()), "address:c1234560");
}

TEST(SymbolTrigger, OtherTriggersStayAsTheyAre) {
  for (const char* trigger : {"", "driver", "count:10", "console:symbol:do_execve"})
    EXPECT_EQ(with_address("--start", trigger, kernel()), trigger);
}

TEST(SymbolTrigger, IsRefusedWhereItNamesNoOnePlace) {
  EXPECT_THAT(
      refusal("symbol:do_exeve", kernel()),
      testing::HasSubstr("--start: expected the name of code, found do_exeve, which names no code "
                         "(did you mean do_execve?)"));
  EXPECT_THAT(refusal("symbol:jiffies", kernel()), testing::HasSubstr("found jiffies"));
  EXPECT_THAT(refusal("symbol:show", kernel()),
              testing::HasSubstr("address:c1000010, address:c1000020"));
  EXPECT_THAT(refusal("symbol:do_execve", {}),
              testing::HasSubstr("name their file with --symbols"));
}

}  // namespace
}  // namespace citcat
