// Signatures of one's own: what says nothing is refused where the operation is used, and roles refuse cuts that they
// cannot serve.
#include <tessera/network.hpp>

namespace ts = tessera;

struct row : ts::axis<2> {};
using line = ts::mesh<row>;
template <class... Entries>
using matrix = ts::tensor<ts::partition<line, Entries...>, ts::shape_of<12, 6>>;
using copies = matrix<ts::whole, ts::whole>;
using by_row = matrix<ts::blocks<row>, ts::whole>;
using by_col = matrix<ts::whole, ts::blocks<row>>;

template <class T>
inline constexpr bool exists = ts::TensorType<T>;

// The text.
constexpr auto good = ts::operation("nk, mk -> nm").multilinear();
static_assert(exists<ts::operation_type<good, copies, copies>>);
#if defined(UNREADABLE)
// expect: [tessera.signature.text] && signature_unreadable<tessera::with::character<1>>
constexpr auto bad = ts::operation("a.b->ab");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(WITHOUT_ARROW)
// expect: [tessera.signature.text] && signature_unreadable<tessera::with::none>
constexpr auto bad = ts::operation("ab");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(TOO_MANY_OPERANDS)
// expect: [tessera.signature.size] && signature_too_large<tessera::with::operands<5>, tessera::with::dimensions<2>>
constexpr auto bad = ts::operation("ab,ab,ab,ab,ab->ab");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(FIVE_TENSORS)
// expect: [tessera.signature.size] && signature_too_large<tessera::with::operands<5>, tessera::with::dimensions<0>>
static_assert(exists<ts::operation_type<good, copies, copies, copies, copies, copies>>);
#elif defined(TOO_MANY_DIMENSIONS)
// expect: [tessera.signature.size] && signature_too_large<tessera::with::operands<1>, tessera::with::dimensions<17>>
constexpr auto bad = ts::operation("abcdefghijklmnopq->a");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(LETTER_TWICE)
// expect: [tessera.signature.twice] && letter_named_twice<tessera::with::operand<0>, tessera::with::dimension<1>>
constexpr auto bad = ts::operation("aa->a");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(LETTER_TWICE_IN_RESULT)
// expect: [tessera.signature.twice] && letter_named_twice<tessera::with::operand<1>, tessera::with::dimension<2>>
constexpr auto bad = ts::operation("ab->aba");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(FROM_NOWHERE)
// expect: [tessera.signature.result] && letter_from_nowhere<tessera::with::dimension<1>>
constexpr auto bad = ts::operation("ab->ac");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(OPERAND_MISSING)
// expect: [tessera.signature.operands] && wrong_number_of_operands<tessera::with::takes<2>, tessera::with::is_given<1>>
static_assert(exists<ts::operation_type<good, copies>>);
#endif

// Roles and letters.
constexpr auto halved = ts::operation("ab->ab").narrowed('b', 2, 5).linear();
static_assert(exists<ts::operation_type<halved, by_row>>);
constexpr auto as_pairs = ts::operation("ab->acd").split('b', 'c', 'd', 3).linear();
static_assert(exists<ts::operation_type<as_pairs, by_row>>);
static_assert(exists<ts::operation_type<as_pairs, matrix<ts::whole, ts::grains<3, row>>>>);
constexpr auto beside = ts::operation("ab,ac->az").concatenated("bc", 'z').linear();
static_assert(exists<ts::operation_type<beside, by_row, by_row>>);
constexpr auto flat = ts::operation("ab->z").merged("ab", 'z').linear();
static_assert(exists<ts::operation_type<flat, by_row>>);
#if defined(ROLE_OF_NO_LETTER)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<0>>
constexpr auto bad = ts::operation("ab->ab").whole("c");
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(TWO_ROLES)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<1>>
constexpr auto bad = ts::operation("ab->ab").whole("b").narrowed('b', 0, 2);
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(WINDOW_SUMMED)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<0>>
constexpr auto bad = ts::operation("ab->a").windowed('b', {3, 1, 1, 1, 1});
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(MERGED_OUT_OF_ORDER)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<1>>
constexpr auto bad = ts::operation("ab->z").merged("ba", 'z');
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(MERGED_INTO_AN_OPERAND)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<0>>
constexpr auto bad = ts::operation("ab->b").merged("a", 'b');
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(JOINED_TO_ITSELF)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<0>>
constexpr auto bad = ts::operation("ab->z").concatenated("ab", 'z');
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(SPLIT_INTO_ONE_LETTER)
// expect: [tessera.signature.role] && role_does_not_fit<tessera::with::role<0>>
constexpr auto bad = ts::operation("ab->ac").split('b', 'c', 'c', 3);
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(RANGE_OUTSIDE)
// expect: [tessera.signature.range] && range_outside<tessera::with::dimension<1>, tessera::with::extent<6>,
// tessera::with::begin<4>, tessera::with::end<7>>
constexpr auto bad = ts::operation("ab->ab").narrowed('b', 4, 7);
static_assert(exists<ts::operation_type<bad, copies>>);
#elif defined(SPLIT_UNEVEN)
// expect: [tessera.signature.split] && split_uneven<tessera::with::dimension<1>, tessera::with::extent<6>,
// tessera::with::inner_extent<4>>
constexpr auto bad = ts::operation("ab->acd").split('b', 'c', 'd', 4);
static_assert(exists<ts::operation_type<bad, copies>>);
#endif

// Roles and cuts.
constexpr auto softmax = ts::operation("ab->ab").whole("b");
static_assert(exists<ts::operation_type<softmax, by_row>>);
static_assert(exists<ts::operation_type<halved, by_col>>);
static_assert(exists<ts::operation_type<halved, matrix<ts::whole, ts::haloed<ts::blocks<row>, 6, 1, -1, 1>>>>);
#if defined(WHOLE_CUT)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<1>>
static_assert(exists<ts::operation_type<softmax, by_col>>);
#elif defined(JOINED_CUT)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<1>>
static_assert(exists<ts::operation_type<beside, by_col, by_col>>);
#elif defined(SPLIT_IN_GRAINS_OF_OTHERS)
// expect: [tessera.rule.split] && split_through_part<tessera::with::operand<0>, tessera::with::dimension<1>,
// tessera::with::inner_extent<3>>
static_assert(exists<ts::operation_type<as_pairs, matrix<ts::whole, ts::grains<2, row>>>>);
#elif defined(MERGED_INNER_CUT)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<1>>
static_assert(exists<ts::operation_type<flat, by_col>>);
#elif defined(MERGED_HALOED)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<0>>
static_assert(exists<ts::operation_type<flat, matrix<ts::haloed<ts::blocks<row>, 12, 1, -1, 1>, ts::whole>>>);
#elif defined(NARROWED_AROUND_THE_EDGE)
// expect: [tessera.rule.window] && window_without_halo<tessera::with::operand<0>, tessera::with::dimension<1>>
static_assert(exists<ts::operation_type<
                  halved, matrix<ts::whole, ts::haloed<ts::blocks<row>, 6, 1, -1, 1, 1, ts::boundary::periodic>>>>);
#endif

// A layer of one's own.
constexpr auto scaled = ts::operation("nf,f->nf").multilinear();
template <const ts::signature& S>
struct scale {
  static constexpr const char* name = "scale";
  static constexpr ts::layer_plan plan(const ts::tensor_value& x) {
    return ts::plan_operation(S, x.layout, ts::own_parameter{"weight", ts::init::usual(1)});
  }
};
static_assert(ts::sequential_type<by_col, scale<scaled>>::program.count == 1);
#if defined(LAYER_WITHOUT_OPERAND)
// expect: [tessera.signature.operands] && at_layer<0, &&
// tessera::verdicts::wrong_number_of_operands<tessera::with::takes<1>, tessera::with::is_given<2>>
static_assert(ts::sequential_type<by_col, scale<softmax>>::program.count >= 0);
#elif defined(PARAMETER_OF_NO_DIMENSION)
// expect: [tessera.signature.result] && at_layer<0, &&
// tessera::verdicts::letter_from_nowhere<tessera::with::dimension<1>>
constexpr auto stretched = ts::operation("nf,fo->no").multilinear();
static_assert(ts::sequential_type<by_col, scale<stretched>>::program.count >= 0);
#endif
