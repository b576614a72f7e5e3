#include "tests/support/tensors.hpp"

namespace tessera::testing {

using namespace engine;

namespace {

/// A line of workers, from world rank `first` on, that cuts one dimension of a matrix or holds it in another placement.
layout matrix_over(int workers, int first, const std::vector<index_t>& extents, int cut_dimension,
                   axis_placement how = {}) {
  layout x;
  x.mesh.axes.push({text("line"), workers, 1});
  x.mesh.first = first;
  x.placements.push(how);
  for (const index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  if (cut_dimension >= 0) x.cut_by(cut_dimension, 0);
  return x;
}

at::Tensor piece_of(const layout& x, int rank, const at::Tensor& whole) {
  at::Tensor part = whole;
  int d = 0;
  for (const intervals& held : held_by(x, rank)) {
    part = part.narrow(d, held[0].lo, held[0].size());
    ++d;
  }
  return part;
}

}  // namespace

// COSTA loses parts of the destination where both layouts are row-major and a tile has other numbers of blocks in
// height and width.
TEST_CASE("row-major tiles are transposed whatever their height and width, and so is the gradient",
          "[regression][runtime][gradient]") {
  int i = 0;
  for (const auto& [before, after, first] :
       {std::array{1, 1, 0}, std::array{2, 2, 0}, std::array{4, 4, 0}, std::array{3, 4, 0}, std::array{2, 3, 1}})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{300, 700}, {1030, 70}, {5, 3}}) {
      if (!tried(i++ + before)) continue;
      const at::Tensor a = global_of({n, m}, numbers{1});
      const at::Tensor c = global_of({m, n}, numbers{2});
      const layout rows = matrix_over(before, 0, {n, m}, 0);
      const layout columns = matrix_over(before, 0, {m, n}, 1);
      const layout rows_of_transposed = matrix_over(after, first, {m, n}, 0);
      const auto all = on_workers(std::max(before, first + after), [&, before = before, worker_mesh = rows.mesh](
                                                                       const std::shared_ptr<transport>& carrier) {
        const auto team = std::make_shared<team_state>(carrier, worker_mesh);
        const int r = carrier->rank();
        const at::Tensor mine = piece_of(rows, r, a).clone().set_requires_grad(true);
        const at::Tensor y = change_layout(team, columns, rows_of_transposed, mine.t());
        y.backward(piece_of(rows_of_transposed, r, c));
        return (before == 1 || y.is_contiguous()) && at::equal(y, piece_of(rows_of_transposed, r, a.t())) &&
               at::equal(mine.grad(), piece_of(rows, r, c.t()));
      });
      INFO(before << " to " << after << " from " << first << ": " << n << " x " << m << all.errors());
      REQUIRE(all.well());
      for (const auto& r : all.results) CHECK(*r);
    }
}

// DistDL 0.5 and 0.6 exchange halos in the gradient that came in, which the other term of a sum gets too.
TEST_CASE("a halo exchange leaves the gradient that it shares with another branch as it was",
          "[regression][gradient]") {
  const layout blocks = matrix_over(4, 0, {5, 5}, 0);
  layout halo = blocks;
  halo.dims[0].kind = cover::haloed;
  halo.dims[0].outputs = 5;
  halo.dims[0].needs = sliding{3, 1, 1, 1, 1}.needs();
  const layout terms = cotangent(halo);
  const shards seeds = deal(terms, 4, numbers{5});
  const shards x = deal(blocks, 4, numbers{6});
  const auto all = on_workers(4, [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, blocks.mesh);
    const at::Tensor mine = x.local[r].clone().set_requires_grad(true);
    const at::Tensor w = at::ones_like(seeds.local[r]).set_requires_grad(true);
    const at::Tensor seed = seeds.local[r].clone();
    (change_layout(team, blocks, halo, mine) + w * 1.0).backward(seed);
    return std::pair{mine.grad(), at::equal(w.grad(), seeds.local[r]) && at::equal(seed, seeds.local[r])};
  });
  INFO(all.errors());
  REQUIRE(all.well());
  std::vector<at::Tensor> gradients;
  for (const auto& r : all.results) {
    CHECK(r->second);
    gradients.push_back(r->first);
  }
  CHECK(distance(cotangent(blocks), gradients, seeds.global) < 1e-15);
}

// DistDL 0.5 and 0.6 sum a transposed tensor's memory instead of its elements.
TEST_CASE("an all_reduce of transposed terms has the sum, and a transposed gradient comes back as it is",
          "[regression][runtime][gradient]") {
  const layout terms = matrix_over(3, 0, {4, 7}, -1, {placement::partial});
  for (const placement kept : {placement::invariant, placement::replicate}) {
    const layout sums = matrix_over(3, 0, {4, 7}, -1, {kept});
    const at::Tensor a = global_of({7, 4}, numbers{3, true});
    const at::Tensor c = global_of({7, 4}, numbers{4, true});
    const auto all = on_workers(3, [&](const std::shared_ptr<transport>& carrier) {
      const auto team = std::make_shared<team_state>(carrier, terms.mesh);
      const at::Tensor mine = (a * (carrier->rank() + 1)).set_requires_grad(true);
      const at::Tensor y = change_layout(team, terms, sums, mine.t());
      y.backward((c * (kept == placement::invariant ? 1 : carrier->rank() + 1)).t());
      return at::equal(y, a.t() * 6) && at::equal(mine.grad(), c * (kept == placement::invariant ? 1 : 6));
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (const auto& r : all.results) CHECK(*r);
  }
}

}  // namespace tessera::testing
