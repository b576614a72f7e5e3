#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/network/program_parts.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Layers that are replaced while a network is put together, from values or from a file.

namespace replaced_layers {

struct lines : axis<2> {};
using grid = mesh<lines>;
using rows = tensor<partition<grid, blocks<lines>, whole>, shape_of<5, 6>, double>;

struct is_linear {
  constexpr bool operator()(std::string_view name) const { return name == "linear"; }
};
const auto linear_only = [](const nn::read_layer& l) { return std::string_view(l.name) == "linear"; };
const auto first_only = [](const nn::read_layer& l) { return l.path == "0"; };

const auto block = [](const nn::dynamic_flow& x) {
  return x | nn::linear_layer{.out = 6} | nn::relu{} | nn::under("inner", nn::linear_layer{.out = 6});
};
const nn::linear_layer wide{.out = 4, .bias = false};

/// The keys of a program's parameters, with their extents.
template <class Write>
std::map<std::string, std::vector<index_t>> keys_of(const team<grid>& t, const Write& write) {
  nn::program p;
  write(p);
  const nn::dynamic_network net(t, seed{3}, p);
  std::map<std::string, std::vector<index_t>> all;
  for (const auto& [key, w] : nn::state_of(net)) all[key] = w.sizes().vec();
  return all;
}

constexpr const char* as_text =
    R"({"inputs": [
  {"name": "x", "shape": [5, 6], "element": "double", "dims": [{"blocks": ["lines"]}, {"whole": true}]}],
  "nodes": [{"name": "0", "of": ["x"], "layer": "linear", "out_features": 6},
            {"name": "1", "of": ["0"], "function": "relu"},
            {"name": "2", "of": ["1"], "layer": "linear", "out_features": 3}],
  "outputs": ["2"]})";

}  // namespace replaced_layers

TEST_CASE("layers that are values are replaced in their places, by name or by path", "[runtime]") {
  using namespace replaced_layers;
  using keys = std::map<std::string, std::vector<index_t>>;
  const auto run = in_team<grid>([](team<grid>& t) {
    const auto as = [&](const auto& part) {
      return keys_of(t, [&](nn::program& p) { p.output(p.input<rows>() | part); });
    };
    const keys both{{"0.weight", {4, 6}}, {"inner.weight", {4, 4}}};
    const keys one{{"0.weight", {4, 6}}, {"inner.weight", {6, 4}}, {"inner.bias", {6}}};
    std::string wrong;
    const auto in_a_scope = [](const keys& all) {
      keys prefixed;
      for (const auto& [key, n] : all) prefixed["0." + key] = n;
      return prefixed;
    };
    const auto under_zero = [](const nn::read_layer& l) { return l.path == "0.0"; };
    if (as(nn::replaced(block, linear_only, wide)) != in_a_scope(both)) wrong += "by name; ";
    if (as(nn::replaced(block, under_zero, wide)) != in_a_scope(one)) wrong += "by path; ";
    if (as(nn::recomputed(nn::replaced(block, linear_only, wide))) != in_a_scope(both)) wrong += "run again; ";
    // what stands there instead is not replaced again, and may be a module
    const auto twice = [](const nn::dynamic_flow& x) { return x | nn::linear_layer{.out = 6} | wide; };
    const auto only = [](const nn::dynamic_flow& x) { return x | nn::linear_layer{.out = 2}; };
    if (as(nn::replaced(only, linear_only, twice)) !=
        keys{{"0.0.0.weight", {6, 6}}, {"0.0.0.bias", {6}}, {"0.0.1.weight", {4, 6}}})
      wrong += "by a module; ";
    // types in a program of values
    using typed = nn::replace<nn::chain<nn::linear<6>, nn::relu, nn::linear<6>>, is_linear, nn::linear<4, no_bias>>;
    if (as(typed{}) != keys{{"0.0.weight", {4, 6}}, {"0.2.weight", {4, 4}}}) wrong += "types; ";
    return wrong;
  });
  for (int r = 0; r < 2; ++r) CHECK(run.of(r) == "");
}

TEST_CASE("layers of a file are replaced while it is read, and compute what the others do", "[runtime]") {
  using namespace replaced_layers;
  const auto run = in_team<grid>([](team<grid>& t) -> std::string {
    nn::program p;
    p.replacing(first_only, wide, [&] { nn::read_network(p, as_text, grid::value, "a text"); });
    const nn::dynamic_network net(t, seed{3}, p);
    const auto state = nn::state_of(net);
    if (state.size() != 3 || state.at("0.weight").sizes() != at::IntArrayRef({4, 6})) return "parameters";
    const at::Tensor x = global_of({5, 6}, numbers{1});
    const at::Tensor y = full_tensor(net(distribute<rows>(t, x)));
    const at::Tensor wanted =
        at::linear(at::linear(x, state.at("0.weight")).relu(), state.at("1.weight"), state.at("1.bias"));
    return at::allclose(y, wanted, 1e-12, 1e-12) ? "" : "values";
  });
  for (int r = 0; r < 2; ++r) CHECK(run.of(r) == "");
}

TEST_CASE("a part that gives another number of results is refused, and the program stays as it was", "[refusal]") {
  using namespace replaced_layers;
  const auto codes = in_team<grid>([](team<grid>& t) {
    nn::program p;
    const auto x = p.input<rows>();
    const auto two = [](const nn::dynamic_flow& f) { return flows{f | wide, f | wide}; };
    std::string all = told([&] { x | nn::replaced(block, linear_only, two); });
    p.output(x | nn::linear_layer{.out = 6});
    const nn::dynamic_network net(t, seed{3}, p);
    return all + fmt::format(" {}", nn::state_of(net).size());
  });
  for (int r = 0; r < 2; ++r) CHECK(codes.of(r) == "tessera.network.results 2");
}
