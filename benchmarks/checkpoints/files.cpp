// Two processes save and load a state of two halves, in turns with write() and fsync of the same bytes: medians of the
// ratios of times. Beside it loading over read() of what the page cache has. files [MEBIBYTES [TURNS [FOLDER]]]
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/tessera.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

struct crew : ts::axis<2> {};
using grid = ts::mesh<crew>;
struct rows : ts::dyn {};
using halves = ts::tensor<ts::partition<grid, ts::blocks<crew>, ts::whole>, ts::shape<rows, ts::dim<1024>>, float>;
constexpr int tensors = 8, warm = 1;

/// What is saved.
struct state {
  std::vector<ts::tensor<ts::dyn>> all;

  template <class Visit>
  void each_tensor(const Visit& visit) {
    for (std::size_t i = 0; i < all.size(); ++i) visit(fmt::format("tensor_{}", i), all[i]);
  }
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// The seconds of the slower worker.
template <class F>
double seconds_of(const ts::team<grid>& workers, const F& f) {
  workers.state()->collect(0);
  const auto began = std::chrono::steady_clock::now();
  f();
  const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  double most = 0;
  for (const auto us : workers.state()->collect(static_cast<std::uint64_t>(mine * 1e6)))
    most = std::max(most, static_cast<double>(us) * 1e-6);
  return most;
}

void by_hand(const std::filesystem::path& path, const state& s, bool writes) {
  const int file = ::open(path.c_str(), writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
  for (const auto& t : s.all) {
    auto* at = static_cast<char*>(t.local().data_ptr());
    for (auto left = t.local().nbytes(); left > 0;) {
      const ::ssize_t n = writes ? ::write(file, at, left) : ::read(file, at, left);
      if (n <= 0) throw std::runtime_error("no file by hand");
      at += n;
      left -= static_cast<std::size_t>(n);
    }
  }
  if (writes && ::fsync(file) != 0) throw std::runtime_error("no file by hand");
  ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  const ts::index_t mebibytes = argc > 1 ? std::stoll(argv[1]) : 1024;
  const int turns = argc > 2 ? std::stoi(argv[2]) : 9;
  const std::filesystem::path folder =
      argc > 3 ? argv[3] : std::filesystem::temp_directory_path() / "tessera_checkpoints";
  return ts::launch<grid>(argc, argv, [&](ts::team<grid>& workers) {
    const at::NoGradGuard no_graph;
    state s;
    for (int i = 0; i < tensors; ++i)
      s.all.push_back(ts::from_local<halves>(
                          workers, at::arange(mebibytes * 1024 * 128 / tensors, at::kFloat).add_(i).view({-1, 1024}))
                          .dynamic());
    nn::checkpoint all{{"state", s}};
    const auto at_first = [&](const auto& f) {
      if (workers.first()) f();
      workers.state()->collect(0);
    };
    std::vector<double> saving, loading, reading, saved, loaded;
    for (int i = 0; i < turns + warm; ++i) {
      at_first([&] {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
      });
      const auto path = folder / fmt::format("by_hand_{}", workers.rank());
      double own = 0, hand = 0;
      const auto save = [&] { own = seconds_of(workers, [&] { all.save(folder); }); };
      const auto write = [&] { hand = seconds_of(workers, [&] { by_hand(path, s, true); }); };
      i % 2 == 0 ? (save(), write()) : (write(), save());
      if (i >= warm) {
        saving.push_back(own / hand);
        saved.push_back(own);
      }
      const double written = hand;
      const auto load = [&] { own = seconds_of(workers, [&] { all.load(folder); }); };
      const auto read = [&] { hand = seconds_of(workers, [&] { by_hand(path, s, false); }); };
      i % 2 == 0 ? (load(), read()) : (read(), load());
      if (i >= warm) {
        loading.push_back(own / written);
        reading.push_back(own / hand);
        loaded.push_back(own);
      }
    }
    at_first([&] { std::filesystem::remove_all(folder); });
    if (workers.first())
      fmt::print(
          "{{\"benchmark\": \"checkpoints\", \"mebibytes\": {}, \"save_s\": {:.3f}, \"save_ratio\": {:.3f}, "
          "\"load_s\": {:.3f}, \"load_ratio\": {:.3f}, \"load_over_read\": {:.3f}}}\n",
          mebibytes, median(saved), median(saving), median(loaded), median(loading), median(reading));
  });
}
