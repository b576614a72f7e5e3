#pragma once
// The plan of a change held against the oracle: who must receive what, from whom, at what cost, and what it comes to.

#include "fuzz_case.hpp"
#include "oracle.hpp"

#include <tessera/plan/check_transfer.hpp>

#include <tuple>

namespace tessera::testing::fuzz {

using namespace engine;

/// A message between two ranks, as the engine says it.
struct parcel {
  int from = 0;
  int to = 0;
  std::vector<int> numbers;  ///< of its elements

  friend bool operator<(const parcel& a, const parcel& b) {
    return std::tie(a.from, a.to, a.numbers) < std::tie(b.from, b.to, b.numbers);
  }
  friend bool operator==(const parcel& a, const parcel& b) {
    return a.from == b.from && a.to == b.to && a.numbers == b.numbers;
  }
};

inline parcel parcel_of(const message& m, const layout& x) {
  parcel p{m.from, m.to, {0}};
  for (int d = 0; d < m.where.count; ++d) {
    std::vector<int> longer;
    for (int n : p.numbers)
      for (index_t i = m.where[d].lo; i < m.where[d].hi; ++i)
        longer.push_back(n * static_cast<int>(x.dims[d].extent) + static_cast<int>(i));
    p.numbers = std::move(longer);
  }
  return p;
}

/// Judges one Move or Fold. A Fold is read backwards: readers are those whose terms go away, servers those who get
/// them.
class step_judge {
 public:
  step_judge(const step& s, int world)
      : step_(s),
        world_(world),
        servers_{s.kind == map::move ? s.from : s.to},
        readers_{s.kind == map::move ? s.to : s.from} {
    for (const layout_oracle* side : {&servers_, &readers_}) {
      auto& place = side == &servers_ ? server_at_ : reader_at_;
      place.assign(static_cast<std::size_t>(world) + 1, -1);
      for (std::size_t i = 0; i < side->holders.size(); ++i)
        if (side->holders[i].holds) place[static_cast<std::size_t>(side->holders[i].rank)] = static_cast<int>(i);
    }
    for (const holder& w : servers_.holders) {
      holds_.emplace_back(static_cast<std::size_t>(volume_of(s.from)), false);
      for (int n : w.numbers) holds_.back()[static_cast<std::size_t>(n)] = true;
    }
  }

  std::string wrong() {
    const transfer plan = step_.plan();
    std::vector<parcel> sent;
    for (int r = 0; r <= world_; ++r) {  // one rank that is in no mesh, too
      plan.receives(r, [&](const message& m) { got_.push_back(parcel_of(m, step_.from)); });
      plan.sends(r, [&](const message& m) { sent.push_back(parcel_of(m, step_.from)); });
      for (const parcel& p : got_)
        if (p.to < 0 || p.to > r || p.from < 0 || p.from >= world_) return "a message of ranks that do not exist";
    }
    std::sort(got_.begin(), got_.end());
    std::sort(sent.begin(), sent.end());
    if (got_ != sent) return "the send lists do not mirror the receive lists";
    if (std::string why = wrong_messages(); !why.empty()) return why;
    return wrong_cost(cost_of(plan));
  }

  /// What the messages make of values.
  values carried(const values& in) const {
    const bool fold = step_.kind == map::fold;
    const layout_oracle& from = fold ? readers_ : servers_;
    const layout_oracle& to = fold ? servers_ : readers_;
    const auto& from_at = fold ? reader_at_ : server_at_;
    const auto& to_at = fold ? server_at_ : reader_at_;
    std::vector<std::vector<double>> source(from.holders.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i].assign(static_cast<std::size_t>(volume_of(from.of)), 0);
      for (std::size_t k = 0; k < in[i].size(); ++k)
        source[i][static_cast<std::size_t>(from.holders[i].numbers[k])] = in[i][k];
    }
    std::vector<std::vector<double>> target(
        to.holders.size(), std::vector<double>(static_cast<std::size_t>(volume_of(to.of)), neutral(step_.with)));
    for (const parcel& p : got_)
      for (int n : p.numbers) {
        const double v =
            source[static_cast<std::size_t>(from_at[static_cast<std::size_t>(p.from)])][static_cast<std::size_t>(n)];
        double& sum =
            target[static_cast<std::size_t>(to_at[static_cast<std::size_t>(p.to)])][static_cast<std::size_t>(n)];
        sum = fold ? combined(sum, v, step_.with) : v;
      }
    values out(to.holders.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      for (int n : to.holders[i].numbers) out[i].push_back(target[i][static_cast<std::size_t>(n)]);
    return out;
  }

  const layout_oracle& before() const { return step_.kind == map::move ? servers_ : readers_; }
  const layout_oracle& after() const { return step_.kind == map::move ? readers_ : servers_; }

 private:
  int reader_of(const parcel& p) const { return step_.kind == map::move ? p.to : p.from; }
  int server_of(const parcel& p) const { return step_.kind == map::move ? p.from : p.to; }

  // Every reader has every element that it holds in one message, with a server that it may have it with.
  std::string wrong_messages() {
    const int volume = volume_of(step_.from);
    served_.assign(readers_.holders.size(), std::vector<int>(static_cast<std::size_t>(volume), -1));
    for (const parcel& p : got_)
      for (int n : p.numbers) {
        const int reader = reader_at_[static_cast<std::size_t>(reader_of(p))];
        if (reader < 0 || n < 0 || n >= volume) return says(reader_of(p), n, "has a message and holds nothing");
        int& server = served_[static_cast<std::size_t>(reader)][static_cast<std::size_t>(n)];
        if (server >= 0) return says(reader_of(p), n, "is in two messages");
        server = server_of(p);
      }
    const bool aligned = same_mesh();
    for (std::size_t i = 0; i < readers_.holders.size(); ++i) {
      const holder& w = readers_.holders[i];
      int served = 0;
      for (int server : served_[i]) served += server >= 0;
      if (served != static_cast<int>(w.numbers.size()))
        return says(w.rank, served, "messages of elements it does not hold, or lacks");
      for (int n : w.numbers) {
        const int server = served_[i][static_cast<std::size_t>(n)];
        if (server < 0) return says(w.rank, n, "is in no message");
        if (!may_serve(server, w, n, aligned))
          return says(w.rank, n, "is with the wrong rank " + std::to_string(server));
      }
    }
    return {};
  }

  // A reader has to do with itself where it can, else with the copy at its own coordinates; axes that only one mesh has
  // leave a choice.
  bool may_serve(int server, const holder& reader, int number, bool aligned) const {
    const int s = server_at_[static_cast<std::size_t>(server)];
    if (s < 0 || !holds_[static_cast<std::size_t>(s)][static_cast<std::size_t>(number)]) return false;
    const int own = server_at_[static_cast<std::size_t>(reader.rank)];
    if (own >= 0 && holds_[static_cast<std::size_t>(own)][static_cast<std::size_t>(number)])
      return server == reader.rank;
    const layout& x = servers_.of;
    const layout& y = readers_.of;
    for (int a = 0; a < x.placements.count; ++a) {
      if (x.placements[a].kind == placement::cut || x.placements[a].kind == placement::on) continue;
      const int b = aligned ? a : y.mesh.find(x.mesh.axes[a].name);
      if (b < 0 || y.mesh.axes[b].extent != x.mesh.axes[a].extent) continue;
      if (servers_.holders[static_cast<std::size_t>(s)].at[static_cast<std::size_t>(a)] !=
          reader.at[static_cast<std::size_t>(b)])
        return false;
    }
    return true;
  }

  bool same_mesh() const {
    const mesh_value& a = servers_.of.mesh;
    const mesh_value& b = readers_.of.mesh;
    if (a.axes.count != b.axes.count) return false;
    for (int i = 0; i < a.axes.count; ++i)
      if (!(a.axes[i].name == b.axes[i].name) || a.axes[i].extent != b.axes[i].extent) return false;
    for (std::size_t i = 0; i < servers_.holders.size(); ++i)
      if (servers_.holders[i].rank != readers_.holders[i].rank) return false;
    return true;
  }

  std::string wrong_cost(const cost& planned) const {
    cost counted;
    std::vector<index_t> elements(static_cast<std::size_t>(world_), 0);
    std::vector<index_t> messages(static_cast<std::size_t>(world_), 0);
    for (const parcel& p : got_) {
      if (p.from == p.to) continue;
      elements[static_cast<std::size_t>(p.to)] += static_cast<index_t>(p.numbers.size());
      ++messages[static_cast<std::size_t>(p.to)];
    }
    for (std::size_t r = 0; r < elements.size(); ++r) {
      counted.total += elements[r];
      counted.messages += messages[r];
      counted.busiest = std::max(counted.busiest, elements[r]);
      counted.busiest_messages = std::max(counted.busiest_messages, messages[r]);
    }
    for (const holder& w : readers_.holders) {
      const int own = server_at_[static_cast<std::size_t>(w.rank)];
      for (int n : w.numbers)
        counted.lower_bound += own < 0 || !holds_[static_cast<std::size_t>(own)][static_cast<std::size_t>(n)];
    }
    std::ostringstream s;
    const auto compare = [&](const char* what, index_t said, index_t is) {
      if (said != is) s << what << " is said to be " << said << " and is " << is << "; ";
    };
    compare("total", planned.total, counted.total);
    compare("busiest", planned.busiest, counted.busiest);
    compare("number of messages", planned.messages, counted.messages);
    compare("most messages", planned.busiest_messages, counted.busiest_messages);
    compare("lower bound", planned.lower_bound, counted.lower_bound);
    compare("total, against the lower bound,", planned.total, counted.lower_bound);
    compare("number of messages, against the fewest,", planned.messages, fewest_messages());
    return s.str();
  }

  // A message is a box: for each dimension a run of what the reader holds, in what a server holds. Those with itself
  // are none.
  index_t fewest_messages() const {
    index_t n = 0;
    for (const holder& w : readers_.holders) {
      if (!w.holds) continue;
      std::map<std::vector<std::vector<index_t>>, bool> tiles;
      for (const holder& t : servers_.holders)
        if (t.holds) tiles[t.along] = tiles[t.along] || t.rank == w.rank;
      for (const auto& [along, own] : tiles) {
        if (own) continue;
        index_t boxes = 1;
        for (std::size_t d = 0; d < along.size(); ++d) boxes *= runs(w.along[d], along[d]);
        n += boxes;
      }
    }
    return n;
  }
  static index_t runs(const std::vector<index_t>& wanted, const std::vector<index_t>& tile) {
    index_t n = 0;
    index_t last = -2;
    for (index_t i : wanted) {
      if (std::find(tile.begin(), tile.end(), i) == tile.end()) continue;
      n += i != last + 1;
      last = i;
    }
    return n;
  }

  static std::string says(int rank, int number, const std::string& what) {
    return "rank " + std::to_string(rank) + ", element " + std::to_string(number) + ": " + what;
  }

  step step_;
  int world_;
  layout_oracle servers_;
  layout_oracle readers_;
  std::vector<int> server_at_;
  std::vector<int> reader_at_;
  std::vector<std::vector<bool>> holds_;
  std::vector<parcel> got_;
  std::vector<std::vector<int>> served_;
};

/// Takes values through the plan of a change; says what is wrong with the plan, with a box between two steps, or with
/// the result.
inline std::string run_plan(const layout& from, const layout& to, int world, const layout_oracle& begin,
                            const layout_oracle& end, values& v) {
  const change c = change_between(from, to);
  const auto by_rank = [](const layout_oracle& m, const values& all) {
    std::map<int, std::pair<std::vector<int>, std::vector<double>>> boxes;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (m.holders[i].holds) boxes[m.holders[i].rank] = {m.holders[i].numbers, all[i]};
    return boxes;
  };
  auto boxes = by_rank(begin, v);
  const auto handed_on = [&](const layout_oracle& m) {  // the boxes as the next layout has them
    values all(m.holders.size());
    std::size_t found = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!m.holders[i].holds) continue;
      const auto box = boxes.find(m.holders[i].rank);
      if (box == boxes.end() || box->second.first != m.holders[i].numbers) return std::optional<values>{};
      all[i] = box->second.second;
      ++found;
    }
    return found == boxes.size() ? std::optional{all} : std::optional<values>{};
  };
  for (int i = 0; i < c.steps.count; ++i) {
    const std::string where = "step " + std::to_string(i + 1) + " of " + std::to_string(c.steps.count) +
                              (c.steps[i].kind == map::move ? " (Move): " : " (Fold): ");
    if (!check_transfer(c.steps[i].kind, c.steps[i].from, c.steps[i].to).ok()) return where + "is none";
    step_judge judge(c.steps[i], world);
    const auto in = handed_on(judge.before());
    if (!in) return where + "begins with other boxes than there are";
    if (const std::string why = judge.wrong(); !why.empty()) return where + why;
    boxes = by_rank(judge.after(), judge.carried(*in));
  }
  const auto out = handed_on(end);
  if (!out) return "the plan ends with other boxes than it should";
  v = *out;
  return {};
}

/// What is wrong with the plan of a case and of its adjoint, or nothing.
inline std::string judge_plan(const fuzz_case& c) {
  const int world = world_of(c);
  const layout_oracle from{c.from};
  const layout_oracle to{c.to};
  const kind_of_values kind = kind_for(from, to);
  const values x = dealt(from, [&](int number, int term) { return value_at(c.salt, number, term, kind); });
  const std::vector<double> global = fuzz::global_of(from, x);
  values y = x;
  if (std::string why = run_plan(c.from, c.to, world, from, to, y); !why.empty()) return why;
  if (std::string why = differs(to, y, global); !why.empty()) return why;
  if (!only_sums(c)) return {};

  const layout back_from = cotangent(c.to);
  const layout back_to = cotangent(c.from);
  const layout_oracle seeded{back_from};
  const layout_oracle gradient{back_to};
  const values z =
      dealt(seeded, [&](int number, int term) { return value_at(c.salt + 1, number, term, kind_of_values::numbers); });
  values g = z;
  if (std::string why = run_plan(back_from, back_to, world, seeded, gradient, g); !why.empty())
    return "adjoint: " + why;
  if (std::string why = differs(gradient, g, fuzz::global_of(seeded, z)); !why.empty()) return "adjoint: " + why;
  if (fuzz::paired(to, y, z) != fuzz::paired(from, x, g)) return "<Fx, y> is not <x, F*y>";
  return {};
}

}  // namespace tessera::testing::fuzz
