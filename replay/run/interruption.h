#pragma once
// Says whether to end a replay early; called from time to time while the replay runs.

#include <functional>

namespace citcat {

class Interruption {
 public:
  /// Answers true where the replay is to end; may be empty.
  using Question = std::function<bool()>;

  /// While it lives, due() asks `question`, which must outlive it. An empty one leaves the question
  /// of an Asking around this one.
  class Asking {
   public:
    Asking(Interruption& interruption, const Question& question)
        : interruption_(interruption), before_(interruption.question_) {
      if (before_ == nullptr) interruption_.happened_ = false;
      if (question) interruption_.question_ = &question;
    }
    /// Nobody is asked: for a replay that must reach its place.
    explicit Asking(Interruption& interruption)
        : interruption_(interruption), before_(interruption.question_) {
      interruption_.question_ = nullptr;
    }
    ~Asking() { interruption_.question_ = before_; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    Interruption& interruption_;
    const Question* const before_;
  };

  bool is_asked() const { return question_ != nullptr; }
  /// Asks, unless the answer was true before.
  bool due() {
    if (question_ == nullptr) return false;
    happened_ = happened_ || (*question_)();
    return happened_;
  }
  /// The last answer was true. Holds until the next Asking.
  bool happened() const { return happened_; }

 private:
  const Question* question_ = nullptr;
  bool happened_ = false;
};

}  // namespace citcat
