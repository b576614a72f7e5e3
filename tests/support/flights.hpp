#pragma once
// Calls that are under way together on a line of workers, with numbers that say where they come from.

#include "generate.hpp"

#include <tessera/comm/exchange/exchanges.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>

namespace tessera::testing {

using namespace engine;

/// n numbers, over a line of all workers.
inline layout on_line(int size, index_t n, axis_placement how) {
  layout x;
  mesh_value m;
  m.axes.push({text{"a"}, size, 1});
  x.mesh = row_major(m);
  x.placements.resize(1);
  x.dims.resize(1);
  x.dims[0].extent = n;
  if (how.kind == placement::cut) x.cut_by(0, 0);
  else x.placements[0] = how;
  return x;
}

inline step gathered(int size, index_t n) {
  return {map::move, on_line(size, n, {placement::cut}), on_line(size, n, {}), combine::sum};
}
inline step summed(int size, index_t n) {
  return {map::fold, on_line(size, n, {placement::partial}), on_line(size, n, {placement::cut}), combine::sum};
}
inline step summed_on(int size, index_t n, int worker) {
  return {map::fold, on_line(size, n, {placement::partial}), on_line(size, n, held_on(worker)), combine::sum};
}
inline step sent(int size, index_t n, int from, int to) {
  return {map::move, on_line(size, n, held_on(from)), on_line(size, n, held_on(to)), combine::sum};
}

/// One call: what a worker puts in is a function of the element, the worker and the salt; `right` says what arrived
/// wrongly.
class flight {
 public:
  flight(transport& carrier, const step& s, int salt, std::shared_ptr<bound_exchange> e)
      : carrier_(carrier), step_(s), salt_(salt), e_(std::move(e)) {
    const box mine = cutting{step_.from}.box_of(carrier_.rank());
    in_.resize(static_cast<std::size_t>(mine[0].size()) + 1);
    out_.resize(static_cast<std::size_t>(e_->output_extents()[0]) + 1);
    fill(salt);
  }
  /// In an order of its own where that has a number.
  flight(transport& carrier, const step& s, int salt, std::uint64_t order = 0)
      : flight(carrier, s, salt, bind_exchange(carrier, s, element::float64, {.order = order})) {}
  /// Another call of the same exchange.
  flight(flight& first, int salt) : flight(first.carrier_, first.step_, salt, first.e_) {}

  /// The same memory with other numbers.
  void fill(int salt) {
    salt_ = salt;
    const box mine = cutting{step_.from}.box_of(carrier_.rank());
    for (index_t i = mine[0].lo; i < mine[0].hi; ++i)
      in_[static_cast<std::size_t>(i - mine[0].lo)] = value(i, step_.kind == map::fold ? carrier_.rank() : -1);
  }
  void start() { call_.emplace(e_->start(memory(in_, e_->input_extents()), memory(out_, e_->output_extents()))); }
  void finish() {
    call_->finish();
    carrier_.synchronise();
    call_.reset();
  }

  std::string right() const {
    const cutting to{step_.to};
    if (to.elements_of(carrier_.rank()) == 0) return "";
    const box mine = to.box_of(carrier_.rank());
    for (index_t i = mine[0].lo; i < mine[0].hi; ++i) {
      double wanted = 0;
      if (step_.kind == map::fold)
        for (int r = 0; r < carrier_.size(); ++r) wanted += value(i, r);
      else wanted = value(i, -1);
      const double found = out_[static_cast<std::size_t>(i - mine[0].lo)];
      if (found != wanted)
        return fmt::format("worker {} call {} element {}: {} instead of {}; ", carrier_.rank(), salt_, i, found,
                           wanted);
    }
    return "";
  }

 private:
  double value(index_t i, int worker) const {
    return salt_ * 1000003.0 + static_cast<double>(i) * 17 + (worker + 1) * 0.25;
  }
  static region memory(std::vector<double>& data, const static_vector<index_t, max_dimensions>& extents) {
    return region{reinterpret_cast<std::byte*>(data.data()), element::float64, extents, extents}.packed_at(
        reinterpret_cast<std::byte*>(data.data()));
  }

  transport& carrier_;
  step step_;
  int salt_;
  std::shared_ptr<bound_exchange> e_;
  std::vector<double> in_;
  std::vector<double> out_;
  std::optional<in_flight> call_;  // last: withdrawn before its memory goes
};

/// Three kinds of exchange under way together; a box of `large` numbers is beyond what any transport buffers.
inline std::array<flight, 3> three(transport& c, index_t large, int salt) {
  const int size = c.size();
  return {flight(c, gathered(size, 11 + large), salt), flight(c, summed(size, 7 + large), salt + 1),
          flight(c, sent(size, 5 + large, 0, size - 1), salt + 2)};
}

/// Two and three calls under way, ended in every pair of orders on even and odd workers.
inline std::string every_order(transport& c) {
  std::string wrong;
  int salt = 1, number = 0;
  for (const index_t large : {index_t{0}, index_t{20000}})
    for (const int count : {2, 3}) {
      std::array<int, 3> even{0, 1, 2};
      do {
        std::array<int, 3> odd{0, 1, 2};
        do {
          if (!tried(number++)) continue;
          auto calls = three(c, large, salt);
          salt += 3;
          for (int i = 0; i < count; ++i) calls[static_cast<std::size_t>(i)].start();
          for (const int i : c.rank() % 2 == 0 ? even : odd)
            if (i < count) calls[static_cast<std::size_t>(i)].finish();
          for (int i = 0; i < count; ++i) wrong += calls[static_cast<std::size_t>(i)].right();
        } while (std::next_permutation(odd.begin(), odd.begin() + count));
      } while (std::next_permutation(even.begin(), even.begin() + count));
    }
  return wrong;
}

/// Three calls begun in another order on each worker, ended in the order of the first.
inline std::string every_beginning(transport& c) {
  std::string wrong;
  int salt = 1;
  for (const index_t large : {index_t{0}, index_t{20000}})
    for (int turn = 0; turn < 3; ++turn) {
      auto calls = three(c, large, salt);
      salt += 3;
      for (int i = 0; i < 3; ++i) calls[static_cast<std::size_t>((i + turn * c.rank()) % 3)].start();
      for (auto& call : calls) call.finish();
      for (const auto& call : calls) wrong += call.right();
    }
  return wrong;
}

/// One exchange under way three times, ended forwards and backwards, on even and odd workers unlike.
inline std::string same_exchange_again(transport& c) {
  std::string wrong;
  int salt = 1;
  for (const index_t large : {index_t{0}, index_t{20000}})
    for (const step& s :
         {gathered(c.size(), 9 + large), summed(c.size(), 9 + large), sent(c.size(), 9 + large, 0, c.size() - 1)})
      for (const int how : {0, 1, 2, 3}) {
        flight a(c, s, salt);
        flight b(a, salt + 1);
        flight d(a, salt + 2);
        salt += 3;
        for (flight* f : {&a, &b, &d}) f->start();
        const bool backwards = (c.rank() % 2 == 0 ? how & 1 : how & 2) != 0;
        for (flight* f : backwards ? std::array{&d, &b, &a} : std::array{&a, &b, &d}) f->finish();
        for (flight* f : {&a, &b, &d}) wrong += f->right();
      }
  return wrong;
}

/// Two sums under way, which even and odd workers end in other orders: whoever waits in one takes what comes for the
/// other.
inline std::string sums_crosswise(transport& c) {
  flight a(c, summed(c.size(), 300'000), 1);
  flight b(c, summed(c.size(), 300'001), 2);
  a.start();
  b.start();
  for (flight* f : c.rank() % 2 == 0 ? std::array{&a, &b} : std::array{&b, &a}) f->finish();
  return a.right() + b.right();
}

/// A halo brought and added back, where the output holds already what is each worker's alone: that stays as it was.
inline std::string leaves_own(transport& c) {
  std::string wrong;
  constexpr double kept = -1;
  for (const index_t n : {index_t{4}, index_t{20000}}) {
    const layout whole = on_line(c.size(), n * c.size() + 1, {placement::cut}), haloed = whole.halo(0, {3, 1, 1, 1, 1});
    const auto held = [](const layout& x, int rank) { return cutting{x}.box_of(rank)[0]; };
    const auto value = [](index_t i, int worker) { return static_cast<double>(i) * 17 + (worker + 1) * 0.25; };
    for (const step& s : {step{map::move, whole, haloed, combine::sum},
                          step{map::fold, cotangent(haloed), cotangent(whole), combine::sum}}) {
      const interval has = held(s.from, c.rank()), gets = held(s.to, c.rank());
      std::vector<double> in(static_cast<std::size_t>(has.size())), out(static_cast<std::size_t>(gets.size()), kept);
      for (index_t i = has.lo; i < has.hi; ++i) in[static_cast<std::size_t>(i - has.lo)] = value(i, c.rank());
      const auto memory = [](std::vector<double>& data) {
        region r{reinterpret_cast<std::byte*>(data.data()), element::float64, {}, {}};
        r.extents.push(static_cast<index_t>(data.size()));
        r.strides.push(1);
        return r;
      };
      bind_exchange(c, s, element::float64)->start(memory(in), memory(out), {}, true).finish();
      c.synchronise();
      for (index_t i = gets.lo; i < gets.hi; ++i) {
        double wanted = 0;
        for (int r = 0; r < c.size(); ++r)
          if (const interval of = held(s.from, r); i >= of.lo && i < of.hi) wanted += value(i, r);
        if (wanted == value(i, c.rank())) wanted = kept;
        const double found = out[static_cast<std::size_t>(i - gets.lo)];
        if (found != wanted)
          wrong += fmt::format("worker {} element {} of {}: {} instead of {}; ", c.rank(), i, n, found, wanted);
      }
    }
  }
  return wrong;
}

/// Calls of one exchange, one after the other, some from where the one before lay.
inline std::string in_turns(transport& c) {
  std::string wrong;
  int salt = 1;
  for (const index_t large : {index_t{0}, index_t{100}, index_t{20000}})
    for (const step& s :
         {gathered(c.size(), 9 + large), summed(c.size(), 9 + large), sent(c.size(), 9 + large, 0, c.size() - 1)}) {
      flight a(c, s, 0);
      flight b(a, 0);
      for (flight* f : {&a, &a, &a, &b, &a, &b, &b, &a, &a, &a}) {
        f->fill(++salt);
        f->start();
        f->finish();
        wrong += f->right();
      }
    }
  return wrong;
}

/// Five to nine calls of one exchange under way, begun while others end, each worker ending them in an order of its
/// own.
inline std::string many_of_one(transport& c) {
  std::string wrong;
  int salt = 1, number = 0;
  for (const index_t large : {index_t{0}, index_t{20000}})
    for (const step& s : {gathered(c.size(), 9 + large), summed(c.size(), 9 + large), summed_on(c.size(), 9 + large, 0),
                          sent(c.size(), 9 + large, 0, c.size() - 1)})
      for (std::size_t most = 5; most <= 9; ++most) {
        if (!tried(number++)) continue;
        dice d{static_cast<std::uint64_t>(salt * 31 + c.rank())};
        flight first(c, s, salt);
        std::deque<flight> calls;
        std::vector<flight*> open;
        const auto end_one = [&] {
          const auto which = open.begin() + d.roll(0, static_cast<int>(open.size()) - 1);
          (*which)->finish();
          open.erase(which);
        };
        for (std::size_t i = 0; i < 3 * most; ++i) {
          open.push_back(&calls.emplace_back(first, ++salt));
          open.back()->start();
          if (open.size() == most) end_one();
        }
        while (!open.empty()) end_one();
        for (const flight& f : calls) wrong += f.right();
      }
  return wrong;
}

/// Calls of exchanges whose transport was let go.
inline std::string without_transport(std::shared_ptr<transport> carrier) {
  flight first(*carrier, gathered(carrier->size(), 9), 1);
  const std::weak_ptr<transport> lasts = carrier;
  carrier.reset();
  if (lasts.expired()) return "its transport is gone; ";
  first.start();
  first.finish();
  return first.right();
}

/// Exchanges that lie bound, one more than there is room for, though each worker has bound some by itself first.
inline std::string more_than_room(transport& c) {
  std::vector<std::shared_ptr<bound_exchange>> alone;
  std::vector<std::shared_ptr<bound_exchange>> all;
  const auto bound = [&](index_t n) { return bind_exchange(c, gathered(c.size(), n), element::float64); };
  for (int i = 0; i < 20; ++i)
    alone.push_back(bind_exchange(c, sent(c.size(), 5, c.rank(), c.rank()), element::float64));
  for (std::uint64_t i = 0; i < c.most_exchanges(); ++i) all.push_back(bound(9));
  alone.clear();
  for (int round = 0; round < 2; ++round) {
    std::string met;
    try {
      bound(9);
    } catch (const error& e) {
      met = e.code();
    }
    if (met != "tessera.agree.exchanges") return "one more is bound: " + met + "; ";
    all.pop_back();
    all.push_back(bound(10));
  }
  return "";
}

/// Exchanges of pairs of three workers take what places there are so that no place is free on all.
inline std::string no_room_together(transport& c) {
  std::vector<std::shared_ptr<bound_exchange>> all;
  const auto pair = [&](int one, int other) {
    if (c.rank() == one || c.rank() == other)
      all.push_back(bind_exchange(c, sent(c.size(), 5, one, other), element::float64));
  };
  for (std::uint64_t i = 0; i < c.most_exchanges() / 2; ++i) pair(0, 1);
  for (std::uint64_t i = 0; i < c.most_exchanges() - c.most_exchanges() / 2; ++i) pair(1, 2);
  try {
    pair(0, 2);
  } catch (const error& e) {
    return std::string_view(e.code()) == "tessera.agree.exchanges" ? "" : e.what();
  }
  return c.rank() == 1 ? "" : "one more is bound; ";
}

/// Two workers hand round numbers for reasons that have one place among `places`; each is told what the other does.
inline std::string another_agreement(transport& c, std::uint64_t places) {
  std::vector<int> workers;
  for (int r = 0; r < c.size(); ++r) workers.push_back(r);
  const agreement among(c, workers);
  std::string what = "reason 0";
  if (c.rank() == 1)
    for (int i = 1; among.key_of(1, what.c_str()) % places != among.key_of(1, "reason 0") % places || i == 1; ++i)
      what = fmt::format("reason {}", i);
  try {
    among.gather(std::vector<std::uint64_t>{1}, what.c_str(), {.why = purpose::agreement, .name = what.c_str()});
  } catch (const error& e) {
    const std::string says = e.what();
    const bool both =
        says.find("worker 0: reason 0") != std::string::npos && says.find("worker 1: reason ") != std::string::npos;
    return both && std::string_view(e.code()) == "tessera.agree.fingerprint" ? "" : says;
  }
  return "numbers for another reason are taken; ";
}

/// A call of an exchange that stays beside calls of `many` that come and go, so that over MPI some would have its tag
/// if tags were fewer; begun in another order on each worker. Workers have exchanges that others do not have.
inline std::string beside_many(transport& c, int many) {
  std::string wrong;
  const auto kept = bind_exchange(c, sent(c.size(), 5, 0, c.size() - 1), element::float64);
  flight stays(c, gathered(c.size(), 9), 1);
  for (int salt = 2; salt < many + 2; ++salt) {
    flight goes(c, gathered(c.size(), 9), salt);
    flight again(stays, -salt);
    for (flight* f : c.rank() % 2 == 0 ? std::array{&again, &goes} : std::array{&goes, &again}) f->start();
    for (flight* f : {&again, &goes}) f->finish();
    wrong += again.right() + goes.right();
  }
  return wrong;
}

/// Five exchanges where three are kept, each worker using them in an order of its own; how many were forgotten is the
/// same everywhere.
inline std::string forgotten_together(transport& c) {
  std::string wrong;
  exchanges known(c, 3);
  std::vector<std::shared_ptr<bound_exchange>> met;
  dice d{static_cast<std::uint64_t>(c.rank())};
  for (int round = 0; round < 40; ++round) {
    std::deque<flight> calls;
    for (const int n : {round % 5, (round * 2 + 1) % 5, (round + 2) % 5}) {
      const step s = gathered(c.size(), 9 + n);
      const auto e = known.bound(s, element::float64, {});
      if (std::find(met.begin(), met.end(), e) == met.end()) met.push_back(e);
      if (e->retired) wrong += "a forgotten exchange is given; ";
      calls.emplace_back(c, s, round * 7 + n, e);
    }
    std::vector<flight*> order;
    for (flight& f : calls) order.insert(order.begin() + d.roll(0, static_cast<int>(order.size())), &f);
    for (flight* f : order) f->start();
    for (flight* f : order) f->finish();
    for (const flight& f : calls) wrong += f.right();
  }
  const auto live = std::count_if(met.begin(), met.end(), [](const auto& e) { return !e->retired; });
  if (live != 3 || met.size() < 10) wrong += fmt::format("{} of {} exchanges are kept; ", live, met.size());
  return wrong;
}

/// What must hold of calls that are under way together on every transport, whatever it has room for.
inline std::string under_way_together(transport& c) {
  return every_order(c) + every_beginning(c) + same_exchange_again(c) + sums_crosswise(c) + leaves_own(c) +
         in_turns(c) + many_of_one(c) + forgotten_together(c);
}

}  // namespace tessera::testing
