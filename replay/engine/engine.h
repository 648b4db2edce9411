#pragma once
// The one place that knows Unicorn.
//
// Unicorn executes x86 code; it does not deliver exceptions or interrupts, it hides most of the
// processor's state, and 2.1.1 runs stale code unless memory is mapped in a particular way
// (docs/engine.md). Engine owns one instance, proves at start-up that everything relied on is true
// of the library found, and gives direct access to registers and memory.

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
#include "events/machine/cpu_state.h"
#include "formats/memory/frame_table.h"
#include "replay/engine/code_cache_watch.h"
#include "replay/engine/engine_registers.h"

namespace citcat {

enum class EngineAccess : std::uint8_t { read, write, fetch };

/// An address translation for the engine to keep until its next TLB flush.
struct Translation {
  PhysAddr frame;
  bool writable = false;  ///< stores may use it too
  /// No code was translated from the frame: the engine need not look whether stores change code.
  /// Once some is, Engine::flush_tlb() is due before anything else is executed.
  bool holds_no_code = false;
  // The engine has one entry for the code and the data of a page: a new entry for one replaces the
  // other, and the engine asks before an access that the entry does not allow.
  bool readable = true;    ///< loads may use it
  bool executable = true;  ///< code may be fetched by it, unless the frame holds none
};

class LibraryMappings;

/// The reports of the engine while it runs. All members are called inside the engine's loop; an
/// exception thrown by one stops the run and is rethrown by Engine::run().
class EngineClient {
 public:
  virtual ~EngineClient() = default;
  /// Before the block that begins at `linear` is translated.
  virtual void on_translation(LinearAddr linear) = 0;
  /// Before the instruction at `linear` is translated: where those of its LOCK prefixes lie that
  /// the library must not see (docs/engine.md, "What the library never sees"). It finds a harmless
  /// prefix there. The instruction must not be executed.
  virtual std::span<const PhysAddr> hides(LinearAddr linear) {
    static_cast<void>(linear);
    return {};
  }
  /// Before each instruction, and before each iteration of a REP instruction (plus once for its
  /// final count check). `linear` is CS.base + EIP.
  virtual void on_instruction(LinearAddr linear, std::uint32_t size) = 0;
  /// Exception or software interrupt. `vector` 0..255; `software` for INT n, INT3, INTO (EIP is
  /// then the next instruction), else EIP is the faulting instruction, or the next one for #DB.
  virtual void on_exception(std::uint32_t vector, bool software) = 0;
  /// The engine needs a translation for the page at `linear`. nullopt ends the run with
  /// EngineStop::translation_fault before the access, with EIP at its instruction (for a fetch: at
  /// the instruction the block being translated begins with).
  virtual std::optional<Translation> on_translate(LinearAddr linear, EngineAccess access) = 0;
  virtual std::uint32_t on_in(std::uint16_t port, std::uint32_t size) = 0;
  virtual void on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) = 0;
};

/// Why Engine::run() came back.
enum class EngineStop {
  requested,          ///< stop() was called by the client
  translation_fault,  ///< on_translate() had none; see Engine::translation_fault()
  failure,            ///< anything else; see Engine::failure()
};

class Engine : public EngineRegisters {
 public:
  /// Opens an engine for `model` and runs the start-up proof once per process. Throws
  /// InternalError with the reason when the library is not what is relied on.
  Engine(CpuModel model, EngineClient& client);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Bytes for translated code, at least 1 MiB, in engines made from now on. What does not fit
  /// makes the library forget all of it, and execution goes on. Not while another thread makes one.
  static void set_code_cache(std::uint32_t bytes);

  /// Version of the library, e.g. "2.1.1".
  static std::string version();

  /// Maps `size` bytes (a multiple of 4096) of memory at `base`, zeroed, such that stores to code
  /// are always noticed. Must not overlap what is mapped.
  void map(PhysAddr base, std::uint64_t size);
  /// Host address of the page frame, or nullptr where nothing is mapped. Stable for the engine's
  /// life. Writes through it need invalidate_code() when the frame may hold executed code.
  std::uint8_t* host_page(FrameNumber page) const { return host_pages_[page]; }

  /// Forgets code translated from these physical bytes.
  void invalidate_code(PhysAddr address, std::uint32_t size);
  /// Forgets all cached address translations. Needed after changing page tables from outside and
  /// after changing CR0, CR3 or CR4 through the accessors below. Between runs that is done when
  /// they are asked for next: what runs without the engine flushes them far more often than it is
  /// used.
  void flush_tlb();
  /// Forgets all translated code; slow (tens of milliseconds).
  void flush_code();
  /// flush_code() has to be called before much more is translated (CodeCacheWatch). To be asked at
  /// least once for each few blocks translated: some have a hundred kilobytes.
  bool code_cache_needs_flush() const { return code_cache_.half_full(); }
  /// Forgets the blocks that contain the byte at `linear`; false when on_translate() does not say
  /// where it lies. Between runs only.
  bool forget_code(LinearAddr linear);

  /// Runs from the current CS:EIP until a client stops it or it fails.
  EngineStop run();
  /// Ends the run before the instruction being reported (call inside a client member); of no effect
  /// between runs.
  void stop();
  /// Why run() failed.
  const std::string& failure() const { return failure_; }

  /// The access that ended the run with translation_fault.
  struct TranslationFault {
    LinearAddr page;
    EngineAccess access;
  };
  const TranslationFault& translation_fault() const { return *translation_fault_; }

 private:
  friend void prove_engine();
  struct RawTag {};
  Engine(RawTag, CpuModel model, EngineClient& client);
  /// All of the library's own state.
  std::span<char> library_state() const;
  void install_hooks();
  /// Has the library ask watch_translation() about every address before it is translated.
  void watch_translations();
  void watch(bool on);
  static int compare_exits(const void* address, const void*, void* user);
  void watch_translation(LinearAddr linear);
  // Prefixes that the library must not see (EngineClient::hides()), and what it finds there.
  static constexpr std::uint8_t kLock = 0xf0, kHarmless = 0x3e;  // DS
  void hide(LinearAddr linear);
  void show();
  void put_in_hidden(std::uint8_t prefix) {
    for (std::uint8_t* const at : hidden_) *at = prefix;
  }
  /// The library does something else than to translate.
  void end_translation() {
    if (translating_ == Translating::nothing) return;
    translating_ = Translating::nothing;
    show();
  }
  void find_env();
  void find_efer();
  /// An address as the library hands it over, in 64 bits whatever the mode.
  LinearAddr reported(std::uint64_t value, bool code) const;
  void watch_code_cache(const LibraryMappings& mappings);
  void raise_snapshot_level();
  void set_snapshot_level(std::int32_t level);
  std::uint8_t* map_tracked(std::uint64_t base, std::uint64_t size);
  void map_unchecked(std::uint64_t base, std::uint8_t* host, std::uint64_t size);
  void flush_tlb_now();
  void close();
  /// Runs `body` for a hook: an exception must never cross the engine's frames.
  template <class F>
  void guarded(F&& body) noexcept {
    try {
      body();
    } catch (...) {
      if (!pending_) pending_ = std::current_exception();
      stop();
    }
  }
  /// The same for a hook that the engine may call after an exception, on its way to the next place
  /// where it looks whether to stop: of what it does until there nothing is told.
  template <class F>
  void guarded_until_exception(F&& body) noexcept {
    if (!pending_) guarded(std::forward<F>(body));
  }
  struct Hooks;

  char* exits_ = nullptr;    ///< root of the library's tree of end addresses
  std::uintptr_t exit_ = 0;  ///< value held while the sentinel end address is installed
  /// Where the translation in progress is.
  enum class Translating : std::uint8_t { nothing, beginning, inside } translating_{};
  LinearAddr translating_at_;          ///< address asked about last
  std::vector<std::uint8_t*> hidden_;  ///< prefixes of the instruction there
  EngineClient& client_;
  FrameTable<std::uint8_t*> host_pages_;
  char* snapshot_level_ = nullptr;  ///< in the library's own state
  std::vector<std::span<std::uint8_t>> second_mappings_;
  CodeCacheWatch code_cache_;
  bool running_ = false;       ///< inside run()
  bool identity_ = false;      ///< translations are asked for by physical address just now
  bool tlb_is_stale_ = false;  ///< to be flushed before it is used again
  std::optional<TranslationFault> translation_fault_;  ///< of the last run
  std::exception_ptr pending_;
  std::string failure_;
  std::optional<PhysAddr> unmapped_frame_;  ///< met by the last run
};

}  // namespace citcat
