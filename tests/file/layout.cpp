#include "tests/support/catch.hpp"

#include <tessera/file/layout.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

/// A tensor over a mesh of 2 × 3 workers, as a file writes it.
tensor_value read(const std::string& written, file::lists& keep) {
  const file::json mesh = file::json::parse(R"({"axes": [["row", 2], ["col", 3]], "first": 0})");
  const file::json all = file::json::parse(written);
  return file::read_tensor({all, "x"}, file::read_mesh({mesh, "mesh"}, 6, keep), keep);
}

/// The code of what is wrong with one, and where.
std::string refused(const std::string& written) {
  file::lists keep;
  try {
    read(written, keep);
  } catch (const error& e) {
    return std::string(e.code()) + " at " + e.where();
  }
  return "";
}

struct row : axis<2> {};
struct col : axis<3> {};

template <class T>
bool reads_as(const std::string& written) {
  file::lists keep;
  const tensor_value x = read(written, keep);
  return x.element == value_of<T>.element && same(x.layout, value_of<T>.layout);
}

}  // namespace

TEST_CASE("a tensor in a file is the one that a type of the same words says", "[plan]") {
  using grid = mesh<row, col>;
  CHECK(reads_as<tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<5, 7>>>(
      R"({"shape": [5, 7], "dims": [{"blocks": ["row"]}, {"blocks": ["col"]}]})"));
  CHECK(reads_as<tensor<partition<grid, whole, blocks<col>, partial<row>>, shape_of<5, 7>, double>>(
      R"({"shape": [5, 7], "element": "double", "dims": [{"whole": true}, {"blocks": ["col"]}],
          "meaning": {"row": "partial"}})"));
  CHECK(reads_as<tensor<partition<grid, lengths<row, dim<4>, dim<2>>, invariant<col>>, shape_of<6>>>(
      R"({"shape": [6], "dims": [{"lengths": [4, 2], "axes": ["row"]}], "meaning": {"col": "invariant"}})"));
  CHECK(reads_as<tensor<partition<grid, grains<2, row>, on<col, 1>>, shape_of<8>>>(
      R"({"shape": [8], "dims": [{"blocks": ["row"], "grain": 2}], "meaning": {"col": {"on": 1}}})"));
  CHECK(reads_as<tensor<partition<grid, zigzag<row, col>>, shape_of<9>>>(
      R"({"shape": [9], "dims": [{"zigzag": ["row", "col"]}]})"));
  CHECK(reads_as<tensor<partition<grid, zigzag<grains<2, row>>>, shape_of<9>>>(
      R"({"shape": [9], "dims": [{"zigzag": ["row"], "grain": 2}]})"));
  CHECK_FALSE(
      reads_as<tensor<partition<grid, blocks<row>>, shape_of<9>>>(R"({"shape": [9], "dims": [{"zigzag": ["row"]}]})"));
  CHECK_FALSE(
      reads_as<tensor<partition<grid, blocks<row>>, shape_of<6>>>(R"({"shape": [6], "dims": [{"blocks": ["col"]}]})"));
}

TEST_CASE("a tensor in a file that means none is refused at the place of its fault", "[refusal]") {
  CHECK(refused(R"({"shape": [5], "dims": [{"blocks": ["row"]}]})").empty());
  CHECK(refused(R"({"shape": [5], "dims": []})") == "tessera.partition.dimensions at x.dims");
  CHECK(refused(R"({"shape": [5], "dims": [{"blocks": ["depth"]}]})") ==
        "tessera.partition.axis at x.dims[0].blocks[0]");
  CHECK(refused(R"({"shape": [5, 5], "dims": [{"blocks": ["row"]}, {"blocks": ["row"]}]})") ==
        "tessera.partition.twice at x.dims[1].blocks[0]");
  CHECK(refused(R"({"shape": [5], "dims": [{"whole": true}], "meaning": {"col": {"on": 3}}})") ==
        "tessera.mesh.coordinate at x.meaning.col");
  CHECK(refused(R"({"shape": [5], "dims": [{"lengths": [4, 2], "axes": ["row"]}]})") ==
        "tessera.lengths.sum at x.dims[0].lengths");
  CHECK(refused(R"({"shape": [5], "dims": [{"blocks": ["row"], "grain": 0}]})") ==
        "tessera.partition.grain at x.dims[0]");
  CHECK(refused(R"({"shape": [5], "dims": [{"zigzag": ["row"], "grain": 0}]})") ==
        "tessera.partition.grain at x.dims[0]");
  CHECK(refused(R"({"shape": [5], "dims": [{"haloed": {"outputs": {"zigzag": ["row"]}, "extent": 5, "kernel": 3,
                     "stride": 1, "padding": [1, 1], "dilation": 1, "boundary": "zero"}}]})") ==
        "tessera.deal.interval at x");
  CHECK(refused(R"({"shape": [5], "element": "real", "dims": [{"whole": true}]})") ==
        "tessera.file.written at x.element: is no element: real");
}

}  // namespace tessera::testing
