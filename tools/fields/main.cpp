// Prints docs/network-files.md: every field that files may say of a layer or a function, from the table by which they
// are read.

#include <tessera/nn/file/layer_table.hpp>

#include <algorithm>
#include <cstdio>

namespace {

using namespace tessera;
using namespace tessera::engine;

constexpr const char* begins = R"(# Networks from files

A network is a JSON text: what comes in, nodes, what goes out. `nn::load_network(p, path, mesh)` and
`nn::read_network(p, text, mesh, name)` (in `nn/file/network_file.hpp`) add it to an `nn::program`, as [programs that
are put together while they run](layers.md#programs-that-are-put-together-while-they-run) are.
`scripts/make_field_page` prints this page from the table by which files are read.

```json
{"inputs": [{"name": "image", "shape": ["batch", 3, 9, 7], "element": "double",
             "dims": [{"whole": true}, {"whole": true}, {"blocks": ["row"]}, {"blocks": ["col"]}]}],
 "nodes": [{"name": "a", "of": "image", "layer": "conv", "out_channels": 16, "kernel_size": [3, 3], "padding": 1,
            "path": "body.0"},
           {"name": "b", "of": "a", "layer": "relu"},
           {"name": "mask", "of": "b", "layer": "conv", "out_channels": 1, "kernel_size": [1, 1]}],
 "outputs": ["mask", "b"]}
```

- *Inputs* are tensors: `name`, `shape` (a word is a dynamic extent), `element` (`float` unless said), `dims` and
  `meaning` over the axes of the mesh, as in [plan files](inspect.md).
- *Nodes* stand in any order. A value that nobody gives, a circle and a field that a node does not take are errors
  that name their place in the file.
- *Outputs* are names of inputs or nodes.
- *Stages*, which may be there, put nodes on the coordinates of an axis, as `nn::in_stages` does: `{"axis": "stage"}`
  with `by` (`count` unless said, `parameters`, `memory`, `time`, `weights` or `sizes`), `given`, `rows`, `chunks`,
  `turns` and `through`. A node behind another one in the file is in its stage or a later one.
- *Names* of options are LibTorch's where it has the option. What LibTorch finds in an operand, such as `in_channels`,
  is no field. A field that a node does not take is refused, and the message lists those that it takes.
- *Elements* are ELEMENTS.
- *Partitions* are objects with `dims` and `meaning`.

`p.inputs()` and `p.outputs()`, of a `dynamic_network` too, say what a network is called with and what it gives: `name`,
and as `is` its layout and element. A network takes its inputs in their order, `net({x, y})`, or as a `std::vector`. A
layer or a function of your own is added to the table that `read_network` takes last. The fields that it asks for are
its list of fields, which `table.layers()` and `table.functions()` give.

Fields in **bold** must be there.

)";

std::string fields_of(const std::vector<nn::engine::node_field>& fields) {
  std::string all = "| field | says | unless said |\n|---|---|---|\n";
  for (const nn::engine::node_field& f : fields) {
    const char* const must = f.otherwise.empty() ? "**" : "";
    all += fmt::format("| {}`{}`{} | {} | {} |\n", must, f.name, must, f.says, f.otherwise);
  }
  return all + "\n";
}

std::string operands_of(const nn::engine::node_kind& k) {
  const char* const counts[]{"no", "one", "two", "three", "four"};
  const std::string of = k.least == k.most ? counts[k.most] : fmt::format("{} to {}", counts[k.least], counts[k.most]);
  return fmt::format("Of {} operand{}", of, k.most == 1 ? "" : "s");
}

/// What is said of each, once for those of which the same is said; those without fields come last.
std::string page_of(const std::vector<nn::engine::node_kind>& all) {
  std::vector<std::pair<std::string, std::string>> said;  // names, what is said of them
  const auto tell = [&](const nn::engine::node_kind& k) {
    const std::string what = operands_of(k) + (k.fields.empty() ? ", no fields.\n\n" : ".\n\n" + fields_of(k.fields));
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& one) { return one.second == what; });
    if (same == said.end()) said.emplace_back(k.name, what);
    else same->first += ", " + k.name;
  };
  for (const bool bare : {false, true})
    for (const nn::engine::node_kind& k : all)
      if (k.fields.empty() == bare) tell(k);
  std::string text;
  for (const auto& [names, what] : said) text += fmt::format("### {}\n\n{}", names, what);
  return text;
}

}  // namespace

int main() {
  std::string page = begins, elements;
  for (int e = 0; e < number_of_elements; ++e)
    elements += fmt::format("{}`{}`", e == 0 ? "" : ", ", name_of(static_cast<element>(e)));
  page.replace(page.find("ELEMENTS"), 8, elements);
  const nn::layer_table table;
  page += "## Every node\n\n" + fields_of(nn::engine::common_fields());
  page += "## Layers\n\n" + page_of(table.layers());
  page += "## Functions\n\n" + page_of(table.functions());
  page.pop_back();
  std::fputs(page.c_str(), stdout);
}
