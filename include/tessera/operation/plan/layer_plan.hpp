#pragma once

#include <tessera/operation/plan/counted_product.hpp>
#include <tessera/operation/plan/hold_window.hpp>
#include <tessera/operation/plan/parameter_layout.hpp>
#include <tessera/operation/plan/parameter_value.hpp>
#include <tessera/operation/plan/saved_tensors.hpp>
#include <tessera/operation/plan/traffic.hpp>
#include <tessera/operation/rule/infer.hpp>
#include <tessera/operation/rule/stream.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

namespace detail {

/// Whether workers have terms of sums.
constexpr bool has_terms(const layout& x) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements.items[a].kind == placement::partial && x.mesh.axes[a].extent > 1) return true;
  for (const dimension& d : x.dims)
    if (d.kind == cover::pending) return true;
  return false;
}

}  // namespace detail

/// A layer as a composition, (raw → output) ∘ local operations ∘ (given → used), with the exchanges between its local
/// operations, its parameters and its buffers.
///
/// It is computed by one ordinary function of the operands' values, for the compiler and for run time alike. Layouts
/// are held once, since compilers pay for each.
class layer_plan {
 public:
  refusal why;
  engine::saved_tensors saves;  ///< of the local operation, in memory

  /// Adds an operand as it comes and as the local operation takes it.
  constexpr void add_input(const layout& given, const layout& used) { inputs_.push(both(given, used)); }
  constexpr void add_input(const layout& x) { add_input(x, x); }
  /// Adds a result as the local operation gives it and as it leaves; its element is the first operand's unless it is
  /// said.
  constexpr void add_output(const layout& raw, const layout& output) {
    outputs_.push({both(raw, output), false, {}, false});
  }
  constexpr void add_output(const layout& raw, const layout& output, element e) {
    outputs_.push({both(raw, output), true, e, false});
  }
  constexpr void add_output(const layout& y) { add_output(y, y); }
  constexpr void add_output(const layout& y, element e) { add_output(y, y, e); }
  constexpr void add_parameter(const parameter_value& w) {
    parameters_.push({w.name, both(w.stored, w.used), w.initial, w.has_element, w.element, w.serial, w.frozen,
                      w.as_operand, w.rewritten, gathering::once});
  }
  /// Adds a change of layout between local operations, of an element of its own; gradients may not pass it.
  constexpr void add_exchange(const layout& from, const layout& to, element e, bool returns = true,
                              const engine::streamed_parts& streams = {}) {
    exchanges_.push({both(from, to), e, returns, streams});
  }
  /// Adds tensors that the local operation makes besides its results and keeps for its backward.
  constexpr void make(const layout& x, element e, index_t n = 1) { add_made(x, e, engine::made_for::always, n); }
  /// Adds those that it makes on its way to them: kept for its backward, and gone at once where there is none.
  constexpr void remember(const layout& x, element e, index_t times = 1) {
    add_made(x, e, engine::made_for::backward, times);
  }
  /// Adds tensors that it has at once while it runs, beside all else; and those that its backward has.
  constexpr void take(const layout& x, element e, index_t times = 1) { add_made(x, e, engine::made_for::now, times); }
  constexpr void take_back(const layout& x, element e, index_t times = 1) {
    add_made(x, e, engine::made_for::now_in_backward, times);
  }
  constexpr void add_buffer(const buffer_value& b) {
    buffers_.push({b.name, one(b.stored), b.initial, b.element, b.only_here});
  }

  /// Adds multiply-adds of the local operation, by extents of layouts that the plan has: `times` for each of Π of them.
  /// A layer without any is counted by its elements.
  constexpr engine::counted_product& add_product(std::initializer_list<engine::held_extents> of, index_t times = 1) {
    if (products_count_ == most_products) engine::stop(refusal{code::list_full, most_products});
    products_[products_count_] = product_slot(engine::counted_product(of, times));
    return products_[products_count_++].taken;
  }
  /// The extents of an operand and a parameter as they are used, and of a result as the local operation gives it.
  /// Others are those of what an exchange brings and takes away, and of what the operation makes besides.
  constexpr engine::held_extents used_extents(int i = 0) const { return {inputs_[i].behind}; }
  constexpr engine::held_extents raw_extents(int i = 0) const { return {outputs_[i].at.before}; }
  constexpr engine::held_extents weight_extents(int i = 0) const { return {parameters_[i].at.behind}; }
  constexpr engine::held_extents brought_extents(int i = 0) const { return {exchanges_[i].at.behind}; }
  constexpr engine::held_extents sent_extents(int i = 0) const { return {exchanges_[i].at.before}; }
  constexpr engine::held_extents made_extents(int i = 0) const { return {made_[i].at}; }

  constexpr int products() const { return products_count_; }
  constexpr const engine::counted_product& product(int i) const { return products_[i].taken; }
  constexpr const layout& layout_of(const engine::held_extents& x) const { return layouts_[x.at].taken; }

  constexpr int inputs() const { return inputs_.count; }
  constexpr const layout& given(int i = 0) const { return layouts_[inputs_[i].before].taken; }
  constexpr const layout& used(int i = 0) const { return layouts_[inputs_[i].behind].taken; }

  constexpr int outputs() const { return outputs_.count; }
  constexpr const layout& raw(int i = 0) const { return layouts_[outputs_[i].at.before].taken; }
  constexpr const layout& output(int i = 0) const { return layouts_[outputs_[i].at.behind].taken; }
  /// The element of a result, of a layer whose first operand has this one.
  constexpr element element_of(int i, element first) const {
    return outputs_[i].has_element ? outputs_[i].element : first;
  }
  /// The element in which a result travels from `raw` to `output`. Terms of half types travel in float, and their sum
  /// is rounded once.
  constexpr element travels_in(int i, element first) const {
    const element e = element_of(i, first);
    const planned_output& y = outputs_[i];
    return engine::is_half(e) && !y.rounds && y.at.before != y.at.behind && detail::has_terms(raw(i)) ? element::float32
                                                                                                      : e;
  }

  constexpr int parameters() const { return parameters_.count; }
  constexpr const layout& stored(int i) const { return layouts_[parameters_[i].at.before].taken; }
  constexpr const layout& weight(int i) const { return layouts_[parameters_[i].at.behind].taken; }
  constexpr parameter_value parameter(int i) const {
    const planned_parameter& w = parameters_[i];
    return {w.name,    stored(i), weight(i), w.initial,    w.has_element,
            w.element, w.serial,  w.frozen,  w.as_operand, w.rewritten};
  }
  /// The element of a parameter, of a layer whose first operand has this one.
  constexpr element parameter_element(int i, element first) const {
    return parameters_[i].has_element ? parameters_[i].element : first;
  }
  /// The element in which it comes to those that take it: rounding commutes with a Move, so it is rounded first.
  constexpr element parameter_comes_as(int i, element first) const {
    const element own = parameter_element(i, first);
    return parameters_[i].as_operand && engine::bytes_of(first) < engine::bytes_of(own) ? first : own;
  }
  /// The element in which the local operation takes it.
  constexpr element parameter_taken_as(int i, element first) const {
    return parameters_[i].as_operand ? first : parameter_element(i, first);
  }
  constexpr bool frozen(int i) const { return parameters_[i].frozen; }
  /// Whether a forward may change it in place.
  constexpr bool rewritten(int i) const { return parameters_[i].rewritten; }
  /// Whether what the local operation takes of a parameter goes behind forward and is made again for backward.
  constexpr bool released(int i) const {
    return parameters_[i].times == gathering::twice && (saves.weights >> i & 1u) != 0;
  }
  /// Whether it stays, and the gradient in its layout, until that is reduced.
  constexpr bool held(int i) const { return engine::holds(parameters_[i].times); }
  constexpr gathering times(int i) const {
    return released(i) ? gathering::twice : held(i) ? parameters_[i].times : gathering::once;
  }

  constexpr int exchanges() const { return exchanges_.count; }
  constexpr const layout& from(int i) const { return layouts_[exchanges_[i].at.before].taken; }
  constexpr const layout& to(int i) const { return layouts_[exchanges_[i].at.behind].taken; }
  constexpr element exchanged_element(int i) const { return exchanges_[i].element; }
  constexpr bool returns(int i) const { return exchanges_[i].returns; }
  /// How much of a part comes, or goes, at once; nothing where all of it does.
  constexpr const engine::streamed_parts& streams(int i) const { return exchanges_[i].streams; }

  constexpr int made() const { return made_.count; }
  constexpr const layout& made(int i) const { return layouts_[made_[i].at].taken; }
  constexpr element made_element(int i) const { return made_[i].element; }
  constexpr engine::made_for made_as(int i) const { return made_[i].what; }
  constexpr index_t made_times(int i) const { return made_[i].times; }

  constexpr int buffers() const { return buffers_.count; }
  constexpr buffer_value buffer(int i) const {
    const planned_buffer& b = buffers_[i];
    return {b.name, layouts_[b.at].taken, b.initial, b.element, b.only_here};
  }

  /// Another way for an operand to come, for a result to leave, for a parameter to be stored.
  constexpr void set_given(const layout& given, int i = 0) { inputs_[i].before = one(given); }
  constexpr void set_output(const layout& output, int i = 0) { outputs_[i].at.behind = one(output); }
  /// Lets the terms of a half type travel rounded to it.
  constexpr void round_terms(int i = 0) { outputs_[i].rounds = true; }
  constexpr void set_stored(const layout& stored, int i) { parameters_[i].at.before = one(stored); }
  /// How often what is used of a parameter is gathered: twice if its backward reads it.
  constexpr void set_gathering(gathering times, int i) { parameters_[i].times = times; }

  /// Calls visit(layout) with each layout, to change it.
  template <class Visit>
  constexpr void each_layout(const Visit& visit) {
    for (int i = 0; i < count_; ++i) visit(layouts_[i].taken);
  }
  template <class Visit>
  constexpr void each_layout(const Visit& visit) const {
    for (int i = 0; i < count_; ++i) visit(layouts_[i].taken);
  }

 private:
  // A slot for a layout: an empty layout has room for all axes and dimensions, and compilers pay for that room.
  union layout_slot {
    char free = 0;
    layout taken;

    constexpr layout_slot() {}
    constexpr explicit layout_slot(const layout& x) : taken(x) {}
  };
  // Likewise.
  union product_slot {
    char free = 0;
    engine::counted_product taken;

    constexpr product_slot() {}
    constexpr explicit product_slot(const engine::counted_product& x) : taken(x) {}
  };
  struct pair {
    signed char before, behind;
  };
  struct planned_output {
    pair at;
    bool has_element;
    tessera::element element;
    bool rounds;  ///< its terms, before they travel
  };
  struct planned_parameter {
    const char* name;
    pair at;
    initial_value initial;
    bool has_element;
    tessera::element element;
    engine::serial_view serial;
    bool frozen;
    bool as_operand;
    bool rewritten;
    gathering times;
  };
  struct planned_exchange {
    pair at;
    tessera::element element;
    bool returns;
    engine::streamed_parts streams;
  };
  struct planned_tensor {
    signed char at;
    tessera::element element;
    engine::made_for what;
    index_t times;
  };
  struct planned_buffer {
    const char* name;
    signed char at;
    initial_value initial;
    tessera::element element;
    bool only_here;
  };

  constexpr signed char one(const layout& x) {
    int i = 0;
    while (i < count_ && !(layouts_[i].taken == x)) ++i;
    if (i == room) engine::stop(refusal{code::list_full, room});
    if (i == count_) layouts_[count_++] = layout_slot(x);
    return static_cast<signed char>(i);
  }
  constexpr void add_made(const layout& x, element e, engine::made_for what, index_t times) {
    if (times > 0) made_.push({one(x), e, what, times});
  }
  constexpr pair both(const layout& before, const layout& behind) {
    const signed char at = one(before);
    return {at, &before == &behind ? at : one(behind)};
  }

  static constexpr int room = 22;  // the most that a layer has are 20, of sampled classes on one coordinate of an axis
  layout_slot layouts_[room];
  int count_ = 0;
  static_vector<pair, 4> inputs_;
  static_vector<planned_output, 4> outputs_;
  static_vector<planned_parameter, 8> parameters_;
  static_vector<planned_exchange, 4> exchanges_;
  static_vector<planned_tensor, 12> made_;
  static_vector<planned_buffer, 4> buffers_;
  static constexpr int most_products = 7;  // of a spectral convolution of three dimensions that move twice
  product_slot products_[most_products];
  int products_count_ = 0;
};

namespace engine {

/// The name of open extents that are the second of two that data give.
inline constexpr text second_open{"second"};

/// The plan of a layer that is refused.
constexpr layer_plan refused_layer(const refusal& why) {
  layer_plan p;
  p.why = why;
  return p;
}

/// Refuses parameters of an element that has no gradient, of a layer whose first operand has this one.
constexpr refusal check_parameters(const layer_plan& p, element first) {
  for (int i = 0; i < p.parameters(); ++i)
    if (const refusal r = check_gradient(p.parameter_element(i, first)); !r.ok()) return r;
  return {};
}

}  // namespace engine

}  // namespace tessera
