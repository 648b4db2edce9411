#include "capture/bus/cache_form.h"

namespace citcat {
namespace {

constexpr CacheForm kFormNames[] = {CacheForm::none, CacheForm::write_through,
                                    CacheForm::write_back};

}  // namespace

std::string_view cache_form_name(CacheForm form) {
  switch (form) {
    case CacheForm::none:
      return "none";
    case CacheForm::write_through:
      return "write-through";
    case CacheForm::write_back:
      return "write-back";
  }
  return "?";
}

std::optional<CacheForm> parse_cache_form(std::string_view name) {
  for (const CacheForm form : kFormNames) {
    if (cache_form_name(form) == name) return form;
  }
  return std::nullopt;
}

}  // namespace citcat
