#pragma once
// Reads the ground truth of the machine captures (format: data/machine/FORMAT.md, section 5 of the
// shared data): what an independent simulator executed, with every access and the registers after.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/input.h"

namespace citcat::test {

/// The folder with the shared test data: $CITCAT_SHARED, else ../shared beside the source tree.
/// Empty when there is none.
std::string shared_data_folder();

/// A dword block of a machine capture, by name ("eax", "cs_base", "fxsave+24", ..).
std::map<std::string, std::uint32_t> load_machine_state(const std::string& csv_path);

struct GoldenAccess {
  std::uint8_t size = 0;
  bool write = false;
  std::uint32_t linear = 0;
  std::uint32_t repetition = 0;
  std::array<std::uint8_t, 16> data{};
};

/// One start (or restart) of an instruction and what it did until it ended or was left.
struct GoldenStep {
  std::uint64_t icount = 0;
  std::uint16_t cs = 0;
  std::uint32_t eip = 0;
  std::uint32_t linear = 0;
  std::uint8_t length = 0;
  std::array<std::uint8_t, 16> bytes{};
  std::vector<GoldenAccess>
      accesses;            ///< data only: no page walks, no ports; up to the first event
  bool event = false;      ///< an exception, interrupt, INT, HLT .. happened in or right after it
  bool completed = false;  ///< registers follow
  std::uint32_t eflags = 0;
  std::array<std::uint32_t, 8> gpr{};  ///< after the instruction, when completed
  bool event_before = false;           ///< an event was recorded since the previous step ended
};

class GoldenTrace {
 public:
  explicit GoldenTrace(const std::string& path) : input_(path) {}
  /// The next step, or nullopt at the end.
  std::optional<GoldenStep> next();

 private:
  bool read_record();

  InputStream input_;
  std::array<std::uint8_t, 40> record_{};
  bool have_record_ = false;
};

}  // namespace citcat::test
