#pragma once

#include <tessera/nn/file/node_options.hpp>
#include <tessera/nn/network/program_parts.hpp>

#include <functional>
#include <map>

namespace tessera::nn {

namespace engine {

/// A layer or a function as files say it: how many operands it takes, and its fields beside those of every node.
struct node_kind {
  std::string name;
  int least = 1;
  int most = 1;
  std::vector<node_field> fields;
};

}  // namespace engine

/// Layers and functions by the names that files call them; one's own are added to those of the library.
class layer_table {
 public:
  /// What a node gives, of its options and operands.
  using maker = std::function<std::vector<dynamic_flow>(const node_options&, const std::vector<dynamic_flow>&)>;

  /// Those of the library.
  layer_table();

  /// Adds a layer, which `make(options)` gives as a value: `table.layer("gain", [](const node_options&) { return
  /// gain{}; })`.
  template <class Make>
  void layer(const std::string& name, Make make) {
    const auto tell = [make, name] {
      return node_kind_of(name, [&](const node_options& o) { return operands_of(make(o)); });
    };
    const maker add = [make](const node_options& o, const std::vector<dynamic_flow>& x) {
      const auto made = make(o);
      const engine::tiles_over over{o.axes("sharded_over").list(), o.times("gathered")};
      if (o.has("gathered") && !o.has("sharded_over")) o.here().fault("says gathered without sharded_over");
      o.refuse_others();
      const auto placed = [&](const auto&... flows) {
        if (o.has("shared")) return shared_under(o.here().at("shared").word(), made)(flows...);
        if (o.has("path")) return under(o.here().at("path").word(), made)(flows...);
        return tessera::detail::added(made, flows...);
      };
      const auto on = [&](const dynamic_flow& first, const auto&... rest) {
        return first.in->sharded_over(over, [&] { return placed(first, rest...); });
      };
      return called(on, made.name, x);
    };
    layers_[name] = {add, tell};
  }
  /// Adds a function of one to four flows: `table.function("scaled", [](const node_options& o, const dynamic_flow& x) {
  /// return x * o.real("by"); })`.
  template <class F>
  void function(const std::string& name, F f) {
    const auto tell = [f, name] { return node_kind_of(name, [&](const node_options& o) { return tried(f, o); }); };
    const maker add = [f, name](const node_options& o, const std::vector<dynamic_flow>& x) {
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
    functions_[name] = {add, tell};
  }

  /// All that it has, by name: the fields are those that reading asks for.
  std::vector<engine::node_kind> layers() const { return kinds(layers_); }
  std::vector<engine::node_kind> functions() const { return kinds(functions_); }

  /// Adds a node to the program of its operands.
  std::vector<dynamic_flow> add(const node_options& o, const std::vector<dynamic_flow>& x) const;

 private:
  struct entry {
    maker add;
    std::function<engine::node_kind()> tell;
  };
  using operand_counts = std::pair<int, int>;

  /// The first and the last of one to four that something takes.
  template <class Takes>
  static constexpr operand_counts counted(const Takes& takes) {
    const bool all[]{takes(tessera::detail::indices_below<1>{}), takes(tessera::detail::indices_below<2>{}),
                     takes(tessera::detail::indices_below<3>{}), takes(tessera::detail::indices_below<4>{})};
    operand_counts n{4, 1};
    for (int i = 0; i < 4; ++i)
      if (all[i]) n = {std::min(n.first, i + 1), i + 1};
    return n;
  }
  template <class L>
  static constexpr operand_counts operands_of(const L&) {
    return counted([]<int... Index>(tessera::detail::indices<Index...>) {
      return requires(const L& layer, const tensor_value& x) { layer.plan((static_cast<void>(Index), x)...); };
    });
  }
  template <class F>
  static constexpr operand_counts flows_of() {
    return counted([]<int... Index>(tessera::detail::indices<Index...>) {
      return std::is_invocable_v<F, const node_options&,
                                 decltype((static_cast<void>(Index), std::declval<const dynamic_flow&>()))...>;
    });
  }
  /// The fewest flows that a function takes.
  template <class F>
  static constexpr int least() {
    return flows_of<F>().first;
  }

  /// What `ask(options)` asks for, of whom nothing is said; it gives how many operands there are.
  template <class Ask>
  static engine::node_kind node_kind_of(const std::string& name, const Ask& ask) {
    engine::node_kind k;
    k.name = name;
    const engine::file::json nothing = engine::file::json::object();
    const mesh_value mesh;
    engine::file::lists keep;
    std::tie(k.least, k.most) = ask(node_options(engine::file::json_cursor(nothing, name), mesh, keep, &k.fields));
    return k;
  }
  /// A function asks before it is computed: whether its operands fit does not matter.
  template <class F>
  static operand_counts tried(const F& f, const node_options& o) {
    layout any;
    for (int d = 0; d < 2; ++d) any.dims.push({}), any.dims[d].extent = 2;
    program p;
    const dynamic_flow x = p.input({any, element::float32});
    try {
      const auto ask = [&]<int... Index>(tessera::detail::indices<Index...>) {
        static_cast<void>(f(o, (static_cast<void>(Index), x)...));
      };
      ask(tessera::detail::indices_below<least<F>()>{});
    } catch (const std::exception&) {
    }
    return flows_of<F>();
  }
  static std::vector<engine::node_kind> kinds(const std::map<std::string, entry>& of) {
    std::vector<engine::node_kind> all;
    for (const auto& one : of) all.push_back(one.second.tell());
    return all;
  }
  static std::vector<dynamic_flow> listed(std::vector<dynamic_flow> all) { return all; }
  static std::vector<dynamic_flow> listed(const dynamic_flow& y) { return {y}; }
  template <class... F>
  static std::vector<dynamic_flow> listed(const flows<F...>& all) {
    return [&]<int... Index>(tessera::detail::indices<Index...>) {
      return std::vector<dynamic_flow>{get<Index>(all)...};
    }(tessera::detail::indices_below<sizeof...(F)>{});
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

  std::map<std::string, entry> layers_;
  std::map<std::string, entry> functions_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/layer_table_impl.hpp>
#endif
