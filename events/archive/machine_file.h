#pragma once
// An archive of several processors: what it says about all of them together.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/archive/machine_codec.h"
#include "events/archive/recording_file.h"
#include "events/processors/shared_bus.h"

namespace citcat {

class CrossCheck;

class MachineFile {
 public:
  /// Nothing for an archive of one processor, and where `path` names one of several ("x@1").
  /// Throws as RecordingFile::open() does.
  static std::optional<MachineFile> find(const std::string& path);

  std::size_t processors() const { return info_.processors; }
  const MachineInfo& info() const { return info_; }
  const std::string& path() const { return path_; }
  /// The name of one processor's recording.
  std::string name(std::size_t processor) const { return path_ + "@" + std::to_string(processor); }
  RecordingFile open(std::size_t processor) const { return RecordingFile::open(name(processor)); }
  /// In the order of clocks.
  const std::vector<BusNote>& notes() const { return notes_; }

 private:
  MachineFile() = default;

  std::string path_;
  MachineInfo info_;
  std::vector<BusNote> notes_;
};

/// Adds to a finished archive that its recordings are the processors of one machine. Notes in the
/// order of their clocks.
void add_machine(const std::string& path, const MachineInfo& machine,
                 std::span<const BusNote> notes);
/// Adds single bytes that another processor, or an emulator, changed: by processor, the
/// transactions that show them, ascending. RecordingFile::told_changes() has them.
void add_edges(const std::string& path, const std::vector<std::vector<std::uint64_t>>& edges);

/// The bus that these share: one recording of each processor, in their order.
SharedBus shared_bus_of(const MachineFile& machine, const std::vector<RecordingFile>& files);
/// Bytes of a cache line of that bus; 32 where there is no cache.
std::uint32_t shared_line_bytes(const Recording& recording);
/// The IDs of the processors' local APICs, to which messages go: what each processor reads from its
/// ID register or, if it does not read it, what CPUID says; the processors' numbers if neither is
/// known or two IDs are equal (Intel SDM vol. 3, 10.4.6).
std::vector<std::uint8_t> apic_ids_of(const std::vector<RecordingFile>& files);
/// A check for the events of shared_bus_of().
CrossCheck cross_check_of(const MachineFile& machine, const std::vector<RecordingFile>& files);
/// For each write of another bus master in the recording of `reader`, one of `files`, whether
/// another processor made it.
std::vector<bool> foreign_writes_of(const MachineFile& machine,
                                    const std::vector<RecordingFile>& files, std::size_t reader);
/// All recordings of it.
std::vector<RecordingFile> open_processors(const MachineFile& machine);

}  // namespace citcat
