// The same refusals at the operators and verbs on LibTorch tensors, at the line that uses them.
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct batch : ts::dyn {};
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;

template <class... Entries>
using layout_as = ts::partition<grid, Entries...>;
template <class... Entries>
using matrix = ts::tensor<layout_as<Entries...>, ts::shape_of<12, 6>, double>;
template <class... Entries>
using scalar = ts::tensor<layout_as<Entries...>, ts::shape<>, double>;

using all = layout_as<ts::whole, ts::whole>;
using copies = matrix<ts::whole, ts::whole>;
using terms = matrix<ts::whole, ts::whole, ts::partial<row>>;
using by_row = matrix<ts::blocks<row>, ts::whole>;
using matrix_row = ts::tensor<all, ts::shape_of<1, 6>, double>;
using by_col = matrix<ts::whole, ts::blocks<row>>;

inline double of_rows(const by_row& x) { return static_cast<double>(x.layout().rank()); }

// 25 convolutions and 25 relus, so that a name which holds the layers would fill the message.
template <class... Entries>
using images = ts::tensor<layout_as<Entries...>, ts::shape_of<16, 1, 8, 8>, double>;
using image = images<ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
template <ts::index_t Wide>
using conv = ts::nn::conv<6, ts::kernel<Wide, 3>, ts::padding<1, 1>>;
using relu_layer = ts::nn::relu;
template <class Middle>
using deep =
    ts::nn::sequential<image, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer,
                       conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>,
                       relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, Middle, relu_layer,
                       conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>,
                       relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer,
                       conv<3>, relu_layer, conv<3>, relu_layer, conv<3>, relu_layer>;
static_assert(deep<conv<3>>::program.count == 50);
using small_net = ts::nn::sequential<image, conv<3>, ts::nn::relu, ts::nn::max_pool<ts::kernel<2, 2>>>;
using never_used = deep<conv<13>>;  // naming it is no error
struct named_net : deep<conv<3>> {
  using base = deep<conv<3>>;
  using base::base;
};

#if defined(WHOLE_TO_TERMS)
// expect: [tessera.rule.sum] && replicate_added_to_partial<row, tessera::with::operand<0>>
auto sum(const copies& x, const terms& y) { return x + y; }
#elif defined(TERMS_TIMES_TERMS)
// expect: [tessera.rule.product] && product_of_partials<row, tessera::with::operand<0>>
auto product(const terms& x, const terms& y) { return x * y; }
#elif defined(NUMBER_TIMES_A_MAXIMUM)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
auto scaled(const matrix<ts::whole, ts::whole, ts::partial<row, ts::max>>& x) { return 2 * x; }
#elif defined(MINUS_A_MAXIMUM)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
auto negated(const matrix<ts::whole, ts::whole, ts::partial<row, ts::max>>& x) { return -x; }
#elif defined(FRACTION_OF_INTEGERS)
// expect: [tessera.tensor.number] && number_does_not_fit<tessera::with::expected_element<tessera::element::int32>>
auto halved(const ts::tensor<all, ts::shape_of<12, 6>, std::int32_t>& x) { return x * 0.5; }
#elif defined(QUOTIENT_OF_INTEGERS)
// expect: [tessera.function.element] && no_function_of_element<tessera::with::given_element<tessera::element::int64>>
auto halved(const ts::tensor<all, ts::shape_of<12, 6>, std::int64_t>& x) { return x / 2; }
#elif defined(TIMES_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto product(const by_row& x, const at::Tensor& y) { return x * y; }
#elif defined(BOX_PLUS)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto sum(const at::Tensor& x, const by_row& y) { return x + y; }
#elif defined(SUM_OF_ELEMENTS)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::float64>,
// tessera::with::given_element<tessera::element::float32>>
auto sum(
    const images<ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>& x,
    const ts::tensor<layout_as<ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<16, 1, 8, 8>>& y) {
  return x + y;
}
#elif defined(MATMUL_OF_RANKS)
// expect: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<1>,
// tessera::with::takes<2>, tessera::with::is_given<1>>
auto product(const copies& x, const ts::tensor<layout_as<ts::whole>, ts::shape_of<8>, double>& y) {
  return matmul(x, y);
}
#elif defined(MATMUL_WITH_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto product(const copies& x, const at::Tensor& y) { return ts::matmul(x, y); }
#elif defined(RELU_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
auto rectified(const terms& x) { return relu(x); }
#elif defined(RELU_OF_A_PRODUCT)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<col, tessera::with::operand<0>>
using activations = ts::tensor<layout_as<ts::blocks<row>, ts::blocks<col>>, ts::shape_of<5, 7>, double>;
using weight = ts::tensor<layout_as<ts::blocks<col>, ts::whole>, ts::shape_of<7, 4>, double>;
// [mistake]
auto layer(const activations& x, const weight& w) { return ts::relu(ts::matmul(x, w)); }
// [end]
#elif defined(BROADCAST_OF_BLOCKS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::broadcast>,
// tessera::with::found_verb<tessera::verb::all_gather>>
auto everywhere(const by_row& x) { return ts::broadcast<all>(x); }
#elif defined(TOO_FEW_COVERS)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<1>,
// tessera::with::dimensions<2>>
auto gathered(const by_row& x) { return ts::all_gather<layout_as<ts::whole>>(x); }
#elif defined(OTHER_PARTITION)
// expect: ::blocks<row>, t && ::whole, t
double rank(by_col x) { return of_rows(x); }
#elif defined(ASSIGN_OTHER_PARTITION)
// expect: deleted && ::blocks<row>, t && ::blocks<row, col>
void turn(ts::tensor<layout_as<ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>,
                     ts::shape<batch, ts::dim<6>, ts::dim<8>, ts::dim<8>>, double>& x,
          const ts::tensor<layout_as<ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>,
                           ts::shape<batch, ts::dim<6>, ts::dim<8>, ts::dim<8>>, double>& y) {
  x = y;
}
#elif defined(ASSIGN_A_BOX)
// expect: deleted && at::Tensor
void take(by_row& x, const at::Tensor& y) { x = y; }
#elif defined(VALUE_OF_CUT)
// expect: [tessera.value.copies] && not_steering<col>
bool falls(const scalar<ts::invariant<row>, ts::partial<col>>& loss) { return item(loss) < 1; }
#elif defined(GRADIENT_OF_INTEGERS)
// expect: [tessera.tensor.cotangent] && element_has_no_cotangent<
void track(ts::tensor<layout_as<ts::whole>, ts::shape_of<4>, std::int64_t>& x) { x.requires_grad(); }
#elif defined(GRADIENT_OF_A_MAXIMUM)
// expect: [tessera.combine.gradient] && combine_has_no_gradient<row>
void track(matrix<ts::whole, ts::whole, ts::partial<row, ts::max>>& x) { x.requires_grad(); }
#elif defined(TAKE_OF_LEARNED_LENGTHS)
// expect: [tessera.lengths.unknown] && lengths_not_known<tessera::with::dimension<0>>
auto part(const ts::team<grid>& team, const at::Tensor& x) {
  return ts::distribute<matrix<ts::lengths<row>, ts::whole>>(team, x);
}
#elif defined(VERB_WITHOUT_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::partition,
// tessera::kind::nothing
auto everywhere(const by_row& x) { return ts::all_gather(x); }
#elif defined(TAKE_OF_A_PARTITION)
// expect: [tessera.argument.kind] && kind::tensor && kind::partition
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::distribute<all>(team, x); }
#elif defined(ASSUME_A_PARTITION)
// expect: [tessera.argument.kind] && kind::tensor && kind::partition
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::from_local<all>(team, x); }
#elif defined(ASSUME_WITH_A_NUMBER)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 3, tessera::kind::binding,
// tessera::kind::something_else>
struct number {};
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::from_local<by_row>(team, x, number{}); }
#elif defined(APPLY_A_LAYER)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::primitive,
// tessera::kind::layer>
auto rectified(const by_row& x) { return ts::apply<ts::nn::relu>(x); }
#elif defined(TYPED_PLUS_DYNAMIC)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto total(const copies& x, const ts::tensor<ts::dyn>& y) { return x + y; }
#elif defined(EXP_OF_INTEGERS)
// expect: [tessera.function.element] && no_function_of_element<tessera::with::given_element<tessera::element::int64>>
auto powers(const ts::tensor<all, ts::shape_of<12, 6>, std::int64_t>& x) { return ts::exp(x); }
#elif defined(SUM_OF_OTHER_EXTENTS)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<1>, tessera::with::first<6>,
// tessera::with::second<3>>
auto total(const copies& x, const ts::tensor<all, ts::shape_of<1, 3>, double>& y) { return x + y; }
#elif defined(SUM_WITH_ONE_CUT_ROW)
// expect: [tessera.shape.extent] && extents_differ<tessera::with::dimension<0>, tessera::with::first<12>,
// tessera::with::second<1>>
auto total(const copies& x, const ts::tensor<layout_as<ts::blocks<row>, ts::whole>, ts::shape_of<1, 6>, double>& y) {
  return x + y;
}
#elif defined(NUMBER_PLUS_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<row, tessera::with::operand<0>>
auto total(const terms& x) { return 1 + x; }
#elif defined(INDICES_OF_AN_AVERAGE)
// expect: [tessera.layer.indices] && not_a_maximum<
auto places(const image& x) { return ts::nn::with_indices<ts::nn::avg_pool<ts::kernel<2, 2>>>(x); }
#elif defined(TAKE_SWAPPED)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::team,
// tessera::kind::libtorch_tensor>
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::distribute<by_row>(x, team); }
#elif defined(ASSUME_SWAPPED)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::team,
// tessera::kind::libtorch_tensor>
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::from_local<by_row>(x, team); }
#elif defined(ADOPT_SWAPPED)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::team,
// tessera::kind::libtorch_tensor>
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::from_local<by_row>(x, team); }
#elif defined(TAKE_OF_A_PART)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 2, tessera::kind::libtorch_tensor,
// tessera::kind::tensor>
auto part(const ts::team<grid>& team, const copies& x) { return ts::distribute<by_row>(team, x); }
#elif defined(TAKE_AS_NOTHING)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::tensor,
// tessera::kind::nothing>
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::distribute(team, x); }
#elif defined(INITIAL_OF_A_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::tensor,
// tessera::kind::partition>
void mistake(ts::team<grid>& team) { ts::initial<all>(team, ts::init::ones(), ts::seed{7}, "w"); }
#elif defined(INITIAL_ON_A_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::team, tessera::kind::tensor>
void mistake(const by_row& x) { ts::initial<by_row>(x, ts::init::ones(), ts::seed{7}, "w"); }
#elif defined(RELU_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted< && relu, at::Tensor>
auto rectified(const at::Tensor& x) { return ts::relu(x); }
#elif defined(SUM_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto total(const at::Tensor& x) { return ts::sum<0>(x); }
#elif defined(ADOPT_A_PARTITION)
// expect: [tessera.argument.kind] && kind::tensor && kind::partition
auto part(const ts::team<grid>& team, const at::Tensor& x) { return ts::from_local<all>(team, x); }
#elif defined(LAUNCH_ON_AN_AXIS)
// expect: [tessera.argument.kind] && kind::mesh && kind::axis
int run(int argc, char** argv) {
  return ts::launch<row>(argc, argv, [](auto&) {});
}
#elif defined(VERB_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
double everywhere(const at::Tensor& x) { return item(ts::sum(ts::exp(ts::all_gather<all>(x)))); }
#elif defined(VERB_OF_A_DYNAMIC_TENSOR)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto halo(const ts::tensor<ts::dyn>& x) { return ts::halo_exchange<all>(x); }
#elif defined(TO_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto moved(const at::Tensor& x) { return ts::to<all>(x); }
#elif defined(TAKE_WITHOUT_TEAM)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto part(const at::Tensor& x) { return ts::shard<by_row>(x); }
#elif defined(APPLY_TO_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto moved(const at::Tensor& x) { return ts::apply<ts::primitive<by_row, copies>>(x); }
#elif defined(SHIFT_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto turned(const at::Tensor& x) { return ts::shift<row>(x); }
#elif defined(TO_OF_A_DYNAMIC_TENSOR)
// expect: [tessera.tensor.wanted] && tensor_wanted< && tensor<tessera::dyn
auto moved(const ts::tensor<ts::dyn>& x) { return ts::to<all>(x); }
#elif defined(SHIFT_OF_A_DYNAMIC_TENSOR)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto turned(const ts::tensor<ts::dyn>& x) { return ts::shift<row>(x); }
#elif defined(VALUE_OF_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
bool falls(const at::Tensor& loss) { return ts::item(loss) < 1; }
#elif defined(VERB_TO_A_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::partition,
// tessera::kind::tensor
auto everywhere(const by_row& x) { return ts::all_gather<by_row>(x); }
#elif defined(WIDE_KERNEL)
// expect: [tessera.window.kernel] && at_layer<1, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
using net = ts::nn::sequential<image, ts::nn::relu, ts::nn::conv<6, ts::kernel<13, 3>, ts::padding<1, 1>>, ts::nn::relu,
                               ts::nn::max_pool<ts::kernel<2, 2>>>;
auto output(ts::team<grid>& team, const image& x) { return net{team, ts::seed{7}}(x); }
#elif defined(AVERAGE_OF_INTEGERS)
// expect: [tessera.layer.element] && mean_of_integers<tessera::with::given_element<tessera::element::int64>>
using counts = ts::tensor<layout_as<ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<16, 1, 8, 8>,
                          std::int64_t>;
using net = ts::nn::sequential<counts, ts::nn::avg_pool<ts::kernel<2, 2>>>;
auto output(ts::team<grid>& team, const counts& x) { return net{team, ts::seed{7}}(x); }
#elif defined(ONE_MISTAKE)
// expect: [tessera.window.kernel] && at_layer<24, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
struct net : deep<conv<13>> {
  using base = deep<conv<13>>;
  using base::base;
};
double train(ts::team<grid>& team, const image& x,
             const ts::tensor<layout_as<ts::whole>, ts::shape_of<16>, std::int64_t>& labels) {
  net mine{team, ts::seed{7}};
  deep<conv<13>> other{team, ts::seed{7}};
  ts::nn::assign(other, ts::nn::state_of(mine));
  mine.train();
  deep<conv<13>>::output y = mine(ts::distribute<net::input>(team, full_tensor(x)));
  const copies found = ts::all_gather<all>(y);
  auto all_of_it = sum(matmul(relu(y) + 2.0 * y, found) - ts::to<all>(y) * y);
  all_of_it.backward();
  auto loss = ts::nn::cross_entropy(y, labels);
  loss.backward();
  for (const at::Tensor& w : mine.parameters()) w.zero_();
  return item(loss) + item(all_of_it);
}
#elif defined(NETWORK_WITHOUT_SEED)
// expect: [tessera.network.arguments]
auto output(ts::team<grid>& team, const image& x) { return deep<conv<3>>{team}(x); }
#elif defined(NETWORK_OF_A_NUMBER)
// expect: [tessera.network.arguments]
auto output(ts::team<grid>& team, const image& x) { return deep<conv<3>>(team, 7)(x); }
#elif defined(NETWORK_SWAPPED)
// expect: [tessera.network.arguments]
auto output(ts::team<grid>& team, const image& x) { return named_net(ts::seed{7}, team)(x); }
#elif defined(NETWORK_OF_NOTHING)
// expect: [tessera.network.arguments]
auto output(const image& x) {
  small_net net;
  return net(x);
}
#elif defined(STATE_OF_A_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::network,
// tessera::kind::tensor>
auto weights(const copies& x) { return ts::nn::state_of(x); }
#elif defined(ASSIGN_TO_A_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::network,
// tessera::kind::tensor>
void copy(copies& x, const ts::nn::state_dict& weights) { ts::nn::assign(x, weights); }
#elif defined(NORM_OF_A_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::network,
// tessera::kind::tensor>
void mistake(const by_row& x) { ts::nn::clip_grad_norm(x, 1); }
#elif defined(OTHER_CALL)
// expect: [tessera.tensor.partition] && wrong_partition<tessera::with::none, tessera::with::dimension<2>>
auto output(const deep<conv<3>>& net, const images<ts::whole, ts::whole, ts::blocks<col>, ts::blocks<row>>& x) {
  return net(x);
}
#elif defined(CALL_WITH_TWO)
// expect: [tessera.signature.operands] && wrong_number_of_operands<tessera::with::takes<1>, tessera::with::is_given<2>
auto output(const deep<conv<3>>& net, const image& x) { return net(x, x); }
#elif defined(CALL_WITH_NOTHING)
// expect: [tessera.signature.operands] && wrong_number_of_operands<tessera::with::takes<1>, tessera::with::is_given<0>
auto output(const small_net& net) { return net(); }
#elif defined(CALL_WITH_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto output(const deep<conv<3>>& net, const at::Tensor& x) { return net(x); }
#elif defined(COPY_OF_A_NETWORK)
// expect: [tessera.network.copy]
auto copied(const small_net& net) { return net; }
#elif defined(LOSS_OF_IMAGES)
// expect: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<1>,
// tessera::with::takes<3>, tessera::with::is_given<1>>
auto loss(const image& x, const ts::tensor<layout_as<ts::whole>, ts::shape_of<16>, std::int64_t>& labels) {
  ts::nn::cross_entropy(x, labels).backward();
}
#elif defined(LOSS_WITHOUT_CLASSES)
// expect: [tessera.layer.dimensions] && layer_takes_other_dimensions<tessera::with::takes<2>,
// tessera::with::is_given<1>>
auto loss(const ts::tensor<layout_as<ts::whole>, ts::shape_of<16>>& x,
          const ts::tensor<layout_as<ts::whole>, ts::shape_of<16>, std::int64_t>& labels) {
  ts::nn::cross_entropy(x, labels).backward();
}
#elif defined(LOSS_WITH_FLOAT_LABELS)
// expect: [tessera.tensor.element] && wrong_element<tessera::with::expected_element<tessera::element::int64>,
// tessera::with::given_element<tessera::element::float32>>
auto loss(const copies& x, const ts::tensor<layout_as<ts::whole>, ts::shape_of<12>>& labels) {
  return ts::nn::cross_entropy(x, labels);
}
#elif defined(LOSS_WITH_A_BOX)
// expect: [tessera.tensor.wanted] && tensor_wanted<
auto loss(const copies& x, const at::Tensor& labels) { return ts::nn::cross_entropy(x, labels); }
#elif defined(LOSS_OF_INTEGERS)
// expect: [tessera.function.element] && no_function_of_element<
auto loss(const ts::tensor<all, ts::shape_of<12, 6>, std::int32_t>& x,
          const ts::tensor<layout_as<ts::whole>, ts::shape_of<12>, std::int64_t>& labels) {
  return ts::nn::cross_entropy(x, labels);
}
#elif defined(LOSS_OF_OTHER_EXTENTS)
// expect: [tessera.shape.extent] && extents_differ<
auto loss(const copies& x, const ts::tensor<all, ts::shape_of<12, 7>, double>& y) {
  return ts::nn::huber_loss(x, y, {.delta = 2});
}
#elif defined(LOSS_OF_OTHER_PROBABILITIES)
// expect: [tessera.shape.extent] && extents_differ<
auto loss(const copies& x, const ts::tensor<all, ts::shape_of<12, 7>, double>& y) {
  return ts::nn::cross_entropy(x, y);
}
#elif defined(SUM_BEYOND)
// expect: [tessera.layer.dimension] && dimension_not_there<tessera::with::dimension<7>, tessera::with::dimensions<2>>
auto total(const copies& x) { return ts::sum<7>(x); }
#elif defined(SUM_BEFORE)
// expect: [tessera.layer.dimension] && dimension_not_there<tessera::with::dimension<-1>, tessera::with::dimensions<2>>
auto total(const copies& x) { return ts::sum<0, -1>(x); }
#elif defined(SUM_TWICE)
// expect: [tessera.signature.twice] && letter_named_twice<tessera::with::operand<0>, tessera::with::dimension<1>>
auto total(const copies& x) { return ts::sum<1, 1>(x); }
#elif defined(SHIFT_OUTSIDE)
// expect: [tessera.partition.axis] && axis_not_in_mesh<plane, tessera::with::mesh_axes<2>>
struct plane : ts::axis<2> {};
auto turned(const by_row& x) { return ts::shift<plane>(x); }
#elif defined(SHIFT_OF_COPIES)
// expect: [tessera.shift.axis] && shift_inside<col>
auto turned(const by_row& x) { return ts::shift<col>(x); }
#elif defined(SHIFT_OF_UNEVEN_PARTS)
// expect: [tessera.shift.uneven] && uneven_shift<tessera::with::dimension<0>, tessera::with::parts<2>>
auto turned(const ts::tensor<layout_as<ts::blocks<row>>, ts::shape_of<5>>& x) { return ts::shift<row>(x); }
#elif defined(SHIFT_ALONG_A_MESH)
// expect: [tessera.argument.kind] && kind::axis && kind::mesh
auto turned(const by_row& x) { return ts::shift<grid>(x); }
#elif defined(BACKWARD_OF_MATRIX)
// expect: [tessera.tensor.scalar] && not_a_scalar<tessera::with::dimensions<2>>
void learn(const copies& x) { x.backward(); }
#elif defined(VALUE_OF_MATRIX)
// expect: [tessera.tensor.scalar] && not_a_scalar<tessera::with::dimensions<2>>
bool falls(const copies& x) { return item(x) < 1; }
#else
inline void control(const copies& whole, const terms& pending, const by_row& rows, const by_col& columns,
                    const matrix_row& one_row, const scalar<ts::invariant<row, col>>& loss) {
  pending + pending;
  relu(whole);
  pending* whole;
  whole* one_row + 1;
  2 * pending - pending / 2 + -pending;
  ts::all_gather<all>(rows);
  ts::sum<1, 0>(whole);
  ts::sum(whole.dynamic() + 2 * whole.dynamic()).backward();
  ts::shift<row, 5>(rows);
  ts::sum(ts::exp(whole) + ts::map_elements(whole, [](const at::Tensor& a) { return a; }));
  of_rows(ts::repartition<layout_as<ts::blocks<row>, ts::whole>>(columns));
  if (item(loss) > 0) loss.backward();
}
inline by_row control(const ts::team<grid>& team, const at::Tensor& x) {
  ts::from_local<matrix<ts::lengths<row>, ts::whole>>(team, x);
  return ts::from_local<by_row>(team, ts::distribute<by_row>(team, x).local(), ts::bind<batch>(1));
}
// A class of a user's own that shows its parameters.
struct two_networks {
  deep<conv<3>> first, second;
  template <class Visit>
  void each_parameter(const Visit& visit) const {
    first.each_parameter(visit);
    second.each_parameter(visit);
  }
};
inline void control(two_networks& both) {
  ts::nn::assign(both, ts::nn::state_of(both));
  ts::nn::clip_grad_norm(both, 1);
}
inline by_row initial_control(const ts::team<grid>& team) {
  return ts::initial<by_row>(team, ts::init::ones(), ts::seed{7}, "w");
}
inline deep<conv<3>>::output control(
    ts::team<grid>& team, const image& x,
    const images<ts::replicate<>, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>& spelt) {
  const named_net net{team, ts::seed{7}};
  net(net(x).dynamic());
  net(spelt);
  deep<conv<3>> mine = deep<conv<3>>{team, ts::seed{7}.at("mine")}.clone();
  const deep<conv<3>> moved = std::move(mine);
  return net(x);
}
#endif
