#include "replay/engine/engine.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "replay/engine/engine_proof.h"
#include "replay/engine/process_memory.h"
#include "replay/engine/unicorn_internal.h"

// The library's uc_ctl macros convert out-of-range numbers to an enumeration.
#pragma GCC diagnostic ignored "-Wconversion"

namespace citcat {

namespace {

using namespace env_layout;

/// Where uc_struct keeps its CPU object, and where that keeps its register state (Unicorn 2.1.x,
/// x86-64 hosts). Proven by find_env() before use.
constexpr std::size_t kCpuPointerInUc = 416;
constexpr std::size_t kEnvInCpu = 35408;
/// Exceptions intercepted by the guest-mode mechanism arrive as 0x40 + vector + 0x100
/// (SVM_EXIT_EXCP_BASE, AMD APM vol. 2, appendix C).
constexpr std::uint32_t kInterceptedException = 0x140;

/// Where memory is mapped a second time: above all addresses that a processor has (Intel SDM vol.
/// 3, 4.1.4).
constexpr std::uint64_t kUnchecked = std::uint64_t{1} << 52;

/// The library's default of 1 GiB costs seconds at first use; this holds the translated code of a
/// whole operating system.
std::uint32_t code_cache_bytes = 128u << 20;

/// For long mode, a model that executes every row of the table of opcodes but MOVBE and ADX. What
/// the captured processor lacks is refused before it gets there.
int cpu_model_number(CpuModel model) {
  if (cpu_traits(model).has_long_mode) return UC_CPU_X86_WESTMERE;
  const InstructionSet instructions = cpu_traits(model).instructions;
  if (instructions <= InstructionSet::i486) return UC_CPU_X86_486;
  return instructions == InstructionSet::pentium ? UC_CPU_X86_PENTIUM : UC_CPU_X86_QEMU64;
}

}  // namespace

/// The engine's callbacks, as it wants them.
struct Engine::Hooks {
  static void code(uc_engine*, std::uint64_t address, std::uint32_t size, void* user) {
    Engine& e = *static_cast<Engine*>(user);
    e.end_translation();
    e.guarded_until_exception([&] { e.client_.on_instruction(e.reported(address, true), size); });
  }
  static void interrupt(uc_engine*, std::uint32_t number, void* user) {
    Engine& e = *static_cast<Engine*>(user);
    e.guarded_until_exception([&] {
      const bool intercepted =
          number >= kInterceptedException && number < kInterceptedException + 32;
      const bool software = !intercepted && e.get<std::uint32_t>(kExceptionIsInt) != 0;
      // Left set, these make the next exception look like a software interrupt or a double fault.
      e.put<std::uint32_t>(kExceptionIsInt, 0);
      e.put<std::uint32_t>(kOldException, 0xffffffff);
      e.client_.on_exception(intercepted ? number - kInterceptedException : number, software);
    });
  }
  static std::uint32_t in(uc_engine*, std::uint32_t port, int size, void* user) {
    Engine& e = *static_cast<Engine*>(user);
    std::uint32_t value = 0;
    e.guarded_until_exception([&] {
      value = e.client_.on_in(static_cast<std::uint16_t>(port), static_cast<std::uint32_t>(size));
    });
    return value;
  }
  static void out(uc_engine*, std::uint32_t port, int size, std::uint32_t value, void* user) {
    Engine& e = *static_cast<Engine*>(user);
    e.guarded_until_exception([&] {
      const std::uint32_t mask = size >= 4 ? 0xffffffffu : (1u << (8 * size)) - 1;
      e.client_.on_out(static_cast<std::uint16_t>(port), static_cast<std::uint32_t>(size),
                       value & mask);
    });
  }
  static bool translate(uc_engine*, std::uint64_t address, uc_mem_type type, uc_tlb_entry* result,
                        void* user) {
    Engine& e = *static_cast<Engine*>(user);
    const LinearAddr page = e.reported(address, type == UC_MEM_FETCH);
    const EngineAccess access = type == UC_MEM_FETCH   ? EngineAccess::fetch
                                : type == UC_MEM_WRITE ? EngineAccess::write
                                                       : EngineAccess::read;
    std::optional<Translation> translation;
    e.put_in_hidden(kLock);  // the client walks page tables, which may lie anywhere
    if (e.identity_) {
      translation = Translation{PhysAddr{address}, true};
    } else {
      e.guarded_until_exception([&] { translation = e.client_.on_translate(page, access); });
    }
    // Looked at here, because with a hook of the library's for it every load goes the slow way.
    const bool unmapped = translation && e.host_page(translation->frame.page()) == nullptr;
    if (unmapped) e.unmapped_frame_ = translation->frame;
    if (!translation || unmapped) {
      e.watch(false);
      e.translation_fault_ = {page, access};
      return false;
    }
    const bool unchecked = translation->holds_no_code && access != EngineAccess::fetch;
    result->paddr = translation->frame.value + (unchecked ? kUnchecked : 0);
    // What may not be executed will be asked for again as a fetch.
    result->perms = static_cast<uc_prot>(
        (translation->readable ? UC_PROT_READ : 0) | (translation->writable ? UC_PROT_WRITE : 0) |
        (translation->executable && !unchecked ? UC_PROT_EXEC : 0));
    e.put_in_hidden(kHarmless);
    return true;
  }
};

std::string Engine::version() {
  load_unicorn();
  unsigned major = 0, minor = 0;
  const unsigned v = uc_version(&major, &minor);
  return std::to_string(v >> 24 & 0xff) + "." + std::to_string(v >> 16 & 0xff) + "." +
         std::to_string(v >> 8 & 0xff);
}

Engine::Engine(CpuModel model, EngineClient& client) : Engine(RawTag{}, model, client) {
  // Not std::call_once: what passes through pthread_once() needs memory, and it may be the lack of
  // memory that passes.
  [[maybe_unused]] static const bool proven = (prove_engine(), true);
}

Engine::Engine(RawTag, CpuModel model, EngineClient& client)
    : EngineRegisters(cpu_traits(model).has_long_mode), client_(client) {
  load_unicorn();
  // 32-bit mode for every guest: in 16-bit mode the library reports linear addresses as IP.
  check(uc_open(UC_ARCH_X86, wide_ ? UC_MODE_64 : UC_MODE_32, &uc_), "open");
  try {
    check(uc_ctl_set_cpu_model(uc_, cpu_model_number(model)), "choose the processor model");
    check(uc_ctl_set_tcg_buffer_size(uc_, code_cache_bytes), "size the code cache");
    find_env();
    if (wide_) find_efer();
    check(uc_ctl_exits_enable(uc_), "disable the end address");
    watch_translations();
    check(uc_ctl_tlb_mode(uc_, UC_TLB_VIRTUAL), "take address translation over");
    raise_snapshot_level();
    install_hooks();
    put<std::uint32_t>(kInterceptExceptions, 0xffffffff);
    put<std::uint32_t>(kOldException, 0xffffffff);
    put<std::uint64_t>(kIntercept, 0);
    put<std::uint16_t>(kInterceptDrWrite, 0xffff);
  } catch (...) {
    close();
    throw;
  }
}

Engine::~Engine() { close(); }

void Engine::set_code_cache(std::uint32_t bytes) { code_cache_bytes = bytes; }

std::span<char> Engine::library_state() const {
  return {reinterpret_cast<char*>(uc_), malloc_usable_size(uc_)};
}

void Engine::close() {
  // What it was at when it gave up is half done: it would not survive being cleaned up.
  if (library_gave_up()) return;
  if (exits_ != nullptr) watch(true);  // what is in the tree is to be freed with it
  uc_close(uc_);
  for (const std::span<std::uint8_t> m : second_mappings_) munmap(m.data(), m.size());
}

void Engine::install_hooks() {
  uc_hook hook = 0;
  void* self = this;
  // A range that begins after it ends means "everywhere" to the library.
  const auto add = [&](int type, auto* function) {
    check(uc_hook_add(uc_, &hook, type, reinterpret_cast<void*>(function), self, 1, 0),
          "install a hook");
  };
  add(UC_HOOK_INTR, &Hooks::interrupt);
  add(UC_HOOK_TLB_FILL, &Hooks::translate);
  check(uc_hook_add(uc_, &hook, UC_HOOK_INSN, reinterpret_cast<void*>(&Hooks::in), self, 1, 0,
                    UC_X86_INS_IN),
        "hook IN");
  check(uc_hook_add(uc_, &hook, UC_HOOK_INSN, reinterpret_cast<void*>(&Hooks::out), self, 1, 0,
                    UC_X86_INS_OUT),
        "hook OUT");
  add(UC_HOOK_CODE, &Hooks::code);
  watch(false);
}

void Engine::find_env() {
  // A first register access makes the library build its CPU object.
  constexpr std::array<int, 8> kNames = {UC_X86_REG_EAX, UC_X86_REG_ECX, UC_X86_REG_EDX,
                                         UC_X86_REG_EBX, UC_X86_REG_ESP, UC_X86_REG_EBP,
                                         UC_X86_REG_ESI, UC_X86_REG_EDI};
  std::uint32_t pattern = 0xa5c30001;
  {
    const LibraryMappings mappings;
    for (const int name : kNames) {
      check(uc_reg_write(uc_, name, &pattern), "write a register");
      pattern += 0x01010101;
    }
    watch_code_cache(mappings);
  }
  const auto cpu = copy_of<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(uc_) + kCpuPointerInUc);
  std::array<char, 8192> readable;
  if (!cpu || !copy_memory(*cpu + kEnvInCpu, readable)) {
    throw InternalError("engine: the register state of Unicorn " + version() +
                        " is not where 2.1.1 keeps it");
  }
  env_ = reinterpret_cast<char*>(*cpu + kEnvInCpu);
  pattern = 0xa5c30001;
  for (int i = 0; i < 8; ++i, pattern += 0x01010101) {
    if (gpr(i) != pattern) {
      throw InternalError("engine: the general registers of Unicorn " + version() +
                          " are not where 2.1.1 keeps them");
    }
    set_gpr(i, 0);
  }
}

/// Which word of the register state a write of the MSR changes to what was written.
void Engine::find_efer() {
  constexpr std::size_t kEnd = 1024;
  constexpr std::uint32_t kEfer = 0xc0000080;
  constexpr std::uint64_t kSce = 1, kNxe = 0x800;
  std::array<std::uint64_t, kEnd / 8> before{};
  const std::uint64_t was = msr(kEfer), value = was ^ (kSce | kNxe);
  std::memcpy(before.data(), env_, kEnd);
  set_msr(kEfer, value);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != was || get<std::uint64_t>(8 * i) != value) continue;
    if (efer_ != 0) throw InternalError("engine: EFER is in several places");
    efer_ = 8 * i;
  }
  if (efer_ == 0) throw InternalError("engine: EFER is not where Unicorn 2.1.1 keeps it");
  set_efer(0);
}

LinearAddr Engine::reported(std::uint64_t value, bool code) const {
  const bool all = wide_ && (!code || (hflags() & kHfCs64) != 0);
  return all ? LinearAddr{value} : linear_of(value);
}

/// The library's code cache is the executable part of what it mapped when it built its CPU object.
void Engine::watch_code_cache(const LibraryMappings& mappings) {
  const std::size_t bytes = code_cache_bytes;
  const auto cache = mappings.last(bytes / 2, bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
  if (cache.empty()) return flush_code();
  code_cache_.watch(cache);
}

void Engine::raise_snapshot_level() {
  // Taking a memory snapshot raises the level at which regions count as new. Memory mapped after
  // that never loses its "check every store" mark, so patched code is always noticed, while loads
  // stay fast (docs/engine.md). Once only: a second snapshot would make what is mapped by then old,
  // and stores to old memory go to copies.
  const std::span<char> state = library_state();
  const std::vector<char> before(state.begin(), state.end());
  check(uc_ctl_context_mode(uc_, UC_CTL_CONTEXT_MEMORY), "choose the snapshot mode");
  uc_context* context = nullptr;
  check(uc_context_alloc(uc_, &context), "allocate a snapshot");
  const uc_err saved = uc_context_save(uc_, context);
  uc_context_free(context);
  check(saved, "take a snapshot");
  check(uc_ctl_context_mode(uc_, UC_CTL_CONTEXT_CPU), "choose the snapshot mode");
  // The level is the only word of the library's state that went from 0 to 1.
  for (std::size_t at = 0; at + sizeof(std::int32_t) <= state.size(); at += sizeof(std::int32_t)) {
    std::int32_t was = 0, is = 0;
    std::memcpy(&was, &before[at], sizeof was);
    std::memcpy(&is, &state[at], sizeof is);
    if (was == is) continue;
    if (was != 0 || is != 1 || snapshot_level_ != nullptr) {
      snapshot_level_ = nullptr;
      break;
    }
    snapshot_level_ = &state[at];
  }
  if (snapshot_level_ == nullptr) {
    throw InternalError("engine: Unicorn " + version() +
                        " does not count snapshots as version 2.1.1 does");
  }
  set_snapshot_level(0);
}

void Engine::set_snapshot_level(std::int32_t level) {
  std::memcpy(snapshot_level_, &level, sizeof level);
}

std::uint8_t* Engine::map_tracked(std::uint64_t base, std::uint64_t size) {
  // No call gives the host address of mapped memory: it is what the library maps meanwhile.
  const LibraryMappings mappings;
  set_snapshot_level(1);
  const uc_err mapped = uc_mem_map(uc_, base, size, UC_PROT_ALL);
  set_snapshot_level(0);
  check(mapped, "map memory");
  const std::span<std::uint8_t> host = mappings.last(size, size, PROT_READ | PROT_WRITE);
  using Mark = std::array<std::uint64_t, 4>;
  const Mark mark = {0x9e3779b97f4a7c15 ^ base, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, size};
  check(uc_mem_write(uc_, base, mark.data(), sizeof mark), "write memory");
  if (host.empty() || std::memcmp(host.data(), mark.data(), sizeof mark) != 0) {
    throw InternalError("engine: mapped memory is not where Unicorn 2.1.1 maps it");
  }
  std::memset(host.data(), 0, sizeof mark);
  return host.data();
}

/// Gives the region a second place in the engine's physical memory, of the same bytes, where stores
/// lose their check after the first. The library must not know that they are the same: it finds
/// translated code by host address, so there are two host addresses too.
void Engine::map_unchecked(std::uint64_t base, std::uint8_t* host, std::uint64_t size) {
  const auto require = [](void* p, const char* doing) {
    if (p != MAP_FAILED) return;
    throw InternalError(std::string("engine: cannot ") + doing + ": " + std::strerror(errno));
  };
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  require(mmap(host, size, kAccess, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), "share memory");
  // With a shared mapping, a length of 0 asks for a second mapping of the same pages: mremap(2).
  void* second = mremap(host, 0, size, MREMAP_MAYMOVE);
  if (second == MAP_FAILED && errno == EINVAL) {
    // Valgrind refuses that. A file without a name does the same, unless files are limited in size.
    const int file = memfd_create("citcat", MFD_CLOEXEC);
    if (ftruncate(file, static_cast<off_t>(size)) == 0) {
      require(mmap(host, size, kAccess, MAP_SHARED | MAP_FIXED, file, 0), "share memory");
      second = mmap(nullptr, size, kAccess, MAP_SHARED, file, 0);
    }
    ::close(file);
  }
  require(second, "map memory a second time");
  second_mappings_.push_back({static_cast<std::uint8_t*>(second), size});
  check(uc_mem_map_ptr(uc_, kUnchecked + base, size, UC_PROT_ALL, second),
        "map memory a second time");
}

void Engine::map(PhysAddr base, std::uint64_t size) {
  std::uint8_t* host = map_tracked(base.value, size);
  map_unchecked(base.value, host, size);
  for (std::uint64_t page = 0; page < size / kPageSize; ++page) {
    host_pages_[base.page() + page] = host + page * kPageSize;
  }
}

void Engine::invalidate_code(PhysAddr address, std::uint32_t size) {
  // The library looks translated code up by linear address; with translation made the identity for
  // the moment, that is by physical address.
  flush_tlb_now();
  identity_ = true;
  uc_ctl_remove_cache(uc_, address.value, address.value + size);
  identity_ = false;
  flush_tlb();
}

void Engine::flush_tlb() {
  tlb_is_stale_ = true;
  if (running_) flush_tlb_now();
}

void Engine::flush_tlb_now() {
  check(uc_ctl_flush_tlb(uc_), "flush the TLB");
  tlb_is_stale_ = false;
}

void Engine::flush_code() {
  check(uc_ctl_flush_tb(uc_), "flush translated code");
  code_cache_.stop();
}

bool Engine::forget_code(LinearAddr linear) {
  if (tlb_is_stale_) flush_tlb_now();
  translation_fault_.reset();
  check(uc_ctl_remove_cache(uc_, linear.value, linear.value + 1), "forget translated code");
  return !translation_fault_.has_value();
}

EngineStop Engine::run() {
  if (tlb_is_stale_) flush_tlb_now();
  pending_ = nullptr;
  unmapped_frame_.reset();
  translation_fault_.reset();
  failure_.clear();
  translating_ = Translating::nothing;
  watch(true);
  running_ = true;
  uc_err error = UC_ERR_OK;
  try {
    error = uc_emu_start(uc_, wide_ ? rip() : eip(), 0, 0, 0);
  } catch (...) {
    running_ = false;
    throw;
  }
  running_ = false;
  watch(false);
  end_translation();
  if (pending_) std::rethrow_exception(pending_);
  if (error == UC_ERR_OK) return EngineStop::requested;
  if (unmapped_frame_) {
    failure_ = fmt::format("nothing is mapped at physical {:08x}", unmapped_frame_->value);
    return EngineStop::failure;
  }
  if (translation_fault_) return EngineStop::translation_fault;
  failure_ = uc_strerror(error);
  return EngineStop::failure;
}

void Engine::stop() {
  if (!running_) return;
  watch(false);
  uc_emu_stop(uc_);
}

}  // namespace citcat
