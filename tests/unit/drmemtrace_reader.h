#pragma once
// Reads a trace as DynamoRIO's drmemtrace tools do, and knows their numbers without ours: each list
// has the names in the order of the published header, clients/drcachesim/common/trace_entry.h of
// DynamoRIO, commit 05e316505, where a number is a place in an enumeration. What is checked of each
// file are rules of its reader (reader/reader.cpp, reader/file_reader.h) and of its invariant
// checker (tools/invariant_checker.cpp).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace citcat::drmemtrace {

/// trace_type_t.
inline constexpr std::string_view kDrTypes[] = {"READ",
                                                "WRITE",
                                                "PREFETCH",
                                                "PREFETCHT0",
                                                "PREFETCHT1",
                                                "PREFETCHT2",
                                                "PREFETCHNTA",
                                                "PREFETCH_READ",
                                                "PREFETCH_WRITE",
                                                "PREFETCH_INSTR",
                                                "INSTR",
                                                "INSTR_DIRECT_JUMP",
                                                "INSTR_INDIRECT_JUMP",
                                                "INSTR_CONDITIONAL_JUMP",
                                                "INSTR_DIRECT_CALL",
                                                "INSTR_INDIRECT_CALL",
                                                "INSTR_RETURN",
                                                "INSTR_BUNDLE",
                                                "INSTR_FLUSH",
                                                "INSTR_FLUSH_END",
                                                "DATA_FLUSH",
                                                "DATA_FLUSH_END",
                                                "THREAD",
                                                "THREAD_EXIT",
                                                "PID",
                                                "HEADER",
                                                "FOOTER",
                                                "HARDWARE_PREFETCH",
                                                "MARKER",
                                                "INSTR_NO_FETCH",
                                                "INSTR_MAYBE_FETCH",
                                                "INSTR_SYSENTER",
                                                "PREFETCH_READ_L1_NT",
                                                "PREFETCH_READ_L2_NT",
                                                "PREFETCH_READ_L3_NT",
                                                "PREFETCH_INSTR_L1",
                                                "PREFETCH_INSTR_L1_NT",
                                                "PREFETCH_INSTR_L2",
                                                "PREFETCH_INSTR_L2_NT",
                                                "PREFETCH_INSTR_L3",
                                                "PREFETCH_INSTR_L3_NT",
                                                "PREFETCH_WRITE_L1",
                                                "PREFETCH_WRITE_L1_NT",
                                                "PREFETCH_WRITE_L2",
                                                "PREFETCH_WRITE_L2_NT",
                                                "PREFETCH_WRITE_L3",
                                                "PREFETCH_WRITE_L3_NT",
                                                "ENCODING",
                                                "INSTR_TAKEN_JUMP",
                                                "INSTR_UNTAKEN_JUMP"};

/// trace_marker_type_t.
inline constexpr std::string_view kDrMarkers[] = {"KERNEL_EVENT",
                                                  "KERNEL_XFER",
                                                  "TIMESTAMP",
                                                  "CPU_ID",
                                                  "FUNC_ID",
                                                  "FUNC_RETADDR",
                                                  "FUNC_ARG",
                                                  "FUNC_RETVAL",
                                                  "SPLIT_VALUE",
                                                  "FILETYPE",
                                                  "CACHE_LINE_SIZE",
                                                  "INSTRUCTION_COUNT",
                                                  "VERSION",
                                                  "RSEQ_ABORT",
                                                  "WINDOW_ID",
                                                  "PHYSICAL_ADDRESS",
                                                  "PHYSICAL_ADDRESS_NOT_AVAILABLE",
                                                  "VIRTUAL_ADDRESS",
                                                  "PAGE_SIZE",
                                                  "SYSCALL_IDX",
                                                  "CHUNK_INSTR_COUNT",
                                                  "CHUNK_FOOTER",
                                                  "RECORD_ORDINAL",
                                                  "FILTER_ENDPOINT",
                                                  "RSEQ_ENTRY",
                                                  "SYSCALL",
                                                  "MAYBE_BLOCKING_SYSCALL",
                                                  "SYSCALL_TRACE_START",
                                                  "SYSCALL_TRACE_END",
                                                  "BRANCH_TARGET",
                                                  "SYSCALL_FAILED",
                                                  "DIRECT_THREAD_SWITCH",
                                                  "CORE_WAIT",
                                                  "CORE_IDLE",
                                                  "CONTEXT_SWITCH_START",
                                                  "CONTEXT_SWITCH_END",
                                                  "VECTOR_LENGTH",
                                                  "SYSCALL_UNSCHEDULE",
                                                  "SYSCALL_SCHEDULE",
                                                  "SYSCALL_ARG_TIMEOUT",
                                                  "SIGNAL_NUMBER",
                                                  "UNCOMPLETED_INSTRUCTION",
                                                  "MIDBLOCK_END_PC",
                                                  "HARDWARE_EVENT",
                                                  "HARDWARE_CONTEXT_RETURN",
                                                  "KERNEL_EVENT_RAW",
                                                  "SKIPPED_MEMREF"};

/// offline_file_type_t, by the number of the bit.
inline constexpr std::string_view kDrFileTypes[] = {"FILTERED",
                                                    "NO_OPTIMIZATIONS",
                                                    "INSTRUCTION_ONLY",
                                                    "ARCH_AARCH64",
                                                    "ARCH_ARM32",
                                                    "ARCH_X86_32",
                                                    "ARCH_X86_64",
                                                    "IFILTERED",
                                                    "DFILTERED",
                                                    "ENCODINGS",
                                                    "SYSCALL_NUMBERS",
                                                    "BLOCKING_SYSCALLS",
                                                    "KERNEL_SYSCALLS",
                                                    "BIMODAL_FILTERED_WARMUP",
                                                    "KERNEL_SYSCALL_TRACE_TEMPLATES",
                                                    "KERNEL_SYSCALL_INSTR_ONLY",
                                                    "CORE_SHARDED",
                                                    "ARCH_REGDEPS",
                                                    "WHOLE_SYSTEM"};

/// TRACE_ENTRY_VERSION_BRANCH_INFO, the first that has targets of branches, and the latest.
inline constexpr std::uint64_t kDrBranchInfo = 5, kDrLatest = 7;

/// An instruction, or a further iteration of a REP.
struct DrInstruction {
  struct Access {
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    bool write = false;
  };
  std::string_view type;
  std::uint64_t address = 0, target = 0;  ///< target: of an indirect branch
  std::uint32_t size = 0;
  std::string code;
  bool kernel = false;  ///< within a hardware event
  std::uint64_t thread = 0, cpu = 0;
  std::vector<Access> accesses;
  bool fetched() const { return type != "INSTR_NO_FETCH"; }
};

/// One file, or several put together in the order of their timestamps.
struct DrTrace {
  std::vector<DrInstruction> instructions;
  std::map<std::string_view, std::uint64_t> markers;  ///< how many there are
  std::set<std::string_view> file_type;
  std::set<std::uint64_t> threads;
  std::vector<std::string> problems;  ///< the first few
  std::size_t files = 1;

  std::uint64_t count(bool fetched, bool kernel) const {
    return static_cast<std::uint64_t>(std::count_if(
        instructions.begin(), instructions.end(),
        [&](const DrInstruction& i) { return i.fetched() == fetched && i.kernel == kernel; }));
  }
};

/// Reads one file.
class DrFileReader {
 public:
  explicit DrFileReader(std::size_t address_bytes) : address_bytes_(address_bytes) {}

  DrTrace read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    name_ = path.filename().string();
    const std::size_t size = 4 + address_bytes_;
    if (bytes_.size() % size != 0) problem("cut");
    for (at_ = 0; at_ + size <= bytes_.size(); at_ += size) {
      const std::uint64_t type = number(0, 2);
      if (type >= std::size(kDrTypes)) {
        problem("no such type");
      } else {
        take(kDrTypes[type], number(2, 2), number(4, address_bytes_));
      }
    }
    if (last_ != "FOOTER") problem("no footer");
    if (depth_ != 0) problem("an event does not return");
    if (exits_ != trace_.threads) problem("not each thread ends");
    if (!trace_.file_type.contains("CORE_SHARDED") && trace_.threads.size() != 1) {
      problem("a file of one thread has several");
    }
    return std::move(trace_);
  }
  /// For each instruction, the timestamp that was read last.
  const std::vector<std::uint64_t>& times() const { return times_; }

 private:
  std::uint64_t number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_ + offset, size);
    return value;
  }
  void problem(const std::string& text) {
    if (trace_.problems.size() < 5) {
      trace_.problems.push_back(name_ + ": " + text + " at " + std::to_string(at_));
    }
  }

  void take(std::string_view type, std::uint64_t size, std::uint64_t value) {
    if ((type == "HEADER") != (at_ == 0)) problem("a header elsewhere than at the beginning");
    if (last_ == "FOOTER") problem("an entry behind the footer");
    if (type == "HEADER" && (value < kDrBranchInfo || value > kDrLatest)) problem("the version");
    if (last_ == "THREAD" && type != "PID") problem("a thread without a process");
    const bool is_access = type == "READ" || type == "WRITE";
    if (is_access && trace_.instructions.empty()) problem("an access without an instruction");
    if (type == "THREAD") {
      thread_ = value;
      trace_.threads.insert(value);
      if (value == 0) problem("thread 0");
    } else if (type == "PID") {
      has_process_ = value != 0;
    } else if (type == "THREAD_EXIT") {
      exits_.insert(value);
    } else if (type == "MARKER") {
      take_marker(size, value);
    } else if (type == "ENCODING") {
      if (size > address_bytes_) problem("too much of an encoding");
      encoding_.append(bytes_, at_ + 4, size);
    } else if (is_access) {
      trace_.instructions.back().accesses.push_back(
          {value, static_cast<std::uint32_t>(size), type == "WRITE"});
    } else if (type.starts_with("INSTR")) {
      take_instruction(type, size, value);
    } else if (type != "HEADER" && type != "FOOTER") {
      problem("an unexpected " + std::string(type));
    }
    last_ = type;
  }

  void take_marker(std::uint64_t kind, std::uint64_t value) {
    if (kind >= std::size(kDrMarkers)) return problem("no such marker");
    const std::string_view marker = kDrMarkers[kind];
    ++trace_.markers[marker];
    const bool of_head = marker == "VERSION" || marker == "FILETYPE";
    if (!has_process_ && !of_head) problem("a marker before the process");
    const bool whole = trace_.file_type.contains("WHOLE_SYSTEM");
    if (whole ? marker.starts_with("KERNEL_") : marker.starts_with("HARDWARE_")) {
      problem(std::string(marker) + " in a file of another type");
    }
    if (marker == "FILETYPE") {
      for (std::size_t bit = 0; bit < 64; ++bit) {
        if ((value >> bit & 1) == 0) continue;
        if (bit >= std::size(kDrFileTypes)) return problem("no such type of a file");
        trace_.file_type.insert(kDrFileTypes[bit]);
      }
    } else if (marker == "TIMESTAMP") {
      if (value < time_) problem("time goes back");
      time_ = value;
    } else if (marker == "CPU_ID") {
      cpu_ = value;
    } else if (marker == "BRANCH_TARGET") {
      target_ = value;
      has_target_ = true;
    } else if (marker == "HARDWARE_EVENT") {
      if (++depth_ >= 30) problem("events are nested too deeply");
    } else if (marker == "HARDWARE_CONTEXT_RETURN" && --depth_ < 0) {
      problem("returned more often than entered");
    }
  }

  void take_instruction(std::string_view type, std::uint64_t size, std::uint64_t address) {
    if (thread_ == 0 || !has_process_) problem("an instruction of no thread");
    if (trace_.markers["PAGE_SIZE"] == 0 || trace_.markers["CACHE_LINE_SIZE"] == 0) {
      problem("an instruction before the sizes");
    }
    // Types that were before TRACE_ENTRY_VERSION_BRANCH_INFO, and those of the tracer alone.
    if (type == "INSTR_CONDITIONAL_JUMP" || type == "INSTR_BUNDLE" || type == "INSTR_MAYBE_FETCH" ||
        type.starts_with("INSTR_FLUSH")) {
      problem("an unexpected " + std::string(type));
    }
    const bool indirect =
        type == "INSTR_RETURN" || type == "INSTR_INDIRECT_JUMP" || type == "INSTR_INDIRECT_CALL";
    if (indirect != has_target_) problem("a target without a branch, or the reverse");
    if (!encoding_.empty()) encodings_[address] = encoding_;
    encoding_.clear();
    const auto code = encodings_.find(address);
    if (code == encodings_.end()) {
      problem("no encoding");
    } else if (code->second.size() != size) {
      problem("an encoding of another size");
    }
    trace_.instructions.push_back({type,
                                   address,
                                   target_,
                                   static_cast<std::uint32_t>(size),
                                   encodings_[address],
                                   depth_ > 0,
                                   thread_,
                                   cpu_,
                                   {}});
    times_.push_back(time_);
    target_ = 0;
    has_target_ = false;
  }

  std::size_t address_bytes_;
  std::string bytes_, name_;
  std::size_t at_ = 0;
  DrTrace trace_;
  std::vector<std::uint64_t> times_;
  std::string_view last_;
  std::uint64_t thread_ = 0, time_ = 0, target_ = 0, cpu_ = 0;
  bool has_process_ = false, has_target_ = false;
  int depth_ = 0;
  std::set<std::uint64_t> exits_;
  std::string encoding_;
  std::map<std::uint64_t, std::string> encodings_;
};

/// Reads a file, or a folder as -indir does: its files together.
inline DrTrace read_drmemtrace(const std::filesystem::path& path, std::size_t address_bytes = 8) {
  if (!std::filesystem::is_directory(path)) return DrFileReader(address_bytes).read(path);
  const auto inner = path / "trace";
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(inner)) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  DrTrace all;
  all.files = files.size();
  std::vector<std::pair<std::uint64_t, DrInstruction>> instructions;
  for (const auto& file : files) {
    DrFileReader reader(address_bytes);
    DrTrace one = reader.read(file);
    for (std::size_t i = 0; i < one.instructions.size(); ++i) {
      instructions.emplace_back(reader.times()[i], std::move(one.instructions[i]));
    }
    for (const auto& [marker, count] : one.markers) all.markers[marker] += count;
    if (!all.file_type.empty() && all.file_type != one.file_type) {
      all.problems.push_back("files of several types");
    }
    all.file_type = one.file_type;
    for (const std::uint64_t thread : one.threads) {
      // A file for each processor: a thread goes from one to another.
      const bool again = !all.threads.insert(thread).second;
      if (again && !one.file_type.contains("CORE_SHARDED")) {
        all.problems.push_back("two files of a thread");
      }
    }
    all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
  }
  std::stable_sort(instructions.begin(), instructions.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [time, instruction] : instructions) {
    all.instructions.push_back(std::move(instruction));
  }
  return all;
}

}  // namespace citcat::drmemtrace
