#include "events/names/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace citcat {

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kMaxDemangled) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace citcat
