#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason meshes_differ{"tessera.rule.mesh", "operand",
                                      "the operands of a local operation live on different meshes; repartition one"};
inline constexpr reason nonlinear_on_partial{
    "tessera.rule.nonlinear", "axis, operand",
    "only a linear operation acts on single terms, and only on those of a sum; all_reduce them first"};
inline constexpr reason product_of_partials{
    "tessera.rule.product", "axis, operand",
    "a product of two pending sums is not the sum of the products; all_reduce one of them first"};
inline constexpr reason invariant_mixed{
    "tessera.rule.invariant", "axis, operand",
    "an invariant operand meets one that differs along this axis; change it to replicate (copy_in) first"};
inline constexpr reason held_on_one_coordinate{
    "tessera.rule.on", "axis, operand",
    "one operand is held on a single coordinate of this axis and another is not; broadcast it first"};
inline constexpr reason cut_unalike{"tessera.rule.cut", "axis, operand, dimension",
                                    "the operands are cut differently along this axis; repartition one of them"};
inline constexpr reason streamed_unalike{
    "tessera.stream.cut", "operand, dimension",
    "parts that come together are cut alike; repartition this operand as the first one that is streamed"};
inline constexpr reason streamed_to_copies{"tessera.stream.copies", "axis, operand",
                                           "each worker adds what comes in an order of its own, so copies of the sum "
                                           "differ; let this axis cut an operand that "
                                           "stays, or gather this one"};
inline constexpr reason features_not_of_heads{
    "tessera.attention.heads", "operand, features, heads",
    "the features are no multiple of the heads; choose a number of heads that divides them"};
inline constexpr reason features_odd{"tessera.rotary.features", "features",
                                     "pairs of features are rotated; take an even number of them"};
inline constexpr reason base_not_positive{"tessera.rotary.base", "base",
                                          "angles are powers of a base of 1 or more, such as 10000"};
inline constexpr reason sequence_not_cut{
    "tessera.attention.over_heads", "axis, operand",
    "attention over heads takes queries, keys and values whose sequence this axis cuts; repartition them"};
inline constexpr reason window_looks_away{
    "tessera.attention.window", "before, after",
    "a sliding window has so many keys before a query and after it, none of them below 0, and none after it where "
    "attention is causal"};
inline constexpr reason window_even{
    "tessera.attention.even", "dimension, window",
    "a query of neighbourhood attention stands in the middle of its window; take an odd number of keys"};
inline constexpr reason choices_not_there{
    "tessera.route.choices", "choices, experts",
    "a row has one expert or more, and no more than there are; choose fewer, or make more experts"};
inline constexpr reason no_capacity{"tessera.route.capacity", "",
                                    "the capacity of experts is a finite number above 0; write a larger one, or leave "
                                    "it out, and no row is dropped"};
inline constexpr reason groups_of_rows_unalike{
    "tessera.route.groups", "axis, dimension",
    "groups are runs of rows in order, so the first dimension alone is cut, in blocks; repartition the rows, or leave "
    "the groups to the router"};
inline constexpr reason groups_below_none{"tessera.route.group_count", "groups",
                                          "rows make some groups; say how many, or 0 for one each part of the rows"};
inline constexpr reason experts_not_over{
    "tessera.route.over", "axis",
    "experts are cut by axes that cut rows or have copies of them; repartition the rows, or choose another axis"};
inline constexpr reason routing_option{"tessera.route.option", "",
                                       "noise and the step of biases are finite numbers from 0 on; correct them"};
inline constexpr reason windows_need_extent{
    "tessera.window.dynamic", "dimension",
    "what these windows read at the far edge follows from the extent; write dim<n> in the shape"};
inline constexpr reason packed_lengths_wrong{
    "tessera.attention.lengths", "place, length, rows",
    "cumulative lengths of packed sequences begin with 0, never fall, and end with the number of rows"};
inline constexpr reason rows_not_positive{
    "tessera.stream.rows", "rows",
    "some elements of a part come at once; say how many, or 0 for what the library takes"};
inline constexpr reason haloed_summed{
    "tessera.rule.haloed", "operand, dimension",
    "a haloed dimension does not hold each element once, so it must not be summed over; accumulate it to blocks first"};
inline constexpr reason dimension_needed_whole{
    "tessera.rule.whole", "operand, dimension",
    "the operation needs this dimension whole, but it is cut; repartition it first, by to<...>"};
inline constexpr reason window_without_halo{
    "tessera.rule.window", "operand, dimension",
    "a windowed operation on a cut dimension needs the halo of its own window; halo_exchange it first"};
inline constexpr reason pending_not_linear{
    "tessera.rule.pending", "operand, dimension",
    "a pending dimension holds terms; accumulate it to blocks before anything but a linear operation"};
inline constexpr reason signature_unreadable{
    "tessera.signature.text", "character or none",
    "a signature reads as in nk,mk->nm, a letter for each dimension, one arrow; correct it at this character"};
inline constexpr reason signature_too_large{"tessera.signature.size", "operands, dimensions",
                                            "an operation has at most 4 operands of 16 dimensions each; merge some"};
inline constexpr reason letter_named_twice{
    "tessera.signature.twice", "operand, dimension",
    "an operand or the result names a dimension twice; give each a letter of its own"};
inline constexpr reason letter_from_nowhere{
    "tessera.signature.result", "dimension",
    "the result names a dimension that no operand has and no role makes; name it in an operand"};
inline constexpr reason role_does_not_fit{
    "tessera.signature.role", "role",
    "this role does not fit its dimension; docs/adding-operations.md lists what each takes"};
inline constexpr reason wrong_number_of_operands{
    "tessera.signature.operands", "takes, is given",
    "the operation takes another number of operands; hand in as many as its signature names"};
inline constexpr reason operand_of_other_dimensions{
    "tessera.signature.dimensions", "operand, takes, is given",
    "the operation takes another number of dimensions of this operand; reshape it, or choose another operation"};
inline constexpr reason split_through_part{"tessera.rule.split", "operand, dimension, inner extent",
                                           "the cut goes through what becomes one inner dimension; cut in grains of "
                                           "that extent: grains<inner extent, axes...>"};
inline constexpr reason grain_not_known{
    "tessera.rule.merged", "operand, dimension",
    "a cut of this dimension becomes one in grains of what is merged with it, and those extents are not known; write "
    "dim<n> in the shape, let the parts come out even, or repartition first"};
inline constexpr reason ranges_not_known{"tessera.concat.extent", "dimension",
                                         "tensors are put end to end along a cut dimension whose extents are known; "
                                         "write dim<n> in the shapes, or repartition it whole first"};
inline constexpr reason split_uneven{"tessera.signature.split", "dimension, extent, inner extent",
                                     "the extent is no multiple of the inner extent; choose one that divides it"};
inline constexpr reason windows_do_not_compose{"tessera.window.compose", "dimension, layer",
                                               "these layers share no halo: windows compose where all see zeros beyond "
                                               "the edge or go around it; exchange one for each"};
inline constexpr reason layer_has_no_window{
    "tessera.layer.fused_halo", "layer",
    "only convolutions, poolings and elementwise layers share a halo; move this layer out of fused_halo"};
inline constexpr reason padding_wider_than_half_kernel{
    "tessera.window.padding", "dimension, padding, kernel",
    "a pooling window may lie by at most half in the padding; make the padding smaller"};
inline constexpr reason mean_of_integers{
    "tessera.layer.element", "given element",
    "a mean of integers is no integer; convert the tensor to a floating element first"};
inline constexpr reason indices_wanted{"tessera.embedding.element", "given element",
                                       "an embedding takes indices, int32 or int64; convert the tensor first"};
inline constexpr reason index_out_of_range{
    "tessera.embedding.index", "index, rows",
    "an index names a row that does not exist; correct the indices, or give the embedding more rows"};
inline constexpr reason sparse_not_there{
    "tessera.embedding.sparse", "",
    "the gradient of an embedding is dense, as its sum over workers is; leave out sparse"};
inline constexpr reason max_norm_below_zero{"tessera.embedding.max_norm", "",
                                            "the largest norm of a row is a number from 0 on; write a larger one"};
inline constexpr reason no_function_of_element{
    "tessera.function.element", "given element",
    "the function takes no tensor of this element; convert the tensor first"};
inline constexpr reason index_out_of_extent{
    "tessera.function.index", "index, extent",
    "an index is below 0, or not below the extent of the dimension that it looks into; correct the indices"};
inline constexpr reason label_out_of_range{"tessera.loss.label", "label, classes",
                                           "a label names a class that does not exist; correct the labels"};
inline constexpr reason class_weights_differ{"tessera.loss.weight", "has, classes",
                                             "a loss has one weight for each class; give as many as there are classes"};
inline constexpr reason class_weights_in_module{
    "tessera.loss.module", "",
    "a module keeps no list of class weights; give them as a tensor, as nn::constant is one"};
inline constexpr reason loss_option_out_of_range{
    "tessera.loss.option", "",
    "the delta of a loss and its scale lie above 0, its beta from 0 on, a margin of angles from 0 to pi; correct it"};
inline constexpr reason loss_of_no_probability{
    "tessera.loss.probability", "elements",
    "some operands of a binary cross-entropy are not from 0 to 1; take their sigmoid, or the loss with logits"};
inline constexpr reason not_single{
    "tessera.function.single", "dimension, extent",
    "only a dimension of one element is dropped or repeated; sum over it, or slice it first"};
inline constexpr reason norm_not_positive{"tessera.function.norm", "",
                                          "the p of a norm is above 0; write a larger one, or infinity"};
inline constexpr reason nothing_is_largest{
    "tessera.function.empty", "dimension",
    "of no elements none is the largest or the smallest; take this of a dimension that has some"};
inline constexpr reason activation_undefined{
    "tessera.function.options", "",
    "the activation is nothing for these options: celu and softplus divide by their first, softshrink's is not below "
    "0, and those of hardtanh and rrelu do not fall"};
inline constexpr reason number_does_not_fit{
    "tessera.tensor.number", "expected element",
    "the number is none of the tensor's element, as a fraction is no integer; convert the tensor or the number"};
inline constexpr reason groups_do_not_divide{
    "tessera.layer.groups", "in, out, groups",
    "the features are no multiple of the groups; choose groups that divide both"};
inline constexpr reason output_padding_too_large{
    "tessera.layer.output_padding", "dimension, output padding, bound",
    "output padding lies from 0 to below its bound: a fold's stride, of a transposed convolution the larger of stride "
    "and dilation; write another, or an output_size as near"};
inline constexpr reason padding_leaves_nothing{
    "tessera.layer.nothing_left", "dimension, extent, result",
    "a transposed convolution gives one element or more of one or more; make its padding smaller or its kernel larger"};
inline constexpr reason same_padding_steps{
    "tessera.layer.same_padding", "dimension, stride",
    "a convolution that steps keeps no extent, so padding_same goes with stride 1; write the padding"};
inline constexpr reason heads_do_not_divide{
    "tessera.layer.heads", "heads, key heads",
    "the heads are no multiple of those of keys and values, or have no features; choose numbers that divide"};
inline constexpr reason module_not_constant{"tessera.network.module", "",
                                            "a module is called while compiling; write constexpr auto operator()(auto "
                                            "x) const, and nothing in it that only run time can do"};
inline constexpr reason flow_of_another_type{"tessera.network.assigned", "",
                                             "a flow is of one shape and partition, so it takes no other's place; name "
                                             "each layer's result"};
inline constexpr reason part_holds_values{
    "tessera.network.value", "",
    "a part of a module is known by its type, so what its object holds would be lost; make it template parameters"};
inline constexpr reason layer_takes_other_dimensions{
    "tessera.layer.dimensions", "takes, is given",
    "the layer takes a tensor of another number of dimensions; flatten or reshape before it"};
inline constexpr reason wrong_kernel{"tessera.layer.kernel", "extents",
                                     "the layer takes a kernel of 1 to 3 extents; name it, as in kernel<3, 3>"};
inline constexpr reason dimension_not_there{"tessera.layer.dimension", "dimension, dimensions",
                                            "the input has no such dimension; name one from 0 on"};
inline constexpr reason transform_dimensions{
    "tessera.fft.dimensions", "dimensions",
    "a Fourier transform is over one to three dimensions; name each of them once"};
inline constexpr reason transform_length{
    "tessera.fft.length", "dimension, extent, result",
    "a Fourier transform gives one element or more of one or more, an irfft n of n / 2 + 1; write another length"};
inline constexpr reason transform_modes{
    "tessera.fft.modes", "dimension, modes, at most",
    "a spectral convolution keeps one wave number or more of each sign, and no more than there are; write another"};
inline constexpr reason divisor_not_positive{"tessera.layer.divisor", "divisor",
                                             "a divisor is at least 1; write a larger one"};
inline constexpr reason half_turn_uneven{
    "tessera.globe.half_turn", "dimension, extent",
    "the other side of a pole lies half a turn away; take a grid with an even number of columns"};
inline constexpr reason factor_not_positive{
    "tessera.layer.factor", "dimension, factor",
    "an upsampling makes more than 0 elements of each, and less than 2^31; write another factor"};
inline constexpr reason nothing_to_resample{
    "tessera.layer.size", "dimension, from, to",
    "an upsampling makes one element or more of one or more, less than 2^30 of them; write another size or factor"};
inline constexpr reason nearest_has_no_corners{
    "tessera.layer.corners", "",
    "the nearest neighbour has no corners to align; leave out align_corners, or interpolate linearly"};
inline constexpr reason antialias_not_there{
    "tessera.layer.antialias", "",
    "an upsampling does not smooth what it leaves out; leave out antialias, or pool before it"};
inline constexpr reason no_probability{"tessera.layer.probability", "",
                                       "a probability lies from 0 to 1; write another"};
inline constexpr reason eps_below_zero{"tessera.layer.eps", "",
                                       "what is added to a variance is a number from 0 on; write a larger one"};
inline constexpr reason one_value_a_channel{
    "tessera.layer.one_value", "",
    "one value a channel has no variance to train on; take more samples or more space, or call eval"};
inline constexpr reason fraction_without_divisor{
    "tessera.layer.fraction", "numerator, denominator",
    "an option that is a fraction has a denominator from 1 on; write 0.1 as 1, 10"};
inline constexpr reason option_not_taken{"tessera.layer.not_taken", "option",
                                         "the layer does not take this option; docs/layers.md lists what each takes"};
inline constexpr reason option_given_twice{
    "tessera.layer.twice", "option, option again",
    "two options of the layer speak of the same thing, as padding and padding_at do; drop one"};
inline constexpr reason option_of_other_dimensions{
    "tessera.layer.options", "kernel, option",
    "an option of the layer names another number of dimensions than its kernel; name one value for all or one each"};
inline constexpr reason initial_of_other_dimensions{
    "tessera.initial.dimensions", "dimensions",
    "this initial value is one of another number of dimensions: eye and sparse 2, dirac 3 to 5, with fans and "
    "orthogonal from 2 on; choose another"};
inline constexpr reason initial_groups_do_not_divide{
    "tessera.initial.groups", "extent, groups",
    "the first extent is no multiple of dirac's groups; choose groups that divide it"};
inline constexpr reason initial_of_other_count{"tessera.initial.count", "expected, given",
                                               "a list of values has one for each element of the tensor; give as many"};
inline constexpr reason initial_spread_wrong{
    "tessera.initial.spread", "",
    "a standard deviation is a number from 0 on, and a mean and a gain are finite; correct them"};
inline constexpr reason initial_ends_wrong{"tessera.initial.ends", "",
                                           "values lie from a finite end to a higher one, a sparsity from 0 to 1, and "
                                           "ends that truncate within 30 standard deviations; correct them"};
inline constexpr reason nonlinearity_has_no_gain{
    "tessera.initial.nonlinearity", "",
    "the nonlinearity has no gain; name linear, sigmoid, tanh, relu, leaky_relu or selu"};

}  // namespace tessera::code
