#pragma once
// The translations that a processor keeps (Intel SDM vol. 3, 4.10): entries for code and for data,
// of all contexts, and what drops them.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "replay/machine/memory_access.h"

namespace citcat {

/// Direct-mapped and large: entries live until something drops them, as software must assume.
class Tlb {
 public:
  static constexpr std::uint32_t kInvalid = 1;  ///< a tag with a low bit is no page
  static constexpr std::size_t kCodeEntries = 1024, kDataEntries = 2048;

  /// The tag is the page's address, or odd when the entry is empty. Its upper 12 bits, which are
  /// alike in an address, are distinguished by the process-context identifier.
  struct Entry {
    std::uint64_t tag = kInvalid;
    std::uint64_t frame = 0;   ///< its address
    std::uint8_t allowed = 0;  ///< what may be done without another walk: Mmu's bits
    bool global = false;
    bool large = false;  ///< a piece of a page of 2 or 4 MiB, or of 1 GiB
    bool operator==(const Entry&) const = default;
  };

  /// `shared`: code and data have the same entries.
  explicit Tlb(bool shared) : code_(shared ? data_entries_ : code_entries_) {}
  Tlb(const Tlb&) = delete;
  Tlb& operator=(const Tlb&) = delete;

  bool shared() const { return &code_ == &data_entries_; }
  /// The current process-context identifier, 0 without CR4.PCIDE.
  void set_context(std::uint16_t context) { context_ = context_tag(context); }

  Entry& entry_of(LinearAddr address, Access access) {
    std::vector<Entry>& entries = access == Access::execute ? code_ : data_entries_;
    return entries[address.page() & (entries.size() - 1)];
  }
  /// The tag that the page of `address` has in the current context.
  std::uint64_t tag(LinearAddr address) const { return address.page_begin().value ^ context_; }
  /// With `data` the TLB loses what it holds of `code`, which is another page.
  bool takes_place_of(LinearAddr data, LinearAddr code) const {
    const LinearAddr::PageNumber differing = data.page() ^ code.page();
    return shared() && differing != 0 && differing % kDataEntries == 0;
  }
  /// An entry of a large page was filled for `address`.
  void note_large(LinearAddr address) { large_regions_.set(region_of(address.value)); }

  /// Drops everything, global pages among it.
  void drop_all();
  /// Drops all but global pages.
  void drop_unglobal();
  /// Drops what is of a context, without global pages.
  void drop_context(std::uint16_t context);
  /// Drops a page of the current context, and global pages of all contexts. INVLPG drops all of a
  /// page that the tables map as a large one, in however many pieces it is held (Intel SDM vol. 3,
  /// 4.10.4.1). `within`: the address bits within the largest page there may be. Returns whether
  /// pieces of large pages may have been dropped.
  bool drop_page(LinearAddr address, std::uint64_t within) {
    return drop_page(address, context_, true, within);
  }
  /// Drops what is held of 4 KiB in the current context; other pieces of a large page stay.
  void drop_piece(LinearAddr address);
  /// Drops a page of a context that is not global.
  bool drop_page_of(LinearAddr address, std::uint16_t context, std::uint64_t within) {
    return drop_page(address, context_tag(context), false, within);
  }

  /// kCodeEntries and kDataEntries of them.
  const std::vector<Entry>& code_entries() const { return code_entries_; }
  const std::vector<Entry>& data_entries() const { return data_entries_; }
  void restore(std::vector<Entry> code, std::vector<Entry> data);

 private:
  /// Addresses are alike from here on up.
  static constexpr unsigned kContextShift = 52;
  static std::uint64_t context_tag(std::uint16_t context) {
    return std::uint64_t{context} << kContextShift;
  }
  /// A region of 4 MiB; those that 32 bits do not distinguish share a bit.
  static std::size_t region_of(std::uint64_t value) {
    return static_cast<std::uint32_t>(value) >> 22;
  }
  bool drop_page(LinearAddr address, std::uint64_t context, bool global, std::uint64_t within);
  template <class Which>
  void drop(Which&& which);

  std::vector<Entry> code_entries_ = std::vector<Entry>(kCodeEntries);
  std::vector<Entry> data_entries_ = std::vector<Entry>(kDataEntries);
  std::vector<Entry>& code_;  ///< one of these
  std::uint64_t context_ = 0;
  std::bitset<1024> large_regions_;  ///< where entries of large pages may be
};

}  // namespace citcat
