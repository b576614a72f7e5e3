#pragma once

#include <tessera/meta/integer.hpp>

// Made by scripts/make_verdicts from refusal_list.hpp; a test holds the two against each other.

namespace tessera {

/// The verdict of everything that fits: a verdict type says by `ok` whether the thing it names is accepted.
struct fits {
  static constexpr bool ok = true;
  template <class>
  static constexpr void refuse() {}
};

// One verdict type for each refusal. `refuse` is where the compiler stops: it prints the sentence, and `Where`, the verdict
// with its numbers and the place it was found at.

template <index_t... Numbers>
struct wrong_kind {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.argument.kind] a template takes another kind of type here; give it the one that the verdict wants, in place of the one it was given");
  }
};

template <index_t... Numbers>
struct wrong_number_of_dimensions {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.dimensions] a partition needs one cover for each dimension of the shape; add or remove covers");
  }
};

template <index_t... Numbers>
struct axis_not_in_mesh {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.axis] the partition names an axis that its mesh does not have; name it in the mesh or leave it out");
  }
};

template <index_t... Numbers>
struct axis_used_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.twice] an axis of the mesh may cut one dimension or have one meaning, not both or two; drop one use");
  }
};

template <index_t... Numbers>
struct axes_of_one_name {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.name] two axes of one name have different extents; rename one of them");
  }
};

template <index_t... Numbers>
struct too_many {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layout.size] a layout has at most 16 axes and 16 dimensions; merge some");
  }
};

template <index_t... Numbers>
struct extent_not_positive {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.extent] an axis needs an extent of at least 1; give one");
  }
};

template <index_t... Numbers>
struct mesh_too_large {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.size] a mesh has at most 2^31 - 1 workers; make its axes shorter");
  }
};

template <index_t... Numbers>
struct rank_outside {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.rank] the ranks of workers go from 0 to 2^31 - 1; place the mesh among them");
  }
};

template <index_t... Numbers>
struct placement_overlaps {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.placement] two coordinates of the mesh sit on one worker; choose strides that keep them apart");
  }
};

template <index_t... Numbers>
struct axis_named_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.twice] a mesh names each axis once; drop one or derive another axis");
  }
};

template <index_t... Numbers>
struct wrong_number_of_strides {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.strides] a placement names one stride for each axis; add or remove strides");
  }
};

template <index_t... Numbers>
struct wrong_number_of_ranks {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.ranks] a mesh on a list of ranks names one for each worker; add or remove ranks");
  }
};

template <index_t... Numbers>
struct coordinate_outside_axis {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.coordinate] the coordinate lies outside the axis; name one from 0 to extent - 1");
  }
};

template <index_t... Numbers>
struct grain_not_positive {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.grain] a grain holds at least 1 element; write a larger one");
  }
};

template <index_t... Numbers>
struct wrong_number_of_lengths {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.count] a cover names one length for each coordinate that cuts it; add or remove lengths");
  }
};

template <index_t... Numbers>
struct lengths_do_not_add_up {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.sum] the lengths of the parts do not add up to the extent; correct one of them");
  }
};

template <index_t... Numbers>
struct lengths_not_known {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.unknown] learned lengths are known of adopted tensors alone, along the axes they were learned on; adopt the boxes, or name the lengths");
  }
};

template <index_t... Numbers>
struct boxes_are_no_product {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.adopt.product] the boxes that workers hand in are no product of lengths; workers of one part need the same length in its dimension");
  }
};

template <index_t... Numbers>
struct uneven_shift {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.uneven] parts of different lengths cannot take each other's place; turn the deal instead, with rotated<...>");
  }
};

template <index_t... Numbers>
struct shift_inside {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.axis] only the outermost axis that cuts a dimension turns it; name that axis");
  }
};

template <index_t... Numbers>
struct mixed_combines {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partial.combine] the terms of one tensor combine in one way, since a maximum of sums is no sum of maxima; all_reduce one axis first");
  }
};

template <index_t... Numbers>
struct extent_negative {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.negative] an extent is at least 0; write a larger one");
  }
};

template <index_t... Numbers>
struct extents_of_one_name {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.name] two extents have one name, so they would be one; rename one of them, or name the same type twice");
  }
};

template <index_t... Numbers>
struct extent_bound_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.bound_twice] an extent is bound once; drop one binding, or rename one of two extents of one name");
  }
};

template <index_t... Numbers>
struct ranks_differ {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.dimensions] the two tensors have different numbers of dimensions; give both the same");
  }
};

template <index_t... Numbers>
struct extents_differ {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.extent] the two tensors have different extents in this dimension; give both the same");
  }
};

template <index_t... Numbers>
struct partitions_do_not_meet {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.compose.partition] what the first map delivers is not what the second takes; put a repartition between them");
  }
};

template <index_t... Numbers>
struct not_a_tiling {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.move.tiling] a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first");
  }
};

template <index_t... Numbers>
struct not_this_verb {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.verb.pair] this verb does not lead from the first partition to the second; name the verb that does, or let `to` find it");
  }
};

template <index_t... Numbers>
struct meshes_differ {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.mesh] the operands of a local operation live on different meshes; repartition one");
  }
};

template <index_t... Numbers>
struct nonlinear_on_partial {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.nonlinear] only a linear operation acts on single terms, and only on those of a sum; all_reduce them first");
  }
};

template <index_t... Numbers>
struct product_of_partials {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.product] a product of two pending sums is not the sum of the products; all_reduce one of them first");
  }
};

template <index_t... Numbers>
struct replicate_added_to_partial {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.sum] a whole value added to each term would be counted once for each worker; change it to partial first");
  }
};

template <index_t... Numbers>
struct invariant_mixed {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.invariant] an invariant operand meets one that differs along this axis; change it to replicate (copy_in) first");
  }
};

template <index_t... Numbers>
struct held_on_one_coordinate {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.on] one operand is held on a single coordinate of this axis and another is not; broadcast it first");
  }
};

template <index_t... Numbers>
struct cut_unalike {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.cut] the operands are cut differently along this axis; repartition one of them");
  }
};

template <index_t... Numbers>
struct haloed_summed {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.haloed] a haloed dimension holds some elements twice, so it must not be summed over; accumulate it to blocks first");
  }
};

template <index_t... Numbers>
struct dimension_needed_whole {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.whole] the operation needs this dimension whole, but it is cut; repartition it first");
  }
};

template <index_t... Numbers>
struct window_without_halo {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.window] a windowed operation on a cut dimension needs the halo of its own window; halo_exchange it first");
  }
};

template <index_t... Numbers>
struct pending_not_linear {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.pending] a pending dimension holds terms; accumulate it to blocks before anything but a linear operation");
  }
};

template <index_t... Numbers>
struct signature_unreadable {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.text] a signature reads as in nk,mk->nm, a letter for each dimension, one arrow; correct it at this character");
  }
};

template <index_t... Numbers>
struct signature_too_large {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.size] an operation has at most 4 operands of 16 dimensions each; merge some");
  }
};

template <index_t... Numbers>
struct letter_named_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.twice] an operand or the result names a dimension twice; give each a letter of its own");
  }
};

template <index_t... Numbers>
struct letter_from_nowhere {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.result] the result names a dimension that no operand has and no role makes; name it in an operand");
  }
};

template <index_t... Numbers>
struct role_does_not_fit {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.role] this role does not fit its dimension; docs/adding-operations.md lists what each takes");
  }
};

template <index_t... Numbers>
struct wrong_number_of_operands {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.operands] the operation takes another number of operands; hand in as many as its signature names");
  }
};

template <index_t... Numbers>
struct operand_of_other_dimensions {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.dimensions] the operation takes another number of dimensions of this operand; reshape it, or choose another operation");
  }
};

template <index_t... Numbers>
struct range_outside {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.range] the range leaves the dimension; narrow it to one inside");
  }
};

template <index_t... Numbers>
struct split_uneven {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.split] the extent is no multiple of the inner extent; choose one that divides it");
  }
};

template <index_t... Numbers>
struct kernel_wider_than_padded_tensor {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.kernel] the kernel is wider than the padded tensor; make it smaller or the padding larger");
  }
};

template <index_t... Numbers>
struct window_not_positive {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.positive] kernel, stride and dilation are at least 1 and padding at least 0; correct the window");
  }
};

template <index_t... Numbers>
struct window_too_large {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.size] kernel, stride, dilation and padding are less than 2^31; write smaller ones");
  }
};

template <index_t... Numbers>
struct windows_do_not_compose {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.compose] these layers share no halo: windows compose where all see zeros beyond the edge or go around it; exchange one for each");
  }
};

template <index_t... Numbers>
struct layer_has_no_window {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.one_halo] only convolutions, poolings and elementwise layers share a halo; move this layer out of one_halo");
  }
};

template <index_t... Numbers>
struct reflection_too_wide {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.reflect] a reflection is narrower than the tensor; make the padding smaller or the boundary another one");
  }
};

template <index_t... Numbers>
struct nothing_to_pad_from {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.empty] an empty dimension has no edge to continue; pad it with zeros or leave the padding out");
  }
};

template <index_t... Numbers>
struct padding_wider_than_half_kernel {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.padding] a pooling window may lie by at most half in the padding; make the padding smaller");
  }
};

template <index_t... Numbers>
struct mean_of_integers {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.element] a mean of integers is no integer; convert the tensor to a floating element first");
  }
};

template <index_t... Numbers>
struct not_a_maximum {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.indices] only a maximum lies somewhere; ask a max_pool for indices");
  }
};

template <index_t... Numbers>
struct groups_do_not_divide {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.groups] the features are no multiple of the groups; choose groups that divide both");
  }
};

template <index_t... Numbers>
struct layer_takes_other_dimensions {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimensions] the layer takes a tensor of another number of dimensions; flatten or reshape before it");
  }
};

template <index_t... Numbers>
struct wrong_kernel {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.kernel] the layer takes a kernel of 1 to 3 extents; name it, as in kernel<3, 3>");
  }
};

template <index_t... Numbers>
struct dimension_not_there {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimension] the input has no such dimension; name one from 0 on");
  }
};

template <index_t... Numbers>
struct divisor_not_positive {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.divisor] the divisor of an average is at least 1; write a larger one");
  }
};

template <index_t... Numbers>
struct extent_not_static {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dynamic] this extent decides the size of a parameter and must be static; write dim<n> in the shape");
  }
};

template <index_t... Numbers>
struct extent_not_bound {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.unbound] this needs an extent that is not known; bind it, as in bind<batch>(64)");
  }
};

template <index_t... Numbers>
struct not_an_option_of_linear {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.linear.option] linear takes cut_out, cut_in, output_as and no_bias; leave this option out");
  }
};

template <index_t... Numbers>
struct not_an_option_of_conv {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.conv.option] conv takes kernel, stride, padding, padding_at, padding_mode, dilation, groups, cut_out, cut_in, output_as and no_bias; leave this option out");
  }
};

template <index_t... Numbers>
struct not_an_option_of_max_pool {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.max_pool.option] max_pool takes kernel, stride, padding, padding_at, dilation and ceil_mode; leave this option out");
  }
};

template <index_t... Numbers>
struct not_an_option_of_avg_pool {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.avg_pool.option] avg_pool takes kernel, stride, padding, padding_at, dilation, ceil_mode, exclude_padding and divisor; leave this option out");
  }
};

template <index_t... Numbers>
struct not_an_option_of_pad {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pad.option] pad takes padding_mode behind its widths; leave this option out");
  }
};

template <index_t... Numbers>
struct option_given_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.twice] two options of the layer speak of the same thing, as padding and padding_at do; drop one");
  }
};

template <index_t... Numbers>
struct option_of_other_dimensions {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.options] an option of the layer names another number of dimensions than its kernel; name one value for all or one each");
  }
};

template <index_t... Numbers>
struct count_overflows {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.overflow] the tensor has more than 2^63 - 1 elements; make it smaller");
  }
};

template <index_t... Numbers>
struct cost_overflows {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.cost.overflow] more elements or bytes move than can be counted, 2^63 - 1; make the tensor or the mesh smaller");
  }
};

template <index_t... Numbers>
struct list_full {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.list.full] a list of fixed length is full (axes, dimensions, operands, parameters, windows); name fewer");
  }
};

template <index_t... Numbers>
struct not_a_scalar {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.scalar] only a scalar starts backward or steers the program; sum the tensor first");
  }
};

template <index_t... Numbers>
struct not_steering {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.copies] only a tensor that all workers hold alike may steer the program; change it to invariant first");
  }
};

template <index_t... Numbers>
struct holds_nothing {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.outside] this worker lies outside the tensor's mesh and has no value of it; ask on a worker that does, or broadcast it first");
  }
};

template <index_t... Numbers>
struct mesh_larger_than_world {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.launch.world] the mesh does not fit the workers that were started; start as many as it names, or choose another mesh");
  }
};

template <index_t... Numbers>
struct limit_not_positive {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.launch.limit] the time limit is no time at all; give at least a second");
  }
};

template <index_t... Numbers>
struct threads_missing {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.launch.threads] the system gives no thread to every worker; start fewer workers, or raise the system's limits");
  }
};

template <index_t... Numbers>
struct other_thread {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.launch.thread] a team belongs to the thread of its worker; call from the thread that runs the program");
  }
};

template <index_t... Numbers>
struct memory_cap_reached {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.memory.cap] the tensors in use leave no room below the cap on memory; make them smaller, free some, or raise launch_options::memory_cap");
  }
};

template <index_t... Numbers>
struct out_of_memory {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.memory.full] the system has no memory for the tensor; make it smaller, free others, or start fewer workers on the machine");
  }
};

template <index_t... Numbers>
struct workers_disagree {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.fingerprint] two workers do different things at the same place; give all of them the same program, types and extents");
  }
};

template <index_t... Numbers>
struct extents_disagree {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.extent] two workers give a dynamic extent different values; give all of them the same");
  }
};

template <index_t... Numbers>
struct copies_differ {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.copies] two workers hold different values where all copies are equal; look at what was assigned or stepped by hand: weights are invariant, not replicate");
  }
};

template <index_t... Numbers>
struct worker_lost {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.lost] a worker ended while another one waits for it; see its own message, or give all workers the same operations");
  }
};

template <index_t... Numbers>
struct workers_wait_in_a_ring {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.deadlock] every worker waits for another one; give all of them the same operations in the same order");
  }
};

template <index_t... Numbers>
struct call_given_up {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.given_up] a worker gave up an exchange between start and finish and went on; end the program, or finish what was started");
  }
};

template <index_t... Numbers>
struct exchanges_full {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.exchanges] more exchanges are bound at once than MPI has tags; let go of teams and bound exchanges that are done with, or use an MPI with more tags");
  }
};

template <index_t... Numbers>
struct call_finished {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.call.finished] nothing is under way here: the call was finished before, or moved elsewhere; finish each call once");
  }
};

template <index_t... Numbers>
struct time_limit {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.time] a worker waited longer than the time limit; look at the worker it waits for, or raise the limit");
  }
};

template <index_t... Numbers>
struct wrong_local_shape {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.shape] the local tensor has not the extents of this worker's box; hand in exactly the box");
  }
};

template <index_t... Numbers>
struct wrong_element {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.element] the tensor has another element type than its type says; convert it");
  }
};

template <index_t... Numbers>
struct wrong_device {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.device] the tensor lies on another device than this transport serves; move it");
  }
};

template <index_t... Numbers>
struct not_strided {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.strided] the tensor is sparse or packed, and a box is plain memory; hand in its to_dense()");
  }
};

template <index_t... Numbers>
struct element_unknown {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.element.unknown] a tensor cannot hold this type; use double, float, half, bfloat16, complex64, complex128, bool or an integer of fixed width");
  }
};

template <index_t... Numbers>
struct no_order {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.order] complex numbers have no maximum or minimum; combine their absolute values");
  }
};

template <index_t... Numbers>
struct tensor_wanted {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.wanted] a distributed tensor is wanted here; make one by take or assume, or compute with its box, x.local()");
  }
};

template <index_t... Numbers>
struct number_does_not_fit {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.number] the number is none of the tensor's element, as a fraction is no integer; convert the tensor or the number");
  }
};

template <index_t... Numbers>
struct undefined_tensor {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.undefined] the tensor is undefined or was moved from; assign it first");
  }
};

template <index_t... Numbers>
struct other_team {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.team] the tensors belong to different teams; make both with one team");
  }
};

template <index_t... Numbers>
struct wrong_partition {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.partition] the tensor has another partition than is wanted here; repartition it");
  }
};

template <index_t... Numbers>
struct element_has_no_cotangent {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.cotangent] integers and booleans have no gradient; convert the tensor to a floating element first");
  }
};

template <index_t... Numbers>
struct combine_has_no_gradient {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.gradient] only a sum of terms has a gradient; write detach(x) before a maximum, minimum, product, any or all");
  }
};

template <index_t... Numbers>
struct no_gradient {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.gradient] the tensor has no gradient; call requires_grad() before it is used and backward() behind, and ask a leaf");
  }
};

template <index_t... Numbers>
struct forward_mode {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.forward_mode] derivatives go backward alone, and a forward-mode tangent would be lost; compute outside of a dual level");
  }
};

template <index_t... Numbers>
struct label_out_of_range {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.label] a label names a class that does not exist; correct the labels");
  }
};

template <index_t... Numbers>
struct file_missing {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.missing] the file cannot be read; look at its path and at the reason");
  }
};

template <index_t... Numbers>
struct file_not_written {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.write] the file cannot be written; look at its path and at the reason");
  }
};

template <index_t... Numbers>
struct disk_full {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.space] there is no room for the file; free some, or save it elsewhere");
  }
};

template <index_t... Numbers>
struct not_a_file {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.kind] this is no regular file; name one, not a folder or a device");
  }
};

template <index_t... Numbers>
struct file_truncated {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.truncated] the file ends too early; write or copy it again");
  }
};

template <index_t... Numbers>
struct file_altered {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.altered] the file's contents do not fit its checksum or its header; write or copy it again");
  }
};

template <index_t... Numbers>
struct file_not_ours {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.format] the file is not one that this library wrote; name another");
  }
};

template <index_t... Numbers>
struct other_parameters {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.parameters] these are other parameters than the network's; load those that the same network saved");
  }
};

template <index_t... Numbers>
struct network_moved_from {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.moved] the network was moved from; use the one that it was moved to");
  }
};

template <index_t... Numbers>
struct network_copied {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.copy] a network moves and does not copy, since two would step the same weights; move it, or write clone()");
  }
};

template <index_t... Numbers>
struct parameter_named_twice {
  static constexpr bool ok = false;
  template <class Where>
  static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.keys] two parameters have one key; give each network of yours a path, as in seed{7}.at(name)");
  }
};

}  // namespace tessera
