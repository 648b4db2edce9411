#include "tools/guest/process_names.h"

namespace citcat::tools {

std::optional<std::string> ProcessNames::name(AddressSpaceId address_space) const {
  const auto found = processes_.find(space_of(address_space));
  if (found == processes_.end()) return std::nullopt;
  return found->second.name;
}

void ProcessNames::join_tables() {
  if (isolated_) return;
  isolated_ = true;
  std::unordered_map<AddressSpaceId, Process> joined;
  for (auto& [space, process] : processes_) joined.emplace(space_of(space), std::move(process));
  processes_ = std::move(joined);
  current_ = space_of(current_);
}

void ProcessNames::address_space(AddressSpaceId cr3) {
  cr3 = space_of(cr3);
  if (cr3 == current_) return;
  const auto before = processes_.find(current_), after = processes_.find(cr3);
  if (before != processes_.end()) before->second.left = before->second.ends;
  if (after != processes_.end() && after->second.left) processes_.erase(after);
  current_ = cr3;
}

void ProcessNames::began(const SystemCall& call) {
  if (meaning_of(call) != SystemCallMeaning::exit_group ||
      follower_->lends_memory(call.address_space)) {
    return;
  }
  const auto process = processes_.find(space_of(call.address_space));
  if (process != processes_.end()) process->second.ends = true;
}

void ProcessNames::forked(AddressSpaceId parent, AddressSpaceId child, Position /*now*/) {
  child = space_of(child);
  const auto found = processes_.find(space_of(parent));
  if (found == processes_.end()) {
    processes_.erase(child);
    return;
  }
  const std::string name = found->second.name;
  processes_[child] = {name, false, false};
}

void ProcessNames::executed(AddressSpaceId address_space, const std::string& path,
                            Position /*now*/) {
  processes_[space_of(address_space)] = {path.substr(path.rfind('/') + 1), false, false};
}

void ProcessNames::renamed(AddressSpaceId address_space, const std::string& name,
                           Position /*now*/) {
  processes_[space_of(address_space)].name = name;
}

}  // namespace citcat::tools
