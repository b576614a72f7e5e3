#include "subjects.hpp"

#include <tessera/inspect/listing.hpp>

namespace conformance::training {
namespace {

/// A layer of a case.
struct entry_of_case {
  std::string path;
  index_t bytes = 0;
};

}  // namespace

/// Layers by size, as a table lists them.
task profile(reading& c) {
  std::vector<entry_of_case> entries;
  for (const json& one : c.given().at("entries"))
    entries.push_back({one.at("path").get<std::string>(), one.at("bytes").get<index_t>()});
  engine::listing how;
  if (c.has("depth")) how.depth = static_cast<int>(c.given().integer("depth"));
  if (c.has("least_bytes")) how.least_bytes = c.given().integer("least_bytes");
  if (c.has("sort")) how.by_bytes = c.word("sort", {"bytes"}) == "bytes";
  if (c.has("top")) how.most = static_cast<std::size_t>(c.given().integer("top"));
  json paths = json::array();
  for (const entry_of_case& one : engine::listed(entries, how)) paths.push_back(one.path);
  c.compare("listed", paths);
  return c.planned();
}

}  // namespace conformance::training
