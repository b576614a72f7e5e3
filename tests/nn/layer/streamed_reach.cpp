// Streams of attention by places bring the keys alone that a worker's queries reach: counted row by row.

#include "tests/support/streamed_attention.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace streamed_reach {

using namespace streamed_attention;

template <int P>
struct line : axis<P> {};
template <int P>
struct lane : axis<P> {};

/// Which keys are seen, and how they lie.
struct reach {
  index_t before, after;  ///< −1: as far as there are keys
  bool causal = false, slides = true;
};

std::set<index_t> held_of(const layout& x, int rank) {
  std::set<index_t> all;
  const tessera::engine::holding held = tessera::engine::held_by(x, rank);
  if (held.count < 2) return all;
  for (const interval& i : held[1])
    for (index_t n = i.lo; n < i.hi; ++n) all.insert(n);
  return all;
}

/// What comes of a tensor of the keys, row by row: to all, to the busiest worker, of its gradient to the busiest owner,
/// in how many messages, and in the largest one and the largest two that one worker gets.
struct rows_that_come {
  index_t all = 0, reader = 0, owner = 0, messages = 0, largest = 0, two = 0;
};
rows_that_come brute(const layout& q, const layout& k, const reach& r, index_t rows) {
  rows_that_come n;
  std::map<int, index_t> given;
  const int workers = q.mesh.size();
  index_t longest = 1;
  for (int w = 0; w < workers; ++w) longest = std::max<index_t>(longest, static_cast<index_t>(held_of(k, w).size()));
  if (rows == 0 || rows > longest) rows = longest;
  for (int w = 0; w < workers; ++w) {
    std::set<index_t> seen;
    for (const index_t i : held_of(q, w))
      for (index_t j = 0; j < k.dims[1].extent; ++j)
        if ((r.before < 0 || j >= i - r.before) && (r.after < 0 || j <= i + r.after)) seen.insert(j);
    const std::set<index_t> own = held_of(k, w);
    index_t comes = 0;
    std::vector<index_t> messages(2, 0);
    for (int from = 0; from < workers; ++from) {
      if (from == w) continue;
      index_t some = 0;
      for (const index_t j : held_of(k, from)) some += seen.contains(j) && !own.contains(j);
      comes += some;
      given[from] += some;
      n.messages += (some + rows - 1) / rows;
      for (index_t left = some; left > 0; left -= rows) messages.push_back(std::min(left, rows));
    }
    std::sort(messages.rbegin(), messages.rend());
    n.largest = std::max(n.largest, messages[0]);
    n.two = std::max(n.two, messages[0] + messages[1]);
    n.all += comes;
    n.reader = std::max(n.reader, comes);
  }
  for (const auto& [from, some] : given) n.owner = std::max(n.owner, some);
  return n;
}

nn::attention_layer layer_of(const reach& r, index_t rows) {
  return {.causal = r.causal,
          .streamed = true,
          .rows = rows,
          .slides = r.slides,
          .before = r.slides ? r.before : 0,
          .after = r.slides ? r.after : 0};
}

constexpr index_t features = 3, values = 2, heads = 2;

layer_plan plan_of(const layout& q, const layout& k, const reach& r, index_t rows) {
  layout v = k;
  v.dims[3].extent = values;
  const element e = element::float64;
  const layer_plan p = layer_of(r, rows).plan({q, e}, {k, e}, {v, e});
  REQUIRE(p.why.ok());
  return p;
}
traffic_value planned(const layout& q, const layout& k, const reach& r, index_t rows) {
  operand_elements all;
  for (int i = 0; i < 3; ++i) all.push(element::float64);
  return traffic_of(plan_of(q, k, r, rows), all);
}

const reach every[]{
    {0, 0}, {1, 0}, {0, 2}, {2, 3}, {5, 1}, {40, 40}, {100, 0}, {0, 100}, {9, 9}, {-1, 0, true, false}, {4, 0, true}};

/// What the plan says otherwise than one who counts rows.
template <int P>
std::string miscounted() {
  std::string all;
  const mesh_value& m = mesh<line<P>>::value;
  std::vector<index_t> uneven{0};
  int number = 0;
  for (int k = 1; k <= P; ++k) uneven.push_back(k == P ? 23 : std::min<index_t>(23, uneven.back() + (k % 3) * 4));
  for (const index_t length : {index_t{1}, index_t{5}, index_t{16}, index_t{23}, index_t{64}})
    for (const reach& r : every)
      for (const index_t rows : {0, 1, 3})
        for (const int deal : {0, 1, 2, 3, 4}) {
          if (!tried(number++)) continue;
          layout q = lying(m, {1, length, heads, 1, features}, 1, deal == 1),
                 k = lying(m, {1, length, heads, features}, 1, deal == 1);
          if (deal == 2) q.dims[1].turned = k.dims[1].turned = P > 1 ? 1 : 0;
          if (deal >= 3 && length != 23) continue;
          if (deal >= 3) k.dims[1].bounds = uneven.data();
          if (deal == 3) q.dims[1].bounds = uneven.data();
          const rows_that_come n = brute(q, k, r, rows);
          const traffic_value t = planned(q, k, r, rows);
          const index_t row = heads * (features + values) * 8;
          const direction there{n.all * row, n.reader * row, n.all * row, 2 * n.messages},
              home{n.all * row, n.owner * row, n.all * row, 2 * n.messages};
          direction back = home;
          back += there;
          if (const layer_plan p = plan_of(q, k, r, rows); p.exchanges() > 0) {
            const stream_count c = stream_count_of(p, 0);
            if (c.largest < n.largest || c.two < n.two || (length % (2 * P) == 0 && c.two != n.two))
              all += fmt::format("{} on {}, {} to {}, {}, deal {}: {} and {} rows at once for {} and {}\n", length, P,
                                 r.before, r.after, rows, deal, c.largest, c.two, n.largest, n.two);
          }
          if (!(t.forward == there) || !(t.backward == back))
            all += fmt::format("{} on {}, {} to {}, {}, deal {}: {} and {} bytes for {} and {}, {} messages for {}\n",
                               length, P, r.before, r.after, rows, deal, t.forward.bytes, t.backward.bytes, there.bytes,
                               back.bytes, t.forward.messages, there.messages);
        }
  return all;
}

TEST_CASE("what comes of keys are the rows that a worker's queries reach and that it does not hold", "[law][plan]") {
  CHECK(miscounted<1>() == "");
  CHECK(miscounted<2>() == "");
  CHECK(miscounted<3>() == "");
  CHECK(miscounted<4>() == "");
  CHECK(miscounted<8>() == "");
}

TEST_CASE("where an axis cuts queries alone, keys come to a line of them as to one", "[law][plan]") {
  const mesh_value &grid = mesh<line<3>, lane<2>>::value, &lines = mesh<line<3>>::value;
  const index_t of_a_line[]{0, 10, 18, 26};  // of six parts two each; keys lie in parts of 9, 9 and 8
  for (const reach& r : every) {
    const auto keys = [&](const mesh_value& m) { return lying(m, {1, 26, heads, features}, 1, false, 1); };
    layout q = lying(lines, {1, 26, heads, 1, features}, 1, false);
    q.dims[1].bounds = of_a_line;
    const rows_that_come n = brute(q, keys(lines), r, 0);
    const layout all = lying(grid, {1, 26, heads, 1, features}, 1, false);
    CHECK(planned(all, keys(grid), r, 0).forward.bytes == 2 * n.all * heads * (features + values) * 8);
  }
}

TEST_CASE("an even window takes as many bytes as its halo, a causal zigzag three quarters", "[law][plan]") {
  const mesh_value& m = mesh<line<4>>::value;
  const auto bytes = [&](bool zigzag, const reach& r) {
    const layout q = lying(m, {1, 64, heads, 1, features}, 1, zigzag),
                 k = lying(m, {1, 64, heads, features}, 1, zigzag);
    return planned(q, k, r, 0).forward.bytes / (heads * (features + values) * 8);
  };
  CHECK(bytes(false, {5, 3}) == 3 * (5 + 3));
  CHECK(bytes(true, {5, 3}) == 6 * (5 + 3));  // the two chunks in the middle lie side by side
  CHECK(bytes(false, {-1, 0, true, false}) == 3 * 64 / 2);
  CHECK(bytes(true, {-1, 0, true, false}) == 3 * 64 * 3 / 4);
  CHECK(bytes(true, {64, 64}) == 3 * 64);
}

/// What is sent otherwise than the plan says.
template <class M>
std::string sent_otherwise(bool zigzag, index_t length) {
  std::string all;
  const mesh_value& m = M::value;
  int number = 0;
  for (const reach& r : every)
    for (const index_t rows : {0, 2}) {
      if (!tried(number++)) continue;
      const layout q = lying(m, {1, length, heads, 1, features}, 1, zigzag),
                   k = lying(m, {1, length, heads, features}, 1, zigzag);
      layout v = k;
      v.dims[3].extent = values;
      const auto out = in_team<M>([&](const team<M>& t) {
        std::vector<tensor<dyn>> x;
        nn::program p;
        std::vector<nn::dynamic_flow> flows;
        for (const layout& one : {q, k, v}) {
          x.push_back(distribute(t, one, global_of(extents_of(one), numbers{7})));
          x.back().requires_grad();
          flows.push_back(p.input({one, element::float64}));
        }
        p.output(layer_of(r, rows)(flows[0], flows[1], flows[2]));
        const nn::dynamic_network net(t, seed{1}, p);
        const auto now = [&] { return std::array{t.state()->total.bytes, t.state()->total.messages}; };
        std::array<index_t, 4> n{};
        const auto begin = now();
        const tensor<dyn> y = net(x)[0];
        const auto then = now();
        y.local().sum().backward();
        const auto end = now();
        for (std::size_t i = 0; i < 2; ++i) {
          n[i] = then[i] - begin[i];
          n[2 + i] = end[i] - then[i];
        }
        return n;
      });
      all += out.errors();
      if (!all.empty()) return all;
      std::array<index_t, 4> sum{};
      for (const auto& one : out.results)
        for (std::size_t i = 0; i < 4; ++i) sum[i] += (*one)[i];
      const traffic_value t = planned(q, k, r, rows);
      if (sum != std::array{t.forward.bytes, t.forward.messages, t.backward.bytes, t.backward.messages})
        all += fmt::format("{} to {}, {}, {}: {} for {}, {} for {} bytes, {} for {}, {} for {} messages\n", r.before,
                           r.after, rows, zigzag, sum[0], t.forward.bytes, sum[2], t.backward.bytes, sum[1],
                           t.forward.messages, sum[3], t.backward.messages);
    }
  return all;
}

TEST_CASE("streams by places send what their plan says", "[law][plan][runtime]") {
  CHECK(sent_otherwise<mesh<line<2>>>(true, 11) == "");
  CHECK(sent_otherwise<mesh<line<3>>>(false, 13) == "");
  CHECK(sent_otherwise<mesh<line<4>>>(true, 21) == "");
  CHECK(sent_otherwise<mesh<line<8>>>(false, 5) == "");
}

/// Values and gradients of two orders, where parts are of any length, dealt on, or lie by fewer axes than queries.
template <class M>
std::string differences(const std::vector<form>& forms, const sizes& n) {
  std::string all;
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    std::string why;
    for (const form& f : forms)
      for (const bool zigzag : {false, true}) {
        if (zigzag && (!f.bounds.empty() || f.turned > 0)) continue;
        if (const std::string one = differs(t.state(), n, f, zigzag, at::kDouble); !one.empty())
          why += fmt::format("form {}{}: {}\n", &f - forms.data(), zigzag ? " zigzag" : "", one);
      }
    return why;
  });
  all += out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

std::vector<form> with(const form& given, const std::vector<form>& windows) {
  std::vector<form> all;
  for (form f : windows) {
    f.bounds = given.bounds;
    f.turned = given.turned;
    f.cuts_keys = given.cuts_keys;
    all.push_back(f);
  }
  return all;
}

TEST_CASE("what is not brought is not missed: values and gradients of two orders", "[law][runtime][gradient]") {
  const std::vector<form> windows{{.slides = true, .before = 1, .after = 0},
                                  {.slides = true, .before = 0, .after = 4},
                                  {.rows = 2, .slides = true, .before = 6, .after = 2},
                                  {.causal = true},
                                  {.causal = true, .rows = 1, .slides = true, .before = 3},
                                  {.slides = true, .before = 50, .after = 50},
                                  {.slides = true, .before = 2, .after = 1, .adds = true},
                                  {.causal = true, .lengths = {0, 4, 4, 17}},
                                  {.slides = true, .before = 2, .after = 2, .lengths = {0, 9, 17}}};
  const sizes n{2, 17, 17, 2, 1, 3, 2};
  CHECK(differences<mesh<line<2>>>(windows, n) == "");
  CHECK(differences<mesh<line<4>>>(windows, n) == "");
  CHECK(differences<mesh<line<8>>>(windows, n) == "");
  CHECK(differences<mesh<line<4>>>(with({.bounds = {0, 0, 11, 12, 17}}, windows), n) == "");
  CHECK(differences<mesh<line<3>>>(with({.turned = 2}, windows), n) == "");
  CHECK(differences<mesh<line<2>, lane<2>>>(with({.cuts_keys = 1}, {windows.begin(), windows.end() - 3}), n) == "");
  const std::vector<form> few(windows.begin(), windows.begin() + 6);
  CHECK(differences<mesh<line<8>>>(few, {1, 5, 5, 1, 2, 2, 3}) == "");
}

}  // namespace streamed_reach
