#include "tests/support/catch.hpp"

#include <tessera/network.hpp>

// A sequence of open length in streams by places: its plan is made anew for each length.

namespace tessera::testing::open_sequences {

using namespace engine;

template <int P>
struct line : axis<P> {};
struct letters : dyn {};

template <class... Options>
struct attending {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::heads<2, 2, 4>{};
    return nn::attention<Options...>{}(q, k, v) | nn::linear<6>{};
  }
};

template <int P, bool Zigzag, class Length>
using sequences =
    tensor<partition<mesh<line<P>>, whole, std::conditional_t<Zigzag, zigzag<line<P>>, blocks<line<P>>>, whole>,
           shape<dim<3>, Length, dim<6>>, float>;

template <int P, bool Zigzag, index_t Length, class... Options>
constexpr bool as_of_constant_length() {
  using open = network_type<attending<Options...>, sequences<P, Zigzag, letters>>;
  using fixed = network_type<attending<Options...>, sequences<P, Zigzag, dim<Length>>>;
  return traffic<open, bind<letters>(Length)>() == traffic<fixed>() &&
         traffic<open>(bind<letters>(Length)) == traffic<fixed>() &&
         peak_memory<open, bind<letters>(Length)>() == peak_memory<fixed>() &&
         peak_memory<open>(bind<letters>(Length)) == peak_memory<fixed>();
}

template <int P, bool Zigzag, class... Options>
constexpr bool as_of_every_length() {
  return as_of_constant_length<P, Zigzag, 1, Options...>() && as_of_constant_length<P, Zigzag, 7, Options...>() &&
         as_of_constant_length<P, Zigzag, 16, Options...>() && as_of_constant_length<P, Zigzag, 41, Options...>();
}

TEST_CASE("an open sequence under a window moves and takes what one of its length does", "[law][plan]") {
  CHECK(as_of_every_length<2, false, streamed<>, sliding_window<3, 2>>());
  CHECK(as_of_every_length<4, false, streamed<2>, sliding_window<5, 0>, causal>());
  CHECK(as_of_every_length<4, true, streamed<>, causal>());
  CHECK(as_of_every_length<3, true, streamed<3>, sliding_window<40, 40>>());
}

TEST_CASE("an open sequence brings more as it grows, up to its window", "[law][plan]") {
  using net = network_type<attending<streamed<>, sliding_window<3, 0>, causal>, sequences<2, false, letters>>;
  const auto bytes = [](index_t n) { return traffic<net>(bind<letters>(n)).forward.bytes; };
  constexpr index_t row = 3 * 2 * (4 + 4) * 4;  // samples, heads, features of a key and of a value, bytes
  CHECK(bytes(1) == 0);
  CHECK(bytes(2) == 1 * row);
  CHECK(bytes(4) == 2 * row);
  CHECK(bytes(6) == 3 * row);
  CHECK(bytes(1000) == 3 * row);
}

namespace {

template <int P, class Layer>
struct of_heads {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::heads<P, P, 4>{};
    return Layer{}(q, k, v);
  }
};

/// Whether a layer meets a sequence in the same form for a type and for all lengths that run time may know, and moves
/// what is counted of the type.
template <int P, class... Options>
bool in_the_form_of_its_type() {
  using layer = nn::attention<fewest_bytes<line<P>>, Options...>;
  using input = sequences<P, false, letters>;
  const auto plan_on = [](const tensor_value& x) {
    const layer_plan heads = nn::heads<P, P, 4>::plan(x);
    const auto of = [&](int i) { return tensor_value{heads.output(i), x.element}; };
    return layer::plan(of(0), of(1), of(2));
  };
  const layer_plan typed = plan_on(value_of<input>);
  bool alike = typed.why.ok();
  for (const index_t n : {1, 2, P, 4 * P, 41, 1000}) {
    tensor_value x = value_of<input>;
    bind_extent(x.layout, short_name_of<letters>(), n);
    const layer_plan p = plan_on(x);
    const operand_elements e{{x.element, x.element, x.element}, 3};
    const direction moves = traffic_of(p, e).forward;
    alike = alike && p.why.ok() && p.exchanges() == typed.exchanges() &&
            traffic<network_type<of_heads<P, layer>, input>>(bind<letters>(n)).forward.bytes == moves.bytes;
  }
  return alike;
}

}  // namespace

TEST_CASE("the form that moves fewest bytes is that of the type, whatever length run time knows", "[law]") {
  CHECK(in_the_form_of_its_type<4>());
  CHECK(in_the_form_of_its_type<4, sliding_window<1, 1>>());
  CHECK(in_the_form_of_its_type<2, sliding_window<3, 0>, causal>());
  CHECK(in_the_form_of_its_type<4, sliding_window<40, 40>>());
  CHECK(in_the_form_of_its_type<2, causal>());
}

}  // namespace tessera::testing::open_sequences
