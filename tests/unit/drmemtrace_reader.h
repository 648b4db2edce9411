#pragma once
// Reads a trace as DynamoRIO's drmemtrace tools do, and knows their numbers without ours: each list
// has the names in the order of the published header, clients/drcachesim/common/trace_entry.h of
// DynamoRIO, commit 05e316505, where a number is a place in an enumeration. What is checked of each
// file are rules of its reader (reader/reader.cpp, reader/file_reader.h) and of its invariant
// checker (tools/invariant_checker.cpp).

#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
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
  bool kernel = false;  ///< within an event
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
  std::map<std::uint64_t, std::uint64_t> pages;  ///< physical, by linear, as told last

  std::uint64_t count(bool fetched, bool kernel) const {
    return static_cast<std::uint64_t>(std::count_if(
        instructions.begin(), instructions.end(),
        [&](const DrInstruction& i) { return i.fetched() == fetched && i.kernel == kernel; }));
  }
};

/// The bytes of an instruction as a trace encodes it: PREFETCH, INVLPG and CLFLUSH, which access
/// nothing, as the NOP with the same operand.
inline std::string encoded_for_dr(std::string code) {
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(code[i]); };
  const std::string_view prefixes("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3");
  while (at < code.size() && prefixes.find(code[at]) != std::string_view::npos) ++at;
  // REX, of code of 64 bits; elsewhere no 0F stands behind these.
  if (at + 1 < code.size() && byte(at) >> 4 == 4 && byte(at + 1) == 0x0f) ++at;
  if (at + 2 >= code.size() || byte(at) != 0x0f || byte(at + 2) >> 6 == 3) return code;
  const unsigned opcode = byte(at + 1), reg = byte(at + 2) >> 3 & 7;
  const bool hint =
      opcode == 0x0d || opcode == 0x18 || ((opcode == 1 || opcode == 0xae) && reg == 7);
  if (hint) code[at + 1] = '\x1f';
  return code;
}

/// schedule_entry_t.
struct DrScheduled {
  std::uint64_t thread = 0, time = 0, cpu = 0, instruction = 0;
  auto operator<=>(const DrScheduled&) const = default;
};

/// The members of an archive in their order, or the bytes of a plain file as one.
inline std::vector<std::pair<std::string, std::string>> read_members(
    const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::string>> members;
  if (path.extension() != ".zip") {
    std::ifstream in(path, std::ios::binary);
    members.emplace_back("", std::string(std::istreambuf_iterator<char>(in), {}));
    return members;
  }
  zip_t* const zip = zip_open(path.c_str(), ZIP_RDONLY, nullptr);
  if (zip == nullptr) return members;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat);
    std::string bytes(stat.size, '\0');
    zip_file_t* const file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    if (zip_fread(file, bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size())) {
      bytes.clear();
    }
    zip_fclose(file);
    members.emplace_back(stat.name, std::move(bytes));
  }
  zip_close(zip);
  return members;
}

/// Reads one file, and holds it to the rules.
class DrFileReader {
 public:
  explicit DrFileReader(std::size_t address_bytes) : address_bytes_(address_bytes) {}

  DrTrace read(const std::filesystem::path& path) {
    name_ = path.filename().string();
    std::size_t number = 0;
    for (auto& [member, bytes] : read_members(path)) {
      bytes_ = std::move(bytes);
      std::string expected = std::to_string(number);
      expected.insert(0, 8 - std::min<std::size_t>(8, expected.size()), '0');
      if (!member.empty() && member != "chunk." + expected) problem("a chunk's name: " + member);
      read_chunk(number++);
    }
    end();
    return std::move(trace_);
  }
  /// For each instruction, the timestamp that was read last.
  const std::vector<std::uint64_t>& times() const { return times_; }
  /// The threads that it ran, each time that it says so.
  const std::vector<DrScheduled>& schedule() const { return schedule_; }

 private:
  /// A context that an event interrupted.
  struct Context {
    std::uint64_t at = 0;
    bool hardware = false, by_sysenter = false;
  };

  std::uint64_t number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_ + offset, size);
    return value;
  }
  void problem(const std::string& text) {
    if (trace_.problems.size() < 5) {
      trace_.problems.push_back(name_ + ": " + text + " at record " + std::to_string(records_) +
                                ", instruction " + std::to_string(fetched_));
    }
  }
  bool has(std::string_view type) const { return trace_.file_type.contains(type); }

  /// Each chunk stands alone: with its own encodings, and with the time of the one before.
  void read_chunk(std::size_t chunk) {
    const std::size_t size = 4 + address_bytes_;
    if (bytes_.size() % size != 0) problem("cut");
    if (chunk != 0) {
      if (last_ != "CHUNK_FOOTER") problem("a chunk without a footer");
      encodings_.clear();
      pages_.clear();
      repeated_ = 3;
    }
    for (at_ = 0; at_ + size <= bytes_.size(); at_ += size) {
      const std::uint64_t type = number(0, 2);
      if (type >= std::size(kDrTypes)) {
        problem("no such type");
      } else {
        take(kDrTypes[type], number(2, 2), number(4, address_bytes_));
      }
    }
  }

  void end() {
    if (last_ != "FOOTER") problem("no footer");
    if (depth_ != 0 || !contexts_.empty()) problem("an event does not return");
    if (!exits_.contains(thread_)) problem("the thread does not end");
    if (!has("CORE_SHARDED") && trace_.threads.size() != 1) {
      problem("a file of one thread has several");
    }
  }

  void take(std::string_view type, std::uint64_t size, std::uint64_t value) {
    if ((type == "HEADER") != (last_.empty())) problem("a header elsewhere than at the beginning");
    if (last_ == "FOOTER") problem("an entry behind the footer");
    if (type == "HEADER" && (value < kDrBranchInfo || value > kDrLatest)) problem("the version");
    if (last_ == "THREAD" && type != "PID") problem("a thread without a process");
    const bool is_access = type == "READ" || type == "WRITE";
    if (is_access && trace_.instructions.empty()) problem("an access without an instruction");
    last_ = type;
    if (type == "THREAD") {
      if (value != thread_) forget();
      thread_ = value;
      trace_.threads.insert(value);
      if (value == 0) problem("thread 0");
    } else if (type == "PID") {
      has_process_ = value != 0;
    } else if (type == "THREAD_EXIT") {
      ++records_;
      if (!has_instruction_) problem("a thread without an instruction");
      exits_.insert(value);
    } else if (type == "MARKER") {
      take_marker(size, value);
    } else if (type == "ENCODING") {
      if (size > address_bytes_) problem("too much of an encoding");
      encoding_.append(bytes_, at_ + 4, size);
    } else if (is_access) {
      ++records_;
      check_page(value);
      trace_.instructions.back().accesses.push_back(
          {value, static_cast<std::uint32_t>(size), type == "WRITE"});
    } else if (type.starts_with("INSTR")) {
      ++records_;
      take_instruction(type, size, value);
    } else if (type != "HEADER" && type != "FOOTER") {
      problem("an unexpected " + std::string(type));
    }
  }

  /// Another thread: what the checker knows of the one before it forgets.
  void forget() {
    contexts_.clear();
    returned_.reset();
    next_.reset();
    has_instruction_ = behind_branch_ = false;
  }

  void take_marker(std::uint64_t kind, std::uint64_t value) {
    if (kind >= std::size(kDrMarkers)) return problem("no such marker");
    const std::string_view marker = kDrMarkers[kind];
    last_ = marker;
    if (repeated_ != 0) return take_repeated(marker, value);
    ++trace_.markers[marker];
    if (marker != "BRANCH_TARGET" && marker != "RECORD_ORDINAL") ++records_;
    const bool of_head = marker == "VERSION" || marker == "FILETYPE";
    if (!has_process_ && !of_head) problem("a marker before the process");
    if (marker.starts_with("HARDWARE_") && !has("WHOLE_SYSTEM")) {
      problem("a hardware event in a file of another type");
    }
    if (physical_ && marker != "VIRTUAL_ADDRESS") problem("a physical address alone");
    if (marker == "FILETYPE") {
      take_file_type(value);
    } else if (marker == "TIMESTAMP") {
      if (value < time_) problem("time goes back");
      if (behind_branch_) problem("a time between a branch and its target");
      time_ = value;
    } else if (marker == "CPU_ID") {
      cpu_ = value;
      const DrScheduled entry{thread_, time_, cpu_, fetched_};
      if (schedule_.empty() || schedule_.back() != entry) schedule_.push_back(entry);
    } else if (marker == "BRANCH_TARGET") {
      target_ = value;
      has_target_ = true;
    } else if (marker == "CHUNK_INSTR_COUNT") {
      chunk_instructions_ = value;
    } else if (marker == "CHUNK_FOOTER") {
      if (value != footers_++) problem("the number of a chunk");
      if (chunk_instructions_ == 0 || fetched_ % chunk_instructions_ != 0) {
        problem("the size of a chunk");
      }
    } else if (marker == "PHYSICAL_ADDRESS") {
      physical_ = value;
    } else if (marker == "VIRTUAL_ADDRESS") {
      take_virtual(value);
    } else if (marker == "SYSCALL") {
      if (has("ENCODINGS") && !calls_system()) problem("a system call by another instruction");
    } else if (marker.ends_with("_EVENT")) {
      take_event(marker == "HARDWARE_EVENT", value);
    } else if (marker == "HARDWARE_CONTEXT_RETURN" || marker == "KERNEL_XFER") {
      take_return(marker == "HARDWARE_CONTEXT_RETURN", value);
    }
  }

  /// What a chunk repeats of the one before.
  void take_repeated(std::string_view marker, std::uint64_t value) {
    const std::string_view expected[] = {"CPU_ID", "TIMESTAMP", "RECORD_ORDINAL"};
    const std::uint64_t values[] = {cpu_, time_, records_};
    --repeated_;
    if (marker != expected[repeated_] || value != values[repeated_]) {
      problem("what a chunk repeats: " + std::string(marker));
    }
  }

  void take_file_type(std::uint64_t value) {
    for (std::size_t bit = 0; bit < 64; ++bit) {
      if ((value >> bit & 1) == 0) continue;
      if (bit >= std::size(kDrFileTypes)) return problem("no such type of a file");
      trace_.file_type.insert(kDrFileTypes[bit]);
    }
  }

  /// INT 80h, SYSENTER or SYSCALL came last.
  bool calls_system() const {
    if (trace_.instructions.empty()) return false;
    const std::string& code = trace_.instructions.back().code;
    return code == "\xcd\x80" || code == "\x0f\x34" || code == "\x0f\x05";
  }

  void take_virtual(std::uint64_t value) {
    if (!physical_) return problem("a virtual address alone");
    if ((*physical_ & 0xfff) != (value & 0xfff)) problem("a page that is moved within itself");
    pages_[value >> 12] = trace_.pages[value >> 12] = *physical_ >> 12;
    physical_.reset();
  }
  /// Simulators look up what was told before.
  void check_page(std::uint64_t address) {
    if (trace_.markers.contains("PHYSICAL_ADDRESS") && !pages_.contains(address >> 12)) {
      problem("a page whose place was not told");
    }
  }

  void take_event(bool hardware, std::uint64_t at) {
    if (at == 0) problem("an event without an address");
    if (hardware && ++depth_ >= 30) problem("events are nested too deeply");
    if (next_ && at != *next_ && at != here_ && !by_sysenter_) problem("an event elsewhere");
    contexts_.push_back({at, hardware, by_sysenter_});
    next_.reset();
    returned_.reset();
    here_ = 0;
  }

  void take_return(bool hardware, std::uint64_t value) {
    if (value == 0) problem("a return without an address");
    if (hardware && --depth_ < 0) problem("returned more often than entered");
    next_.reset();
    returned_.reset();
    if (contexts_.empty()) return;
    if (contexts_.back().hardware != hardware) problem("a return of another kind");
    returned_ = contexts_.back();
    // Until there is an instruction, another event would interrupt the same place.
    here_ = contexts_.back().at;
    next_ = here_;
    contexts_.pop_back();
  }

  /// The run goes on where the instruction before says, or a marker.
  void check_flow(std::string_view type, std::uint64_t address) {
    if (returned_) {
      if (address != returned_->at && !returned_->by_sysenter) problem("a return to elsewhere");
    } else if (next_ && address != *next_ && !by_sysenter_ &&
               !(type == "INSTR_NO_FETCH" && address == here_)) {
      problem("another instruction than the next one");
    }
    returned_.reset();
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
    check_flow(type, address);
    check_page(address);
    take_encoding(size, address);
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
    if (type != "INSTR_NO_FETCH") ++fetched_;
    if (chunk_instructions_ != 0 && fetched_ > (footers_ + 1) * chunk_instructions_) {
      problem("a chunk without an end");
    }
    has_instruction_ = true;
    by_sysenter_ = type == "INSTR_SYSENTER";
    behind_branch_ = indirect || type.ends_with("_JUMP") || type.ends_with("_CALL");
    here_ = address;
    next_ = indirect ? target_ : address + size;
    // Where it goes on is in its code, which nobody decodes here.
    if (behind_branch_ && !indirect && type != "INSTR_UNTAKEN_JUMP") next_.reset();
    target_ = 0;
    has_target_ = false;
  }

  void take_encoding(std::uint64_t size, std::uint64_t address) {
    if (!has("ENCODINGS")) {
      if (!encoding_.empty()) problem("an encoding in a file of another type");
      return encoding_.clear();
    }
    if (!encoding_.empty()) encodings_[address] = encoding_;
    encoding_.clear();
    const auto code = encodings_.find(address);
    if (code == encodings_.end()) {
      problem("no encoding");
    } else if (code->second.size() != size) {
      problem("an encoding of another size");
    }
  }

  std::size_t address_bytes_;
  std::string bytes_, name_;
  std::size_t at_ = 0;
  DrTrace trace_;
  std::vector<std::uint64_t> times_;
  std::vector<DrScheduled> schedule_;
  std::string_view last_;
  std::uint64_t thread_ = 0, time_ = 0, target_ = 0, cpu_ = 0;
  bool has_process_ = false, has_target_ = false, has_instruction_ = false;
  int depth_ = 0;
  std::vector<Context> contexts_;
  std::optional<Context> returned_;
  std::optional<std::uint64_t> next_;  ///< where the run goes on, if that is known
  std::uint64_t here_ = 0;             ///< the last instruction
  bool by_sysenter_ = false, behind_branch_ = false;
  std::uint64_t records_ = 0, fetched_ = 0;
  std::uint64_t chunk_instructions_ = 0, footers_ = 0;
  unsigned repeated_ = 0;
  std::optional<std::uint64_t> physical_;
  std::map<std::uint64_t, std::uint64_t> pages_;
  std::set<std::uint64_t> exits_;
  std::string encoding_;
  std::map<std::uint64_t, std::string> encodings_;
};

/// Entries as they lie in a schedule file.
inline std::vector<DrScheduled> scheduled_in(const std::string& bytes) {
  std::vector<DrScheduled> entries(bytes.size() / sizeof(DrScheduled));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), bytes.size());
  return entries;
}

/// The schedule files say what the traces do (check_schedule_data() of the invariant checker).
inline void check_schedules(const std::filesystem::path& folder, std::vector<DrScheduled> all,
                            std::vector<std::string>& problems) {
  const auto order = [](const DrScheduled& a, const DrScheduled& b) {
    return std::tie(a.time, a.cpu, a.thread, a.instruction) <
           std::tie(b.time, b.cpu, b.thread, b.instruction);
  };
  std::sort(all.begin(), all.end(), order);
  const auto serial = read_members(folder / "serial_schedule.bin");
  if (scheduled_in(serial.at(0).second) != all) problems.push_back("serial_schedule.bin");
  std::map<std::string, std::vector<DrScheduled>> expected, found;
  for (const DrScheduled& entry : all) {
    auto& its = expected[std::to_string(entry.cpu)];
    if (its.empty() || its.back().thread != entry.thread) its.push_back(entry);
  }
  for (const auto& [cpu, bytes] : read_members(folder / "cpu_schedule.bin.zip")) {
    found[cpu] = scheduled_in(bytes);
  }
  if (found != expected) problems.push_back("cpu_schedule.bin.zip");
}

/// Reads a file, or a folder as -indir does: its files together.
inline DrTrace read_drmemtrace(const std::filesystem::path& path, std::size_t address_bytes = 8) {
  if (!std::filesystem::is_directory(path)) return DrFileReader(address_bytes).read(path);
  const auto inner = path / "trace";
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(inner)) {
    if (!file.path().filename().string().starts_with("drmemtrace.")) continue;
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  DrTrace all;
  all.files = files.size();
  std::vector<std::pair<std::uint64_t, DrInstruction>> instructions;
  std::vector<DrScheduled> schedule;
  for (const auto& file : files) {
    DrFileReader reader(address_bytes);
    DrTrace one = reader.read(file);
    for (std::size_t i = 0; i < one.instructions.size(); ++i) {
      instructions.emplace_back(reader.times()[i], std::move(one.instructions[i]));
    }
    schedule.insert(schedule.end(), reader.schedule().begin(), reader.schedule().end());
    for (const auto& [marker, count] : one.markers) all.markers[marker] += count;
    if (!all.file_type.empty() && all.file_type != one.file_type) {
      all.problems.push_back("files of several types");
    }
    all.file_type = one.file_type;
    all.pages.insert(one.pages.begin(), one.pages.end());
    for (const std::uint64_t thread : one.threads) {
      // A file for each processor: a thread goes from one to another.
      const bool again = !all.threads.insert(thread).second;
      if (again && !one.file_type.contains("CORE_SHARDED")) {
        all.problems.push_back("two files of a thread");
      }
    }
    all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
  }
  check_schedules(inner, schedule, all.problems);
  std::stable_sort(instructions.begin(), instructions.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [time, instruction] : instructions) {
    all.instructions.push_back(std::move(instruction));
  }
  return all;
}

}  // namespace citcat::drmemtrace
