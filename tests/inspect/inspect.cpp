#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"

#include <tessera/functions.hpp>
#include <tessera/inspect/inspect.hpp>
#include <tessera/operation/network/sharded_parameters.hpp>

#include <sstream>

namespace tessera::testing {

using namespace engine;

namespace {

struct row : axis<2> {};
struct col : axis<3> {};
struct batch : dyn {};
using grid = mesh<row, col>;
using tiles = tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<4, 7>, float>;
using slabs = tensor<partition<grid, whole, blocks<col>>, shape_of<4, 7>, float>;
using ring = tensor<partition<mesh<col>, haloed<blocks<col>, 10, 1, -1, 1, 1, boundary::periodic>>, shape_of<10>>;

struct branching {
  constexpr auto operator()(auto x, auto y) const {
    const auto deep = y | nn::named<struct inside, nn::chain<nn::conv<2, kernel<3, 3>, padding<1, 1>>, nn::relu>>{};
    return flows{x + deep, tanh(deep)};
  }
};

/// The elements `<name …/>` of a picture, each with its attributes as text.
std::vector<std::string> elements_named(const std::string& svg, const std::string& name) {
  std::vector<std::string> all;
  for (std::size_t at = svg.find("<" + name + " "); at != std::string::npos; at = svg.find("<" + name + " ", at + 1))
    all.push_back(svg.substr(at, svg.find('>', at) - at));
  return all;
}

std::string attribute(const std::string& element, const std::string& name) {
  const auto at = element.find(" " + name + "='");
  if (at == std::string::npos) return "";
  const auto from = at + name.size() + 3;
  return element.substr(from, element.find('\'', from) - from);
}

/// Every element is closed, and no number is negative in size or none at all.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const auto end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  for (const std::string& r : elements_named(svg, "rect"))
    if (attribute(r, "width")[0] == '-' || attribute(r, "height")[0] == '-') return false;
  return open.empty() && svg.find("nan") == std::string::npos && svg.find("inf'") == std::string::npos;
}

/// Rectangles in a worker's colour at full strength that are no number of a worker: the pieces that cross, and the key.
std::size_t crossing_pieces(const std::string& svg) {
  std::size_t n = 0;
  for (const std::string& r : elements_named(svg, "rect")) {
    const std::string fill = attribute(r, "fill");
    n += fill[0] == '#' && fill != "#ffffff" && fill != drawing::paper && attribute(r, "rx").empty() &&
         attribute(r, "fill-opacity").empty();
  }
  return n;
}

}  // namespace

TEST_CASE("a name of an axis or of an extent prints, as any text does", "[plan]") {
  CHECK(fmt::format("{} {:>5}|", grid::value.axes[0].name, grid::value.axes[1].name) == "row   col|");
  CHECK(fmt::format("{}", value_of<tensor<partition<grid, blocks<row>>, shape<batch>>>.layout.dims[0].tag) == "batch");
  CHECK(fmt::format("[{}]", text()) == "[]");
}

TEST_CASE("layouts as text: covers, intervals, placements and where the mesh sits", "[plan]") {
  CHECK(text_of<tiles>() == "4x7 over row 2 x col 3 = blocks(row) [0,2) [2,4), blocks(col) [0,3) [3,5) [5,7)");
  CHECK(text_of<slabs>() == "4x7 over row 2 x col 3 = whole, blocks(col) [0,3) [3,5) [5,7); replicate(row)");
  CHECK(text_of<ring>() == "10 over col 3 = haloed(col) [9,10)+[0,5) [3,8) [6,10)+[0,1)");
  CHECK(text_of<tensor<partition<placed<grid, 4>, whole, partial<row>, on<col, 2>>, shape<batch>>>() ==
        "batch over row 2 x col 3 from worker 4 = whole; partial(row); on(col = 2)");
  CHECK(world_ranks_text(placed<grid, 1, 1, 2>::value) == "from worker 1 by 1, 2");
  CHECK(world_ranks_text(on_ranks<grid, 5, 4, 3, 2, 1, 0>::value) == "on workers 5, 4, 3, 2, 1, 0");
}

TEST_CASE("who holds what, as text", "[plan]") {
  CHECK(picture<tiles>() ==
        "    0  0  0  1  1  2  2\n"
        "    0  0  0  1  1  2  2\n"
        "    3  3  3  4  4  5  5\n"
        "    3  3  3  4  4  5  5\n");
  CHECK(picture<ring>() == "    +  0  0  +  +  1  +  +  2  +\n");
  using deep = tensor<partition<grid, whole, blocks<row>, whole, blocks<col>>, shape<batch, dim<2>, dim<5>, dim<3>>>;
  CHECK(picture<deep>(bind<batch>(9)) ==
        "  not drawn: dimension 0 (9, whole), dimension 2 (5, whole)\n"
        "    0  1  2\n"
        "    3  4  5\n");
  using many = tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<600, 300>>;
  CHECK(picture<many>() == "    0  1  2\n    3  4  5\n");  // a cell for each part
}

TEST_CASE("text pictures agree with what each worker holds, element by element", "[law][plan]") {
  for (int seed = 0; seed < 300; ++seed) {
    dice d(static_cast<std::uint64_t>(seed));
    static_vector<index_t, max_dimensions> extents;
    for (int n = d.roll(1, 2); n > 0; --n) extents.push(d.roll(1, 9));
    const layout x = roll_layout(d, roll_mesh(d), extents, {true, true, true, true, true});
    INFO("seed " << seed << ": " << text_of(x));
    std::map<oracle::element, std::vector<int>> holders;
    for (int i = 0; i < x.mesh.size(); ++i)
      for (const auto& e : oracle::held(x, x.mesh.rank(x.mesh.at(i)))) holders[e].push_back(x.mesh.rank(x.mesh.at(i)));
    std::istringstream words(picture(x));
    const view v = choose_view({&x}, false);
    if (!v.hidden.empty()) continue;  // of extent 1
    oracle::element at(static_cast<std::size_t>(x.dims.count), 0);
    for (at[0] = 0; at[0] < extents[0]; ++at[0])
      for (at.back() = x.dims.count == 1 ? at[0] : 0; at.back() < (x.dims.count == 1 ? at[0] + 1 : extents[1]);
           ++at.back()) {
        std::string word;
        words >> word;
        const auto& who = holders[at];
        REQUIRE(word == (who.empty() ? "." : who.size() > 1 ? "+" : std::to_string(who[0])));
        if (x.dims.count == 1) break;
      }
  }
}

TEST_CASE("plans as JSON: the fields of an answer to a plan file", "[plan]") {
  CHECK(plan_json<primitive<tiles, slabs>>() ==
        R"([{"map": "move", "kind": "all_gather", "bytes_received": [24, 16, 16, 24, 16, 16], "bytes_total": 112, )"
        R"("lower_bound": 112, )"
        R"("messages": [[3, 0, [[2, 4], [0, 3]]], [4, 1, [[2, 4], [3, 5]]], [5, 2, [[2, 4], [5, 7]]], [0, 3, [[0, 2], )"
        R"([0, 3]]], )"
        R"([1, 4, [[0, 2], [3, 5]]], [2, 5, [[0, 2], [5, 7]]]]}])");
  CHECK(json_string("a \"b\" \\ \n") == R"("a \"b\" \\ \u000a")");
}

TEST_CASE("plans as text name the verb, both layouts and every message", "[plan]") {
  const std::string s = plan_text<primitive<tiles, slabs>>();
  CHECK(s.starts_with("all_gather\n  from 4x7 over row 2 x col 3"));
  CHECK(
      s.find(
          "move (all_gather): 28 elements in 6 messages, busiest worker 6, lower bound 28\n  3 -> 0: [2,4)x[0,3)\n") !=
      std::string::npos);
}

TEST_CASE("pictures of layouts: every tile in its place, every worker named", "[plan]") {
  const std::string svg = svg_of<tiles>();
  CHECK(well_formed(svg));
  std::vector<std::string> drawn;
  for (const std::string& r : elements_named(svg, "rect"))
    if (attribute(r, "fill-opacity") == "0.55") drawn.push_back(attribute(r, "width") + "x" + attribute(r, "height"));
  // 26 pixels an element
  CHECK(drawn == std::vector<std::string>{"78x52", "52x52", "52x52", "78x52", "52x52", "52x52"});
  for (const char* said : {">row 0<", ">row 1<", ">col 0<", ">col 2<", ">0<", ">5<", ">4x7 over row 2 x col 3<"})
    CHECK(svg.find(said) != std::string::npos);
  CHECK(svg_of<ring>().find("hatched: what a window holds beyond") != std::string::npos);
  CHECK(svg_of<tensor<partition<grid, blocks<row, col>, whole>, shape_of<4, 7>>>().find("holding nothing: 2, 5") !=
        std::string::npos);
  CHECK(svg_of<tensor<partition<grid, blocks<row>, partial<col>>, shape<batch>>>().find(">batch over row 2 x col 3<") !=
        std::string::npos);
}

TEST_CASE("pictures of plans: a piece for each message", "[law][plan]") {
  for (int seed = 0; seed < 300; ++seed) {
    dice d(static_cast<std::uint64_t>(seed));
    const layout_pair pair = roll_tilings(d, true, 3, 9);
    INFO("seed " << seed << ": " << text_of(pair.from) << " to " << text_of(pair.to));
    REQUIRE(well_formed(svg_of(pair.from)));
    REQUIRE(well_formed(svg_of(pair.to)));
    const transfer plans[]{{map::move, pair.from, pair.to}, {map::fold, cotangent(pair.to), cotangent(pair.from)}};
    for (const transfer& plan : plans) {
      const std::string svg = svg_of(plan, "<a & b>");
      REQUIRE(well_formed(svg));
      const std::vector<message> all = messages_of(plan);
      const view v = choose_view({&plan.source().of, &plan.target().of}, true);
      std::size_t shown = 0;
      std::set<int> ends;
      for (const message& m : all) {
        shown += v.shows(m.where);
        ends.insert(plan.kind() == map::move ? m.to : m.from);
      }
      if (ends.size() <= 16) REQUIRE(crossing_pieces(svg) == shown + (all.empty() ? 0 : 1));
      if (!all.empty() && all.size() <= 30)
        REQUIRE(svg.find(">" + xml_text(text_of(all.back().where)) + "<") != std::string::npos);
    }
  }
}

TEST_CASE("large plans are drawn in part", "[plan]") {
  struct r : axis<64> {};
  struct c : axis<64> {};
  using wide = mesh<r, c>;
  using from = tensor<partition<wide, blocks<r>, blocks<c>>, shape_of<8192, 8192>>;
  const std::string svg = svg_of<primitive<from, tensor<partition<wide, blocks<r, c>, whole>, shape_of<8192, 8192>>>>();
  CHECK(well_formed(svg));
  CHECK(svg.size() < 60'000);
  CHECK(svg.find("258048 messages") != std::string::npos);
  CHECK(svg.find("drawn: [0,24) of dimension 0,") != std::string::npos);
}

TEST_CASE("lanes: what runs from row to row crosses no mark and shares no lane with another", "[law][plan]") {
  for (int seed = 0; seed < 500; ++seed) {
    dice d(static_cast<std::uint64_t>(seed));
    std::vector<std::vector<int>> reads(1);
    for (int rows = d.roll(2, 14); rows > 0; --rows) {
      std::vector<int> from;
      for (int n = d.roll(1, 3); n > 0; --n) from.push_back(d.roll(0, static_cast<int>(reads.size()) - 1));
      reads.push_back(from);
    }
    const lanes drawn(reads);
    INFO("seed " << seed);
    std::size_t wanted = 0;
    for (const auto& from : reads) wanted += std::set<int>(from.begin(), from.end()).size();
    REQUIRE(drawn.strands.size() == wanted);
    for (const lanes::strand& a : drawn.strands) {
      REQUIRE(a.lane < drawn.count);
      for (int r = a.from + 1; r < a.to; ++r) REQUIRE(drawn.row_lane[static_cast<std::size_t>(r)] != a.lane);
      for (const lanes::strand& b : drawn.strands)
        if (a.from != b.from && a.lane == b.lane) REQUIRE((a.to <= b.from || b.to <= a.from));
    }
  }
}

TEST_CASE("networks: skips, branches and scopes in the table, as JSON and in the picture", "[plan]") {
  using image =
      tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>, shape<batch, dim<2>, dim<8>, dim<9>>, double>;
  using net = network_type<branching, image, image>;
  const std::string table = network_table<net>(bind<batch>(4));
  INFO(table);
  for (const char* line : {"\n  0 | *    inside.0 conv  input 1 ", "\n  1 | *    inside.1 relu  0 ",
                           "\n  2 *   |  add            input 0, 1 ", "\n  3 |   *  tanh           1 "})
    CHECK(table.find(line) != std::string::npos);
  const memory_value m = peak_memory<net>(bind<batch>(4));
  CHECK(table.find(grouped(m.training)) != std::string::npos);
  CHECK(table.find(grouped(m.forward)) != std::string::npos);
  const std::string json = network_json<net>(bind<batch>(4));
  CHECK(json.find(R"("path": "inside.0", "layer": "conv", "reads": ["input 1"])") != std::string::npos);
  CHECK(json.find(R"("layer": "add", "reads": ["input 0", 1])") != std::string::npos);
  CHECK(json.find(R"("outputs": [2, 3])") != std::string::npos);
  const network_rows<net> rows(bind<batch>(4));
  index_t most = 0;
  for (const network_row& r : rows.rows) most = std::max({most, r.lives.forward, r.lives.backward});
  CHECK(most == m.training);
  const std::string svg = network_svg<net>(bind<batch>(4));
  CHECK(well_formed(svg));
  CHECK(elements_named(svg, "circle").size() == rows.rows.size());
  CHECK(elements_named(svg, "path").size() == rows.drawn().strands.size());
  CHECK(svg.find(">inside.1<") != std::string::npos);
}

TEST_CASE("networks: the same traffic in the table, as JSON and in the picture", "[plan]") {
  using image = tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>, shape<batch, dim<1>, dim<8>, dim<9>>>;
  using net = sequential_type<image, nn::conv<2, kernel<3, 3>, padding<1, 1>>, nn::relu>;
  constexpr traffic_value t = traffic<net>(bind<batch>(4));
  const std::string forward = fmt::format("{}", t.forward.bytes), backward = fmt::format("{}", t.backward.bytes);
  const std::string table = network_table<net>(bind<batch>(4));
  CHECK(table.find(forward) != std::string::npos);
  const std::string json = network_json<net>(bind<batch>(4));
  CHECK(
      json.starts_with(R"j({"mesh": "row 2 x col 3", "inputs": [{"shape": [4, 1, 8, 9], )j"
                       R"j("lies": "whole whole blocks(row) blocks(col)"}], "layers": [)j"
                       R"j({"path": "0", "layer": "conv", "reads": ["input"], "results": [{"shape": [4, 2, 8, 9],)j"));
  CHECK(json.find(R"j({"name": "weight", "shape": [2, 1, 3, 3], )j"
                  R"j("lies": "whole whole whole whole invariant(row) invariant(col)"})j") != std::string::npos);
  const auto sums = json.substr(json.rfind("], \"forward\""));
  CHECK(sums.starts_with("], \"forward\": {\"bytes\": " + forward + ","));
  CHECK(sums.find("\"backward\": {\"bytes\": " + backward + ",") != std::string::npos);
  const std::string svg = network_svg<net>(bind<batch>(4));
  CHECK(well_formed(svg));
  // 3 · 3 taps of one channel for each of 4 · 2 · 8 · 9 outputs, of which the largest of six workers has 4 · 2 · 4 · 3
  CHECK(multiply_adds<net>(bind<batch>(4)).forward == operations{5184, 864, 4 * 2 * 4 * 3});
  for (const char* part : {"  mult-adds\n", "       5,184\n", "multiply-adds of all workers: forward, backward",
                           "       5,184      10,368\n", "         864       1,728\n"})
    CHECK(table.find(part) != std::string::npos);
  CHECK(json.find(R"("multiply_adds": {"forward": {"total": 5184, "busiest_worker": 864, "elements": 0}, )"
                  R"("backward": {"total": 10368, "busiest_worker": 1728, "elements": 0}}, "memory")") !=
        std::string::npos);
  CHECK(sums.find(R"("multiply_adds": {"forward": {"total": 5184, "busiest_worker": 864, "elements": 96}, )") !=
        std::string::npos);
  CHECK(svg.find(">forward " + grouped(t.forward.bytes) + " bytes, at least") != std::string::npos);
  CHECK((table + json).find("gathered") == std::string::npos);
  using held =
      sequential_type<image,
                      nn::sharded_over<nn::conv<2, kernel<3, 3>, padding<1, 1>>, row, col, gathered<gathering::held>>>;
  CHECK(network_table<held>(bind<batch>(4)).find("reduced once") != std::string::npos);
  const std::string once = fmt::format("\"gathered\": {{\"bytes\": {},", traffic<held>(bind<batch>(4)).gathered.bytes);
  CHECK(network_json<held>(bind<batch>(4)).find(once) != std::string::npos);
  using bundled = sequential_type<image, nn::bundled<nn::conv<2, kernel<3, 3>, padding<1, 1>>, row, col>>;
  const index_t travelling = peak_memory<bundled>(bind<batch>(4)).travelling;
  CHECK(travelling > 0);
  CHECK(network_table<bundled>(bind<batch>(4)).find("bundles of gradients on their way") != std::string::npos);
  const std::string bytes = fmt::format("\"travelling\": {}}}", travelling);
  CHECK(network_json<bundled>(bind<batch>(4)).find(bytes) != std::string::npos);
}

}  // namespace tessera::testing
