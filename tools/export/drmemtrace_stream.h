#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/export/drmemtrace_format.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {

/// What one file of drmemtrace holds: the entries of one thread, or of all that a processor ran.
class DrmemtraceStream {
 public:
  enum class View : std::uint8_t { user, whole };
  struct Form {
    View view = View::whole;
    std::size_t address_bytes = 8;  ///< of an entry
    bool long_mode = false;         ///< the processor has it
    bool all_threads = false;       ///< they are in one file
    std::size_t processor = 0;      ///< that they run on
  };
  using Write = std::function<void(std::span<const std::uint8_t>)>;

  /// `write` is called with large pieces.
  DrmemtraceStream(const Form& form, Write write) : form_(form), write_(std::move(write)) {}

  /// DynamoRIO's thread and process: the address space's number, which is not 0.
  static std::uint32_t thread_of(std::uint32_t address_space) { return (address_space >> 12) + 1; }

  /// The run goes on in a thread of this file, with `step`, at `time`, which counts from 0.
  void enter(const Step& step, std::uint64_t time);
  void step(const Step& step);
  /// Behind a step of it.
  void happened(const StepEvent& h);
  void end(std::uint64_t time);

 private:
  void entry(DrEntry type, std::uint16_t size, std::uint64_t value);
  void marker(DrMarker type, std::uint64_t value);
  void begin(const Step& step);
  void name_thread(std::uint32_t thread);
  void tell_time(std::uint64_t time);
  void enter_level(const Step& step);
  void hardware_event(LinearAddr from);
  void hardware_return(LinearAddr from);
  void happened_in_system(const StepEvent& h);
  void write_discontinuity(const Step& step);
  void write_encoding(const StaticInstruction& code);
  void flush();

  Form form_;
  Write write_;
  std::vector<std::uint8_t> buffer_;
  std::uint32_t thread_ = 0;  ///< 0: none was yet
  /// What was encoded last at an address.
  std::unordered_map<std::uint64_t, const StaticInstruction*> encoded_;
  unsigned depth_ = 0;      ///< hardware events that have not returned
  LinearAddr last_next_;    ///< where the last step went on
  LinearAddr last_behind_;  ///< the address behind it
  /// An IRET, SYSEXIT or SYSRET was the last step: its address.
  std::optional<LinearAddr> returned_from_;
  /// Where a thread goes on, unless the system makes it go on elsewhere.
  struct Expected {
    std::optional<LinearAddr> next;
    bool from_system_call = false;
  };
  std::map<std::uint32_t, Expected> threads_;
};

}  // namespace citcat::tools
