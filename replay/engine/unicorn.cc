// Finds Unicorn's functions in its library when an engine is first made.

#include <dlfcn.h>

#include <string>

#include "formats/io/error.h"
#include "replay/engine/unicorn_internal.h"

namespace citcat {

#define CITCAT_DEFINE(name) LibraryFunction<decltype(&::name)> name;
CITCAT_UNICORN_FUNCTIONS(CITCAT_DEFINE)
#undef CITCAT_DEFINE

namespace {

/// All releases of Unicorn 2; found as the program's own libraries are.
constexpr const char* kLibrary = "libunicorn.so.2";

[[noreturn]] void fail() {
  const char* const reason = ::dlerror();
  throw IoError(std::string("cannot load Unicorn: ") +
                (reason != nullptr ? reason : "no reason given"));
}

/// Its symbols are looked for in the library itself first: its tens of thousands of references are
/// a third of the start of a program otherwise. Sanitizers refuse to be passed over.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

class Library {
 public:
  Library() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | kOwnSymbolsFirst)) {
    if (handle_ == nullptr) fail();
  }
  template <typename Function>
  void find(LibraryFunction<Function>& function, const char* name) const {
    void* const symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) fail();
    function = reinterpret_cast<Function>(symbol);
  }
  void redirect() const { redirect_library_calls(handle_); }

 private:
  void* handle_;  ///< stays open: engines may be made until the program ends
};

void find_functions() {
  const Library library;
#define CITCAT_FIND(name) library.find(name, #name);
  CITCAT_UNICORN_FUNCTIONS(CITCAT_FIND)
#undef CITCAT_FIND
  library.redirect();
}

}  // namespace

void load_unicorn() {
  [[maybe_unused]] static const bool loaded = (find_functions(), true);  // as in Engine::Engine()
}

void check(uc_err error, const char* doing) {
  if (error != UC_ERR_OK) {
    throw InternalError(std::string("engine: cannot ") + doing + ": " + uc_strerror(error));
  }
}

}  // namespace citcat
