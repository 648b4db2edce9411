#pragma once

#include <string>

namespace citcat {

/// The meaning of a name of the Itanium C++ ABI: "_ZN3Foo3barEi" is "Foo::bar(int)". Any other name
/// is returned unchanged, and so is one that is longer than kMaxDemangled or only begins like such
/// a name.
std::string demangled(const std::string& name);

/// A short name can stand for one that fills the memory; those that compilers make of programs are
/// far shorter than this many bytes.
inline constexpr std::size_t kMaxDemangled = 2048;

}  // namespace citcat
