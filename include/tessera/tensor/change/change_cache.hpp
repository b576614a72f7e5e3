#pragma once

#include <tessera/comm/team_state.hpp>

#include <algorithm>
#include <unordered_map>

namespace tessera {

namespace engine {

class bound_change;

}  // namespace engine

namespace detail {

/// The changes that a team has bound, found by the addresses of their layouts; those used last are kept.
class change_cache {
 public:
  /// The one between two layouts, for what is done now: bind() makes it on its first use.
  template <class Bind>
  std::shared_ptr<bound_change> find(const shared_layout_handle& from, const shared_layout_handle& to, element e,
                                     const call_context& context, const Bind& bind) {
    fingerprint f;
    f << address(from.get()) << address(to.get()) << address(context.name)
      << (static_cast<int>(e) | static_cast<int>(context.why) << 8);
    kept& k = kept_[f.value()];
    if (!k.change) {
      try {
        k.change = bind();
      } catch (...) {
        kept_.erase(f.value());
        throw;
      }
      k.last_used = ++uses_;
      const std::shared_ptr<bound_change> fresh = k.change;
      if (kept_.size() > most) forget();
      return fresh;
    }
    k.last_used = ++uses_;
    return k.change;
  }

  /// Where the change of a typed verb is kept, by its number.
  std::shared_ptr<bound_change>& of_verb(std::size_t number) {
    if (number >= of_verbs_.size()) of_verbs_.resize(number + 1);
    return of_verbs_[number];
  }

 private:
  static constexpr std::size_t most = 1024;
  struct kept {
    std::shared_ptr<bound_change> change;
    std::uint64_t last_used = 0;
  };

  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  // The half that was not used for longest.
  void forget() {
    std::vector<std::uint64_t> uses;
    for (const auto& [key, k] : kept_) uses.push_back(k.last_used);
    std::nth_element(uses.begin(), uses.begin() + most / 2, uses.end());
    std::erase_if(kept_, [&](const auto& k) { return k.second.last_used < uses[most / 2]; });
  }

  std::unordered_map<std::uint64_t, kept> kept_;
  std::vector<std::shared_ptr<bound_change>> of_verbs_;
  std::uint64_t uses_ = 0;
};

}  // namespace detail
}  // namespace tessera
