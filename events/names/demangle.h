#pragma once

#include <string>

namespace citcat {

/// What a name of the Itanium C++ ABI means ("_ZN3Foo3barEi" is "Foo::bar(int)"); any other name as
/// it is, and so what is no such name although it begins like one, or is longer than
/// kMaxDemangled.
std::string demangled(const std::string& name);

/// A short name can stand for one that fills the memory; those that compilers make of programs are
/// far shorter than this many bytes.
inline constexpr std::size_t kMaxDemangled = 2048;

}  // namespace citcat
