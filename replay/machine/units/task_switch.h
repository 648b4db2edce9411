#pragma once
// Task switches (Intel SDM vol. 3, chapter 7). The engine would make their memory accesses
// unobserved; here each is reported like any other.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class DebugUnit;
class SegmentLoader;
class StackPusher;
class SystemMemory;

/// Checks, stores and loads in the order of SDM vol. 3, 7.3. What is thrown before the commit point
/// leaves the old task; after it (entered()) faults belong to the new one.
class TaskSwitch {
 public:
  /// All must outlive the object.
  TaskSwitch(CpuContext& cpu, InFlight& flight, DebugUnit& debug, SystemMemory& system,
             SegmentLoader& segments, StackPusher& stack)
      : cpu_(cpu),
        flight_(flight),
        debug_(debug),
        system_(system),
        segments_(segments),
        stack_(stack) {}

  enum class TaskSource : std::uint8_t { jump, call, iret, event };
  struct TaskReturn {
    std::uint32_t eip = 0, eflags = 0;  ///< saved for the task that is left
  };
  /// The delivery in progress is past a task switch's commit point.
  bool entered() const { return entered_; }
  /// A delivery begins: it is not, yet.
  void begin_delivery() { entered_ = false; }

  /// The task segment that a task gate names.
  Descriptor read_task_descriptor(std::uint16_t selector, std::uint32_t ext);
  /// IRET with NT set: to the task that the link field of the current one names.
  void return_to_previous();
  void switch_to(const Descriptor& task, TaskSource source, std::uint32_t saved_eip,
                 std::uint32_t saved_flags, std::uint32_t ext);
  /// An exception or interrupt through a task gate (SDM vol. 3, 6.14.2).
  void deliver(std::uint16_t selector, const CpuException& exception, const TaskReturn& from,
               std::uint32_t ext);

 private:
  struct TaskState;

  TaskState read_task(std::uint32_t base, bool wide);
  void enter_task(const TaskState& state, bool wide, bool nested, std::uint32_t ext);
  void load_task_ldt(std::uint16_t selector, std::uint32_t ext);
  void load_task_stack(std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext);
  void load_task_data(int s, std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext);
  void load_task_code(std::uint16_t selector, std::uint32_t ext);

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  SystemMemory& system_;
  SegmentLoader& segments_;
  StackPusher& stack_;

  bool entered_ = false;
};

}  // namespace citcat
