#pragma once
// An incomplete file, under a name that nobody else uses or can guess.

#include <functional>
#include <string>

namespace citcat {

/// A file or folder beside another, of this program's only: `NAME.citcat-` and sixteen random
/// characters. It is always newly created, and locked as long as it lives, so that the remains of a
/// killed program can be distinguished from files in use. Remains of earlier ones for the same
/// `target` are removed first.
class Temporary {
 public:
  enum class Kind : unsigned char { file, folder };

  /// `kept_as`: the name that a file gets instead of being removed, when the program is ended by a
  /// signal. Throws IoError.
  Temporary(const std::string& target, Kind kind, const std::string& kept_as = "");
  /// Removes it, with what is in it.
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }
  /// Open for writing, of a file; for reading, of a folder. Stays this object's.
  int descriptor() const { return descriptor_; }
  /// Gives the file another name, in place of what has it, and closes it. False, with errno, when
  /// that fails.
  bool rename_to(const std::string& name);

 private:
  bool make(const std::string& target);

  Kind kind_;
  std::string path_;  ///< empty once it has another name
  int descriptor_ = -1;
  int slot_ = -1;
};

/// As long as it lives, a file that somebody has made under a name of its own goes with the
/// temporaries where a signal ends the program.
class RemovedBySignals {
 public:
  explicit RemovedBySignals(const std::string& path);
  ~RemovedBySignals();
  RemovedBySignals(const RemovedBySignals&) = delete;
  RemovedBySignals& operator=(const RemovedBySignals&) = delete;

 private:
  int slot_;
};

/// The system's folder for temporary files: $TMPDIR, else /tmp.
std::string temporary_folder();

/// From now on `told` is called with the name of each leftover that was removed. Before threads are
/// begun.
void tell_of_leftovers(std::function<void(const std::string& path)> told);

/// In a process that was forked: those there are belong to the one that forked it, and are not this
/// one's to remove.
void leave_unfinished_files() noexcept;

/// Removes the temporaries of this process, or gives those their names that are kept.
/// Async-signal-safe: for the handler of a signal that ends the process.
void remove_unfinished_files() noexcept;

}  // namespace citcat
