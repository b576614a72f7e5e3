#pragma once

#include <tessera/nn/network/program.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <limits>

namespace tessera::detail {

// A part in a scope that is its own.
template <class Part, DynamicFlow First, DynamicFlow... Rest>
auto added_alone(const Part& part, const First& first, const Rest&... rest) {
  if constexpr (kind_of<Part> == kind::layer) return first.in->add(part, false, first, rest...);
  else if constexpr (Wrapper<Part>) {
    return part.around([&](const auto&... x) { return added_alone(part.inside(), x...); }, first, rest...);
  } else {
    return part(first, rest...);
  }
}

// A part that somebody calls himself: a layer has its place, a module is what it adds.
template <class Part>
auto called_here(const Part& part, const auto&... x) {
  if constexpr (kind_of<Part> == kind::layer) return added(part, x...);
  else return part(x...);
}

// Flows as a list.
inline std::vector<nn::dynamic_flow> listed_flows(const nn::dynamic_flow& one) { return {one}; }
template <class... F>
std::vector<nn::dynamic_flow> listed_flows(const flows<F...>& all) {
  return [&]<int... Index>(indices<Index...>) {
    return std::vector<nn::dynamic_flow>{get<Index>(all)...};
  }(indices_below<sizeof...(F)>{});
}

}  // namespace tessera::detail

namespace tessera::nn {

template <class Part, class F>
auto program::replacing(std::function<bool(const read_layer&)> holds, const Part& part, const F& f) {
  struct outside {
    std::vector<engine::replacement>& all;
    ~outside() { all.pop_back(); }
  } const again{replaced_};
  replaced_.push_back({std::move(holds), [part](const std::vector<dynamic_flow>& x, bool numbered) {
                         using tessera::detail::listed_flows;
                         const auto add = [&](const auto&... flow) {
                           return listed_flows(numbered ? tessera::detail::added(part, flow...)
                                                        : tessera::detail::added_alone(part, flow...));
                         };
                         if constexpr (tessera::engine::kind_of<Part> == kind::layer) {
                           if (x.size() == 2) return add(x[0], x[1]);
                           if (x.size() == 3) return add(x[0], x[1], x[2]);
                           if (x.size() == 4) return add(x[0], x[1], x[2], x[3]);
                         }
                         return add(x[0]);
                       }});
  return f();
}

namespace engine {

/// The part that `under` and `shared_under` make.
template <class Part>
struct named_part {
  static constexpr bool sees_to_its_scope = true;
  std::string name;
  Part part;
  bool shared = false;

  template <DynamicFlow First, DynamicFlow... Rest>
  auto operator()(const First& first, const Rest&... rest) const {
    const auto back = first.in->enter(name, shared);
    const auto y = tessera::detail::added_alone(part, first, rest...);
    first.in->leave(back);
    return y;
  }
};

}  // namespace engine

/// A part under a name that is a value, in the keys of its parameters: `x | under("encoder", linear_layer{.out = 6})`.
/// Those that are shared under one name have one set of parameters.
template <class Part>
engine::named_part<Part> under(std::string name, const Part& part) {
  return {std::move(name), part};
}
template <class Part>
engine::named_part<Part> shared_under(std::string name, const Part& part) {
  return {std::move(name), part, true};
}

namespace engine {

/// The part that `sharded` makes.
template <class Part>
struct sharded_part {
  using wraps = Part;
  tiles_over over;
  Part part;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    return first.in->sharded_over(over, [&] { return call(first, rest...); });
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};

}  // namespace engine

/// `sharded_over` with a part and axes that are values: `x | sharded({"data"}, linear_layer{.out = 6})`, or
/// `sharded({"data"}, layer, gathering::held)`.
template <class Part>
engine::sharded_part<Part> sharded(const engine::axis_names& over, const Part& part,
                                   gathering times = gathering::twice) {
  return {{over.list(), times}, part};
}

namespace engine {

/// The part that `recomputed` makes.
template <class Part>
struct recomputed_part {
  using wraps = Part;
  Part part;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    return first.in->as_unit(
        [&](const auto& in, const auto&... others) {
          const int which = in.in->begin_recomputed();
          const auto y = call(in, others...);
          in.in->end_recomputed(which);
          return y;
        },
        first, rest...);
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};

/// The part that `replaced` makes.
template <class Part, class Instead>
struct replacing_part {
  using wraps = Part;
  Part part;
  std::function<bool(const read_layer&)> holds;
  Instead instead;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    return first.in->replacing(holds, instead, [&] { return call(first, rest...); });
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};

}  // namespace engine

/// `replace` of a part that is a value: `x | replaced(block, [](const nn::read_layer& l) { return l.path == "0"; },
/// linear_layer{.out = 6})`. What a file adds to a program is replaced by `p.replacing(holds, layer, [&] {
/// nn::load_network(p, path, mesh); })`.
template <class Part, class Instead>
engine::replacing_part<Part, Instead> replaced(const Part& part, std::function<bool(const read_layer&)> holds,
                                               const Instead& instead) {
  return {part, std::move(holds), instead};
}

/// `recompute` of a part that is a value: `x | recomputed(linear_layer{.out = 6})`.
template <class Part>
engine::recomputed_part<Part> recomputed(const Part& part) {
  return {part};
}

namespace engine {

/// The part that `in_stages` makes.
template <class Part>
struct staged_part {
  using wraps = Part;
  std::string axis;
  stage_options how;
  Part part;

  const Part& inside() const { return part; }
  template <class Call, DynamicFlow First, DynamicFlow... Rest>
  auto around(const Call& call, const First& first, const Rest&... rest) const {
    return first.in->in_stages(text(axis.data(), static_cast<int>(axis.size())), how.assigned(), first.layout().mesh,
                               [&] { return call(first, rest...); });
  }
  template <DynamicFlow... F>
  auto operator()(const F&... x) const {
    return around([&](const auto&... y) { return tessera::detail::called_here(part, y...); }, x...);
  }
};

}  // namespace engine

/// `staged` with a part and an axis that are values: `x | in_stages("stage", model, {.by =
/// ts::pipeline::share::parameters})`. Each node that the part adds is shared out; what is recomputed together is one.
template <class Part>
engine::staged_part<Part> in_stages(std::string axis, const Part& part, stage_options how = {}) {
  return {std::move(axis), std::move(how), part};
}

}  // namespace tessera::nn

namespace tessera {

/// Takes a flow of a program to another layout by a verb, as a tensor whose layout is a value. A verb that does not
/// lead there throws.
template <engine::DynamicFlow F>
auto to(verb called, const layout& target, const F& x) {
  const auto own = std::make_shared<const engine::shared_layout>(target, 0, std::numeric_limits<int>::max());
  x.in->keep(own);  // its lists live as long as the program
  return x | detail::change_to_layout{{own->layout()}, called};
}
/// The same by whatever verbs lead there.
template <engine::DynamicFlow F>
auto to(const layout& target, const F& x) {
  return to(verb::several, target, x);
}

}  // namespace tessera
