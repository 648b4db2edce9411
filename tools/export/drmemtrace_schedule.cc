#include "tools/export/drmemtrace_schedule.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <span>
#include <tuple>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/zip/zip_writer.h"

namespace citcat::tools {
namespace {

/// DRMEMTRACE_SERIAL_SCHEDULE_FILENAME and DRMEMTRACE_CPU_SCHEDULE_FILENAME of DynamoRIO's
/// common/trace_entry.h.
constexpr const char* kSerialFile = "/serial_schedule.bin";
constexpr const char* kProcessorFile = "/cpu_schedule.bin.zip";

template <class T>
std::span<const std::uint8_t> bytes_of_all(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

bool DrmemtraceSchedule::comes_before(const Entry& a, const Entry& b) {
  return std::tie(a.time, a.processor, a.thread, a.instructions) <
         std::tie(b.time, b.processor, b.thread, b.instructions);
}

void DrmemtraceSchedule::add(std::uint64_t thread, std::uint64_t time, std::uint64_t processor,
                             std::uint64_t instructions) {
  const Entry entry{thread, time, processor, instructions};
  if (entries_.empty() || entries_.back() != entry) entries_.push_back(entry);
}

void DrmemtraceSchedule::append(const DrmemtraceSchedule& other) {
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void DrmemtraceSchedule::write(const std::string& folder) const {
  std::vector<Entry> all = entries_;
  std::sort(all.begin(), all.end(), comes_before);
  AtomicFile serial(folder + kSerialFile);
  serial.write(bytes_of_all(all));
  serial.commit();
  // For each processor: only the places at which another thread begins to run.
  std::map<std::uint64_t, std::vector<Entry>> of_processors;
  for (const Entry& entry : all) {
    std::vector<Entry>& its = of_processors[entry.processor];
    if (its.empty() || its.back().thread != entry.thread) its.push_back(entry);
  }
  ZipWriter zip(folder + kProcessorFile);
  for (const auto& [processor, entries] : of_processors) {
    zip.begin(std::to_string(processor));
    zip.write(bytes_of_all(entries));
  }
  zip.finish();
}

DrmemtraceSchedule DrmemtraceSchedule::read(const std::string& folder) {
  const std::string path = folder + kSerialFile;
  std::ifstream in(path, std::ios::binary);
  DrmemtraceSchedule schedule;
  Entry entry;
  while (in.read(reinterpret_cast<char*>(&entry), sizeof entry)) schedule.entries_.push_back(entry);
  if (!in.eof()) throw IoError(path + ": cannot be read");
  return schedule;
}

}  // namespace citcat::tools
