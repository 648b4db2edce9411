#include "events/archive/machine_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "events/archive/container.h"
#include "events/archive/machine_chunks.h"
#include "events/archive/recording_codec.h"
#include "events/processors/cross_check.h"
#include "events/processors/foreign_writes.h"

namespace citcat {
namespace {

constexpr ZstdOptions kSmallest{19, 0};

}  // namespace

std::optional<MachineFile> MachineFile::find(const std::string& path) {
  const RecordingName name = parse_recording_name(path);
  if (name.number) return std::nullopt;
  MachineChunks chunks = machine_chunks(ContainerReader(name.path));
  if (chunks.info.processors == 0) return std::nullopt;
  MachineFile machine;
  machine.path_ = name.path;
  machine.info_ = chunks.info;
  machine.notes_ = std::move(chunks.notes);
  return machine;
}

void add_machine(const std::string& path, const MachineInfo& machine,
                 std::span<const BusNote> notes) {
  ContainerAppender container(path);
  container.add(kMachineChunk, encode_machine(machine), kSmallest);
  while (!notes.empty()) {
    const auto piece = notes.first(std::min(notes.size(), kEventChunkRows));
    container.add(kBusNoteChunk, encode_bus_notes(piece), kSmallest);
    notes = notes.subspan(piece.size());
  }
  container.finish();
}

void add_edges(const std::string& path, const std::vector<std::vector<std::uint64_t>>& edges) {
  ContainerAppender container(path);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    std::span<const std::uint64_t> left(edges[i]);
    while (!left.empty()) {
      const auto piece = left.first(std::min(left.size(), kEventChunkRows));
      container.add(kEdgeChunk, encode_edges({i, {piece.begin(), piece.end()}}), kSmallest);
      left = left.subspan(piece.size());
    }
  }
  container.finish();
}

SharedBus shared_bus_of(const MachineFile& machine, const std::vector<RecordingFile>& files) {
  std::vector<ProcessorShare> shares;
  for (const RecordingFile& file : files) shares.push_back({&file.recording(), file.evidence()});
  return SharedBus(std::move(shares), machine.notes());
}

std::vector<bool> foreign_writes_of(const MachineFile& machine,
                                    const std::vector<RecordingFile>& files, std::size_t reader) {
  std::vector<ShownByte> bytes;
  for (const ExternalWrite& write : files[reader].recording().external_writes) {
    bytes.push_back({write.address, write.transaction});
  }
  SharedBus bus = shared_bus_of(machine, files);
  std::vector<bool> foreign;
  for (const auto& by : find_foreign_writes(bus, static_cast<std::uint8_t>(reader), bytes)) {
    foreign.push_back(by.has_value());
  }
  return foreign;
}

std::uint32_t shared_line_bytes(const Recording& recording) {
  constexpr std::uint32_t kOfTheP6 = 32;
  return recording.bus.line_bytes != 0 ? recording.bus.line_bytes : kOfTheP6;
}

std::vector<std::uint8_t> apic_ids_of(const std::vector<RecordingFile>& files) {
  constexpr PhysAddr kIdRegister{kApicRegisters + 0x23};  // its highest byte
  std::vector<std::uint8_t> ids, numbers;
  for (const RecordingFile& file : files) {
    const Recording& recording = file.recording();
    std::optional<std::uint8_t> id = recording.image.byte(kIdRegister);
    for (const CpuidLeaf& leaf : recording.initial.cpuid) {
      if (!id && leaf.leaf == 1) id = static_cast<std::uint8_t>(leaf.ebx >> 24);
    }
    if (id) ids.push_back(*id);
    numbers.push_back(static_cast<std::uint8_t>(numbers.size()));
  }
  const std::set<std::uint8_t> different(ids.begin(), ids.end());
  return different.size() == files.size() ? ids : numbers;
}

CrossCheck cross_check_of(const MachineFile& machine, const std::vector<RecordingFile>& files) {
  const Recording& first = files.front().recording();
  return CrossCheck(apic_ids_of(files), first.initial.ram_bytes, machine.info().shows_sharing,
                    shared_line_bytes(first));
}

std::vector<RecordingFile> open_processors(const MachineFile& machine) {
  std::vector<RecordingFile> files;
  for (std::size_t i = 0; i < machine.processors(); ++i) files.push_back(machine.open(i));
  return files;
}

}  // namespace citcat
