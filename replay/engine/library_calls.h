#pragma once
// The engine's library ends the process when it lacks memory, and does not say where it maps any.
// In both cases it calls functions of the C library, which citcat replaces with its own.

#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace citcat {

/// Has the library after `handle` (dlopen) call citcat's functions where it calls mmap(), exit(),
/// abort() and what a failed assertion calls: they do the same, unless an object below lives in the
/// calling thread. Throws InternalError when the library calls none of the first three by a table.
void redirect_library_calls(void* handle);

/// Memory that the library maps in this thread while it lives. Not nested.
class LibraryMappings {
 public:
  LibraryMappings();
  ~LibraryMappings();
  LibraryMappings(const LibraryMappings&) = delete;
  LibraryMappings& operator=(const LibraryMappings&) = delete;

  /// The last mapping of at least `least` and at most `most` bytes that allows all of `protection`
  /// (PROT_*); empty when there was none.
  std::span<std::uint8_t> last(std::size_t least, std::size_t most, int protection) const;

 private:
  friend struct LibraryCalls;
  struct Mapping {
    std::span<std::uint8_t> bytes;
    int protection = 0;
  };
  std::vector<Mapping> all_;
};

/// One call into the library. When it wants to end the process, the call ends instead. Calls may be
/// nested, by way of the library's callbacks.
class ContainedCall {
 public:
  ContainedCall();
  ~ContainedCall();
  ContainedCall(const ContainedCall&) = delete;
  ContainedCall& operator=(const ContainedCall&) = delete;

  /// Where the call ends: for _setjmp(), by the function that makes the call.
  std::jmp_buf& way_back() { return way_back_; }
  /// It came back there. Throws IoError; what the library holds is not to be used again.
  [[noreturn]] void fail() const;

 private:
  friend struct LibraryCalls;
  std::jmp_buf way_back_;
  ContainedCall* outer_;
};

/// Whether a call had to be ended like that in this process: what the library then was at is left
/// as it is, and never given back.
bool library_gave_up();

/// A function of the library, called so that it cannot end the process.
template <class Function>
class LibraryFunction {
 public:
  LibraryFunction& operator=(Function function) {
    function_ = function;
    return *this;
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) const {
    ContainedCall call;
    // Between here and the library are no frames of ours but callbacks', whose own calls into it
    // are contained by themselves: nothing is skipped that has something to destroy.
    if (_setjmp(call.way_back()) != 0) call.fail();
    return function_(arguments...);
  }

 private:
  Function function_ = nullptr;
};

}  // namespace citcat
