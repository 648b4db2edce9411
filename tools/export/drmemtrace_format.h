#pragma once
// Numbers of DynamoRIO's drmemtrace format, as its published header has them:
// clients/drcachesim/common/trace_entry.h of DynamoRIO, commit 05e316505 (7 August 2026).

#include <cstdint>

namespace citcat::tools {

/// trace_type_t.
enum class DrEntry : std::uint16_t {
  read = 0,
  write = 1,
  instruction = 10,
  direct_jump = 11,
  indirect_jump = 12,
  direct_call = 14,
  indirect_call = 15,
  returns = 16,
  thread = 22,
  thread_exit = 23,
  process = 24,
  header = 25,
  footer = 26,
  marker = 28,
  no_fetch = 29,
  sysenter = 31,
  encoding = 47,
  taken_jump = 48,
  untaken_jump = 49,
};

/// trace_marker_type_t.
enum class DrMarker : std::uint16_t {
  kernel_event = 0,
  kernel_transfer = 1,
  timestamp = 2,
  cpu = 3,
  file_type = 9,
  cache_line_size = 10,
  version = 12,
  physical_address = 15,
  virtual_address = 17,
  page_size = 18,
  chunk_instructions = 20,
  chunk_footer = 21,
  record_ordinal = 22,
  system_call = 25,
  branch_target = 29,
  hardware_event = 43,
  hardware_return = 44,
};

/// offline_file_type_t.
enum DrFileType : std::uint64_t {
  kDrArchX86_32 = 0x20,
  kDrArchX86_64 = 0x40,
  kDrEncodings = 0x200,
  kDrSystemCallNumbers = 0x400,
  kDrCoreSharded = 0x10000,
  kDrWholeSystem = 0x40000,
};

/// TRACE_ENTRY_VERSION_BRANCH_INFO: taken and untaken jumps, targets of indirect branches.
constexpr std::uint64_t kDrVersion = 5;

}  // namespace citcat::tools
