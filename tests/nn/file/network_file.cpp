#include "tests/support/built_program.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

TEST_CASE("a file that is no network is refused at its place, and the program stays as it was", "[refusal]") {
  const mesh_value grid = value_of<built<2, 2>::image>.layout.mesh;
  const std::string good = as_file;
  nn::program p;
  const auto refused = [&](const std::string& was, const std::string& is, const std::string& code,
                           const std::string& place) {
    std::string text = good;
    REQUIRE(text.find(was) != std::string::npos);
    text.replace(text.find(was), was.size(), is);
    const std::string said = said_of([&] { nn::read_network(p, text, grid, "network.json"); });
    INFO(said);
    CHECK(said.find("[" + code + "]") == 0);
    CHECK(said.find(place) != std::string::npos);
  };
  refused("\"nodes\"", "\"nods\"", "tessera.file.written", "network.json: has a field \"nods\"");
  refused("\"first\"]\n}", "\"first\"]", "tessera.file.written", "network.json: is not JSON");
  refused("\"layer\": \"max_pool\"", "\"layer\": \"max_pol\"", "tessera.program.layer",
          "network.json.nodes[8]: max_pol");
  refused("\"function\": \"tanh\"", "\"function\": \"tan_h\"", "tessera.program.layer",
          "network.json.nodes[14]: tan_h");
  refused("\"of\": [\"skip\", \"c\"]", "\"of\": [\"skip\", \"z\"]", "tessera.program.value",
          "network.json.nodes[5]: z");
  refused("\"of\": [\"skip\", \"c\"]", "\"of\": [\"skip\", \"scores\"]", "tessera.program.cycle",
          "network.json.nodes[");
  refused("\"outputs\": [\"scores\", \"first\"]", "\"outputs\": [\"score\"]", "tessera.program.value",
          "network.json.outputs: score");
  refused("\"name\": \"b\"", "\"name\": \"image\"", "tessera.file.written",
          "network.json.nodes[2]: is a second \"image\"");
  refused("\"same\"", "\"some\"", "tessera.file.written",
          "network.json.nodes[4].padding: is none of same, valid and numbers");
  refused("\"output_padding\": [1, 0]", "\"output_padding\": 2", "tessera.layer.output_padding",
          "network.json.nodes[18]: layer");
  refused("\"bias\": false", "\"bia\": false", "tessera.file.written",
          "network.json.nodes[4]: has a field \"bia\" that this node does not take; it takes bias, cut_in");
  refused("\"out_features\"", "\"out\"", "tessera.file.written",
          "network.json.nodes[0]: lacks the field \"out_features\"");
  refused("\"mode\": \"bilinear\"", "\"mode\": \"cubic\"", "tessera.file.written",
          "is none of nearest, nearest-exact, linear, bilinear, trilinear, bicubic and area");
  refused("\"bias\": false", "\"bias\": 0", "tessera.file.written",
          "network.json.nodes[4].bias: is neither true nor false");
  refused("\"bias\": false", "\"weights_as\": \"float8\"", "tessera.file.written",
          "network.json.nodes[4].weights_as: is no element: float8");
  refused("\"bias\": false", "\"weights_as\": \"int64\"", "tessera.tensor.cotangent",
          "network.json.nodes[4]: layer 0.skip");
  refused("\"element\": \"double\"", "\"element\": \"doubly\"", "tessera.file.written",
          "network.json.inputs[0].element: is no element");
  refused("{\"blocks\": [\"across\"]}]}", "{\"blocks\": [\"along\"]}]}", "tessera.partition.axis",
          "network.json.inputs[0].dims[3].blocks[0]");
  refused("\"of\": [\"half\", \"bent\"]", "\"of\": \"half\"", "tessera.signature.operands",
          "network.json.nodes[15]: add");
  refused("\"kernel_size\": [2, 2]}", "\"kernel_size\": [99, 2]}", "tessera.window.kernel",
          "network.json.nodes[8]: layer");
  refused("\"mode\": \"bilinear\"", "\"mode\": \"lanczos\"", "tessera.file.written",
          "network.json.nodes[7].mode: is none of");
  refused("\"mode\": \"bilinear\"", "\"mode\": \"nearest\"", "tessera.layer.corners", "network.json.nodes[7]: layer");
  refused("\"align_corners\"", "\"antialias\"", "tessera.layer.antialias", "network.json.nodes[7]: layer");
  refused("\"scale_factor\": [1.5, 2.5]", "\"size\": [0, 4]", "tessera.layer.size", "network.json.nodes[7]: layer");
  refused("\"of\": \"image\", \"layer\": \"conv\", \"out_channels\": 3",
          "\"of\": \"image.1\", \"layer\": \"conv\", \"out_channels\": 3", "tessera.program.value", "nodes[1]: image");
  CHECK(said_of([&] { p.finish(); }).find("[tessera.network.output]") == 0);
  CHECK(said_of([&] { nn::load_network(p, "no such file", grid); }).find("[tessera.file.missing]") == 0);
  nn::read_network(p, good, grid, "network.json");
  CHECK(p.finish().view.count == 20);
}

TEST_CASE("a table tells the fields that reading asks for, of layers of one's own too", "[plan]") {
  nn::layer_table table;
  table.layer("offset",
              [](const nn::node_options& o) { return nn::dropout_layer{o.real("by"), o.flag("channelwise", true)}; });
  const auto of = [](const std::vector<nn::engine::node_kind>& all, const std::string& name) {
    for (const nn::engine::node_kind& k : all)
      if (k.name == name) return k;
    return nn::engine::node_kind{};
  };
  const auto names = [](const nn::engine::node_kind& k) {
    std::string all;
    for (const nn::engine::node_field& f : k.fields)
      all += f.name + (f.otherwise.empty() ? "! " : "=" + f.otherwise + " ");
    return all;
  };
  CHECK(names(of(table.layers(), "offset")) == "by! channelwise=true ");
  CHECK(names(of(table.layers(), "layer_norm")) == "normalized_dims=1 eps=1e-05 elementwise_affine=true bias=true ");
  CHECK(names(of(table.functions(), "softmax")) == "dim! ");
  CHECK(names(of(table.functions(), "huber_loss")) == "reduction=`mean` delta=1 ");
  const nn::engine::node_kind attention = of(table.functions(), "attention");
  CHECK((attention.least == 3 && attention.most == 4));
  CHECK(names(attention).find("is_causal=false streamed=false rows=0 heads=0 ") == 0);
  const nn::engine::node_kind entropy = of(table.functions(), "cross_entropy");
  CHECK((entropy.least == 2 && entropy.most == 3));
  CHECK(names(of(table.layers(), "conv")).find("out_channels! kernel_size! stride=1 padding=0 dilation=1 ") == 0);
  for (const auto& all : {table.layers(), table.functions()})
    for (const nn::engine::node_kind& k : all)
      for (const nn::engine::node_field& f : k.fields) CHECK((!f.name.empty() && !f.says.empty()));
}
