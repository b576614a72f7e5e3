#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/operation/refusals.hpp>

// Made by scripts/make_verdicts from operation/refusals.hpp; a test holds the two against each other.

namespace tessera {

enum class element : signed char;

namespace with {

template <element> struct expected_element;
template <element> struct given_element;
template <index_t> struct after;
template <index_t> struct at_most;
template <index_t> struct base;
template <index_t> struct before;
template <index_t> struct bound;
template <index_t> struct character;
template <index_t> struct choices;
template <index_t> struct classes;
template <index_t> struct denominator;
template <index_t> struct dimension;
template <index_t> struct dimensions;
template <index_t> struct divisor;
template <index_t> struct elements;
template <index_t> struct expected;
template <index_t> struct experts;
template <index_t> struct extent;
template <index_t> struct extents;
template <index_t> struct factor;
template <index_t> struct features;
template <index_t> struct from;
template <index_t> struct given;
template <index_t> struct groups;
template <index_t> struct has;
template <index_t> struct heads;
template <index_t> struct in;
template <index_t> struct index;
template <index_t> struct inner_extent;
template <index_t> struct is_given;
template <index_t> struct kernel;
template <index_t> struct key_heads;
template <index_t> struct label;
template <index_t> struct layer;
template <index_t> struct length;
template <index_t> struct modes;
template <index_t> struct numerator;
template <index_t> struct operand;
template <index_t> struct operands;
template <index_t> struct option;
template <index_t> struct option_again;
template <index_t> struct out;
template <index_t> struct output_padding;
template <index_t> struct padding;
template <index_t> struct place;
template <index_t> struct result;
template <index_t> struct role;
template <index_t> struct rows;
template <index_t> struct stride;
template <index_t> struct takes;
template <index_t> struct to;
template <index_t> struct window;

}  // namespace with

namespace verdicts {

template <class... Told> struct meshes_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.mesh] the operands of a local operation live on different meshes; repartition one");
  }
};
template <class... Told> struct nonlinear_on_partial {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.nonlinear] only a linear operation acts on single terms, and only on those of a "
                  "sum; all_reduce them first");
  }
};
template <class... Told> struct product_of_partials {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.product] a product of two pending sums is not the sum of the products; all_reduce "
                  "one of them first");
  }
};
template <class... Told> struct invariant_mixed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.invariant] an invariant operand meets one that differs along this axis; change it "
                  "to replicate (copy_in) first");
  }
};
template <class... Told> struct held_on_one_coordinate {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.on] one operand is held on a single coordinate of this axis and another is not; "
                  "broadcast it first");
  }
};
template <class... Told> struct cut_unalike {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.cut] the operands are cut differently along this axis; repartition one of them");
  }
};
template <class... Told> struct streamed_unalike {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.stream.cut] parts that come together are cut alike; repartition this operand as the "
                  "first one that is streamed");
  }
};
template <class... Told> struct streamed_to_copies {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.stream.copies] each worker adds what comes in an order of its own, so copies of the sum "
                  "differ; let this axis cut an operand that stays, or gather this one");
  }
};
template <class... Told> struct features_not_of_heads {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.attention.heads] the features are no multiple of the heads; choose a number of heads "
                  "that divides them");
  }
};
template <class... Told> struct features_odd {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rotary.features] pairs of features are rotated; take an even number of them");
  }
};
template <class... Told> struct base_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rotary.base] angles are powers of a base of 1 or more, such as 10000");
  }
};
template <class... Told> struct sequence_not_cut {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.attention.over_heads] attention over heads takes queries, keys and values whose sequence "
                  "this axis cuts; repartition them");
  }
};
template <class... Told> struct window_looks_away {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.attention.window] a sliding window has so many keys before a query and after it, none of "
                  "them below 0, and none after it where attention is causal");
  }
};
template <class... Told> struct window_even {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.attention.even] a query of neighbourhood attention stands in the middle of its window; "
                  "take an odd number of keys");
  }
};
template <class... Told> struct choices_not_there {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.choices] a row has one expert or more, and no more than there are; choose fewer, "
                  "or make more experts");
  }
};
template <class... Told> struct no_capacity {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.capacity] the capacity of experts is a finite number above 0; write a larger one, "
                  "or leave it out, and no row is dropped");
  }
};
template <class... Told> struct groups_of_rows_unalike {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.groups] groups are runs of rows in order, so the first dimension alone is cut, in "
                  "blocks; repartition the rows, or leave the groups to the router");
  }
};
template <class... Told> struct groups_below_none {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.group_count] rows make some groups; say how many, or 0 for one each part of the "
                  "rows");
  }
};
template <class... Told> struct experts_not_over {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.over] experts are cut by axes that cut rows or have copies of them; repartition "
                  "the rows, or choose another axis");
  }
};
template <class... Told> struct routing_option {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.option] noise and the step of biases are finite numbers from 0 on; correct them");
  }
};
template <class... Told> struct windows_need_extent {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.dynamic] what these windows read at the far edge follows from the extent; write "
                  "dim<n> in the shape");
  }
};
template <class... Told> struct packed_lengths_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.attention.lengths] cumulative lengths of packed sequences begin with 0, never fall, and "
                  "end with the number of rows");
  }
};
template <class... Told> struct rows_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.stream.rows] some elements of a part come at once; say how many, or 0 for what the "
                  "library takes");
  }
};
template <class... Told> struct haloed_summed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.haloed] a haloed dimension does not hold each element once, so it must not be "
                  "summed over; accumulate it to blocks first");
  }
};
template <class... Told> struct dimension_needed_whole {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.whole] the operation needs this dimension whole, but it is cut; repartition it "
                  "first, by to<...>");
  }
};
template <class... Told> struct window_without_halo {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.window] a windowed operation on a cut dimension needs the halo of its own window; "
                  "halo_exchange it first");
  }
};
template <class... Told> struct pending_not_linear {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.pending] a pending dimension holds terms; accumulate it to blocks before anything "
                  "but a linear operation");
  }
};
template <class... Told> struct signature_unreadable {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.text] a signature reads as in nk,mk->nm, a letter for each dimension, one "
                  "arrow; correct it at this character");
  }
};
template <class... Told> struct signature_too_large {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.size] an operation has at most 4 operands of 16 dimensions each; merge some");
  }
};
template <class... Told> struct letter_named_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.twice] an operand or the result names a dimension twice; give each a letter of "
                  "its own");
  }
};
template <class... Told> struct letter_from_nowhere {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.result] the result names a dimension that no operand has and no role makes; "
                  "name it in an operand");
  }
};
template <class... Told> struct role_does_not_fit {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.role] this role does not fit its dimension; docs/adding-operations.md lists "
                  "what each takes");
  }
};
template <class... Told> struct wrong_number_of_operands {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.operands] the operation takes another number of operands; hand in as many as "
                  "its signature names");
  }
};
template <class... Told> struct operand_of_other_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.dimensions] the operation takes another number of dimensions of this operand; "
                  "reshape it, or choose another operation");
  }
};
template <class... Told> struct split_through_part {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.split] the cut goes through what becomes one inner dimension; cut in grains of that "
                  "extent: grains<inner extent, axes...>");
  }
};
template <class... Told> struct grain_not_known {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.merged] a cut of this dimension becomes one in grains of what is merged with it, "
                  "and those extents are not known; write dim<n> in the shape, let the parts come out even, or "
                  "repartition first");
  }
};
template <class... Told> struct ranges_not_known {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.concat.extent] tensors are put end to end along a cut dimension whose extents are known; "
                  "write dim<n> in the shapes, or repartition it whole first");
  }
};
template <class... Told> struct split_uneven {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.split] the extent is no multiple of the inner extent; choose one that divides "
                  "it");
  }
};
template <class... Told> struct windows_do_not_compose {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.compose] these layers share no halo: windows compose where all see zeros beyond "
                  "the edge or go around it; exchange one for each");
  }
};
template <class... Told> struct layer_has_no_window {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.fused_halo] only convolutions, poolings and elementwise layers share a halo; move "
                  "this layer out of fused_halo");
  }
};
template <class... Told> struct padding_wider_than_half_kernel {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.padding] a pooling window may lie by at most half in the padding; make the "
                  "padding smaller");
  }
};
template <class... Told> struct mean_of_integers {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.element] a mean of integers is no integer; convert the tensor to a floating "
                  "element first");
  }
};
template <class... Told> struct indices_wanted {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.embedding.element] an embedding takes indices, int32 or int64; convert the tensor first");
  }
};
template <class... Told> struct index_out_of_range {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.embedding.index] an index names a row that does not exist; correct the indices, or give "
                  "the embedding more rows");
  }
};
template <class... Told> struct sparse_not_there {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.embedding.sparse] the gradient of an embedding is dense, as its sum over workers is; "
                  "leave out sparse");
  }
};
template <class... Told> struct max_norm_below_zero {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.embedding.max_norm] the largest norm of a row is a number from 0 on; write a larger one");
  }
};
template <class... Told> struct no_function_of_element {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.element] the function takes no tensor of this element; convert the tensor first");
  }
};
template <class... Told> struct index_out_of_extent {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.index] an index is below 0, or not below the extent of the dimension that it "
                  "looks into; correct the indices");
  }
};
template <class... Told> struct label_out_of_range {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.label] a label names a class that does not exist; correct the labels");
  }
};
template <class... Told> struct class_weights_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.weight] a loss has one weight for each class; give as many as there are classes");
  }
};
template <class... Told> struct class_weights_in_module {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.module] a module keeps no list of class weights; give them as a tensor, as "
                  "nn::constant is one");
  }
};
template <class... Told> struct loss_option_out_of_range {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.option] the delta of a loss and its scale lie above 0, its beta from 0 on, a margin "
                  "of angles from 0 to pi; correct it");
  }
};
template <class... Told> struct loss_of_no_probability {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.probability] some operands of a binary cross-entropy are not from 0 to 1; take "
                  "their sigmoid, or the loss with logits");
  }
};
template <class... Told> struct not_single {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.single] only a dimension of one element is dropped or repeated; sum over it, or "
                  "slice it first");
  }
};
template <class... Told> struct norm_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.norm] the p of a norm is above 0; write a larger one, or infinity");
  }
};
template <class... Told> struct nothing_is_largest {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.empty] of no elements none is the largest or the smallest; take this of a "
                  "dimension that has some");
  }
};
template <class... Told> struct activation_undefined {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.function.options] the activation is nothing for these options: celu and softplus divide "
                  "by their first, softshrink's is not below 0, and those of hardtanh and rrelu do not fall");
  }
};
template <class... Told> struct number_does_not_fit {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.number] the number is none of the tensor's element, as a fraction is no integer; "
                  "convert the tensor or the number");
  }
};
template <class... Told> struct groups_do_not_divide {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.groups] the features are no multiple of the groups; choose groups that divide both");
  }
};
template <class... Told> struct output_padding_too_large {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.output_padding] output padding lies from 0 to below its bound: a fold's stride, of "
                  "a transposed convolution the larger of stride and dilation; write another, or an output_size as "
                  "near");
  }
};
template <class... Told> struct padding_leaves_nothing {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.nothing_left] a transposed convolution gives one element or more of one or more; "
                  "make its padding smaller or its kernel larger");
  }
};
template <class... Told> struct same_padding_steps {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.same_padding] a convolution that steps keeps no extent, so padding_same goes with "
                  "stride 1; write the padding");
  }
};
template <class... Told> struct heads_do_not_divide {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.heads] the heads are no multiple of those of keys and values, or have no features; "
                  "choose numbers that divide");
  }
};
template <class... Told> struct module_not_constant {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.module] a module is called while compiling; write constexpr auto operator()(auto "
                  "x) const, and nothing in it that only run time can do");
  }
};
template <class... Told> struct flow_of_another_type {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.assigned] a flow is of one shape and partition, so it takes no other's place; "
                  "name each layer's result");
  }
};
template <class... Told> struct part_holds_values {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.value] a part of a module is known by its type, so what its object holds would "
                  "be lost; make it template parameters");
  }
};
template <class... Told> struct layer_takes_other_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimensions] the layer takes a tensor of another number of dimensions; flatten or "
                  "reshape before it");
  }
};
template <class... Told> struct wrong_kernel {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.kernel] the layer takes a kernel of 1 to 3 extents; name it, as in kernel<3, 3>");
  }
};
template <class... Told> struct dimension_not_there {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimension] the input has no such dimension; name one from 0 on");
  }
};
template <class... Told> struct transform_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.fft.dimensions] a Fourier transform is over one to three dimensions; name each of them "
                  "once");
  }
};
template <class... Told> struct transform_length {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.fft.length] a Fourier transform gives one element or more of one or more, an irfft n of "
                  "n / 2 + 1; write another length");
  }
};
template <class... Told> struct transform_modes {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.fft.modes] a spectral convolution keeps one wave number or more of each sign, and no "
                  "more than there are; write another");
  }
};
template <class... Told> struct divisor_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.divisor] a divisor is at least 1; write a larger one");
  }
};
template <class... Told> struct half_turn_uneven {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.globe.half_turn] the other side of a pole lies half a turn away; take a grid with an "
                  "even number of columns");
  }
};
template <class... Told> struct factor_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.factor] an upsampling makes more than 0 elements of each, and less than 2^31; "
                  "write another factor");
  }
};
template <class... Told> struct nothing_to_resample {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.size] an upsampling makes one element or more of one or more, less than 2^30 of "
                  "them; write another size or factor");
  }
};
template <class... Told> struct nearest_has_no_corners {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.corners] the nearest neighbour has no corners to align; leave out align_corners, "
                  "or interpolate linearly");
  }
};
template <class... Told> struct antialias_not_there {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.antialias] an upsampling does not smooth what it leaves out; leave out antialias, "
                  "or pool before it");
  }
};
template <class... Told> struct no_probability {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.probability] a probability lies from 0 to 1; write another");
  }
};
template <class... Told> struct eps_below_zero {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.eps] what is added to a variance is a number from 0 on; write a larger one");
  }
};
template <class... Told> struct one_value_a_channel {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.one_value] one value a channel has no variance to train on; take more samples or "
                  "more space, or call eval");
  }
};
template <class... Told> struct fraction_without_divisor {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.fraction] an option that is a fraction has a denominator from 1 on; write 0.1 as "
                  "1, 10");
  }
};
template <class... Told> struct option_not_taken {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.not_taken] the layer does not take this option; docs/layers.md lists what each "
                  "takes");
  }
};
template <class... Told> struct option_given_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.twice] two options of the layer speak of the same thing, as padding and padding_at "
                  "do; drop one");
  }
};
template <class... Told> struct option_of_other_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.options] an option of the layer names another number of dimensions than its "
                  "kernel; name one value for all or one each");
  }
};
template <class... Told> struct initial_of_other_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.dimensions] this initial value is one of another number of dimensions: eye and "
                  "sparse 2, dirac 3 to 5, with fans and orthogonal from 2 on; choose another");
  }
};
template <class... Told> struct initial_groups_do_not_divide {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.groups] the first extent is no multiple of dirac's groups; choose groups that "
                  "divide it");
  }
};
template <class... Told> struct initial_of_other_count {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.count] a list of values has one for each element of the tensor; give as many");
  }
};
template <class... Told> struct initial_spread_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.spread] a standard deviation is a number from 0 on, and a mean and a gain are "
                  "finite; correct them");
  }
};
template <class... Told> struct initial_ends_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.ends] values lie from a finite end to a higher one, a sparsity from 0 to 1, and "
                  "ends that truncate within 30 standard deviations; correct them");
  }
};
template <class... Told> struct nonlinearity_has_no_gain {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.initial.nonlinearity] the nonlinearity has no gain; name linear, sigmoid, tanh, relu, "
                  "leaky_relu or selu");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::meshes_differ> {
  template <class Why> using type = verdicts::meshes_differ<with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::nonlinear_on_partial> {
  template <class Why> using type = verdicts::nonlinear_on_partial<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::product_of_partials> {
  template <class Why> using type = verdicts::product_of_partials<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::invariant_mixed> {
  template <class Why> using type = verdicts::invariant_mixed<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::held_on_one_coordinate> {
  template <class Why> using type = verdicts::held_on_one_coordinate<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::cut_unalike> {
  template <class Why> using type = verdicts::cut_unalike<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::streamed_unalike> {
  template <class Why> using type = verdicts::streamed_unalike<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::streamed_to_copies> {
  template <class Why> using type = verdicts::streamed_to_copies<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::features_not_of_heads> {
  template <class Why> using type = verdicts::features_not_of_heads<
      with::operand<Why::number(0)>,
      with::features<Why::number(1)>,
      with::heads<Why::number(2)>>;
};
template <> struct verdict_for<&code::features_odd> {
  template <class Why> using type = verdicts::features_odd<with::features<Why::number(0)>>;
};
template <> struct verdict_for<&code::base_not_positive> {
  template <class Why> using type = verdicts::base_not_positive<with::base<Why::number(0)>>;
};
template <> struct verdict_for<&code::sequence_not_cut> {
  template <class Why> using type = verdicts::sequence_not_cut<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::window_looks_away> {
  template <class Why> using type = verdicts::window_looks_away<
      with::before<Why::number(0)>,
      with::after<Why::number(1)>>;
};
template <> struct verdict_for<&code::window_even> {
  template <class Why> using type = verdicts::window_even<
      with::dimension<Why::number(0)>,
      with::window<Why::number(1)>>;
};
template <> struct verdict_for<&code::choices_not_there> {
  template <class Why> using type = verdicts::choices_not_there<
      with::choices<Why::number(0)>,
      with::experts<Why::number(1)>>;
};
template <> struct verdict_for<&code::no_capacity> { template <class Why> using type = verdicts::no_capacity<>; };
template <> struct verdict_for<&code::groups_of_rows_unalike> {
  template <class Why> using type = verdicts::groups_of_rows_unalike<
      typename axis_of_refusal<Why>::type,
      with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::groups_below_none> {
  template <class Why> using type = verdicts::groups_below_none<with::groups<Why::number(0)>>;
};
template <> struct verdict_for<&code::experts_not_over> {
  template <class Why> using type = verdicts::experts_not_over<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::routing_option> { template <class Why> using type = verdicts::routing_option<>; };
template <> struct verdict_for<&code::windows_need_extent> {
  template <class Why> using type = verdicts::windows_need_extent<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::packed_lengths_wrong> {
  template <class Why> using type = verdicts::packed_lengths_wrong<
      with::place<Why::number(0)>,
      with::length<Why::number(1)>,
      with::rows<Why::number(2)>>;
};
template <> struct verdict_for<&code::rows_not_positive> {
  template <class Why> using type = verdicts::rows_not_positive<with::rows<Why::number(0)>>;
};
template <> struct verdict_for<&code::haloed_summed> {
  template <class Why> using type = verdicts::haloed_summed<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::dimension_needed_whole> {
  template <class Why> using type = verdicts::dimension_needed_whole<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::window_without_halo> {
  template <class Why> using type = verdicts::window_without_halo<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::pending_not_linear> {
  template <class Why> using type = verdicts::pending_not_linear<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::signature_unreadable> {
  template <class Why> using type = verdicts::signature_unreadable<
      typename number_or_none<with::character, Why::number(0)>::type>;
};
template <> struct verdict_for<&code::signature_too_large> {
  template <class Why> using type = verdicts::signature_too_large<
      with::operands<Why::number(0)>,
      with::dimensions<Why::number(1)>>;
};
template <> struct verdict_for<&code::letter_named_twice> {
  template <class Why> using type = verdicts::letter_named_twice<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::letter_from_nowhere> {
  template <class Why> using type = verdicts::letter_from_nowhere<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::role_does_not_fit> {
  template <class Why> using type = verdicts::role_does_not_fit<with::role<Why::number(0)>>;
};
template <> struct verdict_for<&code::wrong_number_of_operands> {
  template <class Why> using type = verdicts::wrong_number_of_operands<
      with::takes<Why::number(0)>,
      with::is_given<Why::number(1)>>;
};
template <> struct verdict_for<&code::operand_of_other_dimensions> {
  template <class Why> using type = verdicts::operand_of_other_dimensions<
      with::operand<Why::number(0)>,
      with::takes<Why::number(1)>,
      with::is_given<Why::number(2)>>;
};
template <> struct verdict_for<&code::split_through_part> {
  template <class Why> using type = verdicts::split_through_part<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>,
      with::inner_extent<Why::number(2)>>;
};
template <> struct verdict_for<&code::grain_not_known> {
  template <class Why> using type = verdicts::grain_not_known<
      with::operand<Why::number(0)>,
      with::dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::ranges_not_known> {
  template <class Why> using type = verdicts::ranges_not_known<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::split_uneven> {
  template <class Why> using type = verdicts::split_uneven<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::inner_extent<Why::number(2)>>;
};
template <> struct verdict_for<&code::windows_do_not_compose> {
  template <class Why> using type = verdicts::windows_do_not_compose<
      with::dimension<Why::number(0)>,
      with::layer<Why::number(1)>>;
};
template <> struct verdict_for<&code::layer_has_no_window> {
  template <class Why> using type = verdicts::layer_has_no_window<with::layer<Why::number(0)>>;
};
template <> struct verdict_for<&code::padding_wider_than_half_kernel> {
  template <class Why> using type = verdicts::padding_wider_than_half_kernel<
      with::dimension<Why::number(0)>,
      with::padding<Why::number(1)>,
      with::kernel<Why::number(2)>>;
};
template <> struct verdict_for<&code::mean_of_integers> {
  template <class Why> using type = verdicts::mean_of_integers<
      with::given_element<static_cast<element>(Why::number(0))>>;
};
template <> struct verdict_for<&code::indices_wanted> {
  template <class Why> using type = verdicts::indices_wanted<with::given_element<static_cast<element>(Why::number(0))>>;
};
template <> struct verdict_for<&code::index_out_of_range> {
  template <class Why> using type = verdicts::index_out_of_range<
      with::index<Why::number(0)>,
      with::rows<Why::number(1)>>;
};
template <> struct verdict_for<&code::sparse_not_there> {
  template <class Why> using type = verdicts::sparse_not_there<>;
};
template <> struct verdict_for<&code::max_norm_below_zero> {
  template <class Why> using type = verdicts::max_norm_below_zero<>;
};
template <> struct verdict_for<&code::no_function_of_element> {
  template <class Why> using type = verdicts::no_function_of_element<
      with::given_element<static_cast<element>(Why::number(0))>>;
};
template <> struct verdict_for<&code::index_out_of_extent> {
  template <class Why> using type = verdicts::index_out_of_extent<
      with::index<Why::number(0)>,
      with::extent<Why::number(1)>>;
};
template <> struct verdict_for<&code::label_out_of_range> {
  template <class Why> using type = verdicts::label_out_of_range<
      with::label<Why::number(0)>,
      with::classes<Why::number(1)>>;
};
template <> struct verdict_for<&code::class_weights_differ> {
  template <class Why> using type = verdicts::class_weights_differ<
      with::has<Why::number(0)>,
      with::classes<Why::number(1)>>;
};
template <> struct verdict_for<&code::class_weights_in_module> {
  template <class Why> using type = verdicts::class_weights_in_module<>;
};
template <> struct verdict_for<&code::loss_option_out_of_range> {
  template <class Why> using type = verdicts::loss_option_out_of_range<>;
};
template <> struct verdict_for<&code::loss_of_no_probability> {
  template <class Why> using type = verdicts::loss_of_no_probability<with::elements<Why::number(0)>>;
};
template <> struct verdict_for<&code::not_single> {
  template <class Why> using type = verdicts::not_single<with::dimension<Why::number(0)>, with::extent<Why::number(1)>>;
};
template <> struct verdict_for<&code::norm_not_positive> {
  template <class Why> using type = verdicts::norm_not_positive<>;
};
template <> struct verdict_for<&code::nothing_is_largest> {
  template <class Why> using type = verdicts::nothing_is_largest<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::activation_undefined> {
  template <class Why> using type = verdicts::activation_undefined<>;
};
template <> struct verdict_for<&code::number_does_not_fit> {
  template <class Why> using type = verdicts::number_does_not_fit<
      with::expected_element<static_cast<element>(Why::number(0))>>;
};
template <> struct verdict_for<&code::groups_do_not_divide> {
  template <class Why> using type = verdicts::groups_do_not_divide<
      with::in<Why::number(0)>,
      with::out<Why::number(1)>,
      with::groups<Why::number(2)>>;
};
template <> struct verdict_for<&code::output_padding_too_large> {
  template <class Why> using type = verdicts::output_padding_too_large<
      with::dimension<Why::number(0)>,
      with::output_padding<Why::number(1)>,
      with::bound<Why::number(2)>>;
};
template <> struct verdict_for<&code::padding_leaves_nothing> {
  template <class Why> using type = verdicts::padding_leaves_nothing<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::result<Why::number(2)>>;
};
template <> struct verdict_for<&code::same_padding_steps> {
  template <class Why> using type = verdicts::same_padding_steps<
      with::dimension<Why::number(0)>,
      with::stride<Why::number(1)>>;
};
template <> struct verdict_for<&code::heads_do_not_divide> {
  template <class Why> using type = verdicts::heads_do_not_divide<
      with::heads<Why::number(0)>,
      with::key_heads<Why::number(1)>>;
};
template <> struct verdict_for<&code::module_not_constant> {
  template <class Why> using type = verdicts::module_not_constant<>;
};
template <> struct verdict_for<&code::flow_of_another_type> {
  template <class Why> using type = verdicts::flow_of_another_type<>;
};
template <> struct verdict_for<&code::part_holds_values> {
  template <class Why> using type = verdicts::part_holds_values<>;
};
template <> struct verdict_for<&code::layer_takes_other_dimensions> {
  template <class Why> using type = verdicts::layer_takes_other_dimensions<
      with::takes<Why::number(0)>,
      with::is_given<Why::number(1)>>;
};
template <> struct verdict_for<&code::wrong_kernel> {
  template <class Why> using type = verdicts::wrong_kernel<with::extents<Why::number(0)>>;
};
template <> struct verdict_for<&code::dimension_not_there> {
  template <class Why> using type = verdicts::dimension_not_there<
      with::dimension<Why::number(0)>,
      with::dimensions<Why::number(1)>>;
};
template <> struct verdict_for<&code::transform_dimensions> {
  template <class Why> using type = verdicts::transform_dimensions<with::dimensions<Why::number(0)>>;
};
template <> struct verdict_for<&code::transform_length> {
  template <class Why> using type = verdicts::transform_length<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::result<Why::number(2)>>;
};
template <> struct verdict_for<&code::transform_modes> {
  template <class Why> using type = verdicts::transform_modes<
      with::dimension<Why::number(0)>,
      with::modes<Why::number(1)>,
      with::at_most<Why::number(2)>>;
};
template <> struct verdict_for<&code::divisor_not_positive> {
  template <class Why> using type = verdicts::divisor_not_positive<with::divisor<Why::number(0)>>;
};
template <> struct verdict_for<&code::half_turn_uneven> {
  template <class Why> using type = verdicts::half_turn_uneven<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>>;
};
template <> struct verdict_for<&code::factor_not_positive> {
  template <class Why> using type = verdicts::factor_not_positive<
      with::dimension<Why::number(0)>,
      with::factor<Why::number(1)>>;
};
template <> struct verdict_for<&code::nothing_to_resample> {
  template <class Why> using type = verdicts::nothing_to_resample<
      with::dimension<Why::number(0)>,
      with::from<Why::number(1)>,
      with::to<Why::number(2)>>;
};
template <> struct verdict_for<&code::nearest_has_no_corners> {
  template <class Why> using type = verdicts::nearest_has_no_corners<>;
};
template <> struct verdict_for<&code::antialias_not_there> {
  template <class Why> using type = verdicts::antialias_not_there<>;
};
template <> struct verdict_for<&code::no_probability> { template <class Why> using type = verdicts::no_probability<>; };
template <> struct verdict_for<&code::eps_below_zero> { template <class Why> using type = verdicts::eps_below_zero<>; };
template <> struct verdict_for<&code::one_value_a_channel> {
  template <class Why> using type = verdicts::one_value_a_channel<>;
};
template <> struct verdict_for<&code::fraction_without_divisor> {
  template <class Why> using type = verdicts::fraction_without_divisor<
      with::numerator<Why::number(0)>,
      with::denominator<Why::number(1)>>;
};
template <> struct verdict_for<&code::option_not_taken> {
  template <class Why> using type = verdicts::option_not_taken<with::option<Why::number(0)>>;
};
template <> struct verdict_for<&code::option_given_twice> {
  template <class Why> using type = verdicts::option_given_twice<
      with::option<Why::number(0)>,
      with::option_again<Why::number(1)>>;
};
template <> struct verdict_for<&code::option_of_other_dimensions> {
  template <class Why> using type = verdicts::option_of_other_dimensions<
      with::kernel<Why::number(0)>,
      with::option<Why::number(1)>>;
};
template <> struct verdict_for<&code::initial_of_other_dimensions> {
  template <class Why> using type = verdicts::initial_of_other_dimensions<with::dimensions<Why::number(0)>>;
};
template <> struct verdict_for<&code::initial_groups_do_not_divide> {
  template <class Why> using type = verdicts::initial_groups_do_not_divide<
      with::extent<Why::number(0)>,
      with::groups<Why::number(1)>>;
};
template <> struct verdict_for<&code::initial_of_other_count> {
  template <class Why> using type = verdicts::initial_of_other_count<
      with::expected<Why::number(0)>,
      with::given<Why::number(1)>>;
};
template <> struct verdict_for<&code::initial_spread_wrong> {
  template <class Why> using type = verdicts::initial_spread_wrong<>;
};
template <> struct verdict_for<&code::initial_ends_wrong> {
  template <class Why> using type = verdicts::initial_ends_wrong<>;
};
template <> struct verdict_for<&code::nonlinearity_has_no_gain> {
  template <class Why> using type = verdicts::nonlinearity_has_no_gain<>;
};

}  // namespace detail
}  // namespace tessera
