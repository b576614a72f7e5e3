// Programs of verbs and functions on tensors: each step takes values of steps before it, or operands, and gives one.
// An option is a step, and its name is its value's:
//
//   verbs {"v0":{"do":"sort","dim":1,"of":["x0"]},"v1":{"do":"to","layout":"@0_a=2*1:R_on_3_4","of":["v0"]}} …

#include "crew.hpp"
#include "one_layer.hpp"

#include <tessera/nn/layer/indexing.hpp>
#include <tessera/nn/layer/losses.hpp>
#include <tessera/tensor/einsum.hpp>
#include <tessera/tensor/overlap.hpp>
#include <tessera/tensor/sorting.hpp>

#include <algorithm>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using file::json;
using ints = std::vector<index_t>;
using boxes = std::vector<tensor<dyn>>;

/// What a step may do.
struct verb {
  std::string name;
  std::size_t operands;
  std::function<tensor<dyn>(const json&, const boxes&)> split;
  std::function<at::Tensor(const json&, const tensors&)> serial;
  /// Rolls options for operands of these extents; whether there are any.
  std::function<bool(roller&, json&, const tensors&)> options{};
};

index_t dim_of(const json& o) { return o.value("dim", index_t{0}); }

/// A dimension of at least so many elements.
auto a_dim(index_t least = 0) {
  return [least](roller& r, json& o, const tensors& x) {
    if (x[0].dim() == 0) return false;
    o["dim"] = r.roll(0, static_cast<int>(x[0].dim()) - 1);
    return x[0].size(dim_of(o)) >= least;
  };
}
bool alike(roller&, json&, const tensors& x) { return x[0].sizes() == x[1].sizes(); }
/// One of so many dimensions.
bool has_dims(const at::Tensor& x, index_t least, index_t most) { return x.dim() >= least && x.dim() <= most; }

// Layouts in lines are words, here between underscores.
std::string replaced(std::string s, char from, char into) {
  std::replace(s.begin(), s.end(), from, into);
  return s;
}
layout target_of(const json& o) {
  std::istringstream words(replaced(o.value("layout", ""), '_', ' '));
  layout x;
  if (!detail::read_layout(words, "", x)) throw std::runtime_error("a step has no layout");
  return x;
}
bool roll_target(roller& r, json& o, const tensors& x) {
  const mesh_value mesh = r.once_in(3) ? roll_second_mesh(r.d, r.mesh) : r.mesh;
  if (!check(mesh).ok() || world_of(mesh) > world_of(r.mesh)) return false;
  static_vector<index_t, max_dimensions> extents;
  for (const index_t n : x[0].sizes()) extents.push(n);
  const layout to = roll_layout(r.d, mesh, extents, {r.once_in(2), true, true, r.once_in(5), r.once_in(3)});
  o["layout"] = replaced(text_of(to), ' ', '_');
  return check(to).ok();
}

// Indices are constants, which lie as copies where x has terms or copies.
layout beside(layout x, const json& o) {
  for (axis_placement& p : x.placements)
    if (p.kind != placement::cut && p.kind != placement::on)
      p = {o.value("copies", false) ? placement::replicate : placement::invariant};
  return x;
}
layout list_beside(const layout& x, const json& o, index_t n) {
  layout i = beside(x, o);
  for (axis_placement& p : i.placements)
    if (p.kind == placement::cut) p = {placement::invariant};
  i.dims.resize(0);
  i.dims.push({});
  i.dims[0].extent = n;
  return i;
}
at::Tensor index_of(const json& o, at::IntArrayRef sizes) {
  return at::tensor(o.value("index", ints{}), at::kLong).reshape(sizes);
}
bool roll_index(roller& r, json& o, index_t count, index_t end) {
  o["index"] = r.numbers(static_cast<int>(count), 0, static_cast<int>(end) - 1);
  o["copies"] = r.once_in(2);
  return true;
}

ints with_size(const at::Tensor& x, index_t dim, index_t n) {
  ints sizes = x.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = n;
  return sizes;
}

// A row of a verb that types tell a dimension, K.
#define ALONG(call) [](const json& o, const boxes& x) { return along(o, [&]<int K>() -> tensor<dyn> { return call; }); }
#define SPLIT(call) [](const json&, const boxes& x) -> tensor<dyn> { return call; }
#define SERIAL(call) [](const json&, const tensors& x) -> at::Tensor { return call; }
#define SERIAL_ALONG(call)                            \
  [](const json& o, const tensors& x) -> at::Tensor { \
    const index_t k = dim_of(o);                      \
    return call;                                      \
  }

std::vector<verb> moves() {
  return {
      {"to", 1, [](const json& o, const boxes& x) { return to(target_of(o), x[0]); }, SERIAL(x[0]), roll_target},
      {"start_finish", 1, [](const json& o, const boxes& x) { return finish(start(target_of(o), x[0])); }, SERIAL(x[0]),
       roll_target},
      {"to_like", 2, SPLIT(to(x[1].layout(), x[0])), SERIAL(x[0]), alike},
  };
}

std::vector<verb> element_by_element() {
  return {
      {"sin", 1, SPLIT(sin(x[0])), SERIAL(at::sin(x[0]))},
      {"tanh", 1, SPLIT(tanh(x[0])), SERIAL(at::tanh(x[0]))},
      {"negated", 1, SPLIT(-x[0]), SERIAL(at::neg(x[0]))},
      {"abs", 1, SPLIT(abs(x[0])), SERIAL(at::abs(x[0]))},
      {"halved", 1, SPLIT(x[0] * 0.5), SERIAL(x[0] * 0.5)},
      {"clamp", 1, SPLIT(clamp(x[0], -0.5, 0.5)), SERIAL(at::clamp(x[0], -0.5, 0.5))},
      {"scale_gradient", 1, SPLIT(scale_gradient(x[0], 1.0)), SERIAL(x[0])},
      {"add", 2, SPLIT(x[0] + x[1]), SERIAL(x[0] + x[1])},
      {"subtract", 2, SPLIT(x[0] - x[1]), SERIAL(x[0] - x[1])},
      {"multiply", 2, SPLIT(x[0] * x[1]), SERIAL(x[0] * x[1])},
      {"hypot", 2, SPLIT(hypot(x[0], x[1] + 2.0)), SERIAL(at::hypot(x[0], x[1] + 2.0))},
      {"where", 2, SPLIT(where(lt(x[0], x[1]), x[0], x[1])), SERIAL(at::where(x[0] < x[1], x[0], x[1]))},
      {"mse_loss", 2, SPLIT(nn::mse_loss(x[0], x[1])), SERIAL(at::mse_loss(x[0], x[1])), alike},
      {"huber_loss", 2, SPLIT(nn::huber_loss(x[0], x[1])), SERIAL(at::huber_loss(x[0], x[1])), alike},
  };
}

std::vector<verb> reductions() {
  return {
      {"sum", 1, ALONG(sum<K>(x[0])), SERIAL_ALONG(x[0].sum(k)), a_dim()},
      {"sum_kept", 1, ALONG(sum<K>(x[0], keep_dims)), SERIAL_ALONG(x[0].sum(k, true)), a_dim()},
      {"mean_kept", 1, ALONG(mean<K>(x[0], keep_dims)), SERIAL_ALONG(x[0].mean(k, true)), a_dim(1)},
      {"var", 1, ALONG(var<K>(x[0])), SERIAL_ALONG(x[0].var(at::IntArrayRef{k})), a_dim(2)},
      {"norm", 1, ALONG(norm<K>(x[0], 3)), SERIAL_ALONG(at::norm(x[0], 3, at::IntArrayRef{k}, false)), a_dim(1)},
      {"largest", 1, ALONG(amax<K>(x[0])), SERIAL_ALONG(x[0].amax(k)), a_dim(1)},
      {"prod", 1, ALONG(prod_over<K>(x[0])), SERIAL_ALONG(x[0].prod(k)), a_dim()},
      {"softmax", 1, ALONG(softmax<K>(x[0])), SERIAL_ALONG(x[0].softmax(k)), a_dim()},
      {"log_softmax", 1, ALONG(log_softmax<K>(x[0])), SERIAL_ALONG(x[0].log_softmax(k)), a_dim()},
      {"normalize", 1, ALONG(normalize<K>(x[0], 1e-3)),
       SERIAL_ALONG(x[0] / at::sqrt(at::clamp_min((x[0] * x[0]).sum(k, true), 1e-6))), a_dim()},
      {"cumsum", 1, ALONG(cumsum<K>(x[0])), SERIAL_ALONG(x[0].cumsum(k)), a_dim()},
      {"sort", 1, ALONG((sort<K, true>(x[0]).values)),
       SERIAL_ALONG(std::get<0>(at::sort(x[0], std::optional<bool>(true), k, true))), a_dim()},
      {"topk", 1, ALONG(topk<K>(x[0], 2).values),
       SERIAL_ALONG(std::get<0>(at::sort(x[0], std::optional<bool>(true), k, true)).narrow(k, 0, 2)), a_dim(2)},
      {"matmul", 2, SPLIT(matmul(x[0], x[1])), SERIAL(at::matmul(x[0], x[1])),
       [](roller&, json&, const tensors& x) { return x[0].dim() >= 2 && x[1].dim() >= 2; }},
      {"gram", 1, SPLIT(einsum(operation("ij,kj->ik"), x[0], x[0])), SERIAL(at::einsum("ij,kj->ik", {x[0], x[0]}))},
      {"squares", 1, SPLIT(einsum(operation("ij,ij->j"), x[0], x[0])), SERIAL(at::einsum("ij,ij->j", {x[0], x[0]}))},
  };
}

std::vector<verb> shapes() {
  const auto room = [](roller& r, json& o, const tensors& x) { return has_dims(x[0], 1, 3) && a_dim()(r, o, x); };
  const auto one = [](roller& r, json& o, const tensors& x) { return a_dim()(r, o, x) && x[0].size(dim_of(o)) == 1; };
  return {
      {"transpose", 1, SPLIT((transpose<0, 1>(x[0]))), SERIAL(x[0].transpose(0, 1)),
       [](roller&, json&, const tensors& x) { return has_dims(x[0], 2, 4); }},
      {"permute", 1, SPLIT((permute<2, 0, 1>(x[0]))), SERIAL(x[0].permute({2, 0, 1})),
       [](roller&, json&, const tensors& x) { return has_dims(x[0], 3, 3); }},
      {"unsqueeze", 1, ALONG(unsqueeze<K>(x[0])), SERIAL_ALONG(x[0].unsqueeze(k)), room},
      {"squeeze", 1, ALONG(squeeze<K>(x[0])), SERIAL_ALONG(x[0].squeeze(k)), one},
      {"expand", 1, ALONG((expand<K, 3>(x[0]))), SERIAL_ALONG(x[0].expand(with_size(x[0], k, 3))), one},
      {"flatten", 1, SPLIT((flatten<0, 1>(x[0]))), SERIAL(x[0].flatten(0, 1)),
       [](roller&, json&, const tensors& x) { return has_dims(x[0], 2, 4); }},
      {"unflatten", 1, ALONG((unflatten<K, 2>(x[0]))), SERIAL_ALONG(x[0].unflatten(k, {x[0].size(k) / 2, 2})),
       [room](roller& r, json& o, const tensors& x) { return room(r, o, x) && x[0].size(dim_of(o)) % 2 == 0; }},
      {"slice", 1, ALONG((slice<K, 1, 3>(x[0]))), SERIAL_ALONG(x[0].narrow(k, 1, 2)), a_dim(3)},
      {"cropped", 1, ALONG((slice<K, 1, -1>(x[0]))), SERIAL_ALONG(x[0].narrow(k, 1, x[0].size(k) - 2)), a_dim(2)},
      {"pad", 1, ALONG((pad<K, 2, 1>(x[0], 1))),
       SERIAL_ALONG(at::cat(
           {at::ones(with_size(x[0], k, 2), x[0].options()), x[0], at::ones(with_size(x[0], k, 1), x[0].options())},
           k)),
       a_dim()},
      {"concat", 2, ALONG(concat<K>(x[0], x[1])), SERIAL_ALONG(at::cat({x[0], x[1]}, k)), a_dim()},
      {"stack", 2, ALONG(stack<K>(x[0], x[1])), SERIAL_ALONG(at::stack({x[0], x[1]}, k)), room},
      {"rotary", 1, ALONG((rotary<K, 100>(x[0]))), SERIAL_ALONG(turned(x[0], k, 100)),
       [](roller& r, json& o, const tensors& x) {
         return x[0].dim() >= 2 && a_dim()(r, o, x) && dim_of(o) + 1 < x[0].dim() && x[0].size(-1) % 2 == 0 &&
                x[0].size(-1) > 0;
       }},
  };
}

std::vector<verb> indexed() {
  const auto sized = [](index_t more) {
    return [more](roller& r, json& o, const tensors& x) {
      return a_dim(1)(r, o, x) && roll_index(r, o, x[0].numel(), x[0].size(dim_of(o)) + more);
    };
  };
  const auto lying = [](const tensor<dyn>& x, const json& o) {
    return distribute(x.team(), beside(x.layout(), o), index_of(o, extents_of(x.layout())).to(x.local().device()));
  };
  return {
      {"index_select", 1,
       [](const json& o, const boxes& x) {
         const auto n = static_cast<index_t>(o.value("index", ints{}).size());
         const at::Tensor index = index_of(o, {n}).to(x[0].local().device());
         const auto i = distribute(x[0].team(), list_beside(x[0].layout(), o, n), index);
         return along(o, [&]<int K>() -> tensor<dyn> { return index_select<K>(x[0], i); });
       },
       [](const json& o, const tensors& x) { return x[0].index_select(dim_of(o), index_of(o, {-1})); },
       [](roller& r, json& o, const tensors& x) {
         return a_dim(1)(r, o, x) && roll_index(r, o, r.roll(1, 4), x[0].size(dim_of(o)));
       }},
      {"take_along", 1,
       [lying](const json& o, const boxes& x) {
         return along(o, [&]<int K>() -> tensor<dyn> { return take_along<K>(x[0], lying(x[0], o)); });
       },
       [](const json& o, const tensors& x) { return x[0].gather(dim_of(o), index_of(o, x[0].sizes())); }, sized(0)},
      {"scatter_add", 1,
       [lying](const json& o, const boxes& x) {
         const index_t n = x[0].layout().dims[static_cast<int>(dim_of(o))].extent + 1;
         return along(o, [&]<int K>() -> tensor<dyn> { return scatter_add<K>(x[0], lying(x[0], o), n); });
       },
       [](const json& o, const tensors& x) {
         return at::zeros(with_size(x[0], dim_of(o), x[0].size(dim_of(o)) + 1), x[0].options())
             .scatter_add(dim_of(o), index_of(o, x[0].sizes()), x[0]);
       },
       sized(1)},
  };
}

#undef ALONG
#undef SPLIT
#undef SERIAL
#undef SERIAL_ALONG

const std::vector<verb>& verbs() {
  static const std::vector<verb> all = [] {
    std::vector<verb> rows;
    for (const auto& more : {moves, moves, element_by_element, reductions, shapes, indexed})  // moves twice as often
      for (verb& v : more()) rows.push_back(std::move(v));
    return rows;
  }();
  return all;
}

/// Takes the steps of a program, each by `take(name, verb, step, operands)`, which gives its value or none; steps
/// that take what there is not are none.
template <class T, class Take>
std::vector<std::pair<std::string, T>> each_step(const json& steps, const std::vector<T>& operands, const Take& take) {
  std::vector<std::pair<std::string, T>> all;
  for (std::size_t i = 0; i < operands.size(); ++i) all.emplace_back(fmt::format("x{}", i), operands[i]);
  for (const auto& [name, step] : steps.items()) {
    std::vector<T> of;
    for (const auto& wanted : step.at("of"))
      for (const auto& [known, value] : all)
        if (known == wanted) of.push_back(value);
    const std::string what = step.at("do");
    const auto found = std::find_if(verbs().begin(), verbs().end(), [&](const verb& v) { return v.name == what; });
    if (found == verbs().end() || of.size() != found->operands) continue;
    if (const std::optional<T> value = take(name, *found, step, of)) all.emplace_back(name, *value);
  }
  return all;
}

/// What a program gives: all values that no step takes.
template <class T>
std::vector<T> results_of(const json& steps, const std::vector<std::pair<std::string, T>>& all) {
  std::vector<T> results;
  for (const auto& one : all) {
    const bool taken = std::any_of(steps.begin(), steps.end(), [&](const json& step) {
      return std::find(step.at("of").begin(), step.at("of").end(), one.first) != step.at("of").end();
    });
    if (!taken) results.push_back(one.second);
  }
  return results;
}

/// With whole values where there were terms of a combine that has no adjoint.
tensor<dyn> differentiable(const tensor<dyn>& y) {
  if (tessera::engine::only_sums(y.layout())) return y;
  layout whole = y.layout();
  for (axis_placement& p : whole.placements)
    if (p.kind == placement::partial) p = {placement::invariant};
  return to(whole, y);
}

boxes taken(const json& steps, const boxes& x) {
  boxes all =
      results_of(steps, each_step(steps, x, [](const std::string&, const verb& v, const json& o, const boxes& of) {
                   return std::optional(v.split(o, of));
                 }));
  for (tensor<dyn>& y : all) y = differentiable(y);
  return all;
}
tensors taken_serially(const serial_call& s) {
  tensors all = results_of(s.of.options, each_step(s.of.options, s.x,
                                                   [](const std::string&, const verb& v, const json& o,
                                                      const tensors& of) { return std::optional(v.serial(o, of)); }));
  for (at::Tensor& y : all) y = y * 1;
  return all;
}

/// The same of operands that a rounding has changed.
tensors taken_nearby(const serial_call& s) {
  serial_call near = s;
  for (at::Tensor& x : near.x) x = x * (1 + 0x1p-23);
  return taken_serially(near);
}

/// Numbers of which no two are equal, nor any of their opposites.
at::Tensor unequal(const layer_case&, std::size_t operand, const at::Tensor& all) {
  const at::Tensor places = at::arange(all.numel(), at::kDouble).reshape(all.sizes());
  return all + (places * 2 + 1) * 0x1p-13 + static_cast<double>(operand) * 0x1p-15;
}

/// Takes out the steps that workers refuse, and all behind them. Whether they are right to is judged elsewhere.
void keep_accepted(layer_case& c) {
  const int world = world_of(c.operands[0].layout.mesh);
  std::vector<tensors> own;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    own.push_back(boxes_of_any(c.operands[i].layout, operand_of(c, i), world, c.memory, c.salt + 7));
  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& carrier) {
        prepare_thread();
        const auto team = std::make_shared<team_state>(carrier, c.operands[0].layout.mesh);
        boxes x;
        for (std::size_t i = 0; i < own.size(); ++i)
          x.emplace_back(team, c.operands[i].layout,
                         own[i][static_cast<std::size_t>(carrier->rank())].detach().requires_grad_());
        std::set<std::string> accepted;
        each_step(
            c.options, x,
            [&](const std::string& name, const verb& v, const json& o, const boxes& of) -> std::optional<tensor<dyn>> {
              try {
                const tensor<dyn> y = v.split(o, of);
                differentiable(y);
                accepted.insert(name);
                return y;
              } catch (const error&) {
                return {};
              }
            });
        return accepted;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return;  // which is wrong, and for the judge
  const mesh_value& mesh = c.operands[0].layout.mesh;
  const std::set<std::string>& accepted = run.of(mesh.rank(mesh.at(0)));
  json kept = json::object();
  for (const auto& [name, step] : c.options.items())
    if (accepted.contains(name)) kept[name] = step;
  c.options = std::move(kept);
}

void roll_steps(roller& r) {
  r.e = element::float64;
  ints extents = r.numbers(r.roll(0, 3), 1, 6);
  if (!extents.empty() && r.once_in(15)) extents[0] = 0;
  r.take(extents, true);
  if (r.once_in(2)) {
    if (!extents.empty() && r.once_in(2))
      extents[static_cast<std::size_t>(r.roll(0, static_cast<int>(extents.size()) - 1))] = r.roll(1, 5);
    r.take(extents, true);
  }
  std::vector<std::pair<std::string, at::Tensor>> known;
  for (std::size_t i = 0; i < r.c.operands.size(); ++i) known.emplace_back(fmt::format("x{}", i), operand_of(r.c, i));
  const auto some = [&]() -> const std::pair<std::string, at::Tensor>& {
    return known[static_cast<std::size_t>(r.roll(0, static_cast<int>(known.size()) - 1))];
  };
  constexpr double largest_number = 1e3;
  for (int i = 0; i < 30; ++i) {
    const verb& v = verbs()[static_cast<std::size_t>(r.roll(0, static_cast<int>(verbs().size()) - 1))];
    json step{{"do", v.name}, {"of", json::array()}};
    tensors of;
    for (std::size_t k = 0; k < v.operands; ++k) {
      auto one = some();
      for (int again = 0; k > 0 && again < 3 && one.second.sizes() != of[0].sizes(); ++again) one = some();
      step["of"].push_back(one.first);
      of.push_back(one.second);
    }
    if (v.options && !v.options(r, step, of)) continue;
    try {
      const at::Tensor y = v.serial(step, of);
      if (y.dim() > 4 || y.numel() > 400 || !y.isfinite().all().item<bool>() || largest(y) > largest_number) continue;
      const std::string name = fmt::format("v{:02}", i);
      r.say(name.c_str(), step);
      known.emplace_back(name, y);
    } catch (const c10::Error&) {  // operands of extents that do not go together
    }
  }
  keep_accepted(r.c);
}

}  // namespace

std::vector<family> verb_families() {
  return {{"verbs", roll_steps, taken_serially, {}, {}, unequal, taken, taken_nearby}};
}

}  // namespace tessera::testing::fuzz
