// How much of forward + backward of the digits network goes into exchanges, at four workers: reported, no bar.
#include "../examples/digits/train.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

struct stopwatch {
  clock_type::time_point began;
  double seconds = 0;
};

tessera::engine::observer watching(stopwatch& watch) {
  tessera::engine::observer o;
  o.self = &watch;
  o.exchange_started = [](void* self, const tessera::phase&, tessera::element) {
    static_cast<stopwatch*>(self)->began = clock_type::now();
  };
  o.exchange_finished = [](void* self, const tessera::phase&, tessera::element, const tessera::engine::received&) {
    auto* w = static_cast<stopwatch*>(self);
    w->seconds += std::chrono::duration<double>(clock_type::now() - w->began).count();
  };
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  using model = digits::model<2, 2>;
  return tessera::launch<model::grid>(argc, argv, [&](tessera::team<model::grid>& team) {
    model::network net{team, tessera::seed{7}};
    const at::Tensor images = at::sin(at::arange(64 * 64, at::kDouble)).view({64, 1, 8, 8});
    const auto x = tessera::distribute<model::network::input>(team, images);
    const auto y = tessera::distribute<model::labels>(team, at::arange(64, at::kLong).remainder(10));
    const auto step = [&] {
      tessera::nn::cross_entropy(net(x), y).backward();
      for (const at::Tensor& p : net.parameters()) p.mutable_grad().reset();
    };
    for (int i = 0; i < 20; ++i) step();
    stopwatch watch;
    team.state()->watch = watching(watch);
    const auto began = clock_type::now();
    constexpr int steps = 300;
    for (int i = 0; i < steps; ++i) step();
    const double all = std::chrono::duration<double>(clock_type::now() - began).count();
    team.state()->watch = {};
    if (team.first())
      fmt::print(
          "{{\"name\": \"digits.share_of_time_in_exchanges.{}\", \"ratio\": {:.3f}, \"bar\": null, \"ok\": true, "
          "\"step_microseconds\": {:.0f}}}\n",
          team.state()->carrier().traits().name, watch.seconds / all, 1e6 * all / steps);
  });
}
