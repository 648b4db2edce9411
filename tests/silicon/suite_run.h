#pragma once
// Single-step tests of real processors, replayed by the product as what they are: tiny captures.
//
// A test's bus cycles go through the same derivation as any capture, the recording through the same
// replayer. What the processor left in registers and memory, and what it wrote in which order, is
// the test's own record and shares nothing with the replay.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/captures/moo.h"

namespace citcat::silicon {

enum class Outcome : std::uint8_t {
  equal,      ///< registers, flags, memory, order of writes and port traffic, bit for bit
  masked,     ///< only flags differ that the suite's authors declare undefined for the form
  explained,  ///< differs by a named rule
  unexplained,
};

struct TestResult {
  Outcome outcome = Outcome::unexplained;
  std::string rule;    ///< of `explained`
  std::string detail;  ///< what differs
};

struct FormResult {
  std::string form;                  ///< "F6.3"
  std::array<unsigned, 4> counts{};  ///< by Outcome
  std::map<std::string, unsigned> rules;
  std::vector<std::string> unexplained;  ///< one line a test
};

/// Flags that the suite compares, by form, from its metadata.json; forms without an entry compare
/// all. Empty when the file is absent.
std::map<std::string, std::uint16_t> read_flag_masks(const std::string& metadata_path);

/// The form of a file of the suite: "F6.3" of ".../F6.3.MOO.gz".
std::string form_of(const std::string& path);

/// Replays the first `limit` tests, each in a process of its own, so that one that ends the process
/// or never ends is a result like any other.
FormResult run_form(const MooFile& file, const std::string& form, std::uint16_t flag_mask,
                    std::size_t limit);

}  // namespace citcat::silicon
