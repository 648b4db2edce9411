#include "capture/processors/machine_import.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "capture/import/importer.h"
#include "capture/import/processor_capture.h"
#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "events/processors/external_edges.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// Imports one processor after the other.
class MachineImport {
 public:
  MachineImport(const std::vector<std::string>& paths, const MachineImportOptions& options,
                RecordingFileWriter& archive)
      : paths_(paths), options_(options), archive_(archive) {}

  /// Once.
  MachineImportResult run() {
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i) {
      import(i);
      count = std::max(count, seen_);
    }
    if (options_.internal_paths.size() > count) {
      throw UsageError("--internal " + std::to_string(options_.internal_paths.size() - 1) +
                       "=...: the capture shows " + std::to_string(count) + " processors");
    }
    archive_.close();
    processors_ = count;
    return std::move(result_);
  }

  /// Appends the chunks that several processors share, after their recordings.
  void add_machine(const std::string& path) {
    machine_.processors = processors_;
    if (machine_.processors < 2) return;
    std::stable_sort(notes_.begin(), notes_.end(),
                     [](const BusNote& a, const BusNote& b) { return a.clock < b.clock; });
    citcat::add_machine(path, machine_, notes_);
  }

 private:
  void import(std::size_t number) {
    ImportOptions options = options_.each;
    options.capture.internal_path =
        number < options_.internal_paths.size() ? options_.internal_paths[number] : "";
    const auto reader =
        open_processor_capture(paths_, options.capture, static_cast<unsigned>(number));
    archive_.select(number);
    std::optional<Recording> recording;
    {
      TransactionStream stream(*reader, options.progress);
      recording = Importer(stream, options, &archive_).run();
    }
    // All transactions of several processors are counted: one that shows none has executed none.
    if (!recording->instructions) recording->instructions = 0;
    const SharedBusFacts& facts = reader->facts();
    reach_values(*recording, facts.reach);
    require_order(facts);
    for (std::size_t p = 0; p < facts.processors.size(); ++p) {
      if (facts.processors.test(p)) seen_ = std::max(seen_, p + 1);
    }
    machine_.shows_sharing = facts.shows_sharing;
    notes_.insert(notes_.end(), facts.notes.begin(), facts.notes.end());
    if (number == 0) notes_.insert(notes_.end(), facts.of_others.begin(), facts.of_others.end());
    result_.processors.push_back(summarize(*recording));
    add_to(result_.all, result_.processors.back());
    if (!options.provenance) strip_provenance(*recording, reader->info());
    archive_.select(number);
    archive_.add(*recording);
  }

  /// A processor that works within its caches leaves the bus to others for long: what it was told
  /// meanwhile shows how far it came.
  static void reach_values(Recording& recording, std::uint64_t reach) {
    if (recording.end) return;
    std::uint64_t reached = *recording.instructions;
    for (const InternalRead& read : recording.internal_reads) {
      if (!read.position_known) continue;
      // Those that go on after that are of a longer run, from which the capture was cut: which of
      // them it still reached is not known.
      if (read.position.instruction > reach) return;
      reached = std::max(reached, read.position.instruction + 1);
    }
    recording.instructions = reached;
  }

  void require_order(const SharedBusFacts& facts) const {
    if (!facts.falls) return;
    throw FormatError(paths_.front(), 0,
                      "expected clocks that show which processor was first, found one that falls, "
                      "at record " +
                          std::to_string(*facts.falls));
  }

  const std::vector<std::string>& paths_;
  const MachineImportOptions& options_;
  RecordingFileWriter& archive_;
  MachineInfo machine_;
  std::vector<BusNote> notes_;
  std::size_t processors_ = 0;
  std::size_t seen_ = 0;  ///< the highest number of a processor that drove something, and one
  MachineImportResult result_;
};

/// The single bits among external writes that other processors made: what one of them alone would
/// have to take for a bit that was captured wrongly. `ordinals`: of those that they made.
std::vector<std::uint64_t> single_edges(const Recording& recording,
                                        const std::vector<std::size_t>& ordinals) {
  std::vector<std::uint64_t> edges;
  auto known = ordinals.begin();
  std::size_t ordinal = 0;
  for (const ExternalWrite& write : recording.external_writes) {
    if (known == ordinals.end()) break;
    if (*known == ordinal++) {
      ++known;
      if (write.data.size() == 1) edges.push_back(write.transaction);
    }
  }
  return edges;
}

/// The same without the external writes whose ordinals are listed.
Recording without(const Recording& recording, const std::vector<std::size_t>& ordinals) {
  Recording less = recording.clone();
  less.external_writes = {};
  auto out = ordinals.begin();
  std::size_t ordinal = 0;
  for (const ExternalWrite& write : recording.external_writes) {
    if (out != ordinals.end() && *out == ordinal++) {
      ++out;
    } else {
      less.external_writes.push_back(write);
    }
  }
  return less;
}

bool is_same(const ExternalWrites& writes, const std::vector<ExternalWrite>& derived) {
  if (writes.size() != derived.size()) return false;
  auto other = derived.begin();
  return std::all_of(writes.begin(), writes.end(),
                     [&](const ExternalWrite& write) { return is_same_change(write, *other++); });
}

/// An archive on the way to the one that is wanted.
class WholeArchive {
 public:
  explicit WholeArchive(std::string path) : path_(std::move(path)) {}
  ~WholeArchive() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  WholeArchive(const WholeArchive&) = delete;
  WholeArchive& operator=(const WholeArchive&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Writes the archive anew, without what follows from all of it together.
class MachineArchive {
 public:
  MachineArchive(const MachineFile& machine, const ImportOptions& options)
      : machine_(machine), options_(options), files_(open_processors(machine)) {}

  void write(const std::string& path) {
    CrossCheck check = cross_check_of(machine_, files_);
    SharedBus bus = shared_bus_of(machine_, files_);
    (void)check_shared_bus(bus, check);
    MachineInfo info = machine_.info();
    info.leaves_out = leave_out(check);
    std::vector<std::vector<std::uint64_t>> edges;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      std::vector<std::size_t> told;
      const std::vector<std::size_t>& all = check.told_by_others()[i];
      // Reads that are left out have their values from other processors.
      const std::vector<std::size_t> out =
          info.leaves_out ? check.from_others()[i] : std::vector<std::size_t>{};
      std::set_difference(all.begin(), all.end(), out.begin(), out.end(), std::back_inserter(told));
      edges.push_back(single_edges(files_[i].recording(), told));
    }
    write_recordings(path);
    add_machine(path, info, machine_.notes());
    const bool any =
        std::any_of(edges.begin(), edges.end(), [](const auto& e) { return !e.empty(); });
    if (any) add_edges(path, edges);
  }

 private:
  std::uint32_t ram_bytes() const { return files_.front().recording().initial.ram_bytes; }

  /// What is written of each; false where something does not follow, so that all is kept.
  bool leave_out(const CrossCheck& check) {
    std::vector<ProcessorShare> shares;
    for (std::size_t i = 0; i < files_.size(); ++i)
      less_.push_back(without(files_[i].recording(), check.from_others()[i]));
    for (std::size_t i = 0; i < files_.size(); ++i)
      shares.push_back({&less_[i], files_[i].evidence()});
    const auto derived = derive_external_writes(std::move(shares), machine_.notes(), ram_bytes());
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (is_same(files_[i].recording().external_writes, derived[i])) continue;
      less_.clear();
      return false;
    }
    return true;
  }

  void write_recordings(const std::string& path) const {
    RecordingFileWriter archive(path, {.evidence_level = options_.level});
    for (std::size_t i = 0; i < files_.size(); ++i) {
      archive.select(i);
      const std::unique_ptr<EvidenceReader> evidence = files_[i].evidence();
      for (BusTransaction t; evidence->next(t);) archive.write(t);
      archive.add(less_.empty() ? files_[i].recording() : less_[i]);
    }
    archive.close();
  }

  const MachineFile& machine_;
  const ImportOptions& options_;
  std::vector<RecordingFile> files_;
  std::vector<Recording> less_;
};

}  // namespace

MachineImportResult import_machine(const std::vector<std::string>& paths,
                                   const MachineImportOptions& options,
                                   const std::string& out_path) {
  const WholeArchive whole(out_path + "-whole");
  MachineImportResult result;
  {
    RecordingFileWriter archive(whole.path(), {.passing = true, .evidence_level = 1});
    MachineImport all(paths, options, archive);
    result = all.run();
    all.add_machine(whole.path());
  }
  if (const auto machine = MachineFile::find(whole.path())) {
    MachineArchive(*machine, options.each).write(out_path);
  } else {
    std::filesystem::rename(whole.path(), out_path);
  }
  return result;
}

}  // namespace citcat
