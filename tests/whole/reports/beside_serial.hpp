#pragma once
// What public reports of other systems say went wrong, tried here as kinds: a function or a network on tensors that lie
// in every way over several numbers of workers, held against LibTorch's on the whole tensors. Layouts are values, so
// that one function is compiled once.

#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>

#include <functional>

namespace tessera::testing {

using namespace engine;

using sizes = std::vector<index_t>;
using whole_tensors = std::vector<at::Tensor>;

/// A line of workers, or a grid of two axes a x b.
inline mesh_value workers(int a, int b = 0) {
  mesh_value m;
  m.axes.push({text{"a"}, a, 1});
  if (b > 0) m.axes.push({text{"b"}, b, 1});
  return row_major(m);
}

/// A tensor of these extents whose dimensions are cut by axes, pairs of dimension and axis, in this order; other axes
/// hold copies.
inline layout lying(const mesh_value& on, const sizes& extents, std::initializer_list<std::pair<int, int>> cuts = {},
                    placement others = placement::replicate) {
  layout x;
  x.mesh = on;
  for (int a = 0; a < on.axes.count; ++a) x.placements.push({others});
  for (const index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  for (const auto& [dim, axis] : cuts) x.cut_by(dim, axis);
  return x;
}

/// The ways in which a tensor may lie: copies of both kinds, each dimension cut by each axis, two by both, one by one
/// axis after the other.
inline std::vector<layout> ways(const mesh_value& on, const sizes& extents) {
  std::vector<layout> all{lying(on, extents), lying(on, extents, {}, placement::invariant)};
  const int dims = static_cast<int>(extents.size());
  for (int d = 0; d < dims; ++d)
    for (int a = 0; a < on.axes.count; ++a) all.push_back(lying(on, extents, {{d, a}}, placement::invariant));
  for (int d = 0; on.axes.count == 2 && d < dims; ++d) {
    all.push_back(lying(on, extents, {{d, 0}, {(d + 1) % dims, 1}}));
    all.push_back(lying(on, extents, {{d, 1}, {d, 0}}));
  }
  return all;
}

/// A layout whose dimension is cut as one of another layout is.
inline layout lying_as(layout x, int dim, const layout& other, int its) {
  for (int level = 0; level < other.levels(its); ++level) x.cut_by(dim, other.cutter(its, level));
  return x;
}

/// Numbers that are a function of their index, in an element.
inline at::Tensor values(const sizes& extents, std::uint64_t salt = 1, at::ScalarType e = at::kDouble) {
  const at::Tensor t = global_of(extents, numbers{salt});
  if (at::isComplexType(e)) return at::complex(t, global_of(extents, numbers{salt + 7777})).to(e);
  return at::isIntegralType(e, false) ? at::mul(t, 9).round().to(e) : t.to(e);
}

/// What the workers of a mesh find wrong, one after the other; empty when all is well. f(team) runs on each and says
/// what it finds.
inline std::string wrong_on(const mesh_value& on, const std::function<std::string(const team_handle&)>& f) {
  const auto all = on_workers(on.size(), [&](const std::shared_ptr<transport>& carrier) {
    const team_handle team = std::make_shared<team_state>(carrier, on);
    std::string said = f(team);
    return said.empty() ? said : fmt::format("worker {} of {}: {}\n", carrier->rank(), on.size(), said);
  });
  std::string said = all.errors();
  for (const auto& r : all.results)
    if (r) said += *r;
  return said.substr(0, 1500);
}

/// Whether two tensors have one element and extents, and numbers that differ by a few roundings of it; of no number
/// both.
inline bool close(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::ScalarType e = at::toRealValueType(a.scalar_type());
  if (at::isIntegralType(e, true)) return at::equal(a, b);
  const double by = e == at::kDouble ? 1e-11 : e == at::kFloat ? 1e-4 : e == at::kHalf ? 4e-3 : 3e-2;
  const auto wide = at::isComplexType(a.scalar_type()) ? at::kComplexDouble : at::kDouble;
  return at::allclose(a.detach().to(wide), b.detach().to(wide), by, by, true);
}

/// Whether every worker's copy is the same, compared over the team.
inline bool same_copies(const team_handle& team, const at::Tensor& t) {
  std::uint64_t h = 14695981039346656037u;
  const at::Tensor bytes = t.detach().contiguous().cpu();
  for (std::size_t i = 0; i < bytes.nbytes(); ++i)
    h = (h ^ static_cast<const unsigned char*>(bytes.data_ptr())[i]) * 1099511628211u;
  for (const std::uint64_t other : team->collect(h, "comparing copies in a test"))
    if (other != h) return false;
  return true;
}

/// The tensor with whole values where it had terms.
inline tensor<dyn> settled(const tensor<dyn>& y) {
  layout all = y.layout();
  for (axis_placement& r : all.placements)
    if (r.kind == placement::partial) r = {};
  return to(all, y);
}

/// A tensor that lies over the workers, and the whole of it.
struct operand_of {
  layout lies;
  at::Tensor whole;
};

inline bool has_gradient(const at::Tensor& x) {
  return at::isFloatingType(x.scalar_type()) || at::isComplexType(x.scalar_type());
}

/// Goes back from a result under a cotangent that is a function of the index; from a scalar under 1.
inline void go_back(const tensor<dyn>& y) {
  const tensor<dyn> all = settled(y);
  if (y.layout().dims.count == 0) return all.backward();
  const tensor<dyn> by =
      distribute(all.team(), all.layout(), values(extents_of(all.layout()), 99, all.local().scalar_type()));
  const tensor<dyn> loss = sum(all * by);
  if (at::isComplexType(all.local().scalar_type())) real(loss).backward();
  else loss.backward();
}
inline void go_back(const at::Tensor& y) {
  if (y.dim() == 0) return y.backward();
  const at::Tensor loss = (y * values(y.sizes().vec(), 99, y.scalar_type())).sum();
  (at::isComplexType(y.scalar_type()) ? at::real(loss) : loss).backward();
}

/// Holds a function of distributed tensors against LibTorch's: its value, and the gradient of every operand that has
/// one, on this worker.
inline std::string beside(const team_handle& team, const std::vector<operand_of>& operands,
                          const std::function<tensor<dyn>(const std::vector<tensor<dyn>>&)>& split,
                          const std::function<at::Tensor(const whole_tensors&)>& serial) {
  std::vector<tensor<dyn>> x;
  whole_tensors own;
  bool back = false;
  std::string where;
  for (const operand_of& one : operands) {
    x.push_back(distribute(team, one.lies, one.whole));
    own.push_back(one.whole.clone());
    where += shown(one.lies) + "; ";
    if (!has_gradient(one.whole)) continue;
    x.back().requires_grad();
    own.back().set_requires_grad(true);
    back = true;
  }
  const tensor<dyn> y = split(x);
  const at::Tensor wanted = serial(own);
  const at::Tensor got = full_tensor(y);
  if (!close(got, wanted))
    return fmt::format("of {}value\n{}\nfor\n{}", where, c10::str(got), c10::str(wanted.detach()));
  if (!back || !wanted.requires_grad()) return "";
  go_back(y);
  go_back(wanted);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!own[i].requires_grad()) continue;
    const tensor<dyn> g = x[i].grad();
    if (!same(g.layout(), cotangent(x[i].layout())))
      return fmt::format("of {}gradient {} lies {}", where, i, shown(g.layout()));
    if (!close(full_tensor(g), own[i].grad())) return fmt::format("of {}gradient {}", where, i);
  }
  return "";
}

/// What writes a program: the result of its inputs.
using written = std::function<nn::dynamic_flow(const std::vector<nn::dynamic_flow>&)>;
using by_key = std::map<std::string, at::Tensor>;

/// A network that was put together of layers that are values, with the gradients of its parameters as whole tensors.
struct trained_net {
  nn::dynamic_network net;

  trained_net(const team_handle& team, const std::vector<tensor_value>& inputs, const written& write)
      : net(made(team, inputs, write)) {}

  /// Visits every parameter with its gradient as a whole tensor.
  void each_gradient(const std::function<void(const nn::parameter&, const at::Tensor&)>& visit) const {
    net.each_parameter([&](const nn::parameter& p) {
      const at::Tensor& leaf = p.stored().local();
      const at::Tensor g = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
      visit(p, full_tensor(tessera::detail::tensor_of(p.stored().team(), cotangent(p.stored().layout()), g)));
    });
  }
  by_key gradients() const {
    by_key all;
    each_gradient([&](const nn::parameter& p, const at::Tensor& g) { all.emplace(p.path(), g); });
    return all;
  }

 private:
  static nn::dynamic_network made(const team_handle& team, const std::vector<tensor_value>& inputs,
                                  const written& write) {
    nn::program p;
    std::vector<nn::dynamic_flow> x;
    for (const tensor_value& one : inputs) x.push_back(p.input(one));
    p.output(write(x));
    return {team, seed{5}, p};
  }
};

/// The same of a network, of layers that are values: `write` gives its result as a flow, `serial` what LibTorch makes
/// of the whole operands and the parameters under their keys. Every parameter's gradient is held against LibTorch's,
/// and is the same bits on all workers.
inline std::string network_beside(const team_handle& team, const std::vector<operand_of>& operands,
                                  const written& write,
                                  const std::function<at::Tensor(const whole_tensors&, const by_key&)>& serial) {
  std::vector<tensor_value> inputs;
  for (const operand_of& one : operands)
    inputs.push_back({one.lies, tessera::detail::element_of_scalar(one.whole.scalar_type())});
  const trained_net made(team, inputs, write);
  by_key state = nn::state_of(made.net);
  for (auto& [key, w] : state)
    if (has_gradient(w)) w = w.clone().set_requires_grad(true);
  std::string why = beside(
      team, operands,
      [&](const std::vector<tensor<dyn>>& x) {
        if (x.size() == 1) return made.net(x[0]);
        if (x.size() == 2) return made.net({x[0], x[1]})[0];
        return made.net({x[0], x[1], x[2]})[0];
      },
      [&](const whole_tensors& x) { return serial(x, state); });
  if (!why.empty()) return why;
  made.each_gradient([&](const nn::parameter& p, const at::Tensor& g) {
    const bool same_bits_everywhere = same_copies(team, g);
    const at::Tensor& serial_gradient = state.at(p.key()).grad();
    const at::Tensor wanted = serial_gradient.defined() ? p.part_of(serial_gradient) : at::zeros_like(g);
    if (!same_bits_everywhere || !close(g, wanted))
      why += fmt::format("{}: gradient of {}; ", shown(operands[0].lies), p.path());
  });
  return why;
}

}  // namespace tessera::testing
