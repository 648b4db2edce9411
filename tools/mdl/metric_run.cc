#include "tools/mdl/metric_run.h"

#include <algorithm>

#include "tools/guest/system_call.h"

namespace citcat::mdl {

namespace {

/// As foci have vectors and ports.
std::string short_hexadecimal(std::uint32_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 0xf]);
    value >>= 4;
  } while (value != 0);
  return text;
}

/// Decided anew at each point.
bool is_of_point(Root root) {
  return root == Root::code || root == Root::port || root == Root::data;
}

std::optional<std::string> name_in(Root root, const tools::Context& context,
                                   const tools::NameSource* names, std::uint64_t window) {
  switch (root) {
    case Root::process:
      return names != nullptr ? names->process(context) : std::string();
    case Root::level:
      return std::to_string(context.level());
    case Root::interrupt:
      if (const auto vector = context.interrupt()) return short_hexadecimal(*vector);
      return std::nullopt;
    case Root::system_call:
      if (const auto number = context.system_call()) {
        return tools::system_call_name(*number, context.in_wide_call()
                                                    ? tools::SystemCallInterface::amd64
                                                    : tools::SystemCallInterface::i386);
      }
      return std::nullopt;
    case Root::window:
      return std::to_string(window);
    default:
      return std::string();
  }
}

}  // namespace

/// What code of a metric works on.
class MetricRun::Access final : public Variables {
 public:
  Access(MetricRun& run, Thread& thread, ThreadState& state, const Point& point)
      : run_(run), thread_(thread), state_(state), point_(point) {}
  std::int64_t get(std::size_t variable) const override {
    return variable == 0 ? run_.cell(point_) : state_.variables[variable - 1];
  }
  void set(std::size_t variable, std::int64_t value) override {
    (variable == 0 ? run_.cell(point_) : state_.variables[variable - 1]) = value;
  }
  void start_timer() override { run_.start_timer(thread_); }
  void stop_timer() override { run_.stop_timer(thread_); }

 private:
  MetricRun& run_;
  Thread& thread_;
  ThreadState& state_;
  const Point& point_;
};

ThreadState& MetricRun::state(Thread& thread) const {
  if (number_ >= thread.states.size()) thread.states.resize(number_ + 1);
  ThreadState& state = thread.states[number_];
  if (state.variables.empty()) state.variables.resize(plan_.temporaries + plan_.constraints + 1);
  return state;
}

void MetricRun::look_at(const tools::Context& context, const tools::NameSource* names,
                        std::uint64_t window) {
  in_context_ = true;
  here_ = nullptr;
  space_ = context.address_space();
  contexts_.assign(plan_.focus.resources.size(), {});
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const Resource& r = plan_.focus.resources[i];
    if (is_of_point(r.root)) continue;
    const auto name = name_in(r.root, context, names, window);
    contexts_[i] = name.value_or("");
    const bool is = (name && r.matches(0, *name)) || (r.root == Root::process && names != nullptr &&
                                                      names->is_process(r.parts[0], context));
    // The point of an interrupt may say more than the context: its delivery is told before it.
    if (!is && r.root != Root::interrupt) in_context_ = false;
  }
}

/// `name`: what the resource is here; null: not wanted.
bool MetricRun::part_of_focus(const Resource& r, const Point& point, std::string* name) const {
  switch (r.root) {
    case Root::code:
      if (!plan_.code_by_place) return true;
      if (point.module == nullptr) return false;
      if (name != nullptr) {
        *name = *point.module + (r.parts.size() > 1 ? "/" + *point.procedure : "");
      }
      return r.matches(0, *point.module) && r.matches(1, *point.procedure);
    case Root::port: {
      if (!point.port) return false;
      const std::string port = short_hexadecimal(*point.port);
      if (name != nullptr) *name = port;
      return r.matches(0, port);
    }
    case Root::data:
      return point.data && point.data->begin < r.data.end && r.data.begin < point.data->end;
    case Root::interrupt:
      if (point.vector) {
        const std::string vector = short_hexadecimal(*point.vector);
        if (name != nullptr) *name = vector;
        return r.matches(0, vector);
      }
      [[fallthrough]];
    default: {
      const std::string& context =
          contexts_[static_cast<std::size_t>(&r - plan_.focus.resources.data())];
      if (name != nullptr) *name = context;
      return r.root != Root::interrupt || (!context.empty() && r.matches(0, context));
    }
  }
}

/// `text`: the focus with a resource in place of each pattern; null: not wanted.
bool MetricRun::part_of_focus(const Point& point, std::string* text) const {
  if (!in_context_) return false;
  std::string name;
  for (const Resource& r : plan_.focus.resources) {
    const bool named = text != nullptr && r.is_pattern();
    if (!part_of_focus(r, point, named ? &name : nullptr)) return false;
    if (text == nullptr) continue;
    *text += (text->empty() ? "" : ",") +
             (named ? std::string("/") + root_name(r.root) + "/" + name : r.text());
  }
  return true;
}

bool MetricRun::constraints_hold(const ThreadState& state) const {
  const auto begin = state.variables.begin() + static_cast<std::ptrdiff_t>(plan_.temporaries);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(plan_.constraints),
                     [](std::int64_t counter) { return counter != 0; });
}

std::int64_t& MetricRun::cell(const Point& point) {
  if (here_ == nullptr) {
    std::string focus;
    part_of_focus(point, &focus);
    Values& values = values_[focus.empty() ? "/" : focus];
    const bool by_point = std::any_of(
        plan_.focus.resources.begin(), plan_.focus.resources.end(), [](const Resource& r) {
          return r.is_pattern() && (is_of_point(r.root) || r.root == Root::interrupt);
        });
    if (by_point) return values[space_];
    here_ = &values;
  }
  return (*here_)[space_];
}

void MetricRun::start_timer(Thread& thread) {
  if (plan_.base == Base::wall_timer) {
    ++wall_starts_;
    return;
  }
  if (state(thread).starts++ == 0) thread.running.push_back(this);
}

void MetricRun::stop_timer(Thread& thread) {
  if (plan_.base == Base::wall_timer) {
    if (wall_starts_ != 0) --wall_starts_;
    return;
  }
  ThreadState& mine = state(thread);
  // What was started before all began is not known.
  if (mine.starts != 0 && --mine.starts == 0) std::erase(thread.running, this);
}

void MetricRun::reach(const Attachment& code, Thread& thread, const Point& point) {
  ThreadState& mine = state(thread);
  // A timer is started and stopped wherever that is; constraints say when its time counts.
  if (!code.of_constraint && !plan_.is_timer()) {
    if (!part_of_focus(point, nullptr)) return;
    if (code.constrained && !constraints_hold(mine)) return;
  }
  Access access(*this, thread, mine, point);
  for (const CodeNode& line : code.code) {
    if (!line.run(access, point.values)) ++unknown_;
  }
}

void MetricRun::pass(std::uint64_t instructions, Thread& thread, const Point& point) {
  passed_ = nullptr;
  if (!part_of_focus(point, nullptr) || !constraints_hold(state(thread))) return;
  passed_ = &cell(point);
  *passed_ += static_cast<std::int64_t>(instructions);
}

void MetricRun::take_back() {
  if (passed_ != nullptr) --*passed_;
}

tools::Cell MetricRun::aggregated(const Values& values) const {
  std::int64_t sum = 0, least = 0, most = 0;
  for (auto value = values.begin(); value != values.end(); ++value) {
    const bool first = value == values.begin();
    least = first ? value->second : std::min(least, value->second);
    most = first ? value->second : std::max(most, value->second);
    sum += value->second;
  }
  switch (plan_.aggregate) {
    case Aggregate::average:
      return values.empty() ? 0.0 : static_cast<double>(sum) / static_cast<double>(values.size());
    case Aggregate::minimum:
      return tools::signed_cell(least);
    case Aggregate::maximum:
      return tools::signed_cell(most);
    default:
      return tools::signed_cell(sum);
  }
}

void MetricRun::report(tools::Table& table) const {
  const auto add = [&](const std::string& focus, const Values& values) {
    table.row({plan_.metric, focus, aggregated(values), plan_.units, std::uint64_t{values.size()},
               unknown_});
  };
  for (const auto& [focus, values] : values_) add(focus, values);
  // A focus without wildcards has a value even where nothing happened.
  const bool one = std::none_of(plan_.focus.resources.begin(), plan_.focus.resources.end(),
                                [](const Resource& r) { return r.is_pattern(); });
  if (values_.empty() && one) add(plan_.focus.text(), {});
}

}  // namespace citcat::mdl
