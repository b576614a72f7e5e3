#pragma once

#include <tessera/nn/node_options.hpp>
#include <tessera/nn/program_parts.hpp>

#include <functional>
#include <map>

namespace tessera::nn {

/// Layers and functions by the names that files call them; one's own are added to those of the library.
class layer_table {
 public:
  /// What a node gives, of its options and operands.
  using maker = std::function<std::vector<dynamic_flow>(const node_options&, const std::vector<dynamic_flow>&)>;

  /// Those of the library.
  layer_table();

  /// Adds a layer, which `make(options)` gives as a value: `table.layer("gain", [](const node_options&) { return gain{}; })`.
  template <class Make>
  void layer(const std::string& name, Make make) {
    layers_[name] = [make](const node_options& o, const std::vector<dynamic_flow>& x) {
      const auto made = make(o);
      const tiles_over over{o.axes("stored_over").list(), o.times("gathered")};
      if (o.has("gathered") && !o.has("stored_over")) o.here().fault("says gathered without stored_over");
      o.refuse_others();
      const auto placed = [&](const auto&... flows) {
        if (o.has("shared")) return shared_under(o.here().at("shared").word(), made)(flows...);
        if (o.has("path")) return under(o.here().at("path").word(), made)(flows...);
        return tessera::detail::added(made, flows...);
      };
      const auto on = [&](const dynamic_flow& first, const auto&... rest) { return first.in->stored_over(over, [&] { return placed(first, rest...); }); };
      return called(on, made.name, x);
    };
  }
  /// Adds a function of one to four flows: `table.function("scaled", [](const node_options& o, const dynamic_flow& x) { return x * o.real("by"); })`.
  template <class F>
  void function(const std::string& name, F f) {
    functions_[name] = [f, name](const node_options& o, const std::vector<dynamic_flow>& x) {
      const auto of = [&](const auto&... flows) {
        if constexpr (std::is_invocable_v<F, const node_options&, decltype(flows)...>) {
          const dynamic_flow y = f(o, flows...);
          o.refuse_others();
          return std::vector{y};
        } else {
          throw error(refusal{code::wrong_number_of_operands, least<F>(), sizeof...(flows)}, name);
          return std::vector<dynamic_flow>();
        }
      };
      return called(of, name.c_str(), x);
    };
  }

  /// Adds a node to the program of its operands.
  std::vector<dynamic_flow> add(const node_options& o, const std::vector<dynamic_flow>& x) const;

 private:
  /// The fewest flows that a function takes.
  template <class F>
  static constexpr int least() {
    using flow_of = const dynamic_flow&;
    using options = const node_options&;
    if (std::is_invocable_v<F, options, flow_of>) return 1;
    if (std::is_invocable_v<F, options, flow_of, flow_of>) return 2;
    return std::is_invocable_v<F, options, flow_of, flow_of, flow_of> ? 3 : 4;
  }
  static std::vector<dynamic_flow> listed(std::vector<dynamic_flow> all) { return all; }
  static std::vector<dynamic_flow> listed(const dynamic_flow& y) { return {y}; }
  template <class... F>
  static std::vector<dynamic_flow> listed(const flows<F...>& all) {
    return [&]<int... Place>(tessera::detail::indices<Place...>) { return std::vector<dynamic_flow>{get<Place>(all)...}; }(
               tessera::detail::indices_below<sizeof...(F)>{});
  }
  template <class On>
  static std::vector<dynamic_flow> called(const On& on, const char* name, const std::vector<dynamic_flow>& x) {
    switch (x.size()) {
      case 1: return listed(on(x[0]));
      case 2: return listed(on(x[0], x[1]));
      case 3: return listed(on(x[0], x[1], x[2]));
      case 4: return listed(on(x[0], x[1], x[2], x[3]));
      default: throw error(refusal{code::wrong_number_of_operands, -1, x.size()}, name);
    }
  }

  std::map<std::string, maker> layers_;
  std::map<std::string, maker> functions_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer_table.ipp>
#endif
