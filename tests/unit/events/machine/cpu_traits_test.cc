#include "events/machine/cpu_traits.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

struct Pins {
  CpuModel model;
  unsigned address, port_bytes;
};

TEST(CpuModelName, ReadsBackEveryNameAndNothingElse) {
  const std::vector<std::string> names = {"8086", "8088", "80186", "80188",   "v20", "v30",
                                          "286",  "386",  "486",   "pentium", "p6",  "x86-64"};
  EXPECT_EQ(cpu_model_names(), names);
  EXPECT_EQ(cpu_model_names_text(),
            "8086, 8088, 80186, 80188, v20, v30, 286, 386, 486, pentium, p6 or x86-64");
  for (const std::string& name : names) {
    const auto model = parse_cpu_model(name);
    ASSERT_TRUE(model.has_value()) << name;
    EXPECT_EQ(cpu_model_name(*model), name);
  }
  for (const char* name : {"", "unknown", "80386", "P6", "4866", "x86_64"}) {
    EXPECT_FALSE(parse_cpu_model(name).has_value()) << name;
  }
}

TEST(CpuTraits, HaveThePinsOfTheDataSheets) {
  for (const Pins& p :
       {Pins{CpuModel::i8086, 20, 2}, Pins{CpuModel::i8088, 20, 2}, Pins{CpuModel::i80186, 20, 2},
        Pins{CpuModel::v20, 20, 2}, Pins{CpuModel::i286, 24, 2}, Pins{CpuModel::i386, 32, 4},
        Pins{CpuModel::i486, 32, 4}, Pins{CpuModel::pentium, 32, 4}, Pins{CpuModel::p6, 32, 4}}) {
    EXPECT_EQ(cpu_traits(p.model).address_pins, p.address) << cpu_model_name(p.model);
    EXPECT_EQ(cpu_traits(p.model).port_bytes, p.port_bytes) << cpu_model_name(p.model);
    EXPECT_EQ(cpu_traits(p.model).sixteen_bit, p.port_bytes == 2) << cpu_model_name(p.model);
  }
}

TEST(CpuTraits, GrowFromOneProcessorToTheNext) {
  InstructionSet last = InstructionSet::i8088;
  for (const CpuModel model :
       {CpuModel::i286, CpuModel::i386, CpuModel::i486, CpuModel::pentium, CpuModel::p6}) {
    const CpuTraits& t = cpu_traits(model);
    EXPECT_GT(t.instructions, last) << cpu_model_name(model);
    EXPECT_TRUE(t.has_limits && t.has_invalid_opcodes) << cpu_model_name(model);
    last = t.instructions;
  }
  EXPECT_FALSE(cpu_traits(CpuModel::i8088).has_limits);
  EXPECT_FALSE(cpu_traits(CpuModel::i486).has_cr4);
  EXPECT_TRUE(cpu_traits(CpuModel::pentium).has_cr4);
}

TEST(CpuTraits, OfX8664AreThoseOfTheP6WithLongMode) {
  CpuTraits wide = cpu_traits(CpuModel::x86_64);
  EXPECT_TRUE(wide.has_long_mode);
  for (const CpuModel model : {CpuModel::unknown, CpuModel::i8088, CpuModel::i286, CpuModel::i386,
                               CpuModel::i486, CpuModel::pentium, CpuModel::p6}) {
    EXPECT_FALSE(cpu_traits(model).has_long_mode) << cpu_model_name(model);
  }
  EXPECT_EQ(wide.instructions, InstructionSet::p6);
  EXPECT_EQ(wide.port_bytes, 4);
  EXPECT_TRUE(wide.has_sysenter);
}

TEST(CpuTraits, OfAnUnknownProcessorAreTheNewestOnAnyBus) {
  const CpuTraits &unknown = cpu_traits(CpuModel::unknown), &newest = cpu_traits(CpuModel::p6);
  EXPECT_EQ(unknown.instructions, newest.instructions);
  EXPECT_TRUE(unknown.has_sysenter);
  EXPECT_TRUE(unknown.sizes_bus);
  EXPECT_FALSE(newest.sizes_bus);
}

}  // namespace
}  // namespace citcat::test
