#pragma once
// The options that `citcat record` gives to the plugin.

#include <cstdint>
#include <string>
#include <string_view>

#include "monitor/bus/bus_model.h"
#include "monitor/options/trigger.h"

namespace citcat::monitor {

struct PluginOptions {
  int data = -1, control = -1;  ///< descriptors: of the records, and of what is said of them
  std::string log;              ///< the file that the emulator logs interrupts to
  std::string ram;              ///< the memory backend that holds the guest's RAM
  /// For tests of the driver: where to write what it dumped beside what the emulator says; then it
  /// is all over. Empty: record.
  std::string probe;
  CacheModel cache = CacheModel::i486;
  Trigger start{Trigger::Kind::driver, 0, {}, {}}, stop;
  bool quit = false;  ///< end the emulator with the recording
  /// Leave the guest's memory as it is: the emulator repeats a run from its log, and would leave it
  /// where the guest found something corrected.
  bool observe = false;
  bool packs = false;  ///< records in chunks of RecordPacker, of one processor
  int processors = 1;
  /// The emulator takes up a run after so many instructions: what they did to the processor's model
  /// is asked of the emulator.
  std::uint64_t before = 0;
};

/// Takes one option, NAME=VALUE. False where it is not understood.
bool parse_plugin_option(std::string_view argument, PluginOptions& options);

}  // namespace citcat::monitor
