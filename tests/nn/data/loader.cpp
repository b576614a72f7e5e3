#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/data/loader.hpp>
#include <tessera/nn/data/shuffled_order.hpp>

#include <map>
#include <numeric>
#include <set>

// Batches of samples, each worker its own: the same global batches on every mesh.

namespace tessera::testing::loaders {
namespace {

using nn::loader;
using nn::state_dict;
using nn::engine::loader_options;
using torch::data::Example;

mesh_value grid_of(int rows, int columns) {
  mesh_value m;
  m.axes.push({text("data"), rows});
  m.axes.push({text("model"), columns});
  return row_major(m);
}

/// Runs f(team) on a mesh data × model that only run time knows.
template <class F>
auto on_grid(int rows, int columns, F&& f) {
  return on_workers(rows * columns, [&](const std::shared_ptr<transport>& carrier) {
    return f(std::make_shared<team_state>(carrier, grid_of(rows, columns)));
  });
}

at::Tensor values_of(std::size_t i) { return (at::arange(3, at::kDouble) + 10 * static_cast<double>(i)).sin(); }

/// Samples that are functions of their numbers, and who asked for them.
struct numbered : torch::data::datasets::Dataset<numbered, Example<at::Tensor, std::int64_t>> {
  explicit numbered(std::size_t samples) : samples_(samples) {}

  Example<at::Tensor, std::int64_t> get(std::size_t i) override {
    asked->push_back(static_cast<index_t>(i));
    if (bad && *bad == static_cast<index_t>(i)) throw std::runtime_error("sample on fire");
    return {values_of(i), static_cast<std::int64_t>(i)};
  }
  std::optional<std::size_t> size() const override { return samples_; }

  std::shared_ptr<std::vector<index_t>> asked = std::make_shared<std::vector<index_t>>();
  std::shared_ptr<index_t> bad;  ///< the sample that cannot be read

 private:
  std::size_t samples_;
};

// What has numbers, and what has none.
using nn::engine::NumberedDataset;
static_assert(NumberedDataset<numbered> && NumberedDataset<torch::data::datasets::SharedBatchDataset<numbered>>);
struct stream : torch::data::datasets::StreamDataset<stream> {};
struct stateful : torch::data::datasets::StatefulDataset<stateful> {};
static_assert(!NumberedDataset<stream> && !NumberedDataset<stateful>);

loader_options by_data(index_t batch, std::uint64_t seed = 7) {
  loader_options o;
  o.batch = batch;
  o.seed = {seed};
  o.cut_by = {"data"};
  return o;
}

at::Tensor stacked(const std::vector<index_t>& samples) {
  std::vector<at::Tensor> all;
  for (const index_t i : samples) all.push_back(values_of(static_cast<std::size_t>(i)));
  return at::stack(all);
}
std::vector<index_t> list_of(const at::Tensor& t) {
  const at::Tensor own = t.contiguous();
  return {own.data_ptr<std::int64_t>(), own.data_ptr<std::int64_t>() + own.numel()};
}

/// Balanced parts: the first n mod p have one more.
interval part(index_t n, index_t parts, index_t k) {
  return {k * (n / parts) + std::min(k, n % parts), (k + 1) * (n / parts) + std::min(k + 1, n % parts)};
}

/// The global batches of two epochs, as numbers of samples; nothing if inputs are not those of their numbers, a local
/// box is not this worker's part, or the data set was asked for other samples than these.
template <class Samples>
std::vector<std::vector<index_t>> batches_of(const team_handle& team, Samples& samples,
                                             const std::vector<index_t>& asked, int epochs = 2) {
  std::vector<std::vector<index_t>> all;
  std::size_t before = 0;
  bool well = true;
  for (int e = 0; e < epochs; ++e)
    for (auto& [inputs, targets] : samples.epoch()) {
      const std::vector<index_t> whole = list_of(full_tensor(targets));
      const std::vector<index_t> mine = list_of(targets.local());
      const interval held = part(static_cast<index_t>(whole.size()), team->mesh().axes[0].extent, team->at()[0]);
      well = well && same_bits(full_tensor(inputs), stacked(whole));
      well = well && mine == std::vector<index_t>(whole.begin() + held.lo, whole.begin() + held.hi);
      well = well && (mine.empty() || same_bits(inputs.local(), stacked(mine)));
      well = well && mine == std::vector<index_t>(asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end());
      before = asked.size();
      all.push_back(whole);
    }
  if (!well) all.clear();
  return all;
}

TEST_CASE("every mesh trains on the same batches, and a worker reads its own samples alone", "[law]") {
  // 23 samples in fives: the last batch has three, of which the fourth of four workers has none
  const auto on = [](int rows, int columns, bool shuffle, bool drop_last) {
    const auto all = on_grid(rows, columns, [&](const team_handle& team) {
      numbered data(23);
      const auto asked = data.asked;
      loader_options options = by_data(5);
      options.shuffle = shuffle;
      options.drop_last = drop_last;
      loader samples(team, data, options);
      return batches_of(team, samples, *asked);
    });
    REQUIRE(all.errors() == "");
    for (int r = 1; r < rows * columns; ++r) CHECK(all.of(r) == all.of(0));
    return all.of(0);
  };
  for (const bool shuffle : {true, false})
    for (const bool drop_last : {true, false}) {
      const auto alone = on(1, 1, shuffle, drop_last);
      REQUIRE(alone.size() == (drop_last ? 8 : 10));
      for (const auto& [rows, columns] :
           {std::pair{2, 1}, std::pair{2, 2}, std::pair{3, 1}, std::pair{4, 1}, std::pair{1, 3}})
        CHECK(on(rows, columns, shuffle, drop_last) == alone);
      for (std::size_t e = 0; e < 2; ++e) {  // each sample once an epoch
        std::vector<index_t> seen;
        for (std::size_t s = 0; s < alone.size() / 2; ++s) {
          const auto& batch = alone[e * alone.size() / 2 + s];
          seen.insert(seen.end(), batch.begin(), batch.end());
        }
        std::vector<index_t> counted(drop_last ? 20 : 23);
        std::iota(counted.begin(), counted.end(), 0);
        CHECK((seen == counted) == !shuffle);
        CHECK(std::set<index_t>(seen.begin(), seen.end()).size() == counted.size());
      }
      CHECK((alone[0] == alone[alone.size() / 2]) == !shuffle);
    }
}

TEST_CASE("batches in the order of numbers are those of LibTorch's own loader", "[law]") {
  const at::Tensor rows = at::arange(22 * 3, at::kDouble).cos().view({22, 3});
  for (const bool drop_last : {true, false}) {
    std::vector<at::Tensor> theirs;
    const auto serial = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        torch::data::datasets::TensorDataset(rows).map(torch::data::transforms::Stack<torch::data::TensorExample>()),
        torch::data::DataLoaderOptions(4).drop_last(drop_last));
    for (auto& batch : *serial) theirs.push_back(batch.data);
    const auto same = on_grid(3, 1, [&](const team_handle& team) {
      loader_options options = by_data(4);
      options.shuffle = false;
      options.drop_last = drop_last;
      // a data set that joins its examples itself, of examples without target
      loader samples(
          team,
          torch::data::datasets::TensorDataset(rows).map(torch::data::transforms::Stack<torch::data::TensorExample>()),
          options);
      std::size_t step = 0;
      bool well = samples.steps() == static_cast<index_t>(theirs.size());
      for (const tensor<dyn>& inputs : samples.epoch())
        well = same_bits(full_tensor(inputs), theirs.at(step++)) && well;
      return well && step == theirs.size();
    });
    REQUIRE(same.errors() == "");
    for (int r = 0; r < 3; ++r) CHECK(same.of(r));
  }
}

TEST_CASE("a loader goes on where another one stood, on another mesh, with another batch and thread", "[law]") {
  const auto orders = [](int workers, index_t batch, int ahead, const state_dict* from, int batches, state_dict* to) {
    const auto all = on_grid(workers, 1, [&](const team_handle& team) {
      loader_options options = by_data(batch, from == nullptr ? 7 : 1000);  // the state's seed goes on
      options.ahead = ahead;
      loader samples(team, numbered(23), options);
      if (from != nullptr) samples.load_state(*from);
      std::vector<index_t> seen;
      for (int i = 0; i < batches;) {
        auto given = samples.next();
        if (!given) {
          seen.push_back(-1);  // an epoch's end
          continue;
        }
        const std::vector<index_t> whole = list_of(full_tensor(given->target));
        seen.insert(seen.end(), whole.begin(), whole.end());
        ++i;
      }
      return std::pair(seen, samples.state());
    });
    REQUIRE(all.errors() == "");
    for (int r = 1; r < workers; ++r) {
      CHECK(all.of(r).first == all.of(0).first);
      for (const auto& [key, value] : all.of(0).second) CHECK(value.equal(all.of(r).second.at(key)));
    }
    if (to != nullptr) *to = all.of(0).second;
    return all.of(0).first;
  };
  const std::vector<index_t> whole = orders(1, 5, 0, nullptr, 15, nullptr);  // three epochs
  for (const int first : {1, 4, 5, 7, 12})
    for (const int ahead : {0, 1, 3}) {
      state_dict state;
      std::vector<index_t> both = orders(2, 5, ahead, nullptr, first, &state);
      const std::vector<index_t> rest = orders(3, 5, ahead, &state, 15 - first, nullptr);
      both.insert(both.end(), rest.begin(), rest.end());
      CHECK(both == whole);
      // batches of two: the same samples up to the end of the second epoch
      const std::vector<index_t> twos = orders(2, 2, ahead, &state, 8, nullptr);
      const std::vector<index_t> begun(both.end() - static_cast<std::ptrdiff_t>(rest.size()), both.end());
      const std::size_t n = std::min({twos.size(), begun.size(), std::size_t{16}});
      CHECK(std::vector<index_t>(twos.begin(), twos.begin() + static_cast<std::ptrdiff_t>(n)) ==
            std::vector<index_t>(begun.begin(), begun.begin() + static_cast<std::ptrdiff_t>(n)));
    }
}

TEST_CASE("any batch of any epoch is there by itself, and the position stays", "[law]") {
  for (const int ahead : {0, 2}) {
    const auto well = on_grid(2, 1, [&](const team_handle& team) {
      loader_options options = by_data(5);
      options.ahead = ahead;
      loader samples(team, numbered(23), options), beside(team, numbered(23), options);
      bool all = true;
      for (index_t e = 0; e < 3; ++e) {
        index_t step = 0;
        for (auto& [inputs, targets] : samples.epoch()) {
          const auto again = beside.at(e, step++);
          all = all && same_bits(full_tensor(targets), full_tensor(again.target)) &&
                same_bits(full_tensor(inputs), full_tensor(again.data));
          const auto other = samples.at(2 - e, 0);  // between two of its own
          all = all && list_of(full_tensor(other.target))[0] == list_of(full_tensor(beside.at(2 - e, 0).target))[0];
        }
        all = all && step == samples.steps();
      }
      all = all && beside.position() == nn::engine::loader_position{};
      beside.seek({2, 10});
      return all && same_bits(full_tensor(beside.next()->target), full_tensor(beside.at(2, 2).target));
    });
    REQUIRE(well.errors() == "");
    for (int r = 0; r < 2; ++r) CHECK(well.of(r));
  }
}

struct data : axis<2> {};
struct row : axis<2> {};
using grid = mesh<data, row>;
struct batch : dyn {};
using images = tensor<partition<grid, blocks<data>, whole, blocks<row>>, shape<batch, dim<2>, dim<3>>, double>;
using labels = tensor<partition<grid, whole, invariant<data, row>>, shape<batch>, std::int64_t>;

/// Samples of two dimensions.
struct pictures : torch::data::datasets::Dataset<pictures, Example<at::Tensor, std::int64_t>> {
  Example<at::Tensor, std::int64_t> get(std::size_t i) override {
    return {(at::arange(6, at::kDouble) + 10 * static_cast<double>(i)).sin().view({2, 3}),
            static_cast<std::int64_t>(i)};
  }
  std::optional<std::size_t> size() const override { return 7; }
};

TEST_CASE("a tensor type cuts samples too, and targets may lie otherwise than inputs", "[law]") {
  const auto well = in_team<grid>([](team<grid>& t) {
    loader_options options;
    options.batch = 3;
    loader<images, labels> samples(t, pictures(), options);
    bool all = true;
    int steps = 0;
    for (auto& [inputs, targets] : samples.epoch()) {
      static_assert(std::is_same_v<std::remove_cvref_t<decltype(inputs)>, images>);
      ++steps;
      const std::vector<index_t> numbers = list_of(targets.local());  // all of them, on every worker
      std::vector<at::Tensor> wanted;
      for (const index_t i : numbers) wanted.push_back(pictures().get(static_cast<std::size_t>(i)).data);
      const at::Tensor whole = at::stack(wanted);
      all = all && same_bits(full_tensor(inputs), whole);
      const interval mine = part(static_cast<index_t>(numbers.size()), 2, t.coordinate<data>());
      const interval columns = part(3, 2, t.coordinate<row>());
      all = all && same_bits(inputs.local(), whole.slice(0, mine.lo, mine.hi).slice(2, columns.lo, columns.hi));
    }
    return all && steps == 3;
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 4; ++r) CHECK(well.of(r));
}

TEST_CASE("a worker outside of the mesh gets tensors of which it has nothing, and waits for nobody", "[runtime]") {
  const auto well = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, grid_of(2, 1));
    loader samples(team, numbered(23), by_data(5));
    bool all = true;
    index_t steps = 0;
    for (auto& [inputs, targets] : samples.epoch()) {
      ++steps;
      all = all && inputs.layout().dims[1].extent == 3 && targets.layout().dims[0].extent == (steps < 5 ? 5 : 3);
      if (!team->inside()) all = all && inputs.local().numel() == 0 && targets.local().numel() == 0;
    }
    return all && steps == 5;
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(well.of(r));
}

TEST_CASE("a sample that one worker cannot read is an error on all, and the next call tries again", "[refusal]") {
  for (const int ahead : {0, 2}) {
    const auto well = on_grid(3, 1, [&](const team_handle& team) {
      numbered data(23);
      data.bad = std::make_shared<index_t>(7);
      const auto bad = data.bad;
      loader_options options = by_data(5);
      options.shuffle = false;
      options.ahead = ahead;
      loader samples(team, data, options);
      bool all = samples.next().has_value();
      const std::string says = told([&] { samples.next(); });
      all = all && says == "tessera.loader.read" && samples.position() == nn::engine::loader_position{0, 5};
      all = all && told([&] { samples.at(0, 1); }) == "tessera.loader.read";
      *bad = -1;
      const auto again = samples.next();
      return all && list_of(full_tensor(again->target)) == std::vector<index_t>{5, 6, 7, 8, 9};
    });
    REQUIRE(well.errors() == "");
    for (int r = 0; r < 3; ++r) CHECK(well.of(r));
  }
}

/// Samples some of which have other extents or elements.
struct uneven : torch::data::datasets::Dataset<uneven, torch::data::TensorExample> {
  explicit uneven(at::Tensor other) : other_(std::move(other)) {}
  torch::data::TensorExample get(std::size_t i) override { return i == 3 ? other_ : at::zeros({2}, at::kDouble); }
  std::optional<std::size_t> size() const override { return 8; }
  at::Tensor other_;
};

/// The code that all workers meet; another text if they do not meet the same.
template <class F>
std::string code_on(int workers, F&& f) {
  const auto all = on_grid(workers, 1, [&](const team_handle& team) { return told([&] { f(team); }); });
  for (int r = 0; r < workers; ++r)
    if (!all.results[static_cast<std::size_t>(r)] || all.of(r) != all.of(0)) return "not the same: " + all.errors();
  return all.of(0);
}

TEST_CASE("samples that make no batch are refused on all workers", "[refusal]") {
  for (const at::Tensor& other :
       {at::zeros({3}, at::kDouble), at::zeros({2}, at::kFloat), at::zeros({2, 1}, at::kDouble)})
    CHECK(code_on(4, [&](const team_handle& team) {
            loader_options options = by_data(4);
            options.shuffle = false;
            loader samples(team, uneven(other), options);
            samples.next();
          }) == "tessera.loader.shape");
  // on one worker: LibTorch does not stack them
  CHECK(code_on(2, [&](const team_handle& team) {
          loader_options options = by_data(4);
          options.shuffle = false;
          loader samples(team, uneven(at::zeros({3}, at::kDouble)), options);
          samples.next();
        }) == "tessera.loader.read");
}

/// Samples that another worker may have otherwise.
struct shifted : torch::data::datasets::Dataset<shifted, torch::data::TensorExample> {
  explicit shifted(double by) : by_(by) {}
  torch::data::TensorExample get(std::size_t i) override { return values_of(i) + by_; }
  std::optional<std::size_t> size() const override { return 9; }
  double by_;
};

TEST_CASE("batches move no bytes; copies that differ are an error where everything is compared", "[plan]") {
  const auto epoch_of = [](const team_handle& team, double more) {
    team->checks = checks::always;
    loader samples(team, shifted(more), by_data(4));
    const index_t before = team->total.bytes;
    for (auto& [inputs] : samples.epoch()) static_cast<void>(inputs.local());
    if (team->total.bytes != before) throw std::runtime_error("it moved bytes");
    return true;
  };
  const auto well = on_grid(2, 2, [&](const team_handle& team) { return epoch_of(team, team->at()[0]); });
  CHECK(well.errors() == "");
  const auto codes =
      on_grid(2, 2, [&](const team_handle& team) { return told([&] { epoch_of(team, team->at()[1]); }); });
  for (int r = 0; r < 4; ++r) CHECK(codes.of(r) == "tessera.agree.copies");
}

/// A data set that does not know its size.
struct endless : torch::data::datasets::Dataset<endless, torch::data::TensorExample> {
  torch::data::TensorExample get(std::size_t) override { return at::zeros({2}); }
  std::optional<std::size_t> size() const override { return std::nullopt; }
};

TEST_CASE("options that make no loader are refused on all workers, also where one alone has them", "[refusal]") {
  const auto made = [](const std::function<void(loader_options&, int)>& change) {
    return code_on(3, [&](const team_handle& team) {
      loader_options options = by_data(5);
      change(options, team->rank());
      loader samples(team, numbered(23), options);
    });
  };
  CHECK(made([](loader_options& o, int) { o.batch = 0; }) == "tessera.loader.options");
  CHECK(made([](loader_options& o, int rank) { o.batch = rank == 1 ? -1 : 5; }) == "tessera.loader.options");
  CHECK(made([](loader_options& o, int) { o.ahead = -1; }) == "tessera.loader.options");
  CHECK(made([](loader_options& o, int) { o.cut_by = {"batch"}; }) == "tessera.partition.axis");
  CHECK(made([](loader_options& o, int) { o.cut_by = {"data", "data"}; }) == "tessera.partition.twice");
  CHECK(made([](loader_options& o, int) { o.batch = 24, o.drop_last = true; }) == "tessera.loader.empty");
  CHECK(made([](loader_options& o, int rank) { o.seed = {static_cast<std::uint64_t>(rank)}; }) ==
        "tessera.agree.fingerprint");
  CHECK(code_on(2, [](const team_handle& team) { loader samples(team, endless(), by_data(5)); }) ==
        "tessera.loader.size");
  CHECK(code_on(2, [](const team_handle& team) { loader samples(team, numbered(0), by_data(5)); }) ==
        "tessera.loader.empty");
  CHECK(code_on(2, [](const team_handle& team) {
          loader samples(team, numbered(team->rank() == 0 ? 23 : 24), by_data(5));
        }) == "tessera.agree.fingerprint");
}

using fixed = tensor<partition<grid, blocks<data>, whole>, shape<dim<5>, dim<3>>, double>;
using floats = tensor<partition<grid, blocks<data>, whole>, shape<batch, dim<3>>, float>;
using wide = tensor<partition<grid, blocks<data>, whole>, shape<batch, dim<4>>, double>;
using flat = tensor<partition<grid, blocks<data>>, shape<batch>, double>;
using taught = tensor<partition<grid, blocks<data>>, shape<batch>, std::int64_t>;

template <class Inputs>
std::string of_type(index_t samples, bool drop_last = false, std::vector<std::string> cut_by = {}) {
  const auto all = in_team<grid>([&](team<grid>& t) {
    return told([&] {
      loader_options options;
      options.batch = 5;
      options.drop_last = drop_last;
      options.cut_by = cut_by;
      loader<Inputs, taught> given(t, numbered(static_cast<std::size_t>(samples)), options);
      given.next();
    });
  });
  for (int r = 1; r < 4; ++r)
    if (!all.results[static_cast<std::size_t>(r)] || all.of(r) != all.of(0)) return "not the same: " + all.errors();
  return all.of(0);
}

TEST_CASE("samples that are not what the tensor type says are refused", "[refusal]") {
  CHECK(of_type<fixed>(25) == "none");
  CHECK(of_type<fixed>(26, true) == "none");
  CHECK(of_type<fixed>(26) == "tessera.shape.extent");
  CHECK(of_type<floats>(25) == "tessera.tensor.element");
  CHECK(of_type<wide>(25) == "tessera.shape.extent");
  CHECK(of_type<flat>(25) == "tessera.shape.dimensions");
  CHECK(of_type<fixed>(25, false, {"data"}) == "tessera.loader.options");
}

TEST_CASE("steps that are none, and states that are no loader's, are refused, and nothing changes", "[refusal]") {
  const auto with = [](const std::function<void(state_dict&, int)>& change) {
    return code_on(2, [&](const team_handle& team) {
      loader samples(team, numbered(23), by_data(5));
      samples.next();
      state_dict state = samples.state();
      samples.next();
      const state_dict before = samples.state();
      change(state, team->rank());
      std::exception_ptr met;
      try {
        samples.load_state(state);
      } catch (...) {
        met = std::current_exception();
      }
      for (const auto& [key, value] : samples.state())
        if (met && !value.equal(before.at(key))) throw std::runtime_error("half a state was loaded");
      if (met) std::rethrow_exception(met);
    });
  };
  CHECK(with([](state_dict&, int) {}) == "none");
  CHECK(with([](state_dict& s, int) { s["samples"] = at::scalar_tensor(24, at::kLong); }) == "tessera.loader.samples");
  CHECK(with([](state_dict& s, int) { s["sample"] = at::scalar_tensor(24, at::kLong); }) == "tessera.loader.state");
  CHECK(with([](state_dict& s, int) { s["epoch"] = at::scalar_tensor(-1, at::kLong); }) == "tessera.loader.state");
  CHECK(with([](state_dict& s, int) { s["epoch"] = at::scalar_tensor(1, at::kDouble); }) == "tessera.loader.state");
  CHECK(with([](state_dict& s, int) { s["order"] = at::Tensor(); }) == "tessera.loader.state");
  CHECK(with([](state_dict& s, int) { s.erase("shuffle"); }) == "tessera.loader.state");
  CHECK(with([](state_dict& s, int rank) { s["epoch"] = at::scalar_tensor(rank, at::kLong); }) ==
        "tessera.agree.copies");
  const auto step = [](index_t epoch, index_t s) {
    return code_on(2, [&](const team_handle& team) { loader(team, numbered(23), by_data(5)).at(epoch, s); });
  };
  CHECK(step(0, 4) == "none");
  CHECK(step(0, 5) == "tessera.loader.step");
  CHECK(step(0, -1) == "tessera.loader.step");
  CHECK(step(-1, 0) == "tessera.loader.step");
  CHECK(code_on(2, [](const team_handle& team) { loader(team, numbered(23), by_data(5)).seek({0, 24}); }) ==
        "tessera.loader.step");
  CHECK(code_on(2, [&](const team_handle& team) { loader(team, numbered(23), by_data(5)).at(0, team->rank()); }) ==
        "tessera.agree.fingerprint");
}

}  // namespace
}  // namespace tessera::testing::loaders
