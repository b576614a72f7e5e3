#include "crew.hpp"
#include "one_layer.hpp"
#include "tests/support/in_workers.hpp"

#include <torch/optim/sgd.h>

#include <algorithm>
#include <set>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

/// A tensor on one worker, and what it is in one process: a tensor of this name, or the part of it that a parameter is.
struct part {
  shared_layout_handle where;
  at::Tensor box;
  std::string serial;
  std::optional<nn::engine::state_tensor> state{};
};

/// What one worker comes to.
struct came_to {
  std::string refused;  ///< the code, where it refused; nothing else then but what is kept
  bool kept = true;     ///< what a refusal may not change
  /// outputs, gradients, parameters after a step, buffers, by what messages call them
  std::map<std::string, part> parts;
  std::map<std::string, std::vector<index_t>> state;  ///< the extents of the serial tensors, by key
  std::map<std::string, at::ScalarType> elements;     ///< of these
};

/// What one process comes to.
using named_tensors = std::map<std::string, at::Tensor>;

const torch::optim::SGDOptions& step_options() {
  static const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.125).momentum(0.5).weight_decay(0.0625);
  return options;
}

/// Whether workers hold what windows need.
bool has_windows(const layout& x) {
  return std::any_of(x.dims.begin(), x.dims.end(),
                     [](const dimension& d) { return d.kind != cover::tiled && !d.tiles(); });
}

at::Tensor gradient_of(const at::Tensor& x) { return x.grad().defined() ? x.grad() : at::zeros_like(x); }

/// A tensor on a device, which lies there as it does here.
at::Tensor there(const at::Tensor& x, c10::Device device) {
  return device.is_cpu() ? x : at::empty_strided(x.sizes(), x.strides(), x.options().device(device)).copy_(x);
}

/// A case on one worker, whose tensors lie where its transport serves them.
came_to worker(const layer_case& c, const nn::program& p, const std::vector<tensors>& boxes,
               const std::shared_ptr<transport>& carrier) {
  const family& f = family_of(c);
  const tensor_device place = carrier->traits().tensors;
  const c10::Device device(static_cast<c10::DeviceType>(place.kind), static_cast<c10::DeviceIndex>(place.index));
  const auto r = static_cast<std::size_t>(carrier->rank());
  // in half of the cases edges come behind the rest, whatever their share
  set_edges_apart(*carrier, c.salt % 2 == 0 ? 0 : 8);
  const auto team = std::make_shared<team_state>(carrier, c.operands[0].layout.mesh);
  came_to s;
  std::vector<tensor<dyn>> x;
  tensors given;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    given.push_back(there(boxes[i][r].detach(), device).set_requires_grad(has_gradient(boxes[i][r])));
    x.emplace_back(team, c.operands[i].layout, given[i]);
  }
  std::unique_ptr<nn::dynamic_network> net;
  std::vector<nn::engine::state_tensor> parameters, buffers;
  if (!f.function) {
    net = std::make_unique<nn::dynamic_network>(team, seed{c.salt}, p);
    net->train(c.training);
    net->each_parameter([&](const nn::parameter& w) { parameters.push_back(w); });
    net->each_buffer([&](const nn::buffer& b) { buffers.push_back(b); });
  }
  tensors before;
  for (const auto* all : {&parameters, &buffers})
    for (const nn::engine::state_tensor& one : *all) {
      const std::string key = behind_the_number(one.key());
      const at::ScalarType own = one.stored().local().scalar_type();
      s.state[key] = one.serial_sizes();
      s.elements[key] = own;
      if (has_gradient(one.stored().local())) one.assign(one.part_of(state_of(c, key, one.serial_sizes(), own)));
      before.push_back(one.stored().local().detach().clone());
    }
  std::vector<tensor<dyn>> y;
  try {
    y = f.function ? f.function(c.options, x) : called(*net, x);
  } catch (const error& e) {
    s.refused = e.code();
    std::size_t i = 0;
    for (const auto* all : {&parameters, &buffers})
      for (const nn::engine::state_tensor& one : *all) s.kept = s.kept && at::equal(one.stored().local(), before[i++]);
    return s;
  }
  const auto add = [&](const std::string& name, const shared_layout_handle& where, const at::Tensor& box) {
    s.parts[name] = {where, box.cpu(), name};
  };
  const auto back = [&](const tensor<dyn>& of) { return team->intern(cotangent(of.layout())); };
  tensors ends, seeds;
  for (std::size_t k = 0; k < y.size(); ++k) {
    add(fmt::format("output {}", k), y[k].where(), y[k].local().detach().clone());
    if (!y[k].local().requires_grad()) continue;
    const layout seeded = cotangent(y[k].layout());
    ends.push_back(y[k].local());
    const at::ScalarType own = y[k].local().scalar_type();
    const tensors all =
        at::isComplexType(own)
            ? boxes_of_any(seeded, seed_of_result(c, k, seeded, own), carrier->size(), 0, c.salt + 3)
            : boxes_of(seeded, y[k].type(), value_of_seed(c, k, seeded), carrier->size(), 0, c.salt + 3);
    seeds.push_back(all[r].to(device));
    if (y[k].local().device() != device) throw error(refusal{code::wrong_device}, "a result");
  }
  if (!ends.empty()) torch::autograd::backward(ends, seeds);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (given[i].requires_grad()) add(fmt::format("gradient of operand {}", i), back(x[i]), gradient_of(given[i]));
  tensors stepped;
  for (const nn::engine::state_tensor& w : parameters) {
    const at::Tensor& local = w.stored().local();
    s.parts["gradient of " + w.path()] = {back(w.stored()), gradient_of(local).clone().cpu(),
                                          "gradient of " + behind_the_number(w.key()), w};
    stepped.push_back(local);
  }
  if (!stepped.empty()) torch::optim::SGD(stepped, step_options()).step();
  for (const auto* all : {&parameters, &buffers})
    for (const nn::engine::state_tensor& one : *all)
      s.parts[one.path()] = {one.stored().where(), one.stored().local().detach().cpu(), behind_the_number(one.key()),
                             one};
  return s;
}

/// The element of so precise numbers that are complex where these are.
at::ScalarType as_precise(at::ScalarType precision, at::ScalarType of) {
  return at::isComplexType(of) ? at::toComplexType(precision) : precision;
}

/// A case in one process, its numbers as `precision`; gradients of what a split run gives.
struct serial_result {
  std::string refused;
  named_tensors all;
};
serial_result serial(const layer_case& c, at::ScalarType precision, const came_to& split,
                     const std::function<tensors(const serial_call&)>& gives) {
  serial_call call{c, {}, {}};
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const at::ScalarType own = tessera::detail::scalar_type_of(c.operands[i].element);
    const bool differs = is_real(own) || at::isComplexType(own);
    const at::Tensor all = at::isComplexType(own) ? operand_of(c, i) : value_of_operand(c, i);
    call.x.push_back(all.to(differs ? as_precise(precision, own) : own).set_requires_grad(differs));
  }
  serial_result result;
  tensors parameters;
  std::vector<std::string> keys;
  for (const auto& [key, sizes] : split.state) {
    const bool is_buffer =
        key.rfind("running_", 0) == 0 || key == "num_batches_tracked" || key == "draws" || key == "key";
    const bool counts = is_buffer && key.rfind("running_", 0) != 0;
    at::Tensor one =
        counts ? at::zeros(sizes, at::kLong) : state_of(c, key, sizes, as_precise(precision, split.elements.at(key)));
    for (const auto& [path, drawn] : split.parts)
      if (key == "key" && drawn.serial == key) one = drawn.box;
    if (!is_buffer) {
      parameters.push_back(one.set_requires_grad(true));
      keys.push_back(key);
    }
    call.state[key] = one;
  }
  tensors y;
  try {
    y = gives(call);
    tensors ends, seeds;
    for (std::size_t k = 0; k < y.size(); ++k)
      if (y[k].requires_grad()) {
        ends.push_back(y[k]);
        const layout& lies = split.parts.at(fmt::format("output {}", k)).where->layout();
        seeds.push_back(seed_of_result(c, k, lies, y[k].scalar_type()));
      }
    if (!ends.empty()) torch::autograd::backward(ends, seeds);
  } catch (const c10::Error& e) {
    result.refused = e.what_without_backtrace();
    return result;
  }
  for (std::size_t k = 0; k < y.size(); ++k) result.all[fmt::format("output {}", k)] = y[k].detach();
  for (std::size_t i = 0; i < call.x.size(); ++i)
    if (call.x[i].requires_grad()) result.all[fmt::format("gradient of operand {}", i)] = gradient_of(call.x[i]);
  for (std::size_t i = 0; i < keys.size(); ++i)
    result.all["gradient of " + keys[i]] = gradient_of(parameters[i]).clone();
  if (!parameters.empty()) torch::optim::SGD(parameters, step_options()).step();
  for (const auto& [key, one] : call.state) result.all[key] = one.detach();
  return result;
}

}  // namespace

tensors on_one_worker(const layer_case& c, const tensors& x) {
  layer_case one = c;
  for (tensor_value& operand : one.operands) {
    layout whole;
    whole.mesh.axes.push({text{"one"}, 1, 1});
    whole.placements.resize(1);
    for (const dimension& d : operand.layout.dims)
      whole.dims.push({}), whole.dims[whole.dims.count - 1].extent = d.extent;
    operand = {whole, element::float64};
  }
  nn::program p;
  for (const nn::dynamic_flow& y : add_to(p, one)) p.output(y);
  const auto run = in_world(1, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, one.operands[0].layout.mesh);
    nn::dynamic_network net(team, seed{c.salt}, p);
    net.train(c.training);
    std::vector<tensor<dyn>> given;
    for (std::size_t i = 0; i < x.size(); ++i) given.emplace_back(team, one.operands[i].layout, x[i]);
    tensors y;
    for (const tensor<dyn>& each : called(net, given)) y.push_back(each.local().detach());
    return y;
  });
  return run.of(0);
}

at::Tensor serial_call::operator[](const char* key) const {
  const auto found = state.find(key);
  return found == state.end() ? at::Tensor{} : found->second;
}

std::string text_of(const layer_case& c) {
  std::string s = fmt::format("{} {} {} memory {} salt {}", c.layer, c.options.dump(), c.training ? "train" : "eval",
                              c.memory, c.salt);
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    s += fmt::format(" {} {} {}", i == 0 ? "of" : "and", name_of(c.operands[i].element), text_of(c.operands[i].layout));
  return s;
}

std::optional<layer_case> parse_layer(const std::string& line) {
  std::istringstream words(line);
  std::string options, mode, memory, salt, word;
  layer_case c;
  if (!(words >> c.layer >> options >> mode >> memory >> c.memory >> salt >> c.salt >> word)) return {};
  if ((mode != "train" && mode != "eval") || memory != "memory" || salt != "salt" || word != "of") return {};
  c.training = mode == "train";
  c.options = file::json::parse(options, nullptr, false);
  if (!c.options.is_object()) return {};
  while (words >> word) {
    const auto e = element_named(word);
    tensor_value x;
    if (!e || !detail::read_layout(words, "and", x.layout)) return {};
    x.element = *e;
    c.operands.push_back(x);
  }
  for (const std::string& known : layer_names())
    if (known == c.layer && !c.operands.empty()) return c;
  return {};
}

bool legal(const layer_case& c) {
  for (const tensor_value& x : c.operands)
    if (!check(x.layout.mesh).ok() || !check(x.layout).ok() || !(x.layout.mesh == c.operands[0].layout.mesh))
      return false;
  return true;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> all;
  for (const family& f : families()) all.push_back(f.name);
  return all;
}

roller::roller(dice& with, layer_case& into) : d(with), c(into) {
  c.salt = d.next() % 1'000'000;
  c.memory = d.roll(0, 3);
  c.training = !d.once_in(4);
  e = std::array{element::float64, element::float64, element::float32, element::float16,
                 element::bfloat16}[static_cast<std::size_t>(d.roll(0, 4))];
  do mesh = roll_any_mesh(d);
  while (world_of(mesh) > 7 || mesh.size() > 6);
}

std::vector<index_t> roller::numbers(int count, int lo, int hi) {
  std::vector<index_t> all;
  for (int i = 0; i < count; ++i) all.push_back(roll(lo, hi));
  return all;
}

std::vector<std::string> roller::axes(int one_in) {
  std::vector<std::string> names;
  for (const axis_value& a : mesh.axes)
    if (once_in(one_in)) names.emplace_back(a.name.data, static_cast<std::size_t>(a.name.size));
  return names;
}

file::json roller::partition(int dims) {
  using json = file::json;
  static_vector<index_t, max_dimensions> extents;
  for (int i = 0; i < dims; ++i) extents.push(9);
  const layout x = roll_layout(d, mesh, extents, {true, true, true, false});
  const auto name = [&](int a) {
    return std::string(x.mesh.axes[a].name.data, static_cast<std::size_t>(x.mesh.axes[a].name.size));
  };
  json covers = json::array(), meanings = json::object();
  for (int k = 0; k < dims; ++k) {
    json cutters = json::array();
    for (int level = 0; level < x.levels(k); ++level) cutters.push_back(name(x.cutter(k, level)));
    if (cutters.empty()) covers.push_back({{"whole", true}});
    else covers.push_back({{"blocks", cutters}, {"grain", x.dims[k].grain()}});
  }
  for (int a = 0; a < x.placements.count; ++a) {
    const axis_placement& r = x.placements[a];
    if (r.kind == placement::partial) meanings[name(a)] = "partial";
    if (r.kind == placement::invariant) meanings[name(a)] = "invariant";
    if (r.kind == placement::on) meanings[name(a)] = {{"on", r.coordinate}};
  }
  return {{"dims", covers}, {"meaning", meanings}};
}

void roller::say_cuts(int dims) {
  if (once_in(3)) {
    std::vector<std::string> in, out;
    for (const std::string& name : axes(2)) (once_in(2) ? in : out).push_back(name);
    if (!in.empty()) say("cut_in", in);
    if (!out.empty()) say("cut_out", out);
    if (!out.empty() && once_in(4)) say("grain_out", roll(1, 3));
  }
  if (once_in(5)) say("output_as", partition(dims));
  if (once_in(6)) say("weights_as", one_of({"double", "float"}));
}

void roller::say_stored() {
  if (!once_in(4)) return;
  const auto over = axes(2);
  if (over.empty()) return;
  say("sharded_over", over);
  if (once_in(3)) say("gathered", "once");
}

void roller::take(const std::vector<index_t>& extents, element of, bool linear) {
  static_vector<index_t, max_dimensions> n;
  for (const index_t k : extents) n.push(k);
  layout x = roll_layout(d, mesh, n, {linear || once_in(20), true, true, once_in(12)});
  for (int k = 0; k < x.dims.count; ++k) {  // what is left of a longer dimension, each worker with what it held
    dimension& dim = x.dims[k];
    if (x.levels(k) == 0 || dim.kind != cover::tiled || dim.bounds != nullptr || !once_in(6)) continue;
    const index_t begin = roll(0, 2);
    dim.extent += begin + roll(0, 2);
    dim.narrow(begin, n[k]);
  }
  take(x, of);
}

void roller::take(const layout& x, element of) { c.operands.push_back({kept(x), of}); }

layer_case roll_layer(const std::string& layer, dice& d) {
  layer_case c;
  c.layer = layer;
  roller r{d, c};
  family_of(c).roll(r);
  return c;
}

std::string judge_layer(const layer_case& c, long& refused, const carried& over) {
  const family& f = family_of(c);
  const auto not_taken = [&](const std::string& code, const std::string& text) -> std::string {
    ++refused;
    const auto some = [&](bool (*is)(const layout&)) {
      return std::any_of(c.operands.begin(), c.operands.end(), [&](const tensor_value& x) { return is(x.layout); });
    };
    const auto among = [&](std::initializer_list<const reason*> reasons) {
      return std::any_of(reasons.begin(), reasons.end(), [&](const reason* one) { return code == one->code; });
    };
    bool right = std::find(f.refuses.begin(), f.refuses.end(), code) != f.refuses.end();
    if (among({&code::nonlinear_on_partial, &code::replicate_added_to_partial})) right = right && some(has_terms);
    if (among({&code::not_a_tiling, &code::window_without_halo, &code::haloed_summed, &code::dimension_needed_whole,
               &code::split_through_part}))
      right = right || some(has_windows);
    return right ? std::string() : fmt::format("refused by {}: {}", code, text);
  };
  nn::program p;
  try {
    for (const nn::dynamic_flow& y : f.function ? std::vector<nn::dynamic_flow>{} : add_to(p, c)) p.output(y);
  } catch (const error& e) {
    return not_taken(e.code(), e.what());
  }
  const int world = world_of(c.operands[0].layout.mesh);
  std::vector<tensors> boxes;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    boxes.push_back(is_complex(c.operands[i].element)
                        ? boxes_of_any(c.operands[i].layout, operand_of(c, i), world, c.memory, c.salt + 7)
                        : boxes_of(c.operands[i].layout, c.operands[i].element, value_of_operand(c, i), world, c.memory,
                                   c.salt + 7));
  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& host) {
        prepare_thread();
        const std::shared_ptr<transport> carrier = over(host);
        came_to all = worker(c, p, boxes, carrier);
        carrier->synchronise();
        carrier->close();  // what it came to may keep it
        return all;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return "throws: " + run.errors().substr(0, 800);
  // Workers outside of the mesh hold nothing and are told nothing; those at a coordinate where no operand lies are told
  // what all can know, and not that an index is wrong.
  std::vector<const came_to*> inside;
  std::set<const came_to*> holders;
  for (const tensor_value& x : c.operands)
    for (int i = 0; i < x.layout.mesh.size(); ++i) {
      inside.push_back(&run.of(x.layout.mesh.rank(x.layout.mesh.at(i))));
      if (tessera::engine::cutting{x.layout}.holds(x.layout.mesh.at(i))) holders.insert(inside.back());
    }
  const came_to& first =
      **std::find_if(inside.begin(), inside.end(), [&](const came_to* s) { return holders.contains(s); });
  for (const came_to* s : inside) {
    if (s->refused != first.refused && (holders.contains(s) || !s->refused.empty()))
      return fmt::format("workers end differently: \"{}\" and \"{}\"", first.refused, s->refused);
    if (!s->kept) return "a refusal changes what is kept";
  }
  if (!first.refused.empty()) return not_taken(first.refused, "while it runs");

  const serial_result exact = serial(c, at::kDouble, first, f.serial);
  if (!exact.refused.empty()) return "accepted: LibTorch refuses: " + exact.refused;
  std::vector<serial_result> in_float{serial(c, at::kFloat, first, f.serial)};
  if (f.likewise) in_float.push_back(serial(c, at::kFloat, first, f.likewise));
  double epsilon = 0;  // of what is computed with: weights may be wider than operands
  for (const tensor_value& x : c.operands)
    epsilon = std::max(epsilon, epsilon_of(tessera::detail::scalar_type_of(x.element)));
  for (const auto& part : first.parts) {
    const auto& name = part.first;  // no binding: clang 14 lets no lambda hold one
    const auto& mine = part.second;
    tensors all;
    for (const auto& r : run.results) all.push_back(r->parts.count(name) > 0 ? r->parts.at(name).box : at::Tensor());
    for (const came_to* s : inside)
      if (s->parts.count(name) == 0 || !(s->parts.at(name).where->layout() == mine.where->layout()))
        return name + ": workers come to different ones";
    const auto wanted = [&](const serial_result& of) {
      const at::Tensor& whole = of.all.at(mine.serial);
      return mine.state ? mine.state->part_of(whole) : whole;
    };
    if (exact.all.count(mine.serial) == 0) return name + ": the serial layer has none";
    tensors rough;
    for (const serial_result& one : in_float) rough.push_back(wanted(one));
    const at::Tensor whole = wanted(exact);
    for (int i = 0; i < (whole.is_complex() ? 2 : 1); ++i) {
      const auto seen = [&](const at::Tensor& x) { return x.is_complex() ? part_of_complex(x, i == 1) : x; };
      tensors mine_of, rough_of;
      for (const at::Tensor& one : all) mine_of.push_back(one.defined() ? seen(one) : one);
      for (const at::Tensor& one : rough) rough_of.push_back(seen(one));
      if (std::string why = apart(mine.where->layout(), mine_of, seen(whole), rough_of, epsilon); !why.empty())
        return name + ": " + why;
    }
  }
  return {};
}

}  // namespace tessera::testing::fuzz
