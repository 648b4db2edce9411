#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/byte_mask.h"
#include "events/machine/memory_image.h"
#include "formats/memory/frame_table.h"
#include "replay/engine/engine.h"

namespace citcat {

/// Is notified of stores to the frames that it names (Memory::watch()).
class StoreWatcher {
 public:
  virtual ~StoreWatcher() = default;
  virtual void stored(PhysAddr address, std::uint32_t size) = 0;
};

/// Physical memory of the replayed machine: the engine's frames, with a record of which bytes some
/// evidence defines. A byte that was never read on the bus before it was written has no defined
/// value until the replay writes it; reading it earlier means that the replay has diverged from the
/// evidence, and is reported instead of being read as zero.
class Memory {
 public:
  /// `captured_mask`: physical address bits the monitor recorded (BusModel::address_mask). Bits
  /// within `address_bits` that it lacks make captured addresses ambiguous: the image is then
  /// placed at every address it may belong to.
  Memory(Engine& engine, std::uint32_t captured_mask, unsigned address_bits);

  /// Maps RAM from 0 and everything the image knows, and copies the image in.
  void load(const MemoryImage& image, std::uint32_t ram_bytes);

  /// Makes sure that the frame is mapped; true when it had to be mapped now (the engine must not be
  /// inside a run).
  bool ensure_mapped(FrameNumber page);
  bool is_mapped(FrameNumber page) const { return engine_.host_page(page) != nullptr; }
  std::uint8_t* host(PhysAddr a) const {
    std::uint8_t* page = engine_.host_page(a.page());
    return page == nullptr ? nullptr : page + a.offset_in_page();
  }

  /// True when every byte of [address, address+size), which must not cross a frame, is defined.
  bool is_defined(PhysAddr address, std::uint32_t size) const {
    const PageState& state = states_[address.page()];
    if (state.all_defined) return true;
    return state.defined != nullptr && state.defined->all(address.offset_in_page(), size);
  }
  /// Some byte of the frame is defined.
  bool has_defined(FrameNumber page) const {
    const PageState& state = states_[page];
    return state.all_defined || state.defined != nullptr;
  }
  /// The frame may now be stored to unseen: all of it counts as changed and defined.
  void lend(FrameNumber page) {
    PageState& state = states_[page];
    state.changed = true;
    state.all_defined = true;
  }
  /// Bytes of the frame may be stored to unseen; the code that does so marks them as defined
  /// (defined_bytes()).
  void note_stores(FrameNumber page) { states_[page].changed = true; }
  /// Which bytes of the frame are defined, to be looked at and added to as long as mask_epoch()
  /// stays: all of them where all are, and then nothing can be added.
  ByteMask& defined_bytes(FrameNumber page);
  std::uint32_t mask_epoch() const { return mask_epoch_; }
  /// Bytes from `address` on, eight at most and within one frame, are defined where bit i says so
  /// of byte i, and no others of them.
  void set_defined(PhysAddr address, std::uint32_t size, std::uint8_t defined);
  /// Something may have been written to the frame since load().
  bool is_changed(FrameNumber page) const { return states_[page].changed; }
  /// The replay wrote these bytes; must not cross a frame.
  void mark_defined(PhysAddr address, std::uint32_t size) {
    PageState& state = states_[address.page()];
    state.changed = true;
    if (!state.all_defined) mark_partly(state, address, size);
    if (state.watched) [[unlikely]]
      watcher_->stored(address, size);
  }

  /// A frame as it is at one moment.
  struct SavedPage {
    FrameNumber number = 0;
    std::array<std::uint8_t, kPageSize> data;
    ByteMask defined;
  };
  /// In ascending order. Several moments may have the same frames: what has not changed is kept
  /// once.
  using SavedPages = std::vector<std::shared_ptr<const SavedPage>>;
  /// All frames written since load(). Those that are as they were saved or restored last are the
  /// same objects.
  SavedPages save_changed() const;
  /// Numbers of these frames.
  std::vector<FrameNumber> changed_frames() const;
  /// Takes memory back to what it was when `pages` were saved: frames changed since load() and not
  /// among them become what `image` says. Code translated from frames that change is dropped.
  void restore(const MemoryImage& image, const SavedPages& pages);

  /// Instructions of this frame may have been translated: stores made here must tell the engine.
  void note_code(FrameNumber page) { states_[page].code = true; }
  bool holds_code(FrameNumber page) const { return states_[page].code; }
  /// The processor has stored to such a frame, not by the engine, within one frame. True where the
  /// frame holds code no longer: few stores go to a page whose code is still in use.
  bool drop_code(PhysAddr address, std::uint32_t size) {
    constexpr std::uint8_t kPatient = 16;
    PageState& state = states_[address.page()];
    const bool whole = state.stores_to_code < kPatient;
    if (whole) {
      ++state.stores_to_code;
      state.code = false;
      engine_.invalidate_code(PhysAddr{address.page() * kPageSize}, kPageSize);
    } else {
      engine_.invalidate_code(address, size);
    }
    return whole;
  }
  /// Who is notified of changes of the frames named to watch(); must outlive the object.
  void set_watcher(StoreWatcher& watcher) { watcher_ = &watcher; }
  /// From now on the watcher is notified whenever bytes of the frame may have changed.
  void watch(FrameNumber page) { states_[page].watched = true; }

  /// Writes from outside the processor (DMA, devices), at every address the captured one may
  /// mean; invalidates translated code. The engine must not be inside a run.
  void external_write(PhysAddr captured, std::span<const std::uint8_t> data);
  /// Puts bytes back that the engine has overwritten, within one frame. Code is invalidated. The
  /// engine must not be inside a run.
  void take_back(PhysAddr address, std::span<const std::uint8_t> before);
  /// Writes by the processor that the engine did not make itself. Code is invalidated.
  void store(PhysAddr address, std::span<const std::uint8_t> data);

  /// What the monitor shows for this address.
  PhysAddr captured(PhysAddr a) const { return a.masked32(captured_mask_); }

  /// The addresses a captured address may mean, lowest first.
  template <class F>
  void for_each_alias(PhysAddr captured, F&& visit) const {
    for (const std::uint32_t extra : alias_bits_) visit(PhysAddr{captured.value | extra});
  }

  /// The byte at a physical address when some evidence or the replay defines it.
  std::optional<std::uint8_t> defined_byte(PhysAddr a) const {
    if (!is_mapped(a.page()) || !is_defined(a, 1)) return std::nullopt;
    return *host(a);
  }
  /// Every byte of the range, which must not cross a frame, is defined and as in `bytes`.
  bool holds(PhysAddr address, std::span<const std::uint8_t> bytes) const {
    const std::uint8_t* const held = host(address);
    if (held == nullptr || !is_defined(address, static_cast<std::uint32_t>(bytes.size()))) {
      return false;
    }
    // Most are words, or lines: without a call.
    if (bytes.size() == 4) return std::memcmp(held, bytes.data(), 4) == 0;
    if (bytes.size() == 32) return std::memcmp(held, bytes.data(), 32) == 0;
    return std::memcmp(held, bytes.data(), bytes.size()) == 0;
  }
  /// Number of every mapped frame, ascending.
  const std::vector<FrameNumber>& mapped_pages() const { return mapped_; }

 private:
  struct PageState {
    bool all_defined = false;
    bool code = false;
    bool watched = false;
    std::uint8_t stores_to_code = 0;
    bool changed = false;         ///< since load()
    ByteMask* defined = nullptr;  ///< in masks_; null where all_defined, or nothing is
  };
  void mark_partly(PageState& state, PhysAddr address, std::uint32_t size);
  void set_mask(PageState& state, const ByteMask& mask);
  void drop_mask(PageState& state);
  bool is_now(FrameNumber number, const std::uint8_t* data, const ByteMask& defined) const;
  void put_back(FrameNumber number, const std::uint8_t* data, const ByteMask& defined);
  void set_page(FrameNumber number, const std::uint8_t* data, const ByteMask& defined);
  void map_range(FrameNumber first_page, FrameNumber pages);

  void tell_watcher(PhysAddr address, std::uint32_t size) {
    if (states_[address.page()].watched) watcher_->stored(address, size);
  }

  Engine& engine_;
  StoreWatcher* watcher_ = nullptr;
  std::uint32_t captured_mask_;
  std::vector<std::uint32_t> alias_bits_;
  FrameTable<PageState> states_;
  std::deque<ByteMask> masks_;
  ByteMask all_;  ///< all bits set
  std::uint32_t mask_epoch_ = 0;
  std::vector<ByteMask*> free_masks_;
  std::vector<FrameNumber> mapped_;
  mutable SavedPages last_saved_;  ///< or restored
};

}  // namespace citcat
