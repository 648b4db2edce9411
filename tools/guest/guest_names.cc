#include "tools/guest/guest_names.h"

#include <fnmatch.h>

#include <algorithm>

#include "events/names/demangle.h"
#include "formats/io/error.h"
#include "tools/guest/guest_events.h"

namespace citcat::tools {

namespace {

constexpr std::string_view kCodeFolder = "/Code/";

/// Sorted, and without gaps between those that meet.
std::vector<LinearRange> joined(std::vector<LinearRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const LinearRange& a, const LinearRange& b) { return a.begin < b.begin; });
  std::vector<LinearRange> result;
  for (const LinearRange& range : ranges) {
    if (!result.empty() && range.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

bool is_address(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEFx-") == std::string::npos;
}

}  // namespace

GuestNames::GuestNames(const Symbols& symbols) : symbols_(symbols) { restart(); }

void GuestNames::restart() {
  processes_ = ProcessNames();
  follower_ = std::make_unique<SystemCallFollower>(*this);
  processes_.set_follower(*follower_);
  guest_.reset();
}

void GuestNames::event(const MachineEvent& event, const Context& context) {
  if (guest_ == nullptr) {
    guest_ = std::make_unique<MachineGuest>(context.machine());
    follower_->watch(*guest_);
  }
  if (context.has_isolated_tables()) processes_.join_tables();
  follow(*follower_, event);
  if (event.kind == MachineEvent::Kind::address_space) processes_.address_space(event.value);
}

void GuestNames::began(const SystemCall& call) {
  if (watcher_ != nullptr) watcher_->call_began(call.ordinal, call);
  processes_.began(call);
}

void GuestNames::ended(const SystemCall& call) {
  if (watcher_ != nullptr) watcher_->call_ended(call.ordinal, call);
}

void GuestNames::forked(AddressSpaceId parent, AddressSpaceId child, Position now) {
  processes_.forked(parent, child, now);
}

void GuestNames::executed(AddressSpaceId address_space, const std::string& path, Position now) {
  processes_.executed(address_space, path, now);
}

void GuestNames::renamed(AddressSpaceId address_space, const std::string& name, Position now) {
  processes_.renamed(address_space, name, now);
}

std::string GuestNames::process_of(AddressSpaceId address_space) const {
  const auto name = processes_.name(address_space);
  return name ? *name : NameSource::process_of(processes_.space_of(address_space));
}

bool GuestNames::is_process(const std::string& pattern, const Context& context) const {
  const auto name = processes_.name(context.address_space());
  if (name && fnmatch(pattern.c_str(), name->c_str(), 0) == 0) return true;
  return NameSource::is_process(pattern, context);
}

std::vector<LinearRange> GuestNames::procedures(const std::string& module,
                                                const std::string& procedure,
                                                const std::string& pattern) const {
  std::vector<LinearRange> ranges;
  for (const SymbolRange& range : symbols_.code(module, procedure)) {
    // A range ends before the last address: no code can be known that ends after it.
    LinearAddr end = range.last;
    if (end.value != kLastSymbolAddress) ++end.value;
    ranges.push_back({range.first, end});
  }
  if (!ranges.empty()) return joined(std::move(ranges));
  std::string known;
  for (const SymbolModule& m : symbols_.modules()) known += (known.empty() ? "" : ", ") + m.name;
  throw UsageError(
      "code=" + pattern + ": expected code that has a name, found none; " +
      (known.empty() ? "no symbols are known (see --symbols)" : "there are symbols of " + known));
}

std::vector<LinearRange> GuestNames::code(const std::string& pattern) const {
  if (pattern.starts_with(kCodeFolder)) {
    const std::string path = pattern.substr(kCodeFolder.size());
    const std::size_t slash = path.find('/');
    const std::string procedure = slash == std::string::npos ? "*" : path.substr(slash + 1);
    return procedures(path.substr(0, slash), procedure, pattern);
  }
  if (is_address(pattern)) return NameSource::code(pattern);
  return procedures("*", pattern, pattern);
}

std::optional<NamedCode> GuestNames::procedure(LinearAddr at, const Context& context) const {
  if (symbols_.empty()) return std::nullopt;
  const auto process = processes_.name(context.address_space());
  const auto place = symbols_.find(at, process ? *process : std::string());
  if (!place || place->symbol->kind != SymbolKind::code) return std::nullopt;
  return NamedCode{place->module->name, demangled(place->symbol->name), place->symbol->address};
}

std::optional<LinearAddr> GuestNames::symbol(const std::string& name) const {
  const auto place = symbols_.named(name);
  if (!place) return std::nullopt;
  return place->symbol->address;
}

}  // namespace citcat::tools
