// A primitive, a named verb and a composition refuse tensors that they do not lead between.
#include <tessera/network.hpp>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;

template <class... Entries>
using cut_as = ts::partition<grid, Entries...>;
template <class... Entries>
using matrix = ts::tensor<cut_as<Entries...>, ts::shape_of<10, 8>>;

using copies = matrix<ts::whole, ts::whole>;
using by_row = matrix<ts::blocks<row>, ts::whole>;
using by_col = matrix<ts::whole, ts::blocks<row>>;
using terms = matrix<ts::whole, ts::whole, ts::partial<row>>;
using at_root = matrix<ts::whole, ts::whole, ts::on<row>>;
using window = matrix<ts::haloed<ts::blocks<row>, 10, 1, -1, 1>, ts::whole>;

// Extents: both tensors are the same one, cut differently.
static_assert(ts::primitive<by_row, copies>::cost().busiest == 40);
#if defined(OTHER_EXTENT)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<1>, tessera::with::first<8>,
// tessera::with::second<9>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<10, 9>>>;
static_assert(bad::cost().busiest >= 0);
#elif defined(STATIC_AGAINST_DYNAMIC)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<10>,
// tessera::with::second<-1>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape<batch, ts::dim<8>>>>;
static_assert(bad::cost(ts::bind<batch>(10)).busiest >= 0);
#elif defined(OTHER_RANK)
// expect: [tessera.shape.dimensions] && ranks_differ<tessera::with::first<2>, tessera::with::second<3>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole, ts::whole>, ts::shape_of<10, 8, 1>>>;
static_assert(bad::cost().busiest >= 0);
#elif defined(OTHER_EXTENT_NAMED)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<10>,
// tessera::with::second<12>>
using all = ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<12, 8>>;
using bad = ts::engine::named_primitive<ts::verb::all_gather, by_row, all>;
static_assert(bad::cost().busiest >= 0);
#elif defined(OTHER_RANK_NAMED)
// expect: [tessera.shape.dimensions] && ranks_differ<tessera::with::first<2>, tessera::with::second<1>>
using bad = ts::engine::named_primitive<ts::verb::all_gather, by_row, ts::tensor<cut_as<ts::whole>, ts::shape_of<10>>>;
static_assert(bad::cost().busiest >= 0);
#elif defined(OTHER_ELEMENT)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::float32>,
// tessera::with::given_element<tessera::element::float64>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<10, 8>, double>>;
static_assert(bad::cost().busiest >= 0);
#endif

// Elements: those that a tensor can hold.
#if defined(NO_ELEMENT)
// expect: [tessera.element.unknown] && element_unknown<tessera::with::bytes<8>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<10, 8>, char*>>;
static_assert(bad::cost().busiest >= 0);
#endif

// Extents of at least 0.
static_assert(ts::primitive<ts::tensor<cut_as<ts::blocks<row>>, ts::shape_of<0>>,
                            ts::tensor<cut_as<ts::whole>, ts::shape_of<0>>>::cost()
                  .total == 0);
#if defined(NEGATIVE)
// expect: [tessera.shape.negative] && extent_negative<tessera::with::dimension<1>, tessera::with::extent<-3>>
using bad = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<10, -3>>>;
static_assert(bad::cost().total >= 0);
#elif defined(NEGATIVE_NETWORK)
// expect: [tessera.shape.negative] && extent_negative<tessera::with::dimension<0>, tessera::with::extent<-1>>
using bad = ts::sequential_type<ts::tensor<cut_as<ts::blocks<row>, ts::whole>, ts::shape_of<-1, 8>>, ts::nn::relu>;
static_assert(bad::program.count >= 0);
#endif

// Counts that an index can hold.
using large = ts::shape_of<(1LL << 30), (1LL << 30)>;
static_assert(ts::primitive<ts::tensor<cut_as<ts::blocks<row>, ts::whole>, large>,
                            ts::tensor<cut_as<ts::blocks<row>, ts::whole, ts::invariant<col>>, large>>::cost()
                  .total == 0);
#if defined(TOO_LARGE)
// expect: [tessera.shape.overflow] && count_overflows<tessera::with::dimension<1>, tessera::with::extent<4294967296>>
using larger = ts::shape_of<(1LL << 32), (1LL << 32)>;
using bad = ts::primitive<ts::tensor<cut_as<ts::blocks<row>, ts::whole>, larger>,
                          ts::tensor<cut_as<ts::whole, ts::whole>, larger>>;
static_assert(bad::cost().total == 0);
#endif

// Verbs: each leads between certain partitions.
static_assert(ts::engine::named_primitive<ts::verb::broadcast, at_root, copies>::cost().busiest == 80);
static_assert(ts::engine::named_primitive<ts::verb::sum_reduce, terms, at_root>::cost().busiest == 80);
static_assert(ts::engine::named_primitive<ts::verb::all_gather, by_row, copies>::cost().busiest == 40);
static_assert(ts::engine::named_primitive<ts::verb::all_to_all, by_row, by_col>::cost().busiest == 20);
using by_both = matrix<ts::blocks<row, col>, ts::whole>;
static_assert(ts::engine::named_primitive<ts::verb::all_gather, by_both, by_row>::cost().busiest > 0);
static_assert(ts::engine::named_primitive<ts::verb::repartition, by_both, matrix<ts::blocks<col>, ts::whole>>::cost()
                  .busiest > 0);
struct one : ts::axis<1> {};
using over_one =
    ts::tensor<ts::partition<ts::mesh<row, one, col>, ts::blocks<one, row>, ts::whole>, ts::shape_of<10, 8>>;
static_assert(ts::engine::named_primitive<ts::verb::all_gather, over_one, copies>::cost().busiest == 40);
#if defined(BROADCAST_OF_BLOCKS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::broadcast>,
// tessera::with::found_verb<tessera::verb::all_gather>>
using bad = ts::engine::named_primitive<ts::verb::broadcast, by_row, copies>;  // it is an all_gather
static_assert(bad::cost().busiest == 40);
#elif defined(GATHER_OF_OUTER_BLOCKS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::all_gather>,
// tessera::with::found_verb<tessera::verb::repartition>>
using bad = ts::engine::named_primitive<ts::verb::all_gather, by_both,  // col moves too
                                        matrix<ts::blocks<col>, ts::whole>>;
static_assert(bad::cost().busiest >= 0);
#elif defined(REPARTITION_OVER_ONE)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::repartition>,
// tessera::with::found_verb<tessera::verb::all_gather>>
using bad = ts::engine::named_primitive<ts::verb::repartition, over_one, copies>;  // it is an all_gather
static_assert(bad::cost().busiest >= 0);
#elif defined(GATHER_OF_TERMS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::all_gather>,
// tessera::with::found_verb<tessera::verb::all_reduce>>
using bad = ts::engine::named_primitive<ts::verb::all_gather, terms, copies>;  // it is an all_reduce
static_assert(bad::cost().busiest == 80);
#elif defined(SUM_OF_COPIES)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::sum_reduce>,
// tessera::with::found_verb<tessera::verb::to_root>>
using bad = ts::engine::named_primitive<ts::verb::sum_reduce, copies, at_root>;  // it keeps
static_assert(bad::cost().busiest == 0);
#elif defined(HALO_OF_COPIES)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::halo_exchange>,
// tessera::with::found_verb<tessera::verb::shard>>
using bad = ts::engine::named_primitive<ts::verb::halo_exchange, copies, by_row>;  // it takes
static_assert(bad::cost().busiest == 0);
#endif

// A Move starts from a tiling; copies that overlap must not be sent on.
static_assert(ts::primitive<by_row, window>::cost().busiest == 8);
static_assert(ts::primitive<ts::cotangent_type<window>, ts::cotangent_type<by_row>>::verb == ts::verb::halo_accumulate);
#if defined(FROM_HALOED)
// expect: [tessera.move.tiling] && not_a_tiling<tessera::with::none, tessera::with::dimension<0>>
using bad = ts::primitive<window, copies>;
static_assert(bad::cost().busiest >= 0);
#elif defined(FROM_HALOED_NAMED)
// expect: [tessera.move.tiling] && not_a_tiling<tessera::with::none, tessera::with::dimension<0>>
using bad = ts::engine::named_primitive<ts::verb::halo_accumulate, window, by_row>;
static_assert(bad::cost().busiest >= 0);
#elif defined(TO_PENDING)
// expect: [tessera.move.tiling] && not_a_tiling<tessera::with::none, tessera::with::dimension<0>>
using bad = ts::primitive<by_row, ts::cotangent_type<window>>;
static_assert(bad::cost().busiest >= 0);
#elif defined(FROM_HALOED_NETWORK)
// expect: [tessera.move.tiling] && at_layer<1, && tessera::verdicts::not_a_tiling<tessera::with::none,
// tessera::with::dimension<0>>
using bad = ts::sequential_type<window, ts::nn::relu, ts::nn::repartition<cut_as<ts::whole, ts::whole>>, ts::nn::relu>;
static_assert(bad::program.count >= 0);
#endif

// Compositions: what one delivers is what the next takes.
using gathered = ts::primitive<by_row, copies>;
using scattered = ts::primitive<copies, by_col>;
static_assert(ts::Primitive<ts::composition<gathered, scattered>>);
#if defined(NO_MEETING)
// expect: [tessera.compose.partition] && partitions_do_not_meet<tessera::with::map<1>>
using bad = ts::composition<scattered, gathered>;
static_assert(sizeof(bad) > 0);
#elif defined(NO_MEETING_LATER)
// expect: [tessera.compose.partition] && partitions_do_not_meet<tessera::with::map<2>>
using bad = ts::composition<gathered, scattered, ts::primitive<by_row, copies>, scattered>;
static_assert(sizeof(bad) > 0);
#elif defined(NO_MEETING_MEANING)
// expect: [tessera.compose.partition] && partitions_do_not_meet<tessera::with::map<1>>
using reduced = ts::primitive<terms, matrix<ts::whole, ts::whole, ts::invariant<row>>>;
using bad = ts::composition<reduced, ts::primitive<copies, at_root>>;
static_assert(sizeof(bad) > 0);
#elif defined(REFUSED_PART)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<1>, tessera::with::first<8>,
// tessera::with::second<9>>
using wider = ts::primitive<by_row, ts::tensor<cut_as<ts::whole, ts::whole>, ts::shape_of<10, 9>>>;
using bad = ts::composition<wider, ts::primitive<wider::codomain, wider::codomain>>;
static_assert(sizeof(bad) > 0);
#elif defined(REFUSED_VERB_PART)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::broadcast>,
// tessera::with::found_verb<tessera::verb::all_gather>>
struct there_and_back
    : ts::composition<ts::engine::named_primitive<ts::verb::broadcast, by_row, copies>, ts::primitive<copies, by_row>> {
};
static_assert(there_and_back::cost().total >= 0);
#elif defined(REFUSED_KIND_PART)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 1, tessera::kind::tensor,
// tessera::kind::partition>
struct there_and_back : ts::composition<gathered, ts::primitive<copies, cut_as<ts::blocks<row>, ts::whole>>> {};
static_assert(there_and_back::cost().total >= 0);
#endif

// Adjoints: of sums; a maximum is for values only.
using greatest = matrix<ts::whole, ts::whole, ts::partial<row, ts::max>>;
static_assert(ts::adjoint<ts::primitive<terms, copies>>::cost().total == ts::primitive<terms, copies>::cost().total);
static_assert(ts::primitive<greatest, copies>::cost().total > 0);
#if defined(ADJOINT_OF_MAXIMUM)
// expect: [tessera.combine.gradient] && combine_has_no_gradient<row>
using bad = ts::adjoint<ts::primitive<greatest, copies>>;
#elif defined(ADJOINT_OF_MAXIMUM_NAMED)
// expect: [tessera.combine.gradient] && combine_has_no_gradient<row>
static_assert(sizeof(ts::engine::named_primitive<ts::verb::all_reduce, greatest, copies>::adjoint) > 0);
#elif defined(MAXIMUM_COMPOSED)
// expect: [tessera.combine.gradient] && combine_has_no_gradient<row>
using bad = ts::composition<ts::primitive<greatest, copies>, scattered>;
static_assert(sizeof(bad) > 0);
#endif
