#pragma once
// Rolled exchanges of a world, whatever carries them, and what they must bring.

#include "generate.hpp"
#include "in_workers.hpp"
#include "oracle.hpp"

#include <fmt/core.h>

#include <atomic>
#include <bit>
#include <map>
#include <string>
#include <thread>

namespace tessera::testing {

using namespace engine;

/// The value of a test element: a function of its global index, so a misplaced one says where it came from.
inline double value_at(const oracle::element& at) {
  double v = 1;
  for (index_t i : at) v = v * 37 + static_cast<double>(i);
  return v;
}

/// A worker's part of doubles; a worker that holds nothing of a tensor without dimensions has a number that means
/// nothing.
struct local_box {
  std::vector<oracle::element> where;  ///< the elements in the order of memory
  static_vector<index_t, max_dimensions> extents;
  bool holds = true;
  std::vector<double> data;

  local_box(const cutting& of, int rank) : where(oracle::in_memory(of.of, rank)), holds(of.elements_of(rank) > 0) {
    index_t n = 1;
    for (const intervals& i : of.held_by(rank)) {
      extents.push(size_of(i));
      n *= size_of(i);
    }
    data.assign(static_cast<std::size_t>(n), 0.0);
  }
  region memory() {
    region r{reinterpret_cast<std::byte*>(data.data()), element::float64, extents, {}};
    r.strides = extents;
    return r.packed_at(r.data);
  }
};

/// Runs one exchange on this worker; how many bytes it received.
inline index_t carry(transport& c, const step& s, local_box& in, local_box& out) {
  const index_t bytes = bind_exchange(c, s, element::float64)->start(in.memory(), out.memory()).finish().bytes;
  c.synchronise();
  return bytes;
}

/// Runs one exchange on every thread of a world; returns the output of each.
template <class Meeting = by_memory>
std::vector<local_box> run(const carried& over, const step& s, int world, std::vector<local_box>& in, index_t& bytes) {
  Meeting meeting(world);
  std::vector<local_box> out;
  const transfer plan = s.plan();
  const bool fold = s.kind == map::fold;
  for (int r = 0; r < world; ++r) out.emplace_back(fold ? plan.source() : plan.target(), r);
  std::atomic<index_t> received{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r)
    threads.emplace_back([&, r] {
      const auto host = meeting.worker(r, std::chrono::seconds{60});
      {
        const std::shared_ptr<transport> carrier = over(host);
        received += carry(*carrier, s, in[static_cast<std::size_t>(r)], out[static_cast<std::size_t>(r)]);
      }
      host->leave();
    });
  for (auto& t : threads) t.join();
  bytes = received;
  return out;
}

inline int world_of(const layout& a, const layout& b) {
  int last = 0;
  for (const layout* x : {&a, &b})
    for (int i = 0; i < x->mesh.size(); ++i) last = std::max(last, x->mesh.rank(x->mesh.at(i)));
  return last + 1;
}

/// A Move puts every element where its layout says, and the Fold of the transposed layouts is its transpose, ⟨M x, z⟩ =
/// ⟨x, Mᵀ z⟩ summed over all workers, exactly, in whole numbers: what is wrong, on each of them.
inline std::string move_and_transpose(transport& c, const layout_pair& p, std::uint64_t salt) {
  const step move{map::move, p.from, p.to, combine::sum};
  const step fold{map::fold, cotangent(p.to), cotangent(p.from), combine::sum};
  local_box x(cutting{p.from}, c.rank()), y(cutting{p.to}, c.rank()), z(cutting{p.to}, c.rank()),
      w(cutting{p.from}, c.rank());
  for (std::size_t i = 0; i < x.where.size(); ++i) x.data[i] = value_at(x.where[i]);
  const index_t bytes = carry(c, move, x, y);
  index_t misplaced = 0;
  for (std::size_t i = 0; i < y.where.size(); ++i) misplaced += y.data[i] != value_at(y.where[i]);
  dice d{salt * 1000003u + static_cast<std::uint64_t>(c.rank())};
  double apart = 0;
  for (std::size_t i = 0; i < z.where.size(); ++i) apart += (z.data[i] = d.roll(-9, 9)) * y.data[i];
  carry(c, fold, z, w);
  for (std::size_t i = 0; i < x.where.size(); ++i) apart -= x.data[i] * w.data[i];

  std::vector<int> workers;
  for (int r = 0; r < c.size(); ++r) workers.push_back(r);
  const std::vector<std::uint64_t> mine{static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(misplaced),
                                        std::bit_cast<std::uint64_t>(apart)};
  const std::vector<std::uint64_t> all =
      agreement(c, workers).gather(mine, "judging", {.why = purpose::agreement, .name = "judging"});
  std::uint64_t moved = 0, wrong = 0;
  double off = 0;
  for (std::size_t i = 0; i < all.size(); i += 3) {
    moved += all[i];
    wrong += all[i + 1];
    off += std::bit_cast<double>(all[i + 2]);
  }
  const auto planned = static_cast<std::uint64_t>(8 * cost_of(move.plan()).total);
  if (moved == planned && wrong == 0 && off == 0) return "";
  return fmt::format("salt {}: {} bytes instead of {}, {} elements misplaced, <Mx, z> - <x, M*z> = {}; ", salt, moved,
                     planned, wrong, off);
}

/// The same of so many rolled pairs, each in a world of its own.
template <class Meeting = by_memory>
std::string moves_and_transposes(const carried& over, int rounds, std::uint64_t seed) {
  dice d{seed};
  for (int round = 0; round < trials(rounds); ++round) {
    const layout_pair p = roll_tilings(d, true, 4, 6);
    const auto all = in_world<Meeting>(world_of(p.from, p.to), [&](const std::shared_ptr<transport>& host) {
      return move_and_transpose(*over(host), p, d.state);
    });
    if (!all.well() || !all.of(0).empty())
      return fmt::format("seed {} round {}: {}", seed, round, all.well() ? all.of(0) : all.errors());
  }
  return "";
}

/// The same of rolled pairs for which the workers of one world are enough.
inline std::string moves_and_transposes_here(transport& c, int rounds, std::uint64_t seed) {
  std::string wrong;
  dice d{seed};
  while (rounds > 0) {
    const layout_pair p = roll_tilings(d, true, 4, 6);
    if (world_of(p.from, p.to) > c.size()) continue;
    wrong += move_and_transpose(c, p, d.state);
    --rounds;
  }
  return wrong;
}

/// Two Moves one after the other are the Move from the first to the last.
template <class Meeting = by_memory>
std::string move_after_move(const carried& over, int rounds, std::uint64_t seed) {
  dice d{seed};
  for (int round = 0; round < trials(rounds); ++round) {
    const layout_pair p = roll_tilings(d, true, 3, 6);
    static_vector<index_t, max_dimensions> extents;
    for (const dimension& dim : p.from.dims) extents.push(dim.extent);
    const layout between = roll_layout(d, roll_mesh(d), extents, {false, true, true, false, true});
    const int world = std::max(world_of(p.from, p.to), world_of(between, between));
    std::vector<local_box> x;
    for (int r = 0; r < world; ++r) {
      x.emplace_back(cutting{p.from}, r);
      for (auto& v : x.back().data) v = d.roll(-99, 99);
    }
    // Copies are equal, so what a worker holds is set from one global tensor of random numbers.
    std::map<std::uint64_t, double> global;
    for (auto& b : x)
      for (std::size_t i = 0; i < b.where.size(); ++i)
        b.data[i] = global.emplace(static_cast<std::uint64_t>(value_at(b.where[i])), b.data[i]).first->second;
    index_t bytes = 0;
    std::vector<local_box> half = run<Meeting>(over, {map::move, p.from, between, combine::sum}, world, x, bytes);
    const std::vector<local_box> both =
        run<Meeting>(over, {map::move, between, p.to, combine::sum}, world, half, bytes);
    const std::vector<local_box> once = run<Meeting>(over, {map::move, p.from, p.to, combine::sum}, world, x, bytes);
    for (int r = 0; r < world; ++r) {
      const auto& one = once[static_cast<std::size_t>(r)];
      if (one.holds && one.data != both[static_cast<std::size_t>(r)].data)
        return fmt::format("seed {} round {}", seed, round);
    }
  }
  return "";
}

/// A Fold adds what the halos of a plane hold, where any of them overlap.
template <class Meeting = by_memory>
std::string overlapping_halos(const carried& over) {
  std::string wrong;
  for (const auto& [rows, columns] : {std::pair{2, 2}, std::pair{3, 2}, std::pair{4, 3}})
    for (const auto& [height, width] : {std::pair{9, 7}, std::pair{5, 9}, std::pair{2, 2}})
      for (const int size : {3, 5, 7}) {
        layout tiles;
        tiles.mesh.axes.push({text{"a"}, rows, 1});
        tiles.mesh.axes.push({text{"b"}, columns, 1});
        tiles.mesh = row_major(tiles.mesh);
        tiles.placements.resize(2);
        tiles.dims.resize(2);
        tiles.dims[0].extent = height;
        tiles.dims[1].extent = width;
        tiles.cut_by(0, 0);
        tiles.cut_by(1, 1);
        layout halos = tiles;
        for (dimension& d : halos.dims) {
          const sliding window{size, 1, size / 2, size / 2, 1, boundary::zero};
          d.kind = cover::haloed;
          d.outputs = window.outputs(d.extent);
          d.needs = window.needs();
        }
        const int world = rows * columns;
        std::vector<local_box> in;
        std::map<oracle::element, double> sums;
        for (int r = 0; r < world; ++r) {
          in.emplace_back(cutting{halos}, r);
          for (std::size_t i = 0; i < in.back().where.size(); ++i) {
            in.back().data[i] = value_at(in.back().where[i]) * (r + 1);
            sums[in.back().where[i]] += in.back().data[i];
          }
        }
        index_t bytes = 0;
        const std::vector<local_box> out =
            run<Meeting>(over, {map::fold, cotangent(halos), cotangent(tiles), combine::sum}, world, in, bytes);
        std::size_t seen = 0;
        int differ = 0;
        for (const local_box& b : out)
          for (std::size_t i = 0; i < b.where.size(); ++i, ++seen) differ += b.data[i] != sums.at(b.where[i]);
        if (seen != static_cast<std::size_t>(height * width) || differ != 0)
          wrong += fmt::format("{}x{} workers, {}x{} numbers, a window of {}: {} seen, {} differ; ", rows, columns,
                               height, width, size, seen, differ);
      }
  return wrong;
}

}  // namespace tessera::testing
