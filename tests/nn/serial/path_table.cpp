#include "tests/support/tensors.hpp"

#include <tessera/nn/serial/path_table.hpp>

#include <regex>

namespace tessera::testing {
namespace {

/// All paths of at most three parts, of these words.
std::vector<std::string> paths_of(const std::vector<std::string>& words) {
  std::vector<std::string> all{""}, last{""};
  for (int parts = 1; parts <= 3; ++parts) {
    std::vector<std::string> longer;
    for (const std::string& begin : last)
      for (const std::string& word : words) longer.push_back(begin.empty() ? word : begin + "." + word);
    all.insert(all.end(), longer.begin(), longer.end());
    last = longer;
  }
  return all;
}

/// The regular expression of a pattern, over paths whose parts all end with a dot.
std::regex expression_of(const std::string& pattern) {
  std::string said, part;
  const auto end = [&] {
    said += part == "**" ? "([^.]+\\.)*" : part == "*" ? "[^.]+\\." : part + "\\.";
    part.clear();
  };
  for (const char c : pattern)
    if (c == '.') end();
    else part += c;
  if (!pattern.empty()) end();
  return std::regex(said);
}

TEST_CASE("a pattern fits the paths that its regular expression matches", "[law]") {
  const std::vector<std::string> paths = paths_of({"a", "b", "ab"});
  int fit = 0, others = 0;
  for (const std::string& pattern : paths_of({"a", "ab", "*", "**"})) {
    const std::regex expected = expression_of(pattern);
    for (const std::string& path : paths) {
      const bool is = nn::engine::fits_path(pattern, path);
      if (is != std::regex_match(path.empty() ? path : path + ".", expected))
        FAIL("'" << pattern << "' '" << path << "'");
      ++(is ? fit : others);
    }
  }
  CHECK(fit > 500);
  CHECK(others > 500);
}

TEST_CASE("each row of a table fits a path, and each path one row at most", "[refusal]") {
  const nn::path_table<int> table{{"blocks.*.fc1", 1}, {"head", 2}, {"", 3}, {"blocks.**.norm", 4}};
  CHECK(*table.find("blocks.7.fc1") == 1);
  CHECK(*table.find("") == 3);
  CHECK(*table.find("blocks.norm") == 4);
  CHECK(*table.find("blocks.0.attention.norm") == 4);
  CHECK(table.find("blocks.7.fc2") == nullptr);
  CHECK(table.find("blocks.7.fc1.weight") == nullptr);
  const std::vector<std::string> paths{"", "blocks.0.fc1", "blocks.0.fc2", "blocks.0.norm", "head"};
  CHECK(told([&] { table.check(paths); }) == "none");
  const auto said = [&](const nn::path_table<int>& of) {
    try {
      of.check(paths);
    } catch (const error& e) {
      return fmt::format("{} {}", e.code(), e.where());
    }
    return std::string("none");
  };
  CHECK(said({{"blocks.0.fc1", 1}, {"blocks.0", 1}}) == "tessera.paths.nothing 'blocks.0'");
  CHECK(said({{"blocks.*.fc1", 1}, {"head", 1}, {"blocks.0.*", 1}}) ==
        "tessera.paths.twice 'blocks.0.fc1' is a 'blocks.*.fc1' and a 'blocks.0.*'");
  CHECK(said({{"head", 1}, {"head", 1}}) == "tessera.paths.twice 'head' is a 'head' and a 'head'");
}

}  // namespace
}  // namespace tessera::testing
