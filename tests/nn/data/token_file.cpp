#include "tests/support/tensors.hpp"

#include <tessera/nn/data/loader.hpp>
#include <tessera/nn/data/token_file.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

// A file of tokens is a data set: its samples are ranges of what was written.

namespace tessera::testing {
namespace {

using nn::token_file;
using token_options = token_file::options;

/// A folder that goes with its test.
struct tokens_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("tessera_tokens_{}", ::getpid());
  tokens_folder() { std::filesystem::create_directories(path); }
  ~tokens_folder() { std::filesystem::remove_all(path); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
};

template <class Stored>
std::string bytes_of(const std::vector<Stored>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Stored)};
}

/// Tokens that reach the last bit of their element.
template <class Stored>
std::vector<Stored> tokens_of(std::size_t n) {
  std::vector<Stored> all;
  rolls d{n};
  while (all.size() < n) all.push_back(static_cast<Stored>(d.next()));
  return all;
}

mesh_value row_of(int workers) {
  mesh_value m;
  m.axes.push({text("data"), workers});
  return row_major(m);
}
template <class F>
auto on_row(int workers, F&& f) {
  return on_workers(workers, [&](const std::shared_ptr<transport>& carrier) {
    return f(std::make_shared<team_state>(carrier, row_of(workers)));
  });
}

template <class Stored>
void check_samples(const tokens_folder& folder, at::ScalarType element) {
  const std::string header = "forty two bytes, which are nobody's tokens";
  for (const std::size_t n : {5u, 6u, 100u})
    for (const index_t length : {1, 4})
      for (const index_t stride : {0, 1, 3, 7}) {
        const std::vector<Stored> tokens = tokens_of<Stored>(n);
        const auto path = folder.write("tokens", header + bytes_of(tokens));
        const auto well = on_row(1, [&](const team_handle& team) {
          token_options options;
          options.length = length;
          options.stride = stride;
          options.element = element;
          options.header_bytes = static_cast<index_t>(header.size());
          token_file file(team, path, options);
          const auto apart = static_cast<std::size_t>(stride == 0 ? length : stride);
          const auto long_ = static_cast<std::size_t>(length);
          bool all = file.tokens() == static_cast<index_t>(n);
          std::size_t samples = 0;
          for (std::size_t begin = 0; begin + long_ < n; begin += apart, ++samples) {
            const auto batch = file.get_batch(std::vector<std::size_t>{samples, 0});
            all = all && batch.data.scalar_type() == at::kLong && batch.data.size(0) == 2;
            for (std::size_t t = 0; t < long_; ++t) {
              const auto at = static_cast<index_t>(t);
              all = all && batch.data[0][at].item<std::int64_t>() == static_cast<std::int64_t>(tokens[begin + t]) &&
                    batch.target[0][at].item<std::int64_t>() == static_cast<std::int64_t>(tokens[begin + t + 1]) &&
                    batch.data[1][at].item<std::int64_t>() == static_cast<std::int64_t>(tokens[t]);
            }
          }
          return all && file.size() == samples &&
                 told([&] { file.get_batch(std::vector<std::size_t>{samples}); }) == "other";
        });
        REQUIRE(well.errors() == "");
        CHECK(well.of(0));
      }
}

TEST_CASE("samples are ranges of the tokens, and their targets the same one further", "[law]") {
  const tokens_folder folder;
  check_samples<std::uint16_t>(folder, at::kUInt16);
  check_samples<std::uint32_t>(folder, at::kUInt32);
  check_samples<std::int32_t>(folder, at::kInt);
  check_samples<std::int64_t>(folder, at::kLong);
}

TEST_CASE("workers read a file of tokens in batches, each token of it once", "[law]") {
  const tokens_folder folder;
  std::vector<std::uint16_t> tokens(101);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i);
  const auto path = folder.write("train.bin", bytes_of(tokens));
  const auto seen = on_row(3, [&](const team_handle& team) {
    token_options length;
    length.length = 4;
    nn::engine::loader_options options;
    options.batch = 7;
    options.cut_by = {"data"};
    options.ahead = 1;
    nn::loader samples(team, token_file(team, path, length), options);  // the file lives with its loader
    std::vector<std::int64_t> all;
    for (auto& [inputs, targets] : samples.epoch()) {
      const at::Tensor whole = full_tensor(inputs).contiguous();
      if (!full_tensor(targets).equal(whole + 1)) throw std::runtime_error("targets are not the next tokens");
      all.insert(all.end(), whole.data_ptr<std::int64_t>(), whole.data_ptr<std::int64_t>() + whole.numel());
    }
    return all;
  });
  REQUIRE(seen.errors() == "");
  for (int r = 1; r < 3; ++r) CHECK(seen.of(r) == seen.of(0));
  std::vector<std::int64_t> all = seen.of(0);
  CHECK(!std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  CHECK(all.size() == 100);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("files that hold no samples are refused on all workers, also where one alone meets them", "[refusal]") {
  const tokens_folder folder;
  const auto good = folder.write("good", bytes_of(std::vector<std::uint16_t>(10)));
  const auto empty = folder.write("empty", ""), odd = folder.write("odd", "abc"),
             five = folder.write("five", "abcdefghij");
  const auto opened = [&](const std::filesystem::path& path, const std::function<void(token_options&)>& change = {}) {
    std::string code;
    for (const bool all : {true, false}) {
      const auto codes = on_row(3, [&](const team_handle& team) {
        return told([&] {
          token_options options;
          options.length = 5;
          if (change && (all || team->rank() == 1)) change(options);
          token_file(team, all || team->rank() == 1 ? path : good, options);
        });
      });
      for (int r = 0; r < 3; ++r) {
        if (!codes.results[static_cast<std::size_t>(r)]) return "not told: " + codes.errors();
        if (code.empty()) code = codes.of(r);
        if (codes.of(r) != code) return code + " and " + codes.of(r);
      }
    }
    return code;
  };
  CHECK(opened(good) == "none");
  CHECK(opened(folder.path / "nowhere") == "tessera.file.missing");
  CHECK(opened(folder.path) == "tessera.file.kind");
  CHECK(opened(empty) == "tessera.tokens.few");
  CHECK(opened(five) == "tessera.tokens.few");
  CHECK(opened(odd) == "tessera.file.truncated");
  CHECK(opened(good, [](token_options& o) { o.header_bytes = 21; }) == "tessera.file.truncated");
  CHECK(opened(good, [](token_options& o) { o.length = 10; }) == "tessera.tokens.few");
  CHECK(opened(good, [](token_options& o) { o.length = std::numeric_limits<index_t>::max(); }) == "tessera.tokens.few");
  CHECK(opened(good, [](token_options& o) { o.length = 0; }) == "tessera.tokens.sample");
  CHECK(opened(good, [](token_options& o) { o.stride = -1; }) == "tessera.tokens.sample");
  CHECK(opened(good, [](token_options& o) { o.element = at::kFloat; }) == "tessera.tokens.sample");
  // of another length on one worker
  const auto longer = folder.write("longer", bytes_of(std::vector<std::uint16_t>(12)));
  const auto codes = on_row(2, [&](const team_handle& team) {
    token_options options;
    return told([&] { token_file(team, team->rank() == 0 ? good : longer, options); });
  });
  for (int r = 0; r < 2; ++r) CHECK(codes.of(r) == "tessera.agree.fingerprint");
}

}  // namespace
}  // namespace tessera::testing
