// The rules for local operations: a result type exists only for operands that may meet.
#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
using grid = ts::mesh<row, col>;
using line = ts::mesh<row>;

template <class... Entries>
using matrix = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<12, 6>>;
template <class... Entries>
using vector = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<6>>;
template <class... Entries>
using numbers = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<12, 6>, std::int64_t>;

using copies = matrix<ts::whole, ts::whole>;
using alike = matrix<ts::whole, ts::whole, ts::invariant<row, col>>;
using terms = matrix<ts::whole, ts::whole, ts::partial<row>>;
using at_root = matrix<ts::whole, ts::whole, ts::on<row>>;
using by_row = matrix<ts::blocks<row>, ts::whole>;
using by_col = matrix<ts::whole, ts::blocks<row>>;
using window = matrix<ts::haloed<ts::blocks<row>, 12, 1, -1, 1>, ts::whole>;
using pending = matrix<ts::pending<ts::blocks<row>, 12, 1, -1, 1>, ts::whole>;

using nonlinear = ts::functions::exp;
using sum = ts::functions::add;
using product = ts::functions::mul;
using ts::functions::matmul;
template <int... Dims>
using total = ts::functions::sum<Dims...>;

template <class... T>
inline constexpr bool exist = (ts::TensorType<T> && ...);

// A non-linear operation on a pending sum.
static_assert(exist<ts::result_type<nonlinear, copies>, ts::result_type<nonlinear, alike>,
                    ts::result_type<nonlinear, by_row>, ts::result_type<nonlinear, window>>);
#if defined(NONLINEAR_ON_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<nonlinear, terms>>);
#elif defined(NONLINEAR_ON_TERMS_OF_TWO)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<col, tessera::with::operand<0>>
static_assert(exist<ts::result_type<nonlinear, matrix<ts::blocks<row>, ts::whole, ts::partial<col>>>>);
#endif

// Products of pending sums.
static_assert(
    exist<ts::result_type<product, terms, copies>,
          ts::result_type<matmul, terms, ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape_of<6, 5>>>>);
#if defined(TERMS_TIMES_TERMS)
// expect: [tessera.rule.product] && product_of_partials<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<product, terms, terms>>);
#elif defined(TERMS_TIMES_CUT)
// expect: [tessera.rule.product] && product_of_partials<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<product, by_row, vector<ts::whole, ts::partial<row>>>>);
#elif defined(TERMS_MATMUL_TERMS)
// expect: [tessera.rule.product] && product_of_partials<row, tessera::with::operand<0>>
using right = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::partial<row>>, ts::shape_of<6, 5>>;
static_assert(exist<ts::result_type<matmul, terms, right>>);
#endif

// Sums of terms and whole values.
static_assert(
    exist<ts::result_type<sum, terms, terms>, ts::result_type<sum, copies, copies>, ts::result_type<sum, alike, alike>,
          ts::result_type<sum, by_row, by_row>, ts::result_type<sum, at_root, at_root>>);
#if defined(WHOLE_TO_TERMS)
// expect: [tessera.rule.sum] && replicate_added_to_partial<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, terms, copies>>);
#elif defined(TERMS_TO_WHOLE)
// expect: [tessera.rule.sum] && replicate_added_to_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<sum, copies, terms>>);
#elif defined(BIAS_TO_TERMS)
// expect: [tessera.rule.sum] && replicate_added_to_partial<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, terms, vector<ts::whole>>>);
#elif defined(TERMS_TO_CUT)
// expect: [tessera.rule.sum] && replicate_added_to_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<sum, by_row, vector<ts::whole, ts::partial<row>>>>);
#endif

// Invariant operands.
static_assert(exist<ts::result_type<product, alike, alike>,
                    ts::result_type<product, numbers<ts::whole, ts::whole>,
                                    numbers<ts::whole, ts::whole, ts::invariant<row, col>>>>);
#if defined(INVARIANT_TIMES_COPIES)
// expect: [tessera.rule.invariant] && invariant_mixed<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<product, alike, copies>>);
#elif defined(INVARIANT_PLUS_COPIES)
// expect: [tessera.rule.invariant] && invariant_mixed<col, tessera::with::operand<0>>
static_assert(exist<ts::result_type<sum, matrix<ts::whole, ts::whole, ts::invariant<row>>, alike>>);
#elif defined(INVARIANT_TIMES_TERMS)
// expect: [tessera.rule.invariant] && invariant_mixed<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<product, matrix<ts::whole, ts::whole, ts::invariant<row>>, terms>>);
#elif defined(INVARIANT_TIMES_CUT)
// expect: [tessera.rule.invariant] && invariant_mixed<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<product, by_row, vector<ts::whole, ts::invariant<row>>>>);
#endif

// Operands on one coordinate.
#if defined(ROOT_PLUS_COPIES)
// expect: [tessera.rule.on] && held_on_one_coordinate<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, at_root, copies>>);
#elif defined(TWO_ROOTS)
// expect: [tessera.rule.on] && held_on_one_coordinate<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, at_root, matrix<ts::whole, ts::whole, ts::on<row, 1>>>>);
#elif defined(ROOT_TIMES_CUT)
// expect: [tessera.rule.on] && held_on_one_coordinate<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<product, by_row, vector<ts::whole, ts::on<row>>>>);
#endif

// Operands cut unalike.
static_assert(
    exist<ts::result_type<sum, by_row, vector<ts::whole>>, ts::result_type<product, by_row, vector<ts::whole>>>);
#if defined(ROWS_AND_COLUMNS)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<sum, by_row, by_col>>);
#elif defined(CUT_AND_WHOLE)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<sum, by_row, copies>>);
#elif defined(OTHER_GRAIN)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<sum, by_row, matrix<ts::grains<4, row>, ts::whole>>>);
#elif defined(OTHER_ORDER)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(
    exist<ts::result_type<sum, matrix<ts::blocks<row, col>, ts::whole>, matrix<ts::blocks<col, row>, ts::whole>>>);
#elif defined(CONTRACTED_UNALIKE)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(
    exist<ts::result_type<matmul, by_col, ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape_of<6, 5>>>>);
#endif

// Haloed and pending dimensions.
static_assert(exist<ts::result_type<total<0>, by_row>, ts::result_type<total<1>, window>,
                    ts::result_type<sum, pending, pending>>);
#if defined(HALOED_SUMMED)
// expect: [tessera.rule.haloed] && haloed_summed<tessera::with::operand<0>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<total<0>, window>>);
#elif defined(HALOED_SUMMED_OVER_ALL)
// expect: [tessera.rule.haloed] && haloed_summed<tessera::with::operand<0>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<total<>, window>>);
#elif defined(HALOED_CONTRACTED)
// expect: [tessera.rule.haloed] && haloed_summed<tessera::with::operand<0>, tessera::with::dimension<1>>
using left = matrix<ts::whole, ts::haloed<ts::blocks<row>, 6, 1, -1, 1>>;
using right = ts::tensor<ts::partition<grid, ts::haloed<ts::blocks<row>, 6, 1, -1, 1>, ts::whole>, ts::shape_of<6, 5>>;
static_assert(exist<ts::result_type<matmul, left, right>>);
#elif defined(PENDING_NONLINEAR)
// expect: [tessera.rule.pending] && pending_not_linear<tessera::with::operand<0>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<nonlinear, pending>>);
#endif

// Meshes: axes of extent 1 make no difference, others do.
struct one : ts::axis<1> {};
struct twice : ts::axis<2> {};
template <class Mesh, class First>
using cut_over = ts::tensor<ts::partition<Mesh, First, ts::whole>, ts::shape_of<12, 6>>;
static_assert(
    std::is_same_v<ts::result_type<sum, by_row, cut_over<ts::mesh<row, one, col>, ts::blocks<one, row>>>, by_row>);
static_assert(std::is_same_v<ts::result_type<product, cut_over<ts::mesh<one, row, col>, ts::blocks<row>>, by_row>,
                             cut_over<ts::mesh<one, row, col>, ts::blocks<row>>>);
#if defined(OTHER_AXIS)
// expect: [tessera.rule.mesh] && meshes_differ<tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, by_row, cut_over<ts::mesh<row, twice, col>, ts::blocks<row>>>>);
#elif defined(OTHER_PLACE)
// expect: [tessera.rule.mesh] && meshes_differ<tessera::with::operand<1>>
static_assert(exist<ts::result_type<sum, by_row, cut_over<ts::placed<ts::mesh<row, one, col>, 6>, ts::blocks<row>>>>);
#elif defined(OTHER_CUT_BESIDE_ONE)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<sum, by_row, cut_over<ts::mesh<row, one, col>, ts::blocks<one, col>>>>);
#endif

// Extents, ranks, meshes and elements.
static_assert(exist<ts::result_type<matmul, copies,
                                    ts::tensor<ts::partition<grid, ts::whole, ts::blocks<col>>, ts::shape_of<6, 5>>>>);
#if defined(OTHER_EXTENT)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<6>,
// tessera::with::second<5>>
static_assert(exist<ts::result_type<sum, copies, ts::tensor<ts::partition<grid, ts::whole>, ts::shape_of<5>>>>);
#elif defined(OTHER_EXTENT_CONTRACTED)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<6>,
// tessera::with::second<7>>
static_assert(
    exist<ts::result_type<matmul, copies, ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape_of<7, 5>>>>);
#elif defined(OTHER_EXTENT_CUT)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<12>,
// tessera::with::second<14>>
static_assert(exist<ts::result_type<sum, by_row,
                                    ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape_of<14, 6>>>>);
#elif defined(OTHER_RANK)
// expect: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<1>,
// tessera::with::takes<2>, tessera::with::is_given<1>>
static_assert(exist<ts::result_type<matmul, copies, vector<ts::whole>>>);
#elif defined(OTHER_MESH)
// expect: [tessera.rule.mesh] && meshes_differ<tessera::with::operand<1>>
static_assert(
    exist<ts::result_type<sum, copies, ts::tensor<ts::partition<line, ts::whole, ts::whole>, ts::shape_of<12, 6>>>>);
#elif defined(OTHER_ELEMENT)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::float32>,
// tessera::with::given_element<tessera::element::int64>>
static_assert(exist<ts::result_type<sum, copies, numbers<ts::whole, ts::whole>>>);
#endif

// Operations of one's own take constants of other elements, and of what has a gradient one element.
constexpr auto masked = ts::operation("ab,ab->ab");
static_assert(exist<ts::operation_type<masked, numbers<ts::whole, ts::whole>, copies>>);
#if defined(A_MASK_OF_NUMBERS)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::float32>,
// tessera::with::given_element<tessera::element::float64>>
static_assert(exist<ts::operation_type<
                  masked, copies, ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape_of<12, 6>, double>>>);
#endif

// Functions over dimensions.
namespace f = ts::functions;
static_assert(exist<ts::result_type<f::amax<0>, by_row>, ts::result_type<f::softmax<0, false>, by_row>,
                    ts::result_type<f::var<>, by_row>>);
static_assert(exist<ts::result_type<f::slice<0, 2, 7>, by_row>, ts::result_type<f::concat<1>, by_row, by_row>,
                    ts::result_type<f::flatten<0, 1>, by_row>>);
#if defined(MAXIMUM_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<f::amax<0>, terms>>);
#elif defined(SOFTMAX_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<f::softmax<0, false>, terms>>);
#elif defined(VARIANCE_OF_A_HALO)
// expect: [tessera.rule.haloed] && haloed_summed<tessera::with::operand<0>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<f::var<0>, window>>);
#elif defined(MEAN_OF_INTEGERS)
// expect: [tessera.function.element] && no_function_of_element<tessera::with::given_element<tessera::element::int64>>
static_assert(exist<ts::result_type<f::mean<0>, numbers<ts::whole, ts::whole>>>);
#elif defined(SQUEEZE_OF_MORE)
// expect: [tessera.function.single] && not_single<tessera::with::dimension<1>, tessera::with::extent<6>>
static_assert(exist<ts::result_type<f::squeeze<1>, copies>>);
#elif defined(CONCAT_OF_OTHER_CUTS)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<f::concat<0>, by_row, by_col>>);
#elif defined(FLATTEN_OF_CUT)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<1>>
static_assert(exist<ts::result_type<f::flatten<0, 1>, by_col>>);
#elif defined(UNFLATTEN_OF_BLOCKS)
// expect: [tessera.rule.split] && split_through_part<tessera::with::operand<0>, tessera::with::dimension<0>,
// tessera::with::inner_extent<4>>
static_assert(exist<ts::result_type<f::unflatten<0, 4>, by_row>>);
#elif defined(PERMUTE_OF_FEWER)
// expect: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<0>,
// tessera::with::takes<1>, tessera::with::is_given<2>>
static_assert(exist<ts::result_type<f::permute<0>, copies>>);
#elif defined(CHOSEN_BY_NUMBERS)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::boolean>,
// tessera::with::given_element<tessera::element::float32>>
static_assert(exist<ts::result_type<f::where, copies, copies, copies>>);
#endif

// What indices look into, and what is sorted or summed along, is whole; indices are no terms.
template <class... Entries>
using places = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<9>, std::int64_t>;
using ts::functions::index_select;
static_assert(
    exist<ts::result_type<index_select<0>, by_col, places<ts::blocks<col>>>,
          ts::result_type<index_select<1>, by_row, places<ts::whole>>,
          ts::result_type<index_select<0>, terms, places<ts::whole>>, ts::result_type<ts::functions::cumsum<0>, by_col>,
          ts::result_type<ts::functions::topk<1, 6, true>, by_row>>);
#if defined(INDICES_INTO_CUT)
// expect: [tessera.rule.whole] && by to<...> && dimension_needed_whole<tessera::with::operand<0>,
// tessera::with::dimension<0>>
static_assert(exist<ts::result_type<index_select<0>, by_row, places<ts::whole>>>);
#elif defined(INDICES_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<1>>
static_assert(exist<ts::result_type<index_select<0>, copies, places<ts::whole, ts::partial<row>>>>);
#elif defined(INDICES_CUT_BESIDE)
// expect: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
static_assert(exist<ts::result_type<index_select<0>, by_col, places<ts::blocks<row>>>>);
#elif defined(SORTED_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
static_assert(exist<ts::result_type<ts::functions::argsort<1, false>, terms>>);
#elif defined(MORE_THAN_ALL)
// expect: [tessera.signature.range] && range_outside<tessera::with::dimension<1>
static_assert(exist<ts::result_type<ts::functions::topk<1, 7, true>, by_row>>);
#endif
