#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/topology/refusals.hpp>

// Made by scripts/make_verdicts from topology/refusals.hpp; a test holds the two against each other.

namespace tessera {

enum class element : signed char;

namespace with {

template <element> struct expected_element;
template <element> struct given_element;
template <index_t> struct after;
template <index_t> struct axes;
template <index_t> struct before;
template <index_t> struct begin;
template <index_t> struct binding;
template <index_t> struct bytes;
template <index_t> struct coordinate;
template <index_t> struct covers;
template <index_t> struct dilation;
template <index_t> struct dimension;
template <index_t> struct dimensions;
template <index_t> struct end;
template <index_t> struct extent;
template <index_t> struct extent_in_the_mesh;
template <index_t> struct extent_of_the_other;
template <index_t> struct first;
template <index_t> struct given;
template <index_t> struct grain;
template <index_t> struct highest;
template <index_t> struct kernel;
template <index_t> struct lengths;
template <index_t> struct lowest;
template <index_t> struct mesh_axes;
template <index_t> struct other_binding;
template <index_t> struct other_dimension;
template <index_t> struct padding;
template <index_t> struct parts;
template <index_t> struct ranks;
template <index_t> struct second;
template <index_t> struct stride;
template <index_t> struct strides;
template <index_t> struct sum;
template <index_t> struct workers;

}  // namespace with

namespace verdicts {

template <class... Told> struct wrong_number_of_dimensions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.dimensions] a partition needs one cover for each dimension of the shape; add "
                  "or remove covers");
  }
};
template <class... Told> struct axis_not_in_mesh {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.axis] the partition names an axis that its mesh does not have; name it in the "
                  "mesh or leave it out");
  }
};
template <class... Told> struct axis_used_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.twice] an axis of the mesh has one placement, not two; drop one use");
  }
};
template <class... Told> struct axes_of_one_name {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.name] two axes of one name have different extents; rename one of them");
  }
};
template <class... Told> struct too_many {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layout.size] a layout has at most 16 axes and 16 dimensions; merge some");
  }
};
template <class... Told> struct extent_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.extent] an axis needs an extent of at least 1; give one");
  }
};
template <class... Told> struct mesh_too_large {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.size] a mesh has at most 2^31 - 1 workers; make its axes shorter");
  }
};
template <class... Told> struct rank_outside {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.rank] the ranks of workers go from 0 to 2^31 - 1; place the mesh among them");
  }
};
template <class... Told> struct placement_overlaps {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.placement] two coordinates of the mesh sit on one worker; choose strides that keep "
                  "them apart");
  }
};
template <class... Told> struct axis_named_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.twice] a mesh names each axis once; drop one or derive another axis");
  }
};
template <class... Told> struct wrong_number_of_strides {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.strides] a placement names one stride for each axis; add or remove strides");
  }
};
template <class... Told> struct wrong_number_of_ranks {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.ranks] a mesh on a list of ranks names one for each worker; add or remove ranks");
  }
};
template <class... Told> struct coordinate_outside_axis {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.coordinate] the coordinate lies outside the axis; name one from 0 to extent - 1");
  }
};
template <class... Told> struct grain_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.grain] a grain holds at least 1 element; write a larger one");
  }
};
template <class... Told> struct wrong_number_of_lengths {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.count] a cover names one length for each coordinate that cuts it; add or remove "
                  "lengths");
  }
};
template <class... Told> struct lengths_do_not_add_up {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.sum] the lengths of the parts do not add up to the extent; correct one of them");
  }
};
template <class... Told> struct lengths_not_known {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.unknown] learned lengths are known of tensors made by from_local alone, along "
                  "the axes they were learned on; make the tensor of its boxes, name the lengths, or repartition in "
                  "front");
  }
};
template <class... Told> struct interval_wanted {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.deal.interval] workers hold two intervals of a dimension that is dealt in zigzag, and "
                  "this takes one; cut the dimension in blocks, or repartition in front");
  }
};
template <class... Told> struct mixed_combines {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partial.combine] the terms of one tensor combine in one way, since a maximum of sums is "
                  "no sum of maxima; all_reduce one axis first");
  }
};
template <class... Told> struct extent_negative {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.negative] an extent is at least 0; write a larger one");
  }
};
template <class... Told> struct extents_of_one_name {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.name] two extents have one name, so they would be one; rename one of them, or name "
                  "the same type twice");
  }
};
template <class... Told> struct extent_bound_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.bound_twice] an extent is bound once; drop one binding, or rename one of two "
                  "extents of one name");
  }
};
template <class... Told> struct ranks_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.dimensions] the two tensors have different numbers of dimensions; give both the "
                  "same");
  }
};
template <class... Told> struct extents_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.extent] the two tensors have different extents in this dimension; give both the "
                  "same");
  }
};
template <class... Told> struct range_outside {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.range] the range leaves the dimension; narrow it to one inside");
  }
};
template <class... Told> struct kernel_too_wide {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.kernel] the kernel is wider than the padded tensor; make it smaller or the "
                  "padding larger");
  }
};
template <class... Told> struct window_not_positive {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.positive] kernel, stride and dilation are at least 1 and padding at least 0; "
                  "correct the window");
  }
};
template <class... Told> struct window_too_large {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.size] kernel, stride, dilation and padding are less than 2^31; write smaller ones");
  }
};
template <class... Told> struct reflection_too_wide {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.reflect] a reflection is narrower than the tensor; make the padding smaller or "
                  "the boundary another one");
  }
};
template <class... Told> struct windows_move_inside {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.inward] windows that move inside at the edge are those of neighbourhood "
                  "attention; take another boundary");
  }
};
template <class... Told> struct nothing_to_pad_from {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.empty] an empty dimension has no edge to continue; pad it with zeros or leave the "
                  "padding out");
  }
};
template <class... Told> struct extent_not_static {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dynamic] this extent decides the size of a parameter and must be static; write "
                  "dim<n> in the shape");
  }
};
template <class... Told> struct extent_not_bound {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.unbound] this needs an extent that is not known; bind it, as in bind<batch>(64)");
  }
};
template <class... Told> struct count_overflows {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.overflow] the tensor has more than 2^63 - 1 elements; make it smaller");
  }
};
template <class... Told> struct wrong_element {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.element] the tensor has another element type than its type says; convert it");
  }
};
template <class... Told> struct element_unknown {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.element.unknown] a tensor cannot hold this type; use double, float, half, bfloat16, "
                  "complex64, complex128, bool or an integer of fixed width");
  }
};
template <class... Told> struct no_order {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.order] complex numbers have no maximum or minimum; combine their absolute values");
  }
};
template <class... Told> struct wrong_partition {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.partition] the tensor has another partition than is wanted here; repartition it");
  }
};
template <class... Told> struct element_has_no_cotangent {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.cotangent] integers and booleans have no gradient; convert the tensor to a "
                  "floating element first");
  }
};
template <class... Told> struct combine_has_no_gradient {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.gradient] only a sum of terms has a gradient; write detach(x) before a maximum, "
                  "minimum, product, any or all");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::wrong_number_of_dimensions> {
  template <class Why> using type = verdicts::wrong_number_of_dimensions<
      with::covers<Why::number(0)>,
      with::dimensions<Why::number(1)>>;
};
template <> struct verdict_for<&code::axis_not_in_mesh> {
  template <class Why> using type = verdicts::axis_not_in_mesh<
      typename axis_of_refusal<Why>::type,
      with::mesh_axes<Why::number(0)>>;
};
template <> struct verdict_for<&code::axis_used_twice> {
  template <class Why> using type = verdicts::axis_used_twice<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::axes_of_one_name> {
  template <class Why> using type = verdicts::axes_of_one_name<
      typename axis_of_refusal<Why>::type,
      with::extent_in_the_mesh<Why::number(0)>,
      with::extent_of_the_other<Why::number(1)>>;
};
template <> struct verdict_for<&code::too_many> {
  template <class Why> using type = verdicts::too_many<with::given<Why::number(0)>>;
};
template <> struct verdict_for<&code::extent_not_positive> {
  template <class Why> using type = verdicts::extent_not_positive<
      typename axis_of_refusal<Why>::type,
      with::extent<Why::number(0)>>;
};
template <> struct verdict_for<&code::mesh_too_large> {
  template <class Why> using type = verdicts::mesh_too_large<
      typename axis_of_refusal<Why>::type,
      with::extent<Why::number(0)>>;
};
template <> struct verdict_for<&code::rank_outside> {
  template <class Why> using type = verdicts::rank_outside<with::lowest<Why::number(0)>, with::highest<Why::number(1)>>;
};
template <> struct verdict_for<&code::placement_overlaps> {
  template <class Why> using type = verdicts::placement_overlaps<with::workers<Why::number(0)>>;
};
template <> struct verdict_for<&code::axis_named_twice> {
  template <class Why> using type = verdicts::axis_named_twice<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::wrong_number_of_strides> {
  template <class Why> using type = verdicts::wrong_number_of_strides<
      with::axes<Why::number(0)>,
      with::strides<Why::number(1)>>;
};
template <> struct verdict_for<&code::wrong_number_of_ranks> {
  template <class Why> using type = verdicts::wrong_number_of_ranks<
      with::workers<Why::number(0)>,
      with::ranks<Why::number(1)>>;
};
template <> struct verdict_for<&code::coordinate_outside_axis> {
  template <class Why> using type = verdicts::coordinate_outside_axis<
      typename axis_of_refusal<Why>::type,
      with::extent<Why::number(0)>,
      with::coordinate<Why::number(1)>>;
};
template <> struct verdict_for<&code::grain_not_positive> {
  template <class Why> using type = verdicts::grain_not_positive<
      with::dimension<Why::number(0)>,
      with::grain<Why::number(1)>>;
};
template <> struct verdict_for<&code::wrong_number_of_lengths> {
  template <class Why> using type = verdicts::wrong_number_of_lengths<
      with::dimension<Why::number(0)>,
      with::parts<Why::number(1)>,
      with::lengths<Why::number(2)>>;
};
template <> struct verdict_for<&code::lengths_do_not_add_up> {
  template <class Why> using type = verdicts::lengths_do_not_add_up<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::sum<Why::number(2)>>;
};
template <> struct verdict_for<&code::lengths_not_known> {
  template <class Why> using type = verdicts::lengths_not_known<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::interval_wanted> {
  template <class Why> using type = verdicts::interval_wanted<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::mixed_combines> {
  template <class Why> using type = verdicts::mixed_combines<
      typename axis_of_refusal<Why>::type,
      typename number_or_none<with::dimension, Why::number(0)>::type>;
};
template <> struct verdict_for<&code::extent_negative> {
  template <class Why> using type = verdicts::extent_negative<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>>;
};
template <> struct verdict_for<&code::extents_of_one_name> {
  template <class Why> using type = verdicts::extents_of_one_name<
      with::dimension<Why::number(0)>,
      with::other_dimension<Why::number(1)>>;
};
template <> struct verdict_for<&code::extent_bound_twice> {
  template <class Why> using type = verdicts::extent_bound_twice<
      with::binding<Why::number(0)>,
      with::other_binding<Why::number(1)>>;
};
template <> struct verdict_for<&code::ranks_differ> {
  template <class Why> using type = verdicts::ranks_differ<with::first<Why::number(0)>, with::second<Why::number(1)>>;
};
template <> struct verdict_for<&code::extents_differ> {
  template <class Why> using type = verdicts::extents_differ<
      with::dimension<Why::number(0)>,
      with::first<Why::number(1)>,
      with::second<Why::number(2)>>;
};
template <> struct verdict_for<&code::range_outside> {
  template <class Why> using type = verdicts::range_outside<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::begin<Why::number(2)>,
      with::end<Why::number(3)>>;
};
template <> struct verdict_for<&code::kernel_too_wide> {
  template <class Why> using type = verdicts::kernel_too_wide<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::padding<Why::number(2)>,
      with::kernel<Why::number(3)>>;
};
template <> struct verdict_for<&code::window_not_positive> {
  template <class Why> using type = verdicts::window_not_positive<
      with::dimension<Why::number(0)>,
      with::kernel<Why::number(1)>,
      with::stride<Why::number(2)>,
      with::dilation<Why::number(3)>>;
};
template <> struct verdict_for<&code::window_too_large> {
  template <class Why> using type = verdicts::window_too_large<
      with::dimension<Why::number(0)>,
      with::kernel<Why::number(1)>,
      with::stride<Why::number(2)>,
      with::dilation<Why::number(3)>>;
};
template <> struct verdict_for<&code::reflection_too_wide> {
  template <class Why> using type = verdicts::reflection_too_wide<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>,
      with::padding<Why::number(2)>>;
};
template <> struct verdict_for<&code::windows_move_inside> {
  template <class Why> using type = verdicts::windows_move_inside<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::nothing_to_pad_from> {
  template <class Why> using type = verdicts::nothing_to_pad_from<
      with::dimension<Why::number(0)>,
      with::before<Why::number(1)>,
      with::after<Why::number(2)>>;
};
template <> struct verdict_for<&code::extent_not_static> {
  template <class Why> using type = verdicts::extent_not_static<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::extent_not_bound> {
  template <class Why> using type = verdicts::extent_not_bound<with::dimension<Why::number(0)>>;
};
template <> struct verdict_for<&code::count_overflows> {
  template <class Why> using type = verdicts::count_overflows<
      with::dimension<Why::number(0)>,
      with::extent<Why::number(1)>>;
};
template <> struct verdict_for<&code::wrong_element> {
  template <class Why> using type = verdicts::wrong_element<
      with::expected_element<static_cast<element>(Why::number(0))>,
      with::given_element<static_cast<element>(Why::number(1))>>;
};
template <> struct verdict_for<&code::element_unknown> {
  template <class Why> using type = verdicts::element_unknown<with::bytes<Why::number(0)>>;
};
template <> struct verdict_for<&code::no_order> {
  template <class Why> using type = verdicts::no_order<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::wrong_partition> {
  template <class Why> using type = verdicts::wrong_partition<
      typename axis_of_refusal<Why>::type,
      typename number_or_none<with::dimension, Why::number(0)>::type>;
};
template <> struct verdict_for<&code::element_has_no_cotangent> {
  template <class Why> using type = verdicts::element_has_no_cotangent<>;
};
template <> struct verdict_for<&code::combine_has_no_gradient> {
  template <class Why> using type = verdicts::combine_has_no_gradient<typename axis_of_refusal<Why>::type>;
};

}  // namespace detail
}  // namespace tessera
