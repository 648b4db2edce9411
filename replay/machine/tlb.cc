#include "replay/machine/tlb.h"

#include <utility>

namespace citcat {

template <class Which>
void Tlb::drop(Which&& which) {
  for (std::vector<Entry>* entries : {&code_entries_, &data_entries_}) {
    for (Entry& e : *entries) {
      if (e.tag != kInvalid && which(e)) e.tag = kInvalid;
    }
  }
}

void Tlb::drop_all() {
  for (Entry& e : code_entries_) e.tag = kInvalid;
  for (Entry& e : data_entries_) e.tag = kInvalid;
  large_regions_.reset();
}

void Tlb::drop_unglobal() {
  drop([](const Entry& e) { return !e.global; });
}

void Tlb::drop_context(std::uint16_t context) {
  const std::uint64_t wanted = context_tag(context);
  // Bit 52 and those above are alike in an address, as bit 51 is.
  drop([&](const Entry& e) {
    const bool upper = (e.tag >> (kContextShift - 1) & 1) != 0;
    const std::uint64_t own = (upper ? ~std::uint64_t{0} : 0) << kContextShift;
    return !e.global && (e.tag >> kContextShift << kContextShift) == (own ^ wanted);
  });
}

bool Tlb::drop_page(LinearAddr address, std::uint64_t context, bool global, std::uint64_t within) {
  constexpr std::uint64_t kInAddress = (std::uint64_t{1} << kContextShift) - 1;
  const std::uint64_t wanted = address.page_begin().value ^ context;
  const auto is_of = [&](const Entry& e, std::uint64_t ignored) {
    const std::uint64_t differing = (e.tag ^ wanted) & ~ignored;
    return differing == 0 || (global && e.global && (differing & kInAddress) == 0);
  };
  for (std::vector<Entry>* entries : {&code_entries_, &data_entries_}) {
    Entry& e = (*entries)[address.page() & (entries->size() - 1)];
    if (e.tag != kInvalid && is_of(e, 0)) e.tag = kInvalid;
  }
  if (!large_regions_.test(region_of(address.value))) return false;
  drop([&](const Entry& e) { return e.large && is_of(e, within); });
  return true;
}

void Tlb::drop_piece(LinearAddr address) {
  for (std::vector<Entry>* entries : {&code_entries_, &data_entries_}) {
    Entry& e = (*entries)[address.page() & (entries->size() - 1)];
    if (e.tag == tag(address)) e.tag = kInvalid;
  }
}

void Tlb::restore(std::vector<Entry> code, std::vector<Entry> data) {
  code_entries_ = std::move(code);
  data_entries_ = std::move(data);
  for (const std::vector<Entry>* entries : {&code_entries_, &data_entries_}) {
    for (const Entry& e : *entries) {
      if (e.large) large_regions_.set(region_of(e.tag));
    }
  }
}

}  // namespace citcat
