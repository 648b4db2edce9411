#include "capture/bus/channel_map.h"

#include <gtest/gtest.h>

#include "capture/bus/bus_decoder.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

SampleInfo pins_of_an_8088(const std::string& more) {
  SampleInfo info;
  info.name = "pins.csv";
  info.channels = {"AD0", "AD1", "AD2", "AD3", "AD4", "AD5", "AD6",
                   "AD7", "S0",  "S1",  "S2",  "CLK", more};
  return info;
}

TEST(ChannelMap, APinThatIsTakenByItsNameHasOneChannelOfThatName) {
  EXPECT_EQ(choose_bus(pins_of_an_8088("SPARE"), {}, CpuModel::unknown).required_missing, 0u);
  try {
    choose_bus(pins_of_an_8088("CLK"), {}, CpuModel::unknown);
    FAIL() << "one of two was taken";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("channels 11 and 12"), std::string::npos)
        << error.what();
  }
  ChannelMap map;
  map.pins["CLK"] = {"12", false};
  EXPECT_EQ(choose_bus(pins_of_an_8088("CLK"), map, CpuModel::unknown).required_missing, 0u);
}

}  // namespace
}  // namespace citcat
