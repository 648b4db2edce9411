#pragma once
// The results of a tool in a shared object for a part of a run, as bytes: the same whichever
// process it ran in.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat::tools {

struct PluginState {
  std::string failure;              ///< Tool::failure()
  std::vector<std::uint8_t> bytes;  ///< what the tool saved; empty where it failed

  void write(ByteWriter& out) const;
  /// Throws FormatError for what write() never writes.
  static PluginState read(ByteReader& in);
};

}  // namespace citcat::tools
