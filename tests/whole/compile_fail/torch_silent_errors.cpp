// What was wrong elsewhere without a word, and what a compiler says of it here. Each case is what somebody would write;
// its line names who reported it, and docs/silent-errors.md lists them all.
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct replica : ts::axis<2> {};
struct tp : ts::axis<2> {};  // workers that share a layer, and cut the sequence between layers
using grid = ts::mesh<replica, tp>;
using other_grid = ts::mesh<tp, replica>;  // the same workers, in other groups

template <class Shape, class... Entries>
using on_grid = ts::tensor<ts::partition<grid, Entries...>, Shape, double>;
template <class... Entries>
using hidden = on_grid<ts::shape_of<8, 6>, Entries...>;
template <class... Entries>
using logits = on_grid<ts::shape_of<8, 12>, Entries...>;
template <class... Entries>
using number = on_grid<ts::shape<>, Entries...>;
template <class... Entries>
using features = on_grid<ts::shape_of<6>, Entries...>;
template <class... Entries>
using heads = on_grid<ts::shape_of<2, 8, 4, 1, 3>, Entries...>;
template <class... Entries>
using keys = on_grid<ts::shape_of<2, 8, 4, 3>, Entries...>;

using whole = hidden<ts::whole, ts::whole>;
using terms = hidden<ts::whole, ts::whole, ts::partial<tp>>;
using sequence = hidden<ts::blocks<tp>, ts::whole>;
using parameter = features<ts::whole, ts::invariant<tp>>;
using copies = features<ts::whole>;
using labels = ts::tensor<ts::partition<grid, ts::whole>, ts::shape_of<8>, std::int64_t>;
using part_of_labels = ts::tensor<ts::partition<grid, ts::blocks<tp>>, ts::shape_of<8>, std::int64_t>;

// The same programs, as they are meant.
#ifdef CONTROL
using used = ts::partition<grid, ts::whole>;
using gathered = ts::partition<grid, ts::whole, ts::whole>;
auto scaled(const sequence& x, const parameter& weight) { return x * ts::copy_in<used>(weight); }
auto biased(const terms& y, const copies& bias) { return ts::all_reduce<gathered>(y) + bias; }
auto largest(const terms& y) { return ts::amax(ts::all_reduce<gathered>(y)); }
auto entropy(const logits<ts::whole, ts::blocks<tp>>& x, const labels& y) { return ts::nn::cross_entropy(x, y); }
auto everywhere(const sequence& x) { return ts::all_gather<gathered>(x); }
#endif

// Terms of a sum that are used as the sum.
#if defined(MAXIMUM_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<tp, tessera::with::operand<0>>
auto largest(const terms& y) { return ts::amax(y); }  // pytorch/pytorch#165962
#elif defined(NORM_OF_TERMS)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<tp, tessera::with::operand<0>>
auto length(const terms& gradient) { return ts::norm(gradient); }  // pytorch/pytorch#126457
#elif defined(BIAS_TO_EACH_TERM)
// expect: [tessera.rule.sum] && replicate_added_to_partial<tp, tessera::with::operand<1>>
auto biased(const terms& y, const copies& bias) { return y + bias; }  // huggingface/text-generation-inference#1036
#elif defined(NUMBER_TO_EACH_TERM)
// expect: [tessera.rule.nonlinear] && nonlinear_on_partial<tp, tessera::with::operand<0>>
auto more(const number<ts::partial<tp>>& total) { return total + 10; }  // pytorch/pytorch#163193
#elif defined(NUMBER_OF_TERMS)
// expect: [tessera.value.copies] && not_steering<tp>
bool stops(const number<ts::partial<tp>>& loss) { return item(loss) < 1; }  // pytorch/pytorch#152406
#elif defined(PRODUCT_OF_TERMS)
// expect: [tessera.rule.product] && product_of_partials<tp, tessera::with::operand<0>>
auto squared(const terms& gradient) { return ts::sum(gradient * gradient); }  // miles_diffusion#35
#endif

// Gradients of one part that are taken for the whole gradient.
#if defined(NORM_WEIGHT_OF_A_PART)
// expect: [tessera.rule.invariant] && invariant_mixed<tp, tessera::with::operand<1>>
auto scaled(const sequence& x, const parameter& weight) { return x * weight; }  // NVIDIA/Megatron-LM#1446
#elif defined(SHARED_NORM_OF_CUT_HEADS)
// expect: [tessera.rule.invariant] && invariant_mixed<tp, tessera::with::operand<1>>
using cut_heads = heads<ts::whole, ts::whole, ts::blocks<tp>, ts::whole, ts::whole>;
using of_one_head = on_grid<ts::shape_of<3>, ts::whole, ts::invariant<tp>>;
auto normed(const cut_heads& y, const of_one_head& weight) { return y * weight; }  // NVIDIA/Megatron-LM#7452, 11
#elif defined(COPIES_TAKEN_FOR_TERMS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::reduce_scatter>,
// tessera::with::found_verb<tessera::verb::shard>>
auto gradient(
    const whole& g) {  // TorchDistPackage: behind a gather whose result all use alike each has the sum already
  return ts::reduce_scatter<ts::partition<grid, ts::blocks<tp>, ts::whole>>(g);
}
#endif

// Groups of other workers.
#if defined(GATHERED_FROM_OTHERS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::all_gather>,
// tessera::with::found_verb<tessera::verb::repartition>>
auto everywhere(const sequence& x) {  // NVIDIA/Megatron-LM#7452, 6
  return ts::all_gather<ts::partition<other_grid, ts::whole, ts::whole>>(x);
}
#elif defined(MASK_OF_OTHERS)
// expect: [tessera.rule.mesh] && meshes_differ<tessera::with::operand<1>>
using mask = ts::tensor<ts::partition<other_grid, ts::blocks<tp>, ts::whole>, ts::shape_of<8, 1>, double>;
auto masked(const sequence& x, const mask& m) { return x * m; }  // NVIDIA/Megatron-LM#7452, 5
#elif defined(SCATTERED_TO_OTHERS)
// expect: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::shard>,
// tessera::with::found_verb<tessera::verb::repartition>>
auto part(const whole& x) {  // NVIDIA/Megatron-LM#7452, 7
  return ts::shard<ts::partition<other_grid, ts::blocks<tp>, ts::whole>>(x);
}
#endif

// Parts that are paired as they lie in memory.
#if defined(ROWS_OF_OTHER_LENGTHS)
// expect: [tessera.rule.cut] && cut_unalike<tp, tessera::with::operand<1>, tessera::with::dimension<0>>
using late = on_grid<ts::shape_of<2, 3>, ts::lengths<tp, ts::dim<0>, ts::dim<2>>, ts::whole>;
using even = on_grid<ts::shape_of<2, 3>, ts::lengths<tp, ts::dim<1>, ts::dim<1>>, ts::whole>;
auto sum(const late& x, const even& y) { return x + y; }  // NVIDIA/physicsnemo#1943
#elif defined(LABELS_CUT_OTHERWISE)
// expect: [tessera.rule.cut] && cut_unalike<tp, tessera::with::operand<1>, tessera::with::dimension<0>>
auto loss(const logits<ts::blocks<tp>, ts::whole>& x, const labels& y) { return ts::nn::cross_entropy(x, y); }
#elif defined(WHOLE_LOGITS_OF_PART_OF_THE_LABELS)
// expect: [tessera.rule.cut] && cut_unalike<tp, tessera::with::operand<0>, tessera::with::dimension<0>>
auto loss(const logits<ts::whole, ts::whole>& x, const part_of_labels& y) { return ts::nn::cross_entropy(x, y); }
#elif defined(ATTENTION_WITHIN_A_PART)
// expect in 2 modules: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>,
// tessera::with::dimension<1>>
using q = heads<ts::whole, ts::blocks<tp>, ts::whole, ts::whole, ts::whole>;
using k = keys<ts::whole, ts::blocks<tp>, ts::whole, ts::whole>;
struct attends {
  constexpr auto operator()(auto x, auto y, auto z) const {
    return ts::nn::attention<>{}(x, y, z);
  }  // TorchDistPackage
};
static_assert(ts::nn::network<attends, q, k, k>::program.count >= 0);
#elif defined(FLATTENED_ACROSS_A_CUT)
// expect: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>, tessera::with::dimension<2>>
using images = on_grid<ts::shape_of<4, 3, 8>, ts::whole, ts::whole, ts::blocks<tp>>;
auto flat(const images& x) { return ts::flatten<1, 2>(x); }  // pytorch/pytorch#135054
#endif
