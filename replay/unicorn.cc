#include <dlfcn.h>

#include <mutex>
#include <string>

#include "formats/error.h"
#include "replay/unicorn_internal.h"

namespace citcat {

decltype(&::uc_close) uc_close = nullptr;
decltype(&::uc_context_alloc) uc_context_alloc = nullptr;
decltype(&::uc_context_free) uc_context_free = nullptr;
decltype(&::uc_context_save) uc_context_save = nullptr;
decltype(&::uc_ctl) uc_ctl = nullptr;
decltype(&::uc_emu_start) uc_emu_start = nullptr;
decltype(&::uc_emu_stop) uc_emu_stop = nullptr;
decltype(&::uc_hook_add) uc_hook_add = nullptr;
decltype(&::uc_mem_map) uc_mem_map = nullptr;
decltype(&::uc_mem_map_ptr) uc_mem_map_ptr = nullptr;
decltype(&::uc_mem_write) uc_mem_write = nullptr;
decltype(&::uc_open) uc_open = nullptr;
decltype(&::uc_reg_read) uc_reg_read = nullptr;
decltype(&::uc_reg_write) uc_reg_write = nullptr;
decltype(&::uc_strerror) uc_strerror = nullptr;
decltype(&::uc_version) uc_version = nullptr;

namespace {

/// All releases of Unicorn 2; found as the program's own libraries are.
constexpr const char* kLibrary = "libunicorn.so.2";

[[noreturn]] void fail() {
  const char* const reason = ::dlerror();
  throw IoError(std::string("cannot load Unicorn: ") +
                (reason != nullptr ? reason : "no reason given"));
}

class Library {
 public:
  Library() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) fail();
  }
  template <typename Function>
  void find(Function& function, const char* name) const {
    void* const symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) fail();
    function = reinterpret_cast<Function>(symbol);
  }

 private:
  void* handle_;  ///< stays open: engines may be made until the program ends
};

void find_functions() {
  const Library library;
  library.find(uc_close, "uc_close");
  library.find(uc_context_alloc, "uc_context_alloc");
  library.find(uc_context_free, "uc_context_free");
  library.find(uc_context_save, "uc_context_save");
  library.find(uc_ctl, "uc_ctl");
  library.find(uc_emu_start, "uc_emu_start");
  library.find(uc_emu_stop, "uc_emu_stop");
  library.find(uc_hook_add, "uc_hook_add");
  library.find(uc_mem_map, "uc_mem_map");
  library.find(uc_mem_map_ptr, "uc_mem_map_ptr");
  library.find(uc_mem_write, "uc_mem_write");
  library.find(uc_open, "uc_open");
  library.find(uc_reg_read, "uc_reg_read");
  library.find(uc_reg_write, "uc_reg_write");
  library.find(uc_strerror, "uc_strerror");
  library.find(uc_version, "uc_version");
}

}  // namespace

void load_unicorn() {
  static std::once_flag loaded;
  std::call_once(loaded, find_functions);
}

}  // namespace citcat
