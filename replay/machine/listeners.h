#pragma once
// The observers, judge and corrector of a run.

#include <cstddef>
#include <vector>

#include "replay/machine/block_judge.h"
#include "replay/machine/corrector.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Any number of observers in any order, at most one judge and one corrector. They must outlive the
/// machine that the list is given to.
class Listeners {
 public:
  Listeners() = default;
  // One or nobody.
  Listeners(std::nullptr_t) {}
  Listeners(Observer* observer) {
    if (observer != nullptr) add(*observer);
  }
  Listeners(BlockJudge* judge) : judge_(judge) {}

  void add(Observer& observer) { observers_.push_back(&observer); }
  void add(BlockJudge& judge) { judge_ = &judge; }
  void add(Corrector& corrector) { corrector_ = &corrector; }

  const std::vector<Observer*>& observers() const { return observers_; }
  BlockJudge* judge() const { return judge_; }
  Corrector* corrector() const { return corrector_; }

 private:
  std::vector<Observer*> observers_;
  BlockJudge* judge_ = nullptr;
  Corrector* corrector_ = nullptr;
};

}  // namespace citcat
