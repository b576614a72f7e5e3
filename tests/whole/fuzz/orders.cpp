#include "crew.hpp"
#include "one_layer.hpp"
#include "tests/support/in_workers.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

constexpr int orders = 3;
constexpr int compared_orders = 2;  // the third of LibTorch's batch norm takes statistics for constants

/// What gradients are multiplied by before they are differentiated again.
at::Tensor seed_of_gradient(const layer_case& c, const std::string& of, int order, const std::vector<index_t>& sizes,
                            at::ScalarType e) {
  const auto salt = c.salt + std::hash<std::string>{}(of) % 1000 + static_cast<std::uint64_t>(order) * 100;
  return as_numbers_of(e, numbers_of(sizes, salt), salt);
}

/// A tensor of a worker, and what it is in one process.
struct piece {
  shared_layout_handle where;
  at::Tensor box;
  std::string serial;
  std::optional<nn::engine::state_tensor> state{};
};
struct ran {
  std::string refused;
  std::map<std::string, piece> pieces;
  std::map<std::string, std::vector<index_t>> state;
  std::map<std::string, at::ScalarType> elements;  ///< of the serial tensors
};

/// What is differentiated: an operand or a parameter.
struct leaf {
  std::string name;
  layout where;
  at::Tensor local;
  std::optional<nn::engine::state_tensor> state;
  at::Tensor seed_for(const layer_case& c, int order, int rank, int world) const {
    const at::ScalarType e = local.scalar_type();
    std::vector<index_t> sizes = extents_of(where);
    if (state) sizes = state->serial_sizes();
    at::Tensor whole = seed_of_gradient(c, name, order, sizes, e);
    if (state) whole = state->part_of(whole);
    return boxes_of_any(where, whole, world, 0,
                        c.salt + static_cast<std::uint64_t>(order))[static_cast<std::size_t>(rank)];
  }
};

std::string check_elements(const std::vector<tensor<dyn>>& y, const std::vector<element>& promised) {
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (y[k].type() != promised[k]) return fmt::format("result {} is of another element than was planned", k);
    if (y[k].local().scalar_type() != tessera::detail::scalar_type_of(promised[k]))
      return fmt::format("result {} has another element than it says", k);
  }
  return {};
}

ran differentiated(const layer_case& c, const nn::program& p, const std::vector<element>& promised,
                   const std::vector<tensors>& boxes, const std::shared_ptr<transport>& carrier) {
  const family& f = family_of(c);
  const int rank = carrier->rank();
  const auto team = std::make_shared<team_state>(carrier, c.operands[0].layout.mesh);
  ran s;
  std::vector<tensor<dyn>> x;
  std::vector<leaf> leaves;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const at::Tensor own = boxes[i][static_cast<std::size_t>(rank)].detach();
    own.set_requires_grad(has_gradient(own));
    x.emplace_back(team, c.operands[i].layout, own);
    if (own.requires_grad()) leaves.push_back({fmt::format("operand {}", i), c.operands[i].layout, own, {}});
  }
  std::unique_ptr<nn::dynamic_network> net;
  if (!f.function) {
    net = std::make_unique<nn::dynamic_network>(team, seed{c.salt}, p);
    net->train(c.training);
    const auto assign = [&](const nn::engine::state_tensor& one) {
      const std::string key = behind_the_number(one.key());
      const at::ScalarType e = one.stored().local().scalar_type();
      s.state[key] = one.serial_sizes();
      s.elements[key] = e;
      if (has_gradient(one.stored().local())) one.assign(one.part_of(state_of(c, key, one.serial_sizes(), e)));
    };
    net->each_parameter([&](const nn::parameter& w) {
      assign(w);
      if (w.stored().local().requires_grad())
        leaves.push_back({behind_the_number(w.key()), w.stored().layout(), w.stored().local(), w});
    });
    net->each_buffer(assign);
  }
  std::vector<tensor<dyn>> y;
  try {
    y = f.function ? f.function(c.options, x) : called(*net, x);
  } catch (const error& e) {
    s.refused = e.code();
    return s;
  }
  if (!f.function)
    if (const std::string why = check_elements(y, promised); !why.empty()) throw std::runtime_error(why);
  tensors ends, seeds;
  for (std::size_t k = 0; k < y.size(); ++k) {
    const std::string name = fmt::format("output {}", k);
    s.pieces[name] = {y[k].where(), y[k].local().detach().clone(), name};
    if (!y[k].local().requires_grad()) continue;
    const layout seeded = cotangent(y[k].layout());
    ends.push_back(y[k].local());
    seeds.push_back(boxes_of_any(seeded, seed_of_result(c, k, seeded, y[k].local().scalar_type()), carrier->size(), 0,
                                 c.salt + 3)[static_cast<std::size_t>(rank)]);
  }
  tensors of;
  for (const leaf& one : leaves) of.push_back(one.local);
  for (int order = 1; order <= orders && !ends.empty() && !of.empty(); ++order) {
    const auto found = torch::autograd::grad(ends, of, seeds, true, true, true);
    ends.clear();
    seeds.clear();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const std::string serial = fmt::format("derivative {} of {}", order, leaves[i].name);
      const std::string name = leaves[i].state ? serial + " " + leaves[i].state->path() : serial;
      s.pieces[name] = {team->intern(cotangent(leaves[i].where)),
                        found[i].defined() ? found[i].detach().clone() : at::zeros_like(of[i]), serial,
                        leaves[i].state};
      if (!found[i].defined() || !found[i].requires_grad()) continue;
      ends.push_back(found[i]);
      seeds.push_back(leaves[i].seed_for(c, order, rank, carrier->size()));
    }
  }
  return s;
}

/// The same in one process, as far as LibTorch goes.
std::map<std::string, at::Tensor> of_libtorch(const layer_case& c, const ran& split) {
  std::map<std::string, at::Tensor> all;
  serial_call call{c, {}, {}};
  std::vector<std::string> names;
  tensors leaves;
  const auto add = [&](const std::string& name, const at::Tensor& x) {
    if (!has_gradient(x)) return;
    leaves.push_back(x.set_requires_grad(true));
    names.push_back(name);
  };
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    call.x.push_back(operand_of(c, i).detach().clone());
    add(fmt::format("operand {}", i), call.x.back());
  }
  for (const auto& [key, sizes] : split.state) {
    const bool is_buffer = key.rfind("running_", 0) == 0 || key == "num_batches_tracked" || key == "draws";
    const at::ScalarType e = split.elements.at(key);
    call.state[key] = at::isIntegralType(e, true) ? at::zeros(sizes, e) : state_of(c, key, sizes, e);
    if (!is_buffer) add(key, call.state[key]);
  }
  try {
    const tensors y = family_of(c).serial(call);
    tensors ends, seeds;
    for (std::size_t k = 0; k < y.size(); ++k) {
      const std::string name = fmt::format("output {}", k);
      all[name] = y[k].detach();
      if (!y[k].requires_grad()) continue;
      ends.push_back(y[k]);
      seeds.push_back(seed_of_result(c, k, cotangent(split.pieces.at(name).where->layout()), y[k].scalar_type()));
    }
    for (int order = 1; order <= compared_orders && !ends.empty() && !leaves.empty(); ++order) {
      const auto found = torch::autograd::grad(ends, leaves, seeds, true, true, true);
      ends.clear();
      seeds.clear();
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        // LibTorch's zeros of some derivatives have no memory
        all[fmt::format("derivative {} of {}", order, names[i])] =
            found[i].defined() ? found[i].detach() + at::zeros_like(leaves[i]) : at::zeros_like(leaves[i]);
        if (!found[i].defined() || !found[i].requires_grad()) continue;
        ends.push_back(found[i]);
        seeds.push_back(seed_of_gradient(c, names[i], order, leaves[i].sizes().vec(), leaves[i].scalar_type()));
      }
    }
  } catch (const std::exception&) {  // it has no such kernel, or no such derivative
  }
  return all;
}

std::string apart_of_any(const layout& x, const tensors& boxes, const at::Tensor& wanted) {
  constexpr double near = 1e-11;
  if (!wanted.is_complex()) return apart(x, boxes, wanted, {}, near);
  for (const bool imaginary : {false, true}) {
    tensors parts;
    for (const at::Tensor& one : boxes) parts.push_back(one.defined() ? part_of_complex(one, imaginary) : one);
    if (std::string why = apart(x, parts, part_of_complex(wanted, imaginary), {}, near); !why.empty()) return why;
  }
  return {};
}

}  // namespace

std::optional<layer_case> of_element(layer_case c, element e) {
  bool has = false;
  for (tensor_value& x : c.operands) {
    if (!at::isFloatingType(tessera::detail::scalar_type_of(x.element))) continue;
    x.element = e;
    has = true;
  }
  if (has) c.options.erase("weights_as");
  else if (e != element::float64) return {};
  return c;
}

std::string judge_orders(const layer_case& c) {
  const family& f = family_of(c);
  for (const tensor_value& x : c.operands)
    if (!has_cotangent(x.element) && has_terms(x.layout)) return {};  // they have no terms of sixteenths
  nn::program p;
  std::vector<element> promised;
  try {
    if (!f.function)
      for (const nn::dynamic_flow& y : add_to(p, c)) {
        p.output(y);
        promised.push_back(p.value_of(y).element);
      }
  } catch (const error&) {
    return {};  // the fuzz of layers judges whether it is right to refuse
  }
  const int world = world_of(c.operands[0].layout.mesh);
  std::vector<tensors> boxes;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    boxes.push_back(boxes_of_any(c.operands[i].layout, operand_of(c, i), world, c.memory, c.salt + 7));
  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& carrier) {
        prepare_thread();
        ran all = differentiated(c, p, promised, boxes, carrier);
        carrier->synchronise();
        return all;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return "throws: " + run.errors().substr(0, 800);
  std::vector<const ran*> inside;
  for (const tensor_value& x : c.operands)
    for (int i = 0; i < x.layout.mesh.size(); ++i) inside.push_back(&run.of(x.layout.mesh.rank(x.layout.mesh.at(i))));
  const ran& first = *inside[0];
  if (!first.refused.empty()) {
    const bool right = f.function || std::find(f.refuses.begin(), f.refuses.end(), first.refused) != f.refuses.end();
    return right ? std::string() : "accepted, and refused as it runs: " + first.refused;
  }
  const element e = c.operands[0].element;
  const bool compared = e == element::float64 || e == element::complex128 || !has_cotangent(e);
  if (!compared) return {};
  for (const auto& [serial, whole] : of_libtorch(c, first))
    for (const auto& part : first.pieces) {
      const std::string& name = part.first;
      const piece& mine = part.second;
      if (mine.serial != serial) continue;
      tensors all;
      for (const auto& r : run.results)
        all.push_back(r->pieces.count(name) > 0 ? r->pieces.at(name).box : at::Tensor());
      for (const ran* s : inside)
        if (s->pieces.count(name) == 0) return name + ": workers come to different ones";
      const at::Tensor wanted = mine.state ? mine.state->part_of(whole) : whole;
      if (std::string why = apart_of_any(mine.where->layout(), all, wanted); !why.empty()) return name + ": " + why;
    }
  return {};
}

}  // namespace tessera::testing::fuzz
