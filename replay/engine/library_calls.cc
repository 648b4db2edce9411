#include "replay/engine/library_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "formats/io/error.h"
#include "replay/engine/process_memory.h"

namespace citcat {

namespace {

thread_local LibraryMappings* watching = nullptr;
thread_local ContainedCall* innermost = nullptr;
std::atomic<bool> gave_up{false};

}  // namespace

/// What the library calls in place of functions of the C library, and what it would have called:
/// ours of another copy of this code, if there is one in the process.
struct LibraryCalls {
  static decltype(&::mmap) next_map;
  static decltype(&std::exit) next_exit;
  static decltype(&std::abort) next_abort;

  static void* map(void* address, std::size_t bytes, int protection, int flags, int descriptor,
                   off_t offset) {
    void* const mapped = next_map(address, bytes, protection, flags, descriptor, offset);
    if (mapped != MAP_FAILED && watching != nullptr) {
      try {
        watching->all_.push_back({{static_cast<std::uint8_t*>(mapped), bytes}, protection});
      } catch (...) {  // no memory for that: it is not found then, which is an error
      }
    }
    return mapped;
  }
  static void end_contained() {
    if (innermost == nullptr) return;
    gave_up = true;
    std::longjmp(innermost->way_back_, 1);
  }
  [[noreturn]] static void exit(int status) {
    end_contained();
    next_exit(status);
    __builtin_unreachable();
  }
  [[noreturn]] static void abort() {
    end_contained();
    next_abort();
    __builtin_unreachable();
  }
  [[noreturn]] static void fail_assertion(const char* assertion, const char* file, unsigned line,
                                          const char*) {
    end_contained();
    std::fprintf(stderr, "%s:%u: assertion failed: %s\n", file, line, assertion);
    next_abort();
    __builtin_unreachable();
  }
};

decltype(&::mmap) LibraryCalls::next_map = &::mmap;
decltype(&std::exit) LibraryCalls::next_exit = &std::exit;
decltype(&std::abort) LibraryCalls::next_abort = &std::abort;

namespace {

struct Redirection {
  std::string_view name;
  std::uintptr_t to;
  void* next;  ///< pointer to what is called otherwise; null where that does not matter
  bool required;
};

template <class Function>
std::uintptr_t address_of(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

const std::array<Redirection, 5>& redirections() {
  static const std::array<Redirection, 5> all = {{
      {"mmap64", address_of(&LibraryCalls::map), &LibraryCalls::next_map, false},
      {"mmap", address_of(&LibraryCalls::map), &LibraryCalls::next_map, false},
      {"exit", address_of(&LibraryCalls::exit), &LibraryCalls::next_exit, true},
      {"abort", address_of(&LibraryCalls::abort), &LibraryCalls::next_abort, true},
      {"__assert_fail", address_of(&LibraryCalls::fail_assertion), nullptr, false},
  }};
  return all;
}

/// The dynamic section of a loaded library, as far as it is needed here (System V ABI, "Dynamic
/// Section"). The loader has made its pointers absolute.
struct DynamicSection {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls, data;

  explicit DynamicSection(const link_map& library) {
    const ElfW(Rela)* call_table = nullptr;
    const ElfW(Rela)* data_table = nullptr;
    std::size_t call_bytes = 0, data_bytes = 0;
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
          break;
        case DT_JMPREL:
          call_table = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          call_bytes = entry->d_un.d_val;
          break;
        case DT_RELA:
          data_table = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
          break;
        case DT_RELASZ:
          data_bytes = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
    if (call_table != nullptr) calls = {call_table, call_bytes / sizeof *call_table};
    if (data_table != nullptr) data = {data_table, data_bytes / sizeof *data_table};
  }
};

/// Changes a word of the library's table, which may be read-only since the library was loaded.
void write_slot(std::uintptr_t slot, std::uintptr_t value, void* before) {
  // Two tables may have the same function.
  auto* const word = reinterpret_cast<std::uintptr_t*>(slot);
  if (before != nullptr && *word != value) std::memcpy(before, word, sizeof *word);
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(slot & ~(page_bytes - 1));
  const bool writable = lies_in(host_mappings("rw"), slot, sizeof value);
  if (!writable && ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
    throw InternalError("engine: the library's calls cannot be redirected");
  }
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);  // others may be calling by it
  if (!writable) ::mprotect(page, page_bytes, PROT_READ);
}

}  // namespace

void redirect_library_calls(void* handle) {
  link_map* library = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) {
    throw InternalError("engine: the library's calls are not found");
  }
  const DynamicSection section(*library);
  std::array<int, std::tuple_size_v<std::decay_t<decltype(redirections())>>> found{};
  for (const std::span<const ElfW(Rela)> table : {section.calls, section.data}) {
    for (const ElfW(Rela) & relocation : table) {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      // Tens of thousands are of its own.
      const ElfW(Sym)& symbol = section.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      const std::string_view name = section.names + symbol.st_name;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (name != redirections()[i].name) continue;
        write_slot(library->l_addr + relocation.r_offset, redirections()[i].to,
                   redirections()[i].next);
        ++found[i];
      }
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (redirections()[i].required && found[i] == 0) {
      throw InternalError("engine: the library does not call " +
                          std::string(redirections()[i].name) + "() by a table");
    }
  }
}

LibraryMappings::LibraryMappings() {
  CITCAT_ASSERT(watching == nullptr);
  watching = this;
}

LibraryMappings::~LibraryMappings() { watching = nullptr; }

std::span<std::uint8_t> LibraryMappings::last(std::size_t least, std::size_t most,
                                              int protection) const {
  for (auto m = all_.rbegin(); m != all_.rend(); ++m) {
    const std::size_t bytes = m->bytes.size();
    if (bytes >= least && bytes <= most && (m->protection & protection) == protection) {
      return m->bytes;
    }
  }
  return {};
}

ContainedCall::ContainedCall() : way_back_{}, outer_(innermost) { innermost = this; }

ContainedCall::~ContainedCall() { innermost = outer_; }

void ContainedCall::fail() const {
  throw IoError("engine: Unicorn gave up, most likely because there is no more memory");
}

bool library_gave_up() { return gave_up; }

}  // namespace citcat
