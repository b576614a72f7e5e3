#pragma once

#include <tessera/nn/network/executor.hpp>

#include <tuple>

namespace tessera::detail {

/// What asks a layer, as it is kept, for the extent that data give; null of others.
template <class L, class Kept>
constexpr auto measured_by(Kept) -> std::optional<nn::engine::open_extents> (*)(const void*, const nn::measured_call&) {
  if constexpr (nn::engine::Measured<L>)
    return [](const void* kept, const nn::measured_call& x) { return nn::engine::extent_for(Kept{}(kept), x); };
  else return nullptr;
}

/// Notes what run time needs.
struct running {
  using record = nn::engine::node_record;

  template <class On>
  struct noted;
  template <class L, class... In>
  struct noted<applied<L, In...>> {
    template <int... Index>
    static layer_plan plan(std::span<const tensor_value* const> x, indices<Index...>) {
      return L::plan(*x[Index]...);
    }
    static layer_plan plan_for(const void*, std::span<const tensor_value* const> x) {
      return plan(x, indices_below<sizeof...(In)>{});
    }
    static std::vector<at::Tensor> forward(const void*, const nn::call& c) {
      static const nn::engine::running_layer<L> layer{L{}};
      return layer(c);
    }
    static constexpr record value{layer_record_of<applied<L, In...>>, &plan_for, &forward,
                                  measured_by<L>([](const void*) { return L{}; })};
  };
  template <Described L, class... In>
  struct noted<applied<L, In...>> {
    static constexpr nn::engine::node_record value{
        layer_record_of<applied<L, In...>>, &plan_described<description_type<L>>,
        &nn::engine::forward_described<description_type<L>>, measured_by<L>([](const void*) { return L{}; })};
  };
  template <class On>
  static constexpr const record* record_of() {
    return &noted<On>::value;
  }
};

}  // namespace tessera::detail

namespace tessera::nn::engine {

/// A running program between tensor types. Not the layers but these name it, so what compilers say of a call is short.
template <class Inputs, class Outputs>
class network_between;
template <class... In, class... Out>
class network_between<tessera::detail::type_list<In...>, tessera::detail::type_list<Out...>> : public executor {
 private:
  /// An operand in any spelling of the tensor type that is wanted.
  template <class Wanted>
  struct given_as {
    const tensor<dyn>* value;
    template <TensorType T>
    given_as(const T& x) : value(&x.dynamic()) {
      using verdict = verdict_of<passed<T, Wanted>>;
      verdict::template refuse<verdict>();
    }
  };

 public:
  // By the number of inputs, as no call site can follow a pack whose types are deduced.

  /// The network's outputs: a tensor, or a tuple of them. An operand may spell the input's partition in any equivalent
  /// way. If the layout of one is a value, the outputs' layouts are values too.
  template <class A>
    requires(sizeof...(In) == 1)
  auto operator()(const A& a, call_site at = call_site::here()) const {
    using verdict = verdict_of<all_passed<A>>;
    verdict::template refuse<verdict>();
    return call(at, a);
  }
  template <class A, class B>
    requires(sizeof...(In) == 2)
  auto operator()(const A& a, const B& b, call_site at = call_site::here()) const {
    using verdict = verdict_of<all_passed<A, B>>;
    verdict::template refuse<verdict>();
    return call(at, a, b);
  }
  template <class A, class B, class C>
    requires(sizeof...(In) == 3)
  auto operator()(const A& a, const B& b, const C& c, call_site at = call_site::here()) const {
    using verdict = verdict_of<all_passed<A, B, C>>;
    verdict::template refuse<verdict>();
    return call(at, a, b, c);
  }
  template <class A, class B, class C, class D>
    requires(sizeof...(In) == 4)
  auto operator()(const A& a, const B& b, const C& c, const D& d, call_site at = call_site::here()) const {
    using verdict = verdict_of<all_passed<A, B, C, D>>;
    verdict::template refuse<verdict>();
    return call(at, a, b, c, d);
  }

  /// Another number of tensors than the network takes is refused.
  template <class... Given>
    requires(sizeof...(Given) != sizeof...(In) &&
             ((TensorType<Given> || kind_of<Given> == kind::dynamic_tensor) && ...))
  auto operator()(const Given&... x) const {
    using verdict = verdict_of<all_passed<Given...>>;
    verdict::template refuse<verdict>();
    return call({}, x...);
  }

  /// The same of more than four inputs, each of a tensor type.
  auto operator()(const given_as<In>&... x, call_site at = call_site::here()) const
    requires(sizeof...(In) > 4)
  {
    const tensor<dyn>* const given[]{x.value...};
    return typed(this->forward(given, at), tessera::detail::indices_below<sizeof...(Out)>{});
  }
  /// All inputs as a list of tensors whose layouts are values, however many there are; the outputs are such a list too.
  std::vector<tensor<dyn>> operator()(const std::vector<tensor<dyn>>& x, call_site at = call_site::here()) const {
    if (x.size() != sizeof...(In))
      throw error(refusal{code::wrong_number_of_operands, sizeof...(In), x.size()}, this->team()->label());
    std::vector<const tensor<dyn>*> given;
    (given.push_back(&dynamic_of<In>(x[given.size()])), ...);
    return this->forward(given, at);
  }

 protected:
  using executor::executor;

 private:
  template <class T, class Wanted>
  struct passed {
    static constexpr refusal value = [] {
      if constexpr (kind_of<T> == kind::dynamic_tensor) return refusal{};
      else if constexpr (!TensorType<T>) return refusal{code::tensor_wanted};
      else if constexpr (!tessera::detail::described<T>::verdict::ok)
        return tessera::detail::described<T>::verdict_source::value;
      else return check_same(value_of<T>, value_of<Wanted>);
    }();
  };
  template <class... T>
  struct all_passed {
    static constexpr refusal value = [] {
      if constexpr (sizeof...(T) == sizeof...(In)) return first_of(passed<T, In>::value...);
      else return refusal{code::wrong_number_of_operands, sizeof...(In), sizeof...(T)};
    }();
  };

  template <class Wanted, class T>
  static const tensor<dyn>& dynamic_of(const T& x) {
    if constexpr (kind_of<T> == kind::dynamic_tensor) {
      check(tessera::detail::check_fits({x.layout(), x.type()}, value_of<Wanted>), *x.team());
      return x;
    } else {
      return x.dynamic();
    }
  }

  template <class... T>
  auto call(call_site at, const T&... x) const {
    constexpr bool dynamic = ((kind_of<T> == kind::dynamic_tensor) || ...);
    if constexpr (verdict_of<all_passed<T...>>::ok) {
      const tensor<dyn>* const given[]{&dynamic_of<In>(x)...};
      std::vector<tensor<dyn>> y = this->forward(given, at);
      if constexpr (dynamic && sizeof...(Out) == 1) return std::move(y[0]);
      else if constexpr (dynamic) return y;
      else return typed(y, tessera::detail::indices_below<sizeof...(Out)>{});
    } else if constexpr (sizeof...(Out) == 1) {
      return (Out{}, ...);
    } else {
      return std::tuple<Out...>{};
    }
  }
  template <int... Index>
  static auto typed(const std::vector<tensor<dyn>>& y, tessera::detail::indices<Index...>) {
    if constexpr (sizeof...(Out) == 1) return (Out(y[Index]), ...);
    else return std::tuple<Out...>{Out(y[Index])...};
  }
};

}  // namespace tessera::nn::engine

namespace tessera::detail {

template <class Module, class... In>
using running_module = module_program<running, Module, canonical_tensor<In>...>;
template <class Module, class... In>
using running_between =
    nn::engine::network_between<type_list<In...>,
                                typename module_call<running, Module, canonical_tensor<In>...>::results::types>;

}  // namespace tessera::detail

namespace tessera::nn {

namespace engine {

/// An argument of a network's constructor: a team or a seed, but not one thing alone (kind::nothing). Anything converts
/// to it, and what is of another kind is refused at the line that makes the network, where compilers name no layer.
template <kind Wanted, class Value>
struct made_of {
  Value value{};
  template <class Given>
  made_of(const Given& given) {
    // a team's handle, where only run time knows the mesh
    constexpr bool is_value = Wanted != kind::nothing && std::is_same_v<Given, Value>;
    using verdict = std::conditional_t<is_value || kind_of<Given> == Wanted, fits, verdicts::network_made_otherwise<>>;
    verdict::template refuse<verdict>();
    if constexpr (is_value) value = given;
    else if constexpr (verdict::ok) value = given.state();
  }
};

/// A network whose layers fit one another, with parameters and a forward: what `network` names.
template <class Module, class... In>
class network_of : public tessera::detail::running_between<Module, In...> {
  using read = tessera::detail::running_module<Module, In...>;
  using between = tessera::detail::running_between<Module, In...>;

 public:
  using verdict = fits;
  using inputs = tessera::detail::type_list<In...>;
  using outputs = typename read::results::types;
  using input = tessera::detail::only_type<inputs>;    ///< where there is one
  using output = tessera::detail::only_type<outputs>;  ///< where there is one
  static constexpr const program_view<node_record>& program = read::view;

  /// Makes the parameters; all workers of the team do, and compare what they make.
  network_of(const made_of<kind::team, team_handle>& team, const made_of<kind::seed, seed>& s)
      : between(team.value, s.value, program) {}
  /// Shares the parameters and buffers of a part of another network, under their keys: `network<encoder, image>
  /// front{whole.at("encoder")}`.
  explicit network_of(const network_part& of) : between(of, program) {}
  explicit network_of(const made_of<kind::nothing, int>&) {}
  network_of() = delete;  // [tessera.network.arguments] a network is made of a team and a seed: net{team, seed{7}}
  network_of(network_of&&) = default;
  network_of& operator=(network_of&&) = default;
  network_of(const network_of&) = delete;             // [tessera.network.copy] two would step the same weights;
  network_of& operator=(const network_of&) = delete;  // [tessera.network.copy] move it, or write clone()

  /// Another network whose parameters begin with the values of this one.
  network_of clone() const { return {*this, typename between::copying{}}; }

 private:
  network_of(const network_of& other, typename between::copying how) : between(other, how) {}
};

}  // namespace engine

/// A network with a mistake: the one error at its first use, and nothing else that could fail.
template <class Verdict, class In>
class refused_network : public engine::network_between<tessera::detail::type_list<In>,
                                                       tessera::detail::type_list<tessera::detail::refused_like<In>>> {
 public:
  using verdict = Verdict;
  using inputs = tessera::detail::type_list<In>;
  using outputs = tessera::detail::type_list<tessera::detail::refused_like<In>>;
  using input = In;
  using output = tessera::detail::refused_like<In>;
  static constexpr engine::program_view<engine::node_record> program{};
  template <class... Given>
  explicit refused_network(const Given&...) {}
  template <class... T>
  output operator()(const T&...) const {
    return {};
  }
  refused_network clone() const { return {}; }
  static_assert((Verdict::template refuse<Verdict>(), true));
};

/// A module on tensor types: what `tessera::network_type` knows from types, with parameters and a forward.
template <class Module = void, class... In>
using network = typename tessera::detail::network_by<
    tessera::detail::running, engine::network_of, refused_network, 1, Module,
    decltype(std::declval<tessera::detail::module_of<Module>>()(
        typename tessera::detail::input_flow<In, tessera::detail::running>::type{}...)),
    In...>::type;

/// Layers one after the other.
template <class In = void, class... Layers>
using sequential = typename tessera::detail::network_by<
    tessera::detail::running, engine::network_of, refused_network, 0, chain<Layers...>,
    typename tessera::detail::given_by_chain<tessera::detail::running, In, Layers...>::type, In>::type;

}  // namespace tessera::nn
