#pragma once

#include <tessera/nn/file/node_options.hpp>
#include <tessera/nn/network/program_parts.hpp>

#include <functional>
#include <map>
#include <optional>

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
    using made = std::remove_cvref_t<decltype(make(std::declval<const node_options&>()))>;
    if constexpr (said_by_type<Make>) add_layer(name, &placed_by<Make>, operands_of<made>());
    else add_layer(name, [make](const node_options& o) { return engine::placed(make(o)); }, operands_of<made>());
  }
  /// Adds a function of one to four flows: `table.function("scaled", [](const node_options& o, const dynamic_flow& x) {
  /// return x * o.real("by"); })`.
  template <class F>
  void function(const std::string& name, F f) {
    if constexpr (said_by_type<F>) add_function(name, &called_by<F>, flows_of<F>());
    else add_function(name, [f](const node_options& o, const flows& x) { return called(f, o, x); }, flows_of<F>());
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
  using flows = std::vector<dynamic_flow>;

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
  static constexpr operand_counts operands_of() {
    return counted([]<int... Index>(tessera::detail::indices<Index...>) {
      return requires(const L& layer, const tensor_value& x) { layer.plan((static_cast<void>(Index), x)...); };
    });
  }
  template <class F, int... Index>
  static constexpr bool takes(tessera::detail::indices<Index...>) {
    return requires(const F& f, const node_options& o, const dynamic_flow& x) {
      f(o, (static_cast<void>(Index), x)...);
    };
  }
  template <class F>
  static constexpr operand_counts flows_of() {
    return counted([](auto indices) { return takes<F>(indices); });
  }
  // Calls a function that takes as many flows as there are indices, where there are so many.
  template <class F, int... Index>
  static void call_on(const F& f, const node_options& o, const flows& x, std::optional<dynamic_flow>& y,
                      tessera::detail::indices<Index...> all) {
    if constexpr (takes<F>(all))
      if (x.size() == sizeof...(Index)) y = f(o, x[Index]...);
  }
  template <class F>
  static std::optional<dynamic_flow> called(const F& f, const node_options& o, const flows& x) {
    std::optional<dynamic_flow> y;
    call_on(f, o, x, y, tessera::detail::indices_below<1>{});
    call_on(f, o, x, y, tessera::detail::indices_below<2>{});
    call_on(f, o, x, y, tessera::detail::indices_below<3>{});
    call_on(f, o, x, y, tessera::detail::indices_below<4>{});
    return y;
  }

  // A function whose type says all goes as a pointer: std::function is generated once for all of these.
  template <class F>
  static constexpr bool said_by_type = std::is_empty_v<F> && std::is_default_constructible_v<F>;
  template <class Make>
  static std::unique_ptr<tessera::detail::placed_node> placed_by(const node_options& o) {
    return engine::placed(Make{}(o));
  }
  template <class F>
  static std::optional<dynamic_flow> called_by(const node_options& o, const flows& x) {
    return called(F{}, o, x);
  }

  using placing = std::function<std::unique_ptr<tessera::detail::placed_node>(const node_options&)>;
  using calling = std::function<std::optional<dynamic_flow>(const node_options&, const flows&)>;
  void add_layers();
  void add_functions();
  void add_layer(const std::string& name, const placing& place, operand_counts operands);
  void add_function(const std::string& name, const calling& call, operand_counts operands);

  static std::vector<engine::node_kind> kinds(const std::map<std::string, entry>& of);

  std::map<std::string, entry> layers_;
  std::map<std::string, entry> functions_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/layer_table_functions_impl.hpp>
#include <tessera/nn/file/layer_table_impl.hpp>
#endif
