// Channel maps that come with the program: one row for each probe set-up that people use.

#include "capture/bus/channel_map.h"

namespace citcat {
namespace {

const ChannelPreset kPresets[] = {
    // The order of the channels in marty_tools' bus_sniffer captures (github.com/dbalsom/
    // marty_tools), which files without channel names keep.
    {"ibm5150-sniffer", "IBM PC/XT 8088 with chipset probes, 33 channels of a DSLogic U3Pro32", 33,
     R"({"bus": "8088-max",
         "lanes": {"AD": [0, 1, 2, 3, 4, 5, 6, 7],
                   "A8": [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 32]},
         "pins": {"CLK": 20, "QS0": 22, "QS1": 23, "S0": 24, "S1": 25, "S2": 26, "INTR": 28}})"},
};

}  // namespace

std::span<const ChannelPreset> channel_presets() { return kPresets; }

}  // namespace citcat
