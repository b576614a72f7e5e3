#include "tests/support/asked_memory.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/layer_table.hpp>

#include <functional>
#include <map>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;
using json = engine::file::json;

// Every function that files know, and those that they do not, weighed: one that somebody adds to the table is weighed
// too, or has no operands here and fails.

namespace {

struct up : axis<2> {};
struct across : axis<2> {};
using four_workers = mesh<up, across>;
struct one : axis<1> {};
struct another : axis<1> {};
using one_worker = mesh<one, another>;

/// What an operand is made of.
enum class numbers_are : signed char { any, probabilities, labels, signs, chosen };

struct operand_here {
  std::vector<index_t> extents{48, 40};
  numbers_are what = numbers_are::any;
  std::vector<bool> whole{};  ///< dimensions that are not cut
  bool repeated = false;      ///< along these
};
constexpr index_t rows = 48, columns = 40;
const operand_here usual{}, likely{{rows, columns}, numbers_are::probabilities},
    by_rows{{rows, columns}, numbers_are::any, {false, true}}, named{{rows}, numbers_are::labels},
    signs{{rows}, numbers_are::signs}, of_classes{{columns}, numbers_are::any, {true}};

layout lying(const mesh_value& mesh, const operand_here& x) {
  layout y;
  y.mesh = mesh;
  for (const index_t n : x.extents) {
    dimension d;
    d.extent = n;
    y.dims.push(d);
  }
  for (int a = 0; a < mesh.axes.count; ++a)
    y.placements.push(x.repeated ? axis_placement() : axis_placement{placement::invariant});
  for (int a = 0; a < mesh.axes.count && a < y.dims.count; ++a) {
    if (mesh.axes[a].extent == 1 || (!x.whole.empty() && x.whole[static_cast<std::size_t>(a)])) continue;
    y.placements[a] = {};
    y.cut_by(a, a);
  }
  return y;
}

at::Tensor box_of(const operand_here& x, const layout& lies, at::ScalarType e, int rank) {
  const std::vector<index_t> sizes = [&] {
    std::vector<index_t> n;
    for (int d = 0; d < lies.dims.count; ++d) n.push_back(size_of(held_by(lies, rank)[d]));
    return n;
  }();
  const at::Tensor some = at::arange(at::IntArrayRef(sizes).size() == 0 ? 1 : c10::multiply_integers(sizes), e);
  const at::Tensor small = (some.remainder(7) / 8 + 0.0625).reshape(sizes);
  switch (x.what) {
    case numbers_are::labels: return some.remainder(columns).to(at::kLong).reshape(sizes);
    case numbers_are::chosen: return some.remainder(3).to(at::kLong).reshape(sizes) - 1;
    case numbers_are::signs: return (some.remainder(2) * 2 - 1).reshape(sizes);
    default: return small;
  }
}

element element_here(const operand_here& x, element e) {
  return x.what == numbers_are::labels || x.what == numbers_are::chosen ? element::int64 : e;
}

/// A program of one node, its operands and what it is called.
struct weighed {
  std::string name;
  std::vector<operand_here> operands;
  std::function<std::vector<nn::dynamic_flow>(const std::vector<nn::dynamic_flow>&)> add;
};

template <class World>
std::string weighs_otherwise(const weighed& f, element e) {
  nn::program p;
  std::vector<layout> lies;
  std::vector<nn::dynamic_flow> x;
  std::vector<tensor_value> values;
  for (const operand_here& each : f.operands) {
    lies.push_back(lying(World::value, each));
    values.push_back({lies.back(), element_here(each, e)});
    x.push_back(p.input(values.back()));
  }
  try {
    for (const nn::dynamic_flow& y : f.add(x)) p.output(y);
  } catch (const error& why) {
    return fmt::format("{} of {}: no operands for it are known here: {}\n", f.name, name_of(e), why.what());
  }
  const memory_value counted = peak_memory_of(p.finish().view, std::span<const tensor_value>(values), 1, true);
  const auto run = in_team<World>([&](team<World>& t) {
    const nn::dynamic_network net(t.state(), seed{1}, p);
    std::vector<at::Tensor> boxes;
    for (std::size_t i = 0; i < lies.size(); ++i)
      boxes.push_back(box_of(f.operands[i], lies[i], tessera::detail::scalar_type_of(e), t.rank()));
    return asked_by(net, t.state(), lies, boxes);
  });
  if (!run.well()) return fmt::format("{} of {}: {}\n", f.name, name_of(e), run.errors());
  asked_memory most;
  for (const auto& r : run.results) {
    most.forward = std::max(most.forward, r->forward);
    most.training = std::max(most.training, r->training);
  }
  const std::string beyond = asked_beyond(most, counted);
  return beyond.empty() ? "" : fmt::format("{} of {} on {}: {}\n", f.name, name_of(e), World::value.size(), beyond);
}

/// How functions are called that want more than operands which all lie alike.
struct called_so {
  json options = json::object();
  std::vector<operand_here> operands{};
};
const std::map<std::string, std::vector<called_so>>& known_calls() {
  const std::vector<operand_here> sequences(3, {{4, 16, 32}, numbers_are::any, {false, true}});
  const std::vector<operand_here> images(3, {{4, 8, 8, 32}, numbers_are::any, {false, true, true}});
  const auto over = [](int d) { return json{{"dim", d}}; };
  static const std::map<std::string, std::vector<called_so>> all{
      {"attention", {{{{"heads", 2}}, sequences}, {{{"heads", 2}, {"is_causal", true}}, sequences}}},
      {"neighbourhood_attention", {{{{"heads", 2}, {"kernel_size", 3}}, images}}},
      {"concat", {{over(0), {by_rows, by_rows}}, {over(1), {by_rows, by_rows}}}},
      {"pad_globe", {{{{"rows", 1}}, {{{4, 16, 32}, numbers_are::any, {false, true, true}}}}}},
      {"softmax", {{over(0), {usual}}, {over(1), {by_rows}}}},
      {"softmin", {{over(0), {usual}}, {over(1), {by_rows}}}},
      {"log_softmax", {{over(0), {usual}}, {over(1), {by_rows}}}},
      {"normalize", {{over(0), {usual}}, {over(1), {by_rows}}}},
      {"load_balance_loss",
       {{{}, {by_rows, {{rows, columns}, numbers_are::chosen, {false, true}}}},
        {{{"of_sigmoids", true}}, {by_rows, {{rows, columns}, numbers_are::chosen, {false, true}}}}}},
      {"router_z_loss", {{{}, {by_rows}}}},
      {"angular_margin", {{{}, {by_rows, named}}, {{{"easy", true}}, {usual, named}}}},
      {"poisson_nll_loss",
       {{{}, {usual, usual}}, {{{"log_input", false}}, {likely, likely}}, {{{"full", true}}, {usual, usual}}}},
      {"kl_div", {{{}, {usual, likely}}, {{{"log_target", true}}, {usual, usual}}}},
      {"binary_cross_entropy", {{{}, {likely, likely}}, {{}, {likely, likely, usual}}}},
      {"cosine_embedding_loss", {{{}, {by_rows, by_rows, signs}}, {{}, {usual, usual, signs}}}},
      {"nll_loss", {{{}, {usual, named}}, {{}, {by_rows, named, of_classes}}}},
      {"cross_entropy",
       {{{}, {usual, named}},
        {{}, {by_rows, named, of_classes}},
        {{{"label_smoothing", 0.1}}, {usual, named}},
        {{{"label_smoothing", 0.1}}, {by_rows, named, of_classes}},
        {{}, {usual, likely}},
        {{{"label_smoothing", 0.1}}, {usual, likely, of_classes}}}}};
  return all;
}

bool has_field(const nn::engine::node_kind& k, const std::string& name) {
  return std::any_of(k.fields.begin(), k.fields.end(), [&](const auto& f) { return f.name == name; });
}

std::vector<weighed> functions_of_files(const nn::layer_table& table) {
  std::vector<weighed> all;
  for (const nn::engine::node_kind& k : table.functions()) {
    std::vector<called_so> calls;
    if (const auto known = known_calls().find(k.name); known != known_calls().end()) calls = known->second;
    else
      for (int n = k.least; n <= k.most; ++n) {
        called_so c{json::object(), std::vector<operand_here>(static_cast<std::size_t>(n))};
        if (has_field(k, "number")) c.options["number"] = 0.5;
        calls.push_back(c);
        if (n != 2 || has_field(k, "reduction")) continue;
        for (const std::vector<index_t>& repeated : {std::vector<index_t>{1, columns}, std::vector<index_t>{rows, 1}}) {
          c.operands[1] = {repeated, numbers_are::any, {repeated[0] == 1, repeated[1] == 1}, true};
          calls.push_back(c);
        }
      }
    for (const called_so& c : calls)
      for (const char* by : {"none", "mean", "sum", "batchmean"}) {
        json node = c.options;
        node["function"] = k.name;
        if (has_field(k, "reduction")) node["reduction"] = by;
        const std::string name = node.dump();
        all.push_back({name, c.operands, [&table, node](const std::vector<nn::dynamic_flow>& x) {
                         const auto lists = std::make_shared<engine::file::lists>();
                         x[0].in->keep(lists);
                         return table.add(
                             nn::node_options(engine::file::json_cursor(node, "case"), x[0].layout().mesh, *lists), x);
                       }});
        if (!has_field(k, "reduction")) break;
      }
  }
  return all;
}

#define CALLED(operands, ...) \
  {#__VA_ARGS__, operands, [](const std::vector<nn::dynamic_flow>& x) { return std::vector{__VA_ARGS__}; }}
std::vector<weighed> functions_of_programs() {
  const std::vector<operand_here> cut{usual}, whole{by_rows}, sequences{{{8, 12, 20}, numbers_are::any, {false, true}}},
      two{by_rows, by_rows},
      products{{{rows, columns}, numbers_are::any, {false, true}, true},
               {{columns, 24}, numbers_are::any, {true, true}, true}},
      looking{{{rows, columns}, numbers_are::any, {false, true}, true}, {{7}, numbers_are::labels, {true}, true}},
      looking_along{by_rows, {{rows, columns}, numbers_are::labels, {false, true}}}, just_named{named},
      scaled{{{1, columns}, numbers_are::any, {true, true}}, {{rows, columns}, numbers_are::any, {true, true}}};
  return {CALLED(cut, sum<0>(x[0])),
          CALLED(cut, sum(x[0])),
          CALLED(cut, mean<0>(x[0])),
          CALLED(whole, mean(x[0])),
          CALLED(cut, amax<0>(x[0])),
          CALLED(whole, amin<1>(x[0])),
          CALLED(cut, prod_over<0>(x[0])),
          CALLED(whole, prod_over(x[0])),
          CALLED(whole, any_over<1>(x[0])),
          CALLED(cut, all_over(x[0])),
          CALLED(cut, argmax<0>(x[0])),
          CALLED(whole, argmin<1>(x[0])),
          CALLED(cut, var<0>(x[0])),
          CALLED(whole, var(x[0])),
          CALLED(cut, norm<0>(x[0])),
          CALLED(whole, norm(x[0], 3)),
          CALLED(whole, norm<1>(x[0], 1)),
          CALLED(cut, norm<1>(x[0], 0.5)),
          CALLED(cut, norm<0>(x[0], std::numeric_limits<double>::infinity())),
          CALLED(whole, rotary<0>(x[0])),
          CALLED(cut, (pad<0, 2, 3>(x[0], 1))),
          CALLED(whole, (pad<1, 4, 8>(x[0]))),
          CALLED(whole, cumsum<1>(x[0])),
          CALLED(cut, (permute<1, 0>(x[0]))),
          CALLED(cut, (transpose<0, 1>(x[0]))),
          CALLED(cut, unsqueeze<0>(x[0])),
          CALLED(sequences, (flatten<1, 2>(x[0]))),
          CALLED(whole, (unflatten<1, 4>(x[0]))),
          CALLED(cut, (slice<0, 4, 40>(x[0]))),
          CALLED(whole, exp(slice<1, 4, 40>(x[0]))),
          CALLED(cut, where(gt(x[0], 0.5), x[0], x[0])),
          CALLED(cut, clamp(x[0], 0.25, 0.5)),
          CALLED(cut, cast<float>(x[0])),
          CALLED(cut, cast<double>(x[0])),
          CALLED(whole, cast<std::int64_t>(x[0])),
          CALLED(products, matmul(x[0], x[1])),
          CALLED(whole, sort<1>(x[0]).values),
          CALLED(whole, (topk<1, 5>(x[0]).values)),
          CALLED(looking, index_select<1>(x[0], x[1])),
          CALLED(looking_along, take_along<1>(x[0], x[1])),
          CALLED(looking_along, (scatter_add<1, 40>(x[0], x[1]))),
          CALLED(just_named, one_hot<columns>(x[0])),
          CALLED(scaled, expand<0, 48>(x[0]) * x[1]),
          CALLED(two, where(gt(x[0], 0.5), x[0], x[1])),
          CALLED(cut, scale_gradient(x[0], 0.5)),
          CALLED(two, x[0] - x[1])};
}

}  // namespace

TEST_CASE("every function of files and programs asks for no more memory than is counted", "[plan][runtime]") {
  const nn::layer_table table;
  std::vector<weighed> all = functions_of_files(table);
  const std::vector<weighed> others = functions_of_programs();
  all.insert(all.end(), others.begin(), others.end());
  std::string wrong;
  int functions = 0;
  for (const weighed& f : all)
    for (const element e : {element::float64, element::float32})
      if (tried(functions++)) wrong += weighs_otherwise<one_worker>(f, e) + weighs_otherwise<four_workers>(f, e);
  CHECK(wrong == "");
}
