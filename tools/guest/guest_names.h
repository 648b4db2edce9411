#pragma once
// The names of a recorded system, as --where, --by and tools know them: processes by the programs
// that were executed in them, code by the symbols that belong to the recording.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/names/symbols.h"
#include "tools/guest/machine_guest.h"
#include "tools/guest/process_names.h"
#include "tools/guest/system_call_follower.h"
#include "tools/host/names.h"

namespace citcat::tools {

class GuestNames final : public NameSource, public SystemCallListener {
 public:
  /// `symbols` must outlive the object.
  explicit GuestNames(const Symbols& symbols);
  /// A run is going to be reported from its beginning.
  void restart();

  void event(const MachineEvent& event, const Context& context) override;
  void set_watcher(SystemCallWatcher* watcher) override { watcher_ = watcher; }
  bool names_processes() const override { return true; }
  /// Its name, else CR3 as NameSource has it.
  std::string process_of(AddressSpaceId address_space) const override;
  /// A name, perhaps with the wildcards of fnmatch(3), or CR3.
  bool is_process(const std::string& pattern, const Context& context) const override;
  /// "/Code/MODULE/PROCEDURE" or "/Code/MODULE", with such wildcards; addresses as NameSource has
  /// them; else a procedure of any module.
  std::vector<LinearRange> code(const std::string& pattern) const override;
  std::optional<NamedCode> procedure(LinearAddr at, const Context& context) const override;
  std::optional<LinearAddr> symbol(const std::string& name) const override;

 private:
  void began(const SystemCall& call) override;
  void ended(const SystemCall& call) override;
  void forked(AddressSpaceId parent, AddressSpaceId child, Position now) override;
  void executed(AddressSpaceId address_space, const std::string& path, Position now) override;
  void renamed(AddressSpaceId address_space, const std::string& name, Position now) override;
  std::vector<LinearRange> procedures(const std::string& module, const std::string& procedure,
                                      const std::string& pattern) const;

  const Symbols& symbols_;
  ProcessNames processes_;
  std::unique_ptr<SystemCallFollower> follower_;
  std::unique_ptr<MachineGuest> guest_;
  SystemCallWatcher* watcher_ = nullptr;
};

}  // namespace citcat::tools
