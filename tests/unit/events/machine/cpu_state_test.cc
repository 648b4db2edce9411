#include "events/machine/cpu_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/bus_transaction.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BusOpName, IsThereForEveryKind) {
  EXPECT_EQ(bus_op_name(BusOp::data_write), "data_write");
  EXPECT_EQ(bus_op_name(BusOp::instruction_start), "instruction_start");
  for (int i = 0; i < kBusOpCount; ++i) EXPECT_NE(bus_op_name(static_cast<BusOp>(i)), "");
}

TEST(Registers, AreSetAndReadByEveryListedName) {
  CpuState state;
  for (const std::string& name : register_names(CpuModel::unknown)) {
    if (name == "fx") continue;
    ASSERT_TRUE(set_register(state, name, 0x1234)) << name;
    EXPECT_EQ(get_register(state, name), 0x1234U) << name;
  }
}

TEST(Registers, AreDistinct) {
  CpuState state;
  state.cr0 = 1;  // protected mode: a selector does not set the base
  std::uint64_t value = 0;
  for (const std::string& name : register_names(CpuModel::unknown)) {
    if (name != "cr0") set_register(state, name, ++value);
  }
  value = 0;
  for (const std::string& name : register_names(CpuModel::unknown)) {
    if (name == "cr0" || name == "fx") continue;
    EXPECT_EQ(get_register(state, name), ++value) << name;
  }
}

CpuState long_mode_state() {
  CpuState state;
  state.model = CpuModel::x86_64;
  state.long_mode.emplace();
  state.cr0 = 1;
  return state;
}

/// What a register of long mode holds of a value: segments' selectors, limits and attributes, and
/// what 32-bit processors have alone, keep their width.
std::uint64_t mask_of(const std::string& name) {
  const auto ends = [&](const char* part) { return name.ends_with(part); };
  const bool of_segment = name.size() == 2 && name[1] == 's';
  if (of_segment || name == "ldtr" || name == "tr" || ends(".attributes")) return 0xffff;
  if (name == "gdtr.limit" || name == "idtr.limit") return 0xffff;
  if (ends(".limit") || name == "a20_mask" || name == "smbase") return 0xffffffff;
  return ~std::uint64_t{0};
}

TEST(Registers, OfLongModeAreSetAndReadInTheirWholeWidthAndAreDistinct) {
  CpuState state = long_mode_state();
  const auto value_of = [](std::uint64_t n) { return n * 0x0101010101010101; };
  std::uint64_t n = 0;
  for (const std::string& name : register_names(CpuModel::x86_64)) {
    ++n;
    if (name == "fx" || name == "cr0") continue;
    ASSERT_TRUE(set_register(state, name, value_of(n))) << name;
  }
  n = 0;
  for (const std::string& name : register_names(CpuModel::x86_64)) {
    ++n;
    if (name == "fx" || name == "cr0") continue;
    EXPECT_EQ(get_register(state, name), value_of(n) & mask_of(name)) << name;
  }
  EXPECT_EQ(n, 73U);
}

TEST(Registers, OfLongModeHaveNoOtherNames) {
  CpuState state = long_mode_state();
  for (const char* name : {"eax", "ax", "eip", "ip", "eflags", "flags", "r16", "ecx.base"}) {
    EXPECT_FALSE(set_register(state, name, 1)) << name;
    EXPECT_FALSE(get_register(state, name).has_value()) << name;
  }
  CpuState narrow;
  for (const char* name : {"rax", "r8", "rip", "cr8", "efer", "xcr0"}) {
    EXPECT_FALSE(set_register(narrow, name, 1)) << name;
    EXPECT_FALSE(get_register(narrow, name).has_value()) << name;
  }
}

TEST(Registers, HaveSixteenBitNames) {
  CpuState state;
  state.gpr[kEbx] = 0xaabbccdd;
  EXPECT_TRUE(set_register(state, "bx", 0x91122));
  EXPECT_EQ(state.gpr[kEbx], 0xaabb1122U);
  EXPECT_EQ(get_register(state, "bx"), 0x1122U);
  EXPECT_TRUE(set_register(state, "flags", 0xf246));
  EXPECT_EQ(state.eflags, 0xf246U);
}

TEST(Registers, RefuseOtherNames) {
  CpuState state;
  const CpuState before = state;
  for (const char* name : {"", "e", "eex", "cs.", "cs.foo", "gdtr", "gdtr.selector", "dr8", "dr",
                           "cr1", "CS", "eax.base", ".base", "fx"}) {
    EXPECT_FALSE(set_register(state, name, 1)) << name;
    EXPECT_FALSE(get_register(state, name).has_value()) << name;
  }
  EXPECT_TRUE(state == before);
}

TEST(Registers, GiveTheBaseOfASelectorInRealModeOnly) {
  CpuState state;
  set_register(state, "cs", 0xf000);
  EXPECT_EQ(state.segment[kCs].base, 0xf0000U);
  state.cr0 |= 1;
  set_register(state, "cs", 0x10);
  EXPECT_EQ(state.segment[kCs].base, 0xf0000U);
}

/// Where it comes from, the better source first.
TEST(Smbase, IsTakenFromTheStateThenTheFirstSmiThenAReset) {
  for (const CpuModel model : {CpuModel::i386, CpuModel::i486, CpuModel::pentium, CpuModel::p6}) {
    CpuState nothing;
    nothing.model = model;
    nothing.unknown = {"eax", "smbase"};
    CpuState state = nothing;
    settle_smbase(state, std::nullopt);
    EXPECT_THAT(state.unknown, ElementsAre("eax", "smbase"));

    state = nothing;
    settle_smbase(state, 0xa0000);
    EXPECT_EQ(state.smbase, 0xa0000U);
    EXPECT_THAT(state.unknown, ElementsAre("eax"));

    state = nothing;
    state.msrs = {{0x9e, 0x7f00000}};
    settle_smbase(state, 0xa0000);
    EXPECT_EQ(state.smbase, 0x7f00000U);
    EXPECT_THAT(state.unknown, ElementsAre("eax"));

    state = nothing;
    state.unknown = {"eax"};
    state.smbase = 0xb0000;
    settle_smbase(state, 0xa0000);
    EXPECT_EQ(state.smbase, 0xb0000U);

    state = nothing;
    state.segment[kCs] = {0xf000, 0xffff0000, 0xffff, 0x93, false};
    state.eip = 0xfff0;
    settle_smbase(state, std::nullopt);
    EXPECT_EQ(state.smbase, 0x30000U);
    EXPECT_THAT(state.unknown, ElementsAre("eax"));

    // A program that jumps to the reset vector resets nothing.
    state = nothing;
    state.segment[kCs] = {0xf000, 0xf0000, 0xffff, 0x93, false};
    state.eip = 0xfff0;
    settle_smbase(state, std::nullopt);
    EXPECT_THAT(state.unknown, Contains("smbase"));
  }
}

TEST(FpuState, IsAsAfterFninit) {
  const auto fx = CpuState::default_fx();
  EXPECT_EQ(fx[0] | fx[1] << 8, 0x037f);
  EXPECT_EQ(fx[24] | fx[25] << 8, 0x1f80);
  EXPECT_EQ(fx[4], 0);  // abridged tags: all empty
}

class StateJson : public test::TemporaryFolder {
 protected:
  CpuState parse(const std::string& text) {
    store("state.json", text);
    return load_state_json(path("state.json"));
  }
  std::string error(const std::string& text) {
    try {
      parse(text);
    } catch (const FormatError& e) {
      const std::string what = e.what();
      return what.substr(what.find("state.json"));
    }
    return "accepted";
  }
};

TEST_F(StateJson, SetsWhatIsNamedAndListsTheRest) {
  const CpuState state = parse(
      R"({"cpu":"8088","registers":{"cs":"0x0f23","ip":"0x0a48","flags":"0xf246","ax":15,
          "bx":"2","cx":"3","dx":"4","sp":"0xfffe","ss":"0x1589","ds":"0","es":"0"}})");
  EXPECT_EQ(state.model, CpuModel::i8088);
  EXPECT_EQ(state.segment[kCs].selector, 0x0f23);
  EXPECT_EQ(state.segment[kCs].base, 0xf230U);
  EXPECT_EQ(state.eip, 0xa48U);
  EXPECT_EQ(state.eflags, 0xf246U);
  EXPECT_EQ(state.gpr[kEax], 15U);
  EXPECT_THAT(state.unknown, ElementsAre("ebp", "esi", "edi", "fx"));
}

TEST_F(StateJson, TakesTheModeFromCr0BeforeSelectors) {
  const CpuState state =
      parse(R"({"cpu":"386","registers":{"ds":"0x10","cr0":"0x11","ds.base":"0x400"}})");
  EXPECT_EQ(state.segment[kDs].base, 0x400U);
  EXPECT_THAT(state.unknown, Contains("ds.limit"));
  EXPECT_THAT(state.unknown, Contains("cs.base"));
  EXPECT_THAT(state.unknown, Not(Contains("ds.base")));
}

TEST_F(StateJson, TakesTheRegistersOfLongMode) {
  const CpuState state = parse(
      R"({"registers":{"rax":"0xfedcba9876543210","r15":15,"rip":"0xffffffff81000000","cr0":"0x80050033",
          "gs":0,"gs.base":"0xffff888007c00000","cr3":"0x1000","efer":"0xd01","rflags":2},"cpu":"x86-64"})");
  EXPECT_EQ(state.model, CpuModel::x86_64);
  ASSERT_TRUE(state.long_mode.has_value());
  EXPECT_EQ(state.gpr[kEax], 0x76543210U);
  EXPECT_EQ(state.long_mode->gpr_high[kEax], 0xfedcba98U);
  EXPECT_EQ(state.long_mode->r[7], 15U);
  EXPECT_EQ(state.eip, 0x81000000U);
  EXPECT_EQ(state.long_mode->rip_high, 0xffffffffU);
  EXPECT_EQ(state.long_mode->base_high[kGs], 0xffff8880U);
  EXPECT_EQ(state.long_mode->efer, 0xd01U);
  EXPECT_THAT(state.unknown, Contains("r14"));
  EXPECT_THAT(state.unknown, Contains("cr8"));
  EXPECT_THAT(state.unknown, Not(Contains("gs.base")));
  EXPECT_THAT(error(R"({"cpu":"x86-64","registers":{"eax":1}})"),
              HasSubstr("\"eax\": expected the name of a register"));
  EXPECT_THAT(error(R"({"cpu":"p6","registers":{"rax":1}})"),
              HasSubstr("\"rax\": expected the name of a register"));
}

TEST_F(StateJson, TakesSmbase) {
  const CpuState state = parse(R"({"cpu":"486","registers":{"smbase":"0xa0000"}})");
  EXPECT_EQ(state.smbase, 0xa0000U);
  EXPECT_THAT(state.unknown, Not(Contains("smbase")));
  EXPECT_THAT(parse(R"({"cpu":"486","registers":{}})").unknown, Contains("smbase"));
  EXPECT_THAT(parse(R"({"cpu":"286","registers":{}})").unknown, Not(Contains("smbase")));
}

TEST_F(StateJson, ReadsMsrsInOrder) {
  const CpuState state = parse(
      R"({"cpu":"p6","comment":"x","ram_bytes":4096,"msrs":{"0x176":"7","0x174":"0x60"},"registers":{}})");
  ASSERT_EQ(state.msrs.size(), 2U);
  EXPECT_EQ(state.msrs[0].index, 0x174U);
  EXPECT_EQ(state.msrs[0].value, 0x60U);
  EXPECT_EQ(state.ram_bytes, 4096U);
}

TEST_F(StateJson, ReadsLeavesOfCpuidInOrder) {
  const CpuState state = parse(
      R"({"cpu":"p6","registers":{},"cpuid":{
          "0x80000001":{"eax":0,"ebx":0,"ecx":"0x20","edx":0},
          "13":[{"eax":7,"ebx":0,"ecx":0,"edx":0},{"eax":"0xf","ebx":0,"ecx":0,"edx":0}]}})");
  const std::vector<CpuidLeaf> told = {
      {13, 7, 0, 0, 0}, {13, 15, 0, 0, 0}, {0x80000001, 0, 0, 32, 0}};
  EXPECT_EQ(state.cpuid, told);
}

TEST_F(StateJson, TakesNoLeafOfCpuidInPart) {
  EXPECT_THAT(error(R"({"registers":{},"cpuid":[]})"), HasSubstr("expected an object"));
  EXPECT_THAT(error(R"({"registers":{},"cpuid":{"x":{}}})"), HasSubstr("number of 32 bits"));
  for (const char* part :
       {R"({})", R"({"eax":1})", "7", R"([[]])", R"({"eax":0,"ebx":0,"ecx":0,"edi":0})",
        R"({"eax":0,"ebx":0,"ecx":0,"edx":0,"edi":0})"}) {
    const std::string text = std::string(R"({"registers":{},"cpuid":{"0x7":)") + part + "}}";
    EXPECT_THAT(error(text), HasSubstr("\"0x7\": expected")) << part;
  }
  EXPECT_THAT(
      error(R"({"registers":{},"cpuid":{"7":{"eax":"0x1ffffffff","ebx":0,"ecx":0,"edx":0}}})"),
      HasSubstr("number of 32 bits"));
}

TEST_F(StateJson, NamesTheOffendingKey) {
  EXPECT_THAT(error(R"({"registers":{"eex":"1"}})"), HasSubstr("state.json:14: \"eex\""));
  EXPECT_THAT(error(R"({"registers":{"cs":"0x10000"}})"), HasSubstr("a number of 16 bits"));
  EXPECT_THAT(error(R"({"registers":{"eax":-1}})"), HasSubstr("\"eax\""));
  EXPECT_THAT(error(R"({"registers":{"eax":"12x"}})"), HasSubstr("\"12x\""));
  EXPECT_THAT(error(R"({"registers":{"eax":"1","ax":"1"}})"), HasSubstr("once"));
  EXPECT_THAT(error(R"({"cpu":"z80","registers":{}})"), HasSubstr("z80"));
  EXPECT_THAT(error(R"({"cpu":"386"})"), HasSubstr("\"registers\""));
  EXPECT_THAT(error(R"({"registers":{},"extra":1})"), HasSubstr("\"extra\""));
  EXPECT_THAT(error(R"([])"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error("{\"registers\":"), HasSubstr("expected JSON"));
  EXPECT_THAT(error(""), HasSubstr("expected JSON"));
  EXPECT_THAT(error(R"({"registers":{"eax":1e999}})"), HasSubstr("numbers of ordinary size"));
  EXPECT_THAT(
      error(R"({"registers":{"eax":)" + std::string(100000, '[') + std::string(100000, ']') + "}}"),
      HasSubstr("array"));
}

}  // namespace
}  // namespace citcat
