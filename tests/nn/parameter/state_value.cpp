#include "tests/support/counting_transport.hpp"
#include "tests/support/leaf_training.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <unistd.h>

#include <bit>
#include <filesystem>

// A module of LibTorch that data_parallel or bundle_shards has: its gradients judged and scaled, its weights averaged.

namespace tessera::testing::state_values {
namespace {

using nn::average;
using nn::bundle_shards;
using nn::bundle_shards_options;
using nn::data_parallel;
using nn::judgement;
using nn::loss_scaler;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Meshes of 1 to 6 workers, with the options by which shards lie over them.
struct spread {
  mesh_value over;
  bundle_shards_options how;
};
std::vector<spread> spreads() {
  std::vector<spread> all;
  for (const int stage : {1, 2}) {
    for (const int workers : {1, 2, 3, 4})
      all.push_back({row_of(workers), {.stage = stage, .masters = true, .bundle_bytes = 200}});
    all.push_back({row_of(3, 2), {.stage = stage, .bundle_bytes = 300}});
    all.push_back({row_of(3, 2), {.stage = stage, .bundle_bytes = 300, .over = {"data"}}});
  }
  return all;
}

/// Judges f(team, options) over all of them: nothing is wrong on any worker.
template <class F>
void judge_spreads(F&& f) {
  for (const spread& one : spreads()) {
    const auto run = on_mesh(one.over, [&](const team_handle& team) -> std::string { return f(team, one.how); });
    INFO(one.over.size() << " workers, stage " << one.how.stage << ", over " << one.how.over.size());
    REQUIRE(run.errors() == "");
    for (int r = 0; r < one.over.size(); ++r) CHECK(run.of(r) == "");
  }
}

/// What LibTorch alone makes of the gradients of one process: their norm before they are clipped.
double clipped_alone(const std::vector<at::Tensor>& leaves, double most, double order) {
  return torch::nn::utils::clip_grad_norm_(leaves, most, order);
}

std::vector<at::Tensor> copied(const std::vector<at::Tensor>& all) {
  std::vector<at::Tensor> each;
  for (const at::Tensor& one : all) each.push_back(one.detach().clone());
  return each;
}
bool close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::allclose(x, y, 1e-12, 1e-13); });
}

bool same_on_all(const team_handle& team, double x) {
  const auto all = team->collect(std::bit_cast<std::uint64_t>(x), "comparing norms");
  return std::all_of(all.begin(), all.end(), [&](std::uint64_t bits) { return bits == all[0]; });
}

TEST_CASE("the norm of what workers divide or copy, and what it clips, are one process's", "[law][gradient]") {
  judge_spreads([](const team_handle& team, const bundle_shards_options& how) -> std::string {
    std::string wrong;
    for (const double order : {2.0, 1.0, 3.0, infinite})
      for (const double most : {0.05, 1e9}) {
        torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble), alone = model(at::kDouble);
        bundle_shards shards(team, *net, how);
        data_parallel parallel(team, *whole);
        backward(net, at::kDouble, team->rank(), 0);
        backward(whole, at::kDouble, team->rank(), 0);
        for (int r = 0; r < team->size(); ++r) (loss_of(alone, at::kDouble, r, 0) / team->size()).backward();
        const double expected = clipped_alone(alone->parameters(), most, order);
        for (const double norm : {nn::judged(shards, order).norm, nn::clip_grad_norm(shards, most, order),
                                  nn::judged(parallel, order).norm, nn::clip_grad_norm(parallel, most, order)})
          if (!(std::abs(norm / expected - 1) < 1e-12) || !same_on_all(team, norm))
            wrong += fmt::format("{} is not {}; ", norm, expected);
        torch::optim::SGD part(shards.parameters(), 1), all(whole->parameters(), 1), beside(alone->parameters(), 1);
        part.step();
        shards.gather();
        all.step();
        beside.step();
        if (!close(net->parameters(), alone->parameters())) wrong += fmt::format("shards of order {}; ", order);
        if (!close(whole->parameters(), alone->parameters())) wrong += fmt::format("the module of order {}; ", order);
      }
    return wrong;
  });
}

TEST_CASE("one exchange judges shards and modules, however many bundles there are", "[law][gradient]") {
  for (const int workers : {2, 3, 5}) {
    const auto run = on_workers(workers, [&](const std::shared_ptr<transport>& carrier) -> std::string {
      const auto counting = std::make_shared<counting_transport>(carrier);
      const auto team = std::make_shared<team_state>(counting, row_of(workers));
      team->checks = checks::never;
      torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
      bundle_shards shards(team, *net, {.bundle_bytes = 100});
      data_parallel parallel(team, *whole);
      std::string wrong;
      const auto counted = [&](const char* what, const auto& call) {
        for (int time = 0; time < 2; ++time) {  // the second time nothing is bound
          backward(net, at::kDouble, team->rank(), time);
          backward(whole, at::kDouble, team->rank(), time);
          const int before = counting->begun;
          call();
          if (time == 1 && counting->begun != before + 1)
            wrong += fmt::format("{} exchanges: {}; ", counting->begun - before, what);
        }
      };
      loss_scaler scaler, other;
      counted("judged shards", [&] { nn::judged(shards); });
      counted("clipped shards", [&] { nn::clip_grad_norm(shards, 0.1); });
      counted("stepped shards", [&] { scaler.step([] {}, shards, {.most = 0.1}); });
      counted("judged module", [&] { nn::judged(parallel); });
      counted("stepped module", [&] { other.step([] {}, parallel); });
      return wrong;
    });
    REQUIRE(run.errors() == "");
    for (int r = 0; r < workers; ++r) CHECK(run.of(r) == "");
  }
}

TEST_CASE("with a scale shards and modules learn what they learn without, and all skip an overflow",
          "[law][gradient]") {
  judge_spreads([](const team_handle& team, const bundle_shards_options& how) -> std::string {
    std::string wrong;
    torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble), plain = model(at::kDouble);
    bundle_shards shards(team, *net, how);
    data_parallel parallel(team, *whole), beside(team, *plain);
    torch::optim::Adam part(shards.parameters(), 0.05), all(whole->parameters(), 0.05), one(plain->parameters(), 0.05);
    loss_scaler scaler({.scale = 8, .interval = 2}), other({.scale = 8, .interval = 2});
    for (int step = 0; step < 6; ++step) {
      const bool overflows = step == 3;
      for (torch::optim::Optimizer* o :
           {static_cast<torch::optim::Optimizer*>(&part), static_cast<torch::optim::Optimizer*>(&all),
            static_cast<torch::optim::Optimizer*>(&one)})
        o->zero_grad();
      const std::vector<at::Tensor> before = copied(net->parameters());
      const double bad = overflows && team->rank() == team->size() - 1 ? infinite : 1;
      scaler.scaled(loss_of(net, at::kDouble, team->rank(), step) * bad).backward();
      other.scaled(loss_of(whole, at::kDouble, team->rank(), step) * bad).backward();
      const judgement judged = scaler.step(part, shards), theirs = other.step(all, parallel);
      shards.gather();
      if (judged.finite == overflows || theirs.finite == overflows) wrong += fmt::format("judged in {}; ", step);
      if (overflows && !equal(before, net->parameters())) wrong += "stepped by an overflow; ";
      if (overflows) continue;
      backward(plain, at::kDouble, team->rank(), step);
      one.step();
      if (!equal(net->parameters(), plain->parameters())) wrong += fmt::format("shards in {}; ", step);
      if (!equal(whole->parameters(), plain->parameters())) wrong += fmt::format("the module in {}; ", step);
    }
    // 8, 16 behind two, halved by the overflow, doubled behind two
    if (scaler.scale() != 16 || other.scale() != 16) wrong += fmt::format("scale {}", scaler.scale());
    return wrong;
  });
}

TEST_CASE("what one worker's interval alone has not finite is not finite for all", "[law][gradient]") {
  for (int where = 0; where < 3; ++where)
    for (const double bad : {infinite, -infinite, std::nan("")}) {
      const auto run = on_mesh(row_of(3), [&](const team_handle& team) -> std::string {
        team->checks = checks::never;
        torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
        bundle_shards shards(team, *net);
        data_parallel parallel(team, *whole);
        backward(net, at::kDouble, team->rank(), 0);
        backward(whole, at::kDouble, team->rank(), 0);
        if (team->rank() == where) {
          shards.parameters()[0].mutable_grad()[-1] = bad;
          whole->parameters()[1].mutable_grad()[2] = bad;  // of one copy
        }
        std::string wrong;
        for (const judgement& found : {nn::judged(shards), nn::judged(parallel)})
          if (found.finite || std::isfinite(found.norm)) wrong += fmt::format("{} is finite; ", found.norm);
        return wrong;
      });
      REQUIRE(run.errors() == "");
      for (int r = 0; r < 3; ++r) CHECK(run.of(r) == "");
    }
}

/// The averages that one worker makes of what a whole module had.
struct averaged_alone {
  std::vector<at::Tensor> all;
  void update(const std::vector<at::Tensor>& values, double decay) {
    for (std::size_t i = 0; i < values.size(); ++i)
      all[i] = all[i] * decay + values[i].detach().to(all[i].scalar_type()) * (1 - decay);
  }
};

/// What is kept, as whole tensors by name.
std::map<std::string, at::Tensor> kept_by(const average& of) {
  std::map<std::string, at::Tensor> all;
  of.each_tensor([&](const std::string& key, tensor<dyn>& t) { all[key] = full_tensor(t); });
  return all;
}

TEST_CASE("averages of shards and of modules have the bits of one worker's, and an update moves nothing", "[law]") {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16})
    judge_spreads([&](const team_handle& team, bundle_shards_options how) -> std::string {
      const bool masters = type == at::kBFloat16;
      how.averages = false;
      torch::nn::Sequential net = model(type), whole = model(type);
      bundle_shards shards(team, *net, how);
      data_parallel parallel(team, *whole, {.averages = false});
      std::vector<at::Tensor> stepped = whole->parameters();  // or masters of these, in float
      if (masters)
        for (at::Tensor& w : stepped) w = w.detach().to(at::kFloat).set_requires_grad(true);
      torch::optim::Adam optimizer(shards.parameters(), 0.01), beside(stepped, 0.01);
      average of(shards, {.decay = 0.7}), theirs(parallel, {.decay = 0.7});
      averaged_alone alone{copied(stepped)}, used{copied(whole->parameters())};
      for (at::Tensor& one : used.all) one = masters ? one.to(at::kFloat) : one;
      std::string wrong;
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        whole->zero_grad();
        backward(net, type, team->rank(), step);
        backward(whole, type, team->rank(), step);
        optimizer.step();
        shards.gather();
        if (masters)
          for (std::size_t i = 0; i < stepped.size(); ++i)
            stepped[i].mutable_grad() = whole->parameters()[i].grad().to(at::kFloat);
        beside.step();
        const at::NoGradGuard no_graph;
        for (std::size_t i = 0; masters && i < stepped.size(); ++i) whole->parameters()[i].copy_(stepped[i]);
        const index_t moved = team->total.bytes;
        of.update();
        theirs.update();
        if (team->total.bytes != moved) wrong += "an update moves; ";
        alone.update(stepped, 0.7);
        used.update(whole->parameters(), 0.7);
      }
      const auto kept = kept_by(of), kept_whole = kept_by(theirs);
      std::size_t i = 0;
      for (const auto& one : whole->named_parameters()) {
        const at::Tensor& is = kept.at(one.key());
        if (is.scalar_type() != alone.all[i].scalar_type() || !is.equal(alone.all[i].flatten()))
          wrong += one.key() + " of shards; ";
        if (!kept_whole.at(one.key()).equal(used.all[i])) wrong += one.key() + " of the module; ";
        ++i;
      }
      const std::vector<at::Tensor> before = copied(net->parameters()), modules = copied(whole->parameters());
      const std::vector<at::Tensor> blocks = copied(shards.parameters());
      {
        const auto in = of.swapped_in(), others = theirs.swapped_in();
        for (i = 0; i < before.size(); ++i) {
          if (!net->parameters()[i].equal(alone.all[i].to(type))) wrong += "shards have another average; ";
          if (!whole->parameters()[i].equal(used.all[i].to(type))) wrong += "the module has another average; ";
        }
      }
      if (!equal(before, net->parameters()) || !equal(modules, whole->parameters()) ||
          !equal(blocks, shards.parameters()))
        wrong += "they did not come back; ";
      optimizer.step();  // gradients too
      return wrong;
    });
}

TEST_CASE("training goes on to the bit whenever averages of shards were swapped in", "[law]") {
  judge_spreads([](const team_handle& team, const bundle_shards_options& how) -> std::string {
    torch::nn::Sequential net = model(at::kDouble), plain = model(at::kDouble);
    bundle_shards shards(team, *net, how), beside(team, *plain, how);
    torch::optim::Adam optimizer(shards.parameters(), 0.05), other(beside.parameters(), 0.05);
    average of(shards, {.decay = 0.5});
    for (int step = 0; step < 3; ++step) {
      backward(net, at::kDouble, team->rank(), step);
      backward(plain, at::kDouble, team->rank(), step);
      {
        const auto in = of.swapped_in();  // between a backward and its step
      }
      optimizer.step();
      other.step();
      shards.gather();
      beside.gather();
      of.update();
      optimizer.zero_grad();
      other.zero_grad();
      const auto in = of.swapped_in();
    }
    return equal(net->parameters(), plain->parameters()) ? "" : "it learned otherwise";
  });
}

TEST_CASE("each of p workers keeps a p-th of an average of shards, to an element a bundle", "[law]") {
  for (const int workers : {1, 2, 3, 4}) {
    const auto run = on_mesh(row_of(workers), [](const team_handle& team) {
      torch::nn::Sequential net(torch::nn::Linear(61, 67), torch::nn::Linear(67, 13));
      bundle_shards shards(team, *net, {.bundle_bytes = 2048});
      const memory_count count;
      average of(shards);
      of.update();
      const at::NoGradGuard no_graph;
      return std::pair(count.now(), static_cast<std::int64_t>(shards.bundle_bytes().size()));
    });
    REQUIRE(run.errors() == "");
    constexpr std::int64_t n = 61 * 67 + 67 + 67 * 13 + 13;
    std::int64_t all = 0;
    for (int r = 0; r < workers; ++r) {
      const auto [bytes, bundles] = run.of(r);
      CHECK(bundles > 2);
      CHECK(std::abs(bytes / 4 - n / workers) <= bundles);
      all += bytes;
    }
    CHECK(all == 4 * n);
  }
}

/// Averages of some steps, from a checkpoint or to one, on so many workers by a stage, or by whole parameters in stage
/// 0.
std::map<std::string, at::Tensor> averages_of(const mesh_value& over, int stage, bool trains,
                                              const std::filesystem::path& folder) {
  const auto run = on_mesh(over, [&](const team_handle& team) {
    torch::nn::Sequential net = model(at::kFloat);
    const auto shards = stage > 0 ? std::make_unique<bundle_shards>(
                                        team, *net, bundle_shards_options{.stage = stage, .bundle_bytes = 100})
                                  : nullptr;
    const auto parallel = stage > 0 ? nullptr : std::make_unique<data_parallel>(team, *net);
    torch::optim::Adam optimizer(shards ? shards->parameters() : net->parameters(), 0.05);
    const auto of = shards ? std::make_unique<average>(*shards, nn::average_options{.decay = 0.5})
                           : std::make_unique<average>(*parallel, nn::average_options{.decay = 0.5});
    nn::checkpoint all{shards ? nn::checkpoint_entry("net", *shards) : nn::checkpoint_entry("net", *parallel),
                       {"optimizer", optimizer},
                       {"average", *of}};
    for (int step = 0; trains && step < 3; ++step) {
      optimizer.zero_grad();
      backward(net, at::kFloat, 0, step);
      optimizer.step();
      if (shards) shards->gather();
      of->update();
    }
    if (trains) all.save(folder);
    else all.load(folder);
    std::map<std::string, at::Tensor> kept = kept_by(*of);
    for (auto& [name, t] : kept) t = t.flatten();
    for (const auto& one : net->named_parameters()) kept["of " + one.key()] = one.value().detach();
    {
      const auto in = of->swapped_in();
      for (const auto& one : net->named_parameters()) kept["in place of " + one.key()] = one.value().detach().clone();
    }
    kept["updates"] = at::scalar_tensor(of->updates(), at::kLong);
    return kept;
  });
  INFO(run.errors());
  REQUIRE(run.errors() == "");
  return run.of(0);
}

TEST_CASE("averages of a checkpoint go on with other workers, another stage, or whole", "[law]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera_averages_{}", ::getpid());
  for (const auto& [over, stage] : {std::pair(row_of(3), 1), std::pair(row_of(2, 2), 2), std::pair(row_of(2), 0)}) {
    std::filesystem::remove_all(folder);
    const auto saved = averages_of(over, stage, true, folder);
    for (const auto& [others, next] :
         {std::pair(row_of(2), 2), std::pair(row_of(5), 1), std::pair(row_of(1), 1), std::pair(row_of(3), 0)}) {
      const auto found = averages_of(others, next, false, folder);
      CHECK(found.size() == saved.size());
      for (const auto& [name, t] : saved) CHECK(found.at(name).equal(t));
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("averages keep each worker's own buffers, and what is not trained", "[law]") {
  const auto run = on_mesh(row_of(3), [](const team_handle& team) -> std::string {
    std::string wrong;
    for (const bool divided : {false, true}) {
      torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 2));
      net->to(at::kDouble);
      net->parameters()[0].set_requires_grad(false);
      const auto shards = divided ? std::make_unique<bundle_shards>(team, *net) : nullptr;
      const auto parallel = divided ? nullptr : std::make_unique<data_parallel>(team, *net);
      average of = divided ? average(*shards, {.decay = 0.5}) : average(*parallel, {.decay = 0.5});
      const at::Tensor frozen = net->parameters()[0].clone();
      if (kept_by(of).size() != net->parameters().size() + net->buffers().size()) wrong += "some are missing; ";
      for (int step = 0; step < 2; ++step) {
        backward(net, at::kDouble, team->rank(), step);
        of.update();
      }
      const std::vector<at::Tensor> last = copied(net->buffers());
      net->forward(at::ones({5, 4}, at::kDouble));
      const std::vector<at::Tensor> after = copied(net->buffers());
      if (equal(last, after)) wrong += "the buffers stay; ";
      {
        const auto in = of.swapped_in();
        if (!equal(net->buffers(), last)) wrong += "other buffers; ";
        if (!net->parameters()[0].equal(frozen)) wrong += "another frozen parameter; ";
      }
      if (!equal(net->buffers(), after)) wrong += "the buffers did not come back; ";
    }
    return wrong;
  });
  REQUIRE(run.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(run.of(r) == "");
}

/// The code in what LibTorch, or the library, says.
template <class F>
std::string said(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    const std::string what = e.what();
    const auto begin = what.find("[tessera.");
    return begin == what.npos ? "other" : what.substr(begin + 1, what.find(']', begin) - begin - 1);
  }
  return "none";
}

/// What goes wrong where f must be refused, by this code.
template <class F>
std::string refused(const std::string& code, F&& f) {
  const std::string is = said(f);
  return is == code ? "" : fmt::format("{} and not {}; ", is, code);
}

TEST_CASE("a judgement, a clipping, a scaled step or a swap inside a window is refused, and the window goes on",
          "[refusal]") {
  judge_spreads([](const team_handle& team, const bundle_shards_options& how) -> std::string {
    std::string wrong;
    const auto tried = [&](auto& of, torch::nn::Sequential& net, const std::vector<at::Tensor>& stepped,
                           const auto& gather) {
      torch::optim::SGD optimizer(stepped, 0.1);
      torch::nn::Sequential plain = model(at::kDouble);
      data_parallel beside(team, *plain);
      torch::optim::SGD other(plain->parameters(), 0.1);
      average mean(of, {.decay = 0.5});
      loss_scaler scaler({.scale = 2});
      for (int pass = 0; pass < 2; ++pass) {
        const auto window = of.window(pass == 1), theirs = beside.window(pass == 1);
        scaler.scaled(loss_of(net, at::kDouble, team->rank(), pass)).backward();
        backward(plain, at::kDouble, team->rank(), pass);
        if (pass == 1) break;
        const std::vector<at::Tensor> before = copied(net->parameters());
        const std::string code = "tessera.data_parallel.window";
        wrong += refused(code, [&] { nn::judged(of); });
        wrong += refused(code, [&] { nn::clip_grad_norm(of, 0.1); });
        wrong += refused(code, [&] { scaler.unscale(of); });
        wrong += refused(code, [&] { scaler.step(optimizer, of); });
        wrong += refused(code, [&] { const auto in = mean.swapped_in(); });
        if (!equal(before, net->parameters()) || scaler.scale() != 2 || scaler.good_steps() != 0) wrong += "changed; ";
      }
      if (!scaler.step(optimizer, of).finite) wrong += "not finite; ";
      gather();
      other.step();
      if (!close(net->parameters(), plain->parameters())) wrong += "the window lost something; ";
      mean.update();
      const auto in = mean.swapped_in();
    };
    torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
    bundle_shards shards(team, *net, how);
    data_parallel parallel(team, *whole);
    tried(shards, net, shards.parameters(), [&] { shards.gather(); });
    tried(parallel, whole, whole->parameters(), [] {});
    return wrong;
  });
}

TEST_CASE("a scaler refuses what it cannot scale, and changes nothing", "[refusal]") {
  const auto run = on_mesh(row_of(3), [](const team_handle& team) -> std::string {
    std::string wrong;
    const auto tried = [&](auto& of, torch::nn::Sequential& net, const std::vector<at::Tensor>& stepped) {
      torch::nn::Sequential foreign = model(at::kDouble);
      for (at::Tensor& w : foreign->parameters()) w.mutable_grad() = at::ones_like(w);
      torch::optim::SGD optimizer(stepped, 0.1), other(foreign->parameters(), 0.1);
      std::vector<at::Tensor> more = stepped;
      more.push_back(foreign->parameters()[0]);
      torch::optim::SGD both(more, 0.1);
      loss_scaler scaler({.scale = 4});
      wrong += refused("tessera.scaler.loss", [&] { scaler.scaled(at::ones({}, at::kLong)); });
      scaler.scaled(loss_of(net, at::kDouble, team->rank(), 0)).backward();
      const std::vector<at::Tensor> before = copied(stepped), theirs = copied(foreign->parameters());
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& one : stepped) gradients.push_back(one.grad().clone());
      wrong += refused("tessera.scaler.leaves", [&] { scaler.step(other, of); });
      wrong += refused("tessera.scaler.leaves", [&] { scaler.step(both, of, {.most = 1}); });
      // one worker alone
      wrong += refused("tessera.agree.fingerprint", [&] { scaler.step(team->rank() == 1 ? other : optimizer, of); });
      wrong += refused("tessera.gradient.clip", [&] { scaler.step(optimizer, of, {.most = -1}); });
      for (std::size_t i = 0; i < stepped.size(); ++i)
        if (!stepped[i].grad().equal(gradients[i])) wrong += "another gradient; ";
      if (!equal(before, stepped) || !equal(theirs, foreign->parameters()) || scaler.good_steps() != 0)
        wrong += "something was stepped; ";
      wrong += refused("none", [&] { scaler.unscale(of); });
      wrong += refused("tessera.scaler.leaves", [&] { scaler.step(other, of); });
      wrong += refused("none", [&] { scaler.step(optimizer, of); });
      wrong += refused("tessera.scaler.twice", [&] { scaler.step(optimizer, of); });
      if (scaler.good_steps() != 1) wrong += "steps; ";
    };
    torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
    bundle_shards shards(team, *net, {.bundle_bytes = 200});
    data_parallel parallel(team, *whole);
    tried(shards, net, shards.parameters());
    tried(parallel, whole, whole->parameters());
    torch::optim::SGD leaves(net->parameters(), 0.1);  // whose gradients lie on shards
    loss_scaler scaler;
    wrong += refused("tessera.scaler.leaves", [&] { scaler.step(leaves, shards); });
    torch::nn::Sequential half = model(at::kHalf);
    const bundle_shards own(team, *half, {.masters = false});
    wrong += refused("tessera.scaler.half", [&] { scaler.unscale(own); });
    return wrong;
  });
  REQUIRE(run.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(run.of(r) == "");
}

TEST_CASE("who trains a module while averages stand in its place is told, and its weights come back", "[refusal]") {
  for (const bool zeroes : {false, true})
    judge_spreads([&](const team_handle& team, const bundle_shards_options& how) -> std::string {
      std::string wrong;
      const auto tried = [&](auto& of, torch::nn::Sequential& net, const std::vector<at::Tensor>& stepped) {
        torch::optim::SGD optimizer(stepped, 0.1);
        backward(net, at::kDouble, team->rank(), 0);
        average mean(of);
        const std::vector<at::Tensor> before = copied(net->parameters());
        std::vector<at::Tensor> gradients;
        for (const at::Tensor& one : stepped) gradients.push_back(one.grad());
        {
          const auto in = mean.swapped_in();
          wrong += refused("tessera.average.swapped", [&] { mean.update(); });
          if (zeroes) {
            optimizer.zero_grad();
          } else {
            wrong += refused("tessera.average.stepped", [&] { backward(net, at::kDouble, team->rank(), 1); });
            const bool some = std::any_of(stepped.begin(), stepped.end(), [](const auto& t) { return t.numel() > 0; });
            if (some) wrong += refused("tessera.average.stepped", [&] { optimizer.step(); });
            wrong += refused("tessera.average.stepped", [&] { nn::judged(of); });
          }
        }
        if (!equal(before, net->parameters())) wrong += "they did not come back; ";
        for (std::size_t i = 0; i < stepped.size(); ++i)
          if (!stepped[i].grad().is_same(gradients[i])) wrong += "another gradient; ";
        wrong += refused(zeroes ? "tessera.average.stepped" : "none", [&] { mean.update(); });
        wrong += refused("none", [&] { mean.update(); });
        optimizer.step();
      };
      torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
      bundle_shards shards(team, *net, how);
      data_parallel parallel(team, *whole);
      tried(shards, net, shards.parameters());
      tried(parallel, whole, whole->parameters());
      return wrong;
    });
}

}  // namespace
}  // namespace tessera::testing::state_values
