#include "monitor/qemu/qemu_registers.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

namespace citcat::monitor {
namespace {

constexpr int kDumpFpu = 0x20000;  // CPU_DUMP_FPU of QEMU's include/hw/core/cpu.h

/// "eax" is "rax" on a 64-bit processor, which may run 32-bit systems too.
bool is_named(std::string_view name, std::string_view wanted) {
  return name == wanted || (wanted[0] == 'e' && !name.empty() && name[0] == 'r' &&
                            name.substr(1) == wanted.substr(1));
}

/// "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80", "FPR0=M E FPR1=M E", "XMM00=H L XMM01=H L"
void parse_fpu_line(const std::string& line, LoggedState& state) {
  auto* const image = reinterpret_cast<std::uint8_t*>(state.fx);
  unsigned fcw = 0, fsw = 0, st = 0, ftw = 0, mxcsr = 0, n = 0, m = 0, exponent[2];
  unsigned long long value[4];
  if (std::sscanf(line.c_str(), "FCW=%x FSW=%x [ST=%u] FTW=%x MXCSR=%x", &fcw, &fsw, &st, &ftw,
                  &mxcsr) == 5) {
    state.fx[0] = fcw | fsw << 16;
    state.fx[1] = ftw;
    state.fx[6] = mxcsr;
    state.fx[7] = 0xffff;
  } else if (std::sscanf(line.c_str(), "FPR%u=%llx %x FPR%u=%llx %x", &n, &value[0], &exponent[0],
                         &m, &value[1], &exponent[1]) == 6) {
    // FXSAVE keeps registers by their place in the stack, the dump by their number.
    const unsigned top = (state.fx[0] >> 27) & 7;
    const unsigned numbers[2] = {n, m};
    for (unsigned k = 0; k < 2; ++k) {
      std::uint8_t* const at = image + 32 + 16 * ((numbers[k] - top) & 7);
      std::memcpy(at, &value[k], 8);
      std::memcpy(at + 8, &exponent[k], 2);
    }
  } else if (std::sscanf(line.c_str(), "XMM%u=%llx %llx XMM%u=%llx %llx", &n, &value[0], &value[1],
                         &m, &value[2], &value[3]) == 6 &&
             n < 16 && m < 16) {
    std::memcpy(image + 160 + 16 * n, &value[1], 8);
    std::memcpy(image + 168 + 16 * n, &value[0], 8);
    std::memcpy(image + 160 + 16 * m, &value[3], 8);
    std::memcpy(image + 168 + 16 * m, &value[2], 8);
  }
}

}  // namespace

const std::array<const char*, QemuRegisters::kRegisters> QemuRegisters::kNames = {
    "eax", "ecx",    "edx", "ebx", "esp", "ebp", "esi", "edi",  "r8",      "r9",      "r10",
    "r11", "r12",    "r13", "r14", "r15", "es",  "cs",  "ss",   "ds",      "fs",      "gs",
    "eip", "eflags", "cr0", "cr2", "cr3", "cr4", "cr8", "efer", "fs_base", "gs_base", "k_gs_base"};

bool QemuRegisters::several_ = false;

void** QemuRegisters::current() {
  // It is a variable of each thread's own.
  thread_local void** const place =
      several_ ? static_cast<void**>(dlsym(RTLD_DEFAULT, "current_cpu")) : nullptr;
  return place;
}

bool QemuRegisters::find_functions(bool several) {
  several_ = several;
  stop_soon_ = reinterpret_cast<StopSoon>(dlsym(RTLD_DEFAULT, "cpu_exit"));
  if (several && (stop_soon_ == nullptr || current() == nullptr)) return false;
  get_cpu_ = reinterpret_cast<GetCpu>(dlsym(RTLD_DEFAULT, "qemu_get_cpu"));
  dump_state_ = reinterpret_cast<DumpState>(dlsym(RTLD_DEFAULT, "cpu_dump_state"));
  return get_cpu_ != nullptr && dump_state_ != nullptr;
}

bool QemuRegisters::find_registers() {
  cpu_ = get_cpu_(number_);
  buffer_ = g_byte_array_new();
  GArray* const list = qemu_plugin_get_registers();
  const unsigned size = g_array_get_element_size(list);
  bool wide = false;  // a processor with long mode, whatever mode it is in
  for (unsigned n = 0; n < list->len; ++n) {
    const auto& entry =
        *reinterpret_cast<const qemu_plugin_reg_descriptor*>(list->data + std::size_t{n} * size);
    wide |= std::string_view(entry.name) == "rax";
    for (unsigned k = 0; k < kRegisters; ++k)
      if (is_named(entry.name, kNames[k])) handles_[k] = entry.handle;
  }
  g_array_free(list, 1);
  if (!wide) {
    for (const unsigned only64 : {unsigned{kCr8}, unsigned{kEfer}, unsigned{kFsBase},
                                  unsigned{kGsBase}, unsigned{kKernelGsBase}})
      handles_[only64] = nullptr;
  }
  for (unsigned k = 0; k < kRegisters; ++k) {
    const bool is_narrow = k < 8 || (k >= kSelectors && k <= kCr4);
    if ((wide || is_narrow) && handles_[k] == nullptr) return false;
  }
  return true;
}

bool QemuRegisters::in_virtual8086() { return (read(kFlags) & kVirtual8086) != 0; }

CodeSize QemuRegisters::code_size() {
  constexpr std::uint32_t kLocal = 4, kWide = 0x400000;
  if (in_virtual8086()) return CodeSize::bits16;
  const std::uint16_t cs = selector(1);
  // What a local selector stands for may change at any time, and real mode has loaded whatever it
  // was; asking costs.
  if (!known_ || cs != known_code_ || (cs & kLocal) != 0 || in_real_mode()) {
    known_ = true;
    known_code_ = cs;
    const LoggedState now = state();
    known_size_ = now.code64                            ? CodeSize::bits64
                  : (now.segment[1].flags & kWide) != 0 ? CodeSize::bits32
                                                        : CodeSize::bits16;
  }
  return known_size_;
}

ControlRegisters QemuRegisters::control() {
  return {control0(), read(kCr3), static_cast<std::uint32_t>(read(kCr4)),
          has_long_mode() ? read(kEfer) : 0};
}

bool QemuRegisters::read_memory(std::uint64_t linear, std::span<std::uint8_t> bytes) {
  static GByteArray* const buffer = g_byte_array_new();
  if (!qemu_plugin_read_memory_vaddr(linear, buffer, bytes.size())) return false;
  std::memcpy(bytes.data(), buffer->data, bytes.size());
  return true;
}

std::optional<LongModeRegisters> QemuRegisters::long_mode_registers() {
  if (!has_long_mode()) return std::nullopt;
  return LongModeRegisters{read(kCr8), read(kFsBase), read(kGsBase), read(kKernelGsBase)};
}

std::string QemuRegisters::dump() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const file = open_memstream(&text, &size);
  dump_state_(get_cpu_(number_), file, kDumpFpu);
  std::fclose(file);
  std::string out(text, size);
  std::free(text);
  return out;
}

LoggedState QemuRegisters::state() {
  LoggedState state;
  const std::string text = dump();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!parse_state_line(line, state)) parse_fpu_line(line, state);
    at = end + 1;
  }
  return state;
}

/// EIP is after the general registers in the emulator's state of a processor (QEMU 10,
/// target/i386/cpu.h, CPUArchState), which lies somewhere after what is common to all
/// architectures.
void QemuRegisters::find_ip() {
  constexpr std::size_t kMostBytes = std::size_t{256} << 10, kPage = 4096;
  const unsigned count = has_long_mode() ? 16 : 8;
  ip_bytes_ = has_long_mode() ? 8 : 4;
  std::vector<std::uint8_t> wanted;
  std::set<std::uint64_t> different;
  for (unsigned n = 0; n <= count; ++n) {
    const std::uint64_t value = read(n < count ? n : unsigned{kIp});
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    wanted.insert(wanted.end(), bytes, bytes + ip_bytes_);
    different.insert(value);
  }
  constexpr std::size_t kTelling = 5;
  if (different.size() < kTelling) return;
  // Read as a file, so that it does no harm to read too far.
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (memory < 0) return;
  const auto* const begin = static_cast<const std::uint8_t*>(get_cpu_(number_));
  std::vector<std::uint8_t> state(kMostBytes);
  std::size_t size = 0;
  for (; size < kMostBytes; size += kPage)
    if (pread(memory, state.data() + size, kPage,
              static_cast<off_t>(reinterpret_cast<std::uintptr_t>(begin + size))) != kPage)
      break;
  close(memory);
  state.resize(size);
  const auto found = std::search(state.begin(), state.end(), wanted.begin(), wanted.end());
  if (found == state.end() ||
      std::search(found + 1, state.end(), wanted.begin(), wanted.end()) != state.end())
    return;
  ip_at_ = begin + (found - state.begin()) + count * ip_bytes_;
}

/// By functions of QEMU 10, target/i386/tcg: its instructions RDMSR and XGETBV, and what CPUID
/// says.
std::optional<ModelFacts> QemuRegisters::model() {
  using ReadMsr = void (*)(void*);
  using ReadXcr = std::uint64_t (*)(void*, std::uint32_t);
  using ReadCpuid = void (*)(void*, std::uint32_t, std::uint32_t, std::uint32_t*, std::uint32_t*,
                             std::uint32_t*, std::uint32_t*);
  static const auto read_msr = reinterpret_cast<ReadMsr>(dlsym(RTLD_DEFAULT, "helper_rdmsr"));
  static const auto read_xcr = reinterpret_cast<ReadXcr>(dlsym(RTLD_DEFAULT, "helper_xgetbv"));
  static const auto read_cpuid = reinterpret_cast<ReadCpuid>(dlsym(RTLD_DEFAULT, "cpu_x86_cpuid"));
  if (read_msr == nullptr || read_xcr == nullptr || read_cpuid == nullptr) return std::nullopt;
  find_ip();
  if (ip_at_ == nullptr) return std::nullopt;
  const unsigned count = has_long_mode() ? 16 : 8;
  auto* const registers = const_cast<std::uint8_t*>(ip_at_) - count * ip_bytes_;
  std::array<std::uint8_t, 3 * sizeof(std::uint64_t)> before{};
  std::memcpy(before.data(), registers, 3 * ip_bytes_);
  const auto msr = [&](std::uint32_t number) {
    std::uint64_t ecx = number, eax = 0, edx = 0;
    std::memcpy(registers + ip_bytes_, &ecx, ip_bytes_);
    read_msr(registers);
    std::memcpy(&eax, registers, ip_bytes_);
    std::memcpy(&edx, registers + 2 * ip_bytes_, ip_bytes_);
    return edx << 32 | static_cast<std::uint32_t>(eax);
  };
  ModelFacts facts;
  constexpr std::uint32_t kEferNumber = 0xc0000080;
  const std::uint64_t efer = msr(kEferNumber);
  // SYSENTER's, PAT, and those of SYSCALL.
  for (const std::uint32_t number : {0x174u, 0x175u, 0x176u, 0x277u})
    facts.msrs[number] = msr(number);
  if (has_long_mode())
    for (const std::uint32_t number :
         {kEferNumber, 0xc0000081u, 0xc0000082u, 0xc0000083u, 0xc0000084u, 0xc0000103u})
      facts.msrs[number] = msr(number);
  std::memcpy(registers, before.data(), 3 * ip_bytes_);
  if (has_long_mode() && efer != read(kEfer)) return std::nullopt;  // it is something else
  constexpr std::uint64_t kOsXsave = std::uint64_t{1} << 18;
  if ((read(kCr4) & kOsXsave) != 0) facts.xcr0 = read_xcr(registers, 0);
  const auto cpuid = [&](std::uint32_t leaf, std::uint32_t subleaf) {
    CpuidAnswer answer{};
    read_cpuid(registers, leaf, subleaf, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
    facts.note_cpuid(leaf, subleaf, answer);
    return answer.eax;
  };
  constexpr std::uint32_t kXsaveLeaf = 0xd, kExtended = 0x80000000, kMostLeaves = 24;
  const std::uint32_t last = std::min(cpuid(0, 0), kMostLeaves);
  for (std::uint32_t leaf = 1; leaf <= last; ++leaf) cpuid(leaf, 0);
  if (last >= kXsaveLeaf)
    for (const std::uint32_t component : {1u, 2u}) cpuid(kXsaveLeaf, component);
  const std::uint32_t last_extended = std::min(cpuid(kExtended, 0), kExtended + kMostLeaves);
  for (std::uint32_t leaf = kExtended + 1; leaf <= last_extended; ++leaf) cpuid(leaf, 0);
  return facts;
}

std::uint64_t QemuRegisters::read_ip() {
  const std::uint64_t ip = read(kIp);
  if (ip_at_ != nullptr && ip_in_memory() != ip) {
    ip_at_ = nullptr;
    searches_ = kMostSearches;
  } else if (ip_at_ == nullptr && searches_ < kMostSearches) {
    ++searches_;
    find_ip();
  }
  return ip;
}

std::uint64_t QemuRegisters::read(unsigned place) {
  g_byte_array_set_size(buffer_, 0);
  qemu_plugin_read_register(handles_[place], buffer_);
  std::uint64_t value = 0;
  std::memcpy(&value, buffer_->data, std::min<std::size_t>(buffer_->len, sizeof value));
  return value;
}

}  // namespace citcat::monitor
