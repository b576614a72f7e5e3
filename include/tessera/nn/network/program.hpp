#pragma once

#include <tessera/nn/network/dynamic_flow.hpp>
#include <tessera/nn/network/node_stages.hpp>
#include <tessera/nn/network/program_path.hpp>
#include <tessera/operation/memory/memory_value.hpp>

#include <functional>
#include <memory>

namespace tessera::nn {

/// A network put together at run time: the list of nodes that the compiler makes of a module, from layers that are
/// values.
///
/// `program p; auto x = p.input(value); p.output(x | conv_layer{.out = 6, .kernel = {3, 3}} | relu{});`. Flows pass
/// layers (values or types), modules and functions as in a module. What does not fit is thrown where it is added, and
/// leaves the program unchanged. A program does not move, since its flows name it.
class program {
 public:
  program() = default;
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// An input like this tensor; its extents may be dynamic.
  dynamic_flow input(const tensor_value& x, std::string name = {});
  template <TensorType T>
  dynamic_flow input(std::string name = {}) {
    return input(tessera::value_of<T>, std::move(name));
  }
  /// Adds an output of the network, behind those before.
  void output(const dynamic_flow& y, std::string name = {});
  template <class... F>
  void output(const flows<F...>& all) {
    output(all, tessera::detail::indices_below<sizeof...(F)>{});
  }

  /// Lets something live as long as the program: names and lists that its layouts point to.
  void keep(std::shared_ptr<const void> owner) { kept_->owners.push_back(std::move(owner)); }

  /// The inputs and outputs of a network of it, in order.
  const std::vector<engine::program_end>& inputs() const { return kept_->inputs; }
  const std::vector<engine::program_end>& outputs() const { return kept_->ends; }

  /// The tensor that a flow stands for.
  const tensor_value& value_of(const dynamic_flow& x) const;

  /// Its arithmetic, as `ts::multiply_adds` counts that of a type; extents that only data give are `rows`.
  tessera::engine::arithmetic_value multiply_adds(index_t rows = 1) const;
  /// The memory of a worker, as `ts::peak_memory` counts that of a type; extents that only data give are `rows`.
  tessera::engine::memory_value peak_memory(index_t rows = 1) const;

  // What flows ask of their program.
  template <class L, class... F>
  auto add(const L& layer, bool numbered, const F&... x) {
    constexpr int results = tessera::detail::result_count<L>();
    const dynamic_flow operands[]{x...};
    engine::program_value y[results];
    put(engine::placed(layer), numbered, operands, y);
    return flows_of(y, tessera::detail::indices_below<results>{});
  }
  /// The same of a layer and operands that only run time knows.
  std::vector<dynamic_flow> add(std::unique_ptr<tessera::detail::placed_node> layer, bool numbered,
                                const std::vector<dynamic_flow>& x);
  /// Runs `f`, which adds to the program; where it throws nothing of it stays.
  template <class F>
  auto whole(const F& f) {
    const auto before = writes_;
    try {
      return f();
    } catch (...) {
      drop_since(before);
      throw;
    }
  }
  /// Runs `f`, which adds to the program, with parameters stored as tiles.
  template <class F>
  auto sharded_over(const engine::tiles_over& over, const F& f) {
    struct outside {
      std::vector<engine::tiles_over>& all;
      ~outside() { all.pop_back(); }
    } const again{over_};
    over_.push_back(over);
    return f();
  }
  /// Runs `f`, which adds to the program, with `part` in place of each layer for which the predicate holds. It takes
  /// that layer's place, and is not read again itself.
  template <class Part, class F>
  auto replacing(std::function<bool(const read_layer&)> holds, const Part& part, const F& f);
  /// Runs `f`, which adds to the program, with its nodes on the coordinates of an axis, as a pipeline's stages. It runs
  /// once to learn what they cost, and once more.
  template <class F>
  auto in_stages(const text& axis, const pipeline::assignment& how, const mesh_value& mesh, const F& f) {
    return whole([&] {
      if (stages_) return f();  // what is around sees to it
      const auto before = writes_;
      stages_.emplace(axis, how, mesh);
      const auto_reset<std::optional<engine::node_stages>> again{stages_};
      f();
      drop_since(before);
      stages_->share_out();
      return f();
    });
  }
  /// Runs `f` on flows; what it adds is of one stage, where these come first.
  template <class F, class... Flow>
  auto as_unit(const F& f, const Flow&... x) {
    if (!stages_) return f(x...);
    const engine::node_stages::unit here(*stages_);
    const dynamic_flow given[]{x...};
    const std::vector<dynamic_flow> there = arrived(given);
    return [&]<int... Index>(tessera::detail::indices<Index...>) {
      return f(there[Index]...);
    }(tessera::detail::indices_below<static_cast<int>(sizeof...(Flow))>{});
  }

  int begin_recomputed() {
    make_room(0);
    return writes_.begin_recomputed();
  }
  void end_recomputed(int which) { writes_.end_recomputed(which); }
  /// Runs `f` on flows, which adds to the program what is recomputed, together with what was added just before under
  /// the same name.
  template <class F>
  auto recomputed_under(const std::string& name, std::vector<dynamic_flow> x, const F& f) {
    const bool goes_on = name == recomputed_as_ && recomputed_until_ == writes_.node_count;
    std::optional<engine::node_stages::unit> here;
    if (stages_) {
      here.emplace(*stages_, goes_on);
      x = arrived(x);
    }
    const bool moved = recomputed_until_ != writes_.node_count;  // what is led here from another stage runs once
    const int which = goes_on && !moved ? writes_.go_on_recomputed() : begin_recomputed();
    auto y = f(x);
    end_recomputed(which);
    recomputed_as_ = name;
    recomputed_until_ = writes_.node_count;
    return y;
  }
  auto enter(const text& name = {}, bool shared = false) {
    make_room(0);
    return writes_.enter(name, shared);
  }
  auto enter(const std::string& name, bool shared) {
    const auto own = std::make_shared<const std::string>(name);
    keep(own);
    return enter(text(own->data(), static_cast<int>(name.size())), shared);
  }
  template <class Position>
  void leave(const Position& back) {
    writes_.leave(back);
  }
  /// Throws a refusal of what comes next.
  void refuse(const refusal& why, const char* name) const;

  /// The program as an executor takes it, and what owns it.
  struct finished {
    std::shared_ptr<const void> owner;
    engine::program_view<engine::node_record> view;
    std::vector<engine::program_end> inputs;
    std::vector<engine::program_end> outputs;
  };
  finished finish() const;

 private:
  struct parts {
    std::vector<engine::program_node<engine::node_record>> nodes;
    std::vector<engine::program_value> values;
    std::vector<engine::program_scope> scopes;
    std::vector<engine::recomputed_nodes> recomputed;
    std::vector<engine::program_end> inputs;
    std::vector<engine::program_value> outputs;
    std::vector<engine::program_end> ends;           // the same as tensors
    std::vector<std::vector<tensor_value>> results;  // of each node
    std::vector<std::shared_ptr<const engine::node_record>> records;
    std::vector<std::shared_ptr<const void>> owners;
  };

  void own(const dynamic_flow& x) const {
    if (x.in != this) throw error(refusal{code::flow_of_another_program});
  }
  template <class F, int... Index>
  void output(const F& all, tessera::detail::indices<Index...>) {
    (output(get<Index>(all)), ...);
  }
  template <int... Index>
  auto flows_of(const engine::program_value* y, tessera::detail::indices<Index...>) {
    if constexpr (sizeof...(Index) == 1) return dynamic_flow{this, y[0]};
    else return flows(dynamic_flow{this, y[Index]}...);
  }

  // Leaves nothing in a place when it goes.
  template <class Place>
  struct auto_reset {
    Place& of;
    ~auto_reset() { of.reset(); }
  };

  void make_room(std::size_t operands);

  /// The flows where the unit that is being added lies.
  std::vector<dynamic_flow> arrived(std::span<const dynamic_flow> x);

  int add_node(std::unique_ptr<tessera::detail::placed_node> placed, bool numbered, std::span<const dynamic_flow> x);
  /// A layer, or what is read in its place; the values that it gives.
  void put(std::unique_ptr<tessera::detail::placed_node> placed, bool numbered, std::span<const dynamic_flow> x,
           std::span<engine::program_value> y);
  void drop_since(const tessera::detail::recorder<engine::node_record>& before);

  std::shared_ptr<parts> kept_ = std::make_shared<parts>();
  tessera::detail::recorder<engine::node_record> writes_;
  std::string recomputed_as_;  // the name of the part that was recomputed last, and where it ended
  int recomputed_until_ = -1;
  std::vector<engine::replacement> replaced_;  // what is read in place of layers that are added now, the innermost last
  std::optional<engine::node_stages> stages_;
  std::vector<engine::tiles_over> over_;  // how parameters of what is added now are stored, the outermost first
};

/// A network of a program that was put together while the program runs; what is added to that later is not in it.
class dynamic_network : public engine::executor {
 public:
  /// Makes the parameters; all workers of the team do, and compare what they make.
  dynamic_network(const engine::made_of<kind::team, team_handle>& team, const seed& s, const program& p)
      : dynamic_network(team.value, s, p.finish()) {}
  /// Shares the parameters and buffers of a part of another network, under their keys.
  dynamic_network(const engine::network_part& of, const program& p) : dynamic_network(of, p.finish()) {}

  /// Its inputs and outputs, in order.
  const std::vector<engine::program_end>& inputs() const { return inputs_; }
  const std::vector<engine::program_end>& outputs() const { return outputs_; }

  /// The outputs for tensors that lie like the inputs, however many there are.
  std::vector<tensor<dyn>> operator()(std::initializer_list<tensor<dyn>> x, call_site at = call_site::here()) const {
    return called({x.begin(), x.size()}, at);
  }
  std::vector<tensor<dyn>> operator()(const std::vector<tensor<dyn>>& x, call_site at = call_site::here()) const {
    return called(x, at);
  }
  /// The first output, of a network with one input.
  tensor<dyn> operator()(const tensor<dyn>& x, call_site at = call_site::here()) const { return (*this)({x}, at)[0]; }
  template <TensorType T>
  tensor<dyn> operator()(const T& x, call_site at = call_site::here()) const {
    return (*this)(x.dynamic(), at);
  }

  /// Another network whose parameters begin with the values of this one.
  dynamic_network clone() const { return {*this, copying{}}; }

 private:
  dynamic_network(const team_handle& team, const seed& s, program::finished p)
      : engine::executor(team, s, p.view, std::move(p.owner)),
        inputs_(std::move(p.inputs)),
        outputs_(std::move(p.outputs)) {}
  dynamic_network(const engine::network_part& of, program::finished p)
      : engine::executor(of, p.view, std::move(p.owner)),
        inputs_(std::move(p.inputs)),
        outputs_(std::move(p.outputs)) {}
  dynamic_network(const dynamic_network& other, copying how)
      : engine::executor(other, how), inputs_(other.inputs_), outputs_(other.outputs_) {}

  std::vector<tensor<dyn>> called(std::span<const tensor<dyn>> x, call_site at) const;

  std::vector<engine::program_end> inputs_, outputs_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/program_impl.hpp>
#endif
