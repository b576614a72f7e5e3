#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

// Checkpoints that are no good, and saves that cannot end well: one error on every worker, and nothing changed.

namespace tessera::testing::bad_checkpoints {
namespace {

namespace fs = std::filesystem;

struct samples : dyn {};
struct along2 : axis<2> {};
struct along3 : axis<3> {};
template <class Axis>
using inputs = tensor<partition<mesh<Axis>, blocks<Axis>, whole>, shape<samples, dim<5>>, double>;
template <class Axis>
using net_of =
    nn::network<nn::chain<nn::sharded_over<nn::linear<7>, Axis>, nn::layer_norm<>, nn::linear<3>>, inputs<Axis>>;

/// What a run keeps, with a step of its optimizer.
template <class Axis>
struct run {
  net_of<Axis> net;
  torch::optim::Adam optimizer;
  std::int64_t step = 0;
  nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"step", step}};

  template <class Team>
  run(Team& t, std::uint64_t number)
      : net(t, seed{number}), optimizer(net.parameters(), torch::optim::AdamOptions(0.1)) {
    const auto y = net(distribute<inputs<Axis>>(t, global_of({7, 5}, numbers{number})));
    sum(y * y).backward();
    optimizer.step();
    step = static_cast<std::int64_t>(number);
  }

  /// All that it keeps, on this worker.
  std::vector<at::Tensor> state() {
    std::vector<at::Tensor> every;
    for (const at::Tensor& w : net.parameters()) {
      every.push_back(w.detach().clone());
      auto& of = dynamic_cast<torch::optim::AdamParamState&>(*optimizer.state().at(w.unsafeGetTensorImpl()));
      every.insert(every.end(),
                   {of.exp_avg().clone(), of.exp_avg_sq().clone(), at::scalar_tensor(of.step(), at::kLong)});
    }
    every.push_back(at::scalar_tensor(step, at::kLong));
    return every;
  }
};

bool alike(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

struct scratch {
  fs::path path;
  explicit scratch(const std::string& name)
      : path(fs::temp_directory_path() / fmt::format("tessera_bad_{}_{}", name, ::getpid())) {
    fs::create_directories(path);
  }
  ~scratch() { fs::remove_all(path); }
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Every file of a folder with its bytes.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& f : fs::recursive_directory_iterator(folder))
    all[fs::relative(f.path(), folder)] = f.is_regular_file() ? bytes_of(f.path()) : "folder";
  return all;
}

/// Saves a run of a number in a folder.
void save(const fs::path& folder, std::uint64_t number) {
  const auto saved = in_team<mesh<along2>>([&](auto& t) {
    run<along2>(t, number).all.save(folder);
    return true;
  });
  INFO(saved.errors());
  REQUIRE(saved.well());
}

/// What loading says on three workers: "loaded", a code that all of them met and that changed nothing, or what is
/// wrong.
std::string loading(const fs::path& folder) {
  const auto said = in_team<mesh<along3>>([&](auto& t) {
    run<along3> other(t, 9);
    const auto before = other.state();
    const std::string code = told([&] { other.all.load(folder); });
    if (code == "none") return other.step == 3 ? std::string("loaded") : "loaded otherwise";
    return alike(before, other.state()) ? code : code + " and changed";
  });
  for (const auto& r : said.results)
    if (r != said.results[0]) return "workers differ: " + said.errors() + r.value_or("lost");
  return said.results[0].value_or("lost");
}

TEST_CASE("a checkpoint of which any file is cut short, altered, exchanged or gone is refused", "[refusal]") {
  const scratch folder("files");
  save(folder.path / "run", 3);
  save(folder.path / "other", 4);
  const fs::path here = folder.path / "run" / "checkpoint_00000001",
                 there = folder.path / "other" / "checkpoint_00000001";
  const fs::path index = here / "index.json", first = here / "worker_0.safetensors",
                 second = here / "worker_1.safetensors";
  REQUIRE(loading(folder.path / "run") == "loaded");
  const auto with = [&](const fs::path& path, const std::string& bytes) {
    const std::string was = bytes_of(path);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string is = loading(folder.path / "run");
    std::ofstream(path, std::ios::binary) << was;
    return is;
  };
  for (const fs::path& file : {first, second}) {
    const std::string good = bytes_of(file);
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{40}, good.size() - 1})
      CHECK(with(file, good.substr(0, length)) == "tessera.file.truncated");
    CHECK(with(file, good + "x") == "tessera.file.altered");
    for (const std::size_t at : {good.size() / 2, good.size() - 1}) {
      std::string other = good;
      other[at] = static_cast<char>(other[at] ^ 4);
      CHECK(with(file, other) == "tessera.file.altered");
    }
    CHECK(with(file, bytes_of(there / file.filename())) == "tessera.file.altered");  // of another checkpoint
    fs::rename(file, folder.path / "away");
    CHECK(loading(folder.path / "run") == "tessera.file.missing");
    fs::create_directory(file);
    CHECK(loading(folder.path / "run") == "tessera.file.kind");
    fs::remove(file);
    fs::rename(folder.path / "away", file);
  }
  const std::string text = bytes_of(index);
  for (const std::size_t length : {std::size_t{0}, text.size() / 2, text.size() - 2})
    CHECK(with(index, text.substr(0, length)) == "tessera.file.altered");
  CHECK(with(index, bytes_of(there / "index.json")) == "tessera.file.altered");
  CHECK(with(index, "[]") == "tessera.file.altered");
  std::string other = text;
  other.replace(other.find("\"version\":1"), 11, "\"version\":\"\"");
  CHECK(with(index, other) == "tessera.checkpoint.version");
  const std::string one = bytes_of(first), two = bytes_of(second);
  std::ofstream(first, std::ios::binary) << two;
  CHECK(with(second, one) != "loaded");  // exchanged
  std::ofstream(first, std::ios::binary) << one;
  CHECK(loading(folder.path / "run") == "loaded");
  CHECK(loading(folder.path / "nowhere") == "tessera.checkpoint.missing");
}

/// What two workers meet who save in ways that may differ: code and, of each, whether anything changed.
template <class Change>
std::string saving(const fs::path& folder, const Change& change, const nn::checkpoint_options& options = {}) {
  const auto before = contents_of(folder);
  const auto said = in_team<mesh<along2>>([&](auto& t) {
    run<along2> other(t, 5);
    nn::checkpoint_options mine = options;
    change(t.rank(), other, mine);
    const auto state = other.state();
    const std::string code = told([&] {
      other.all.save(folder, mine);
      other.all.finish();
    });
    return code + (alike(state, other.state()) ? "" : " and changed");
  });
  if (contents_of(folder) != before) return "files changed";
  for (const auto& r : said.results)
    if (r != said.results[0]) return "workers differ: " + said.errors();
  return said.results[0].value_or("lost");
}

TEST_CASE("workers that would save different things save nothing", "[refusal]") {
  const scratch folder("differ");
  save(folder.path, 3);
  using options = nn::checkpoint_options;
  CHECK(saving(folder.path, [](int rank, auto& of, options&) { of.step += rank; }) == "tessera.agree.fingerprint");
  CHECK(saving(folder.path, [](int rank, auto& of, options&) {
          dynamic_cast<torch::optim::AdamOptions&>(of.optimizer.param_groups()[0].options()).lr(0.1 + rank);
        }) == "tessera.agree.fingerprint");
  CHECK(saving(folder.path, [](int rank, auto& of, options&) {
          const at::NoGradGuard no_graph;
          for (at::Tensor w : of.net.parameters())
            if (w.dim() == 1) w.add_(rank);  // of which both have a copy
        }) == "tessera.agree.copies");
  CHECK(saving(folder.path, [](int rank, auto& of, options&) {
          void* const last = of.net.parameters().back().unsafeGetTensorImpl();
          auto& state = dynamic_cast<torch::optim::AdamParamState&>(*of.optimizer.state().at(last));
          state.step(state.step() + rank);
        }) == "tessera.agree.fingerprint");
  CHECK(saving(folder.path, [](int rank, auto&, options& how) { how.keep += rank; }) == "tessera.agree.fingerprint");
  CHECK(saving(folder.path, [](int rank, auto&, options& how) { how.background = rank == 0; }) ==
        "tessera.agree.fingerprint");
  CHECK(loading(folder.path) == "loaded");
}

/// A process without room for files, while it is there.
class no_room {
 public:
  explicit no_room(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &was_);
    const rlimit little{bytes, was_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
  }
  ~no_room() {
    ::setrlimit(RLIMIT_FSIZE, &was_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit was_{};
};

TEST_CASE("a disk that fills up at any byte of a save leaves what was there", "[refusal]") {
  const scratch folder("full");
  save(folder.path, 3);
  const auto of = contents_of(folder.path);
  const auto none = [](auto&&...) {};
  const std::size_t index = of.at("checkpoint_00000001/index.json").size();
  const std::size_t file = of.at("checkpoint_00000001/worker_0.safetensors").size();
  REQUIRE(index > file);  // so that the index alone may find no room
  for (const bool background : {false, true})
    for (const std::size_t room : {std::size_t{0}, std::size_t{100}, file - 1, index - 1}) {
      const no_room while_here(room);
      CHECK(saving(folder.path, none, {.background = background}) == "tessera.file.space");
    }
  CHECK(loading(folder.path) == "loaded");
}

}  // namespace
}  // namespace tessera::testing::bad_checkpoints
