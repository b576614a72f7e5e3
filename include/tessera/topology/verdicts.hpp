#pragma once

#include <tessera/topology/refusals.hpp>

// Made by scripts/make_verdicts from topology/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct wrong_number_of_dimensions : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.dimensions] a partition needs one cover for each dimension of the shape; add or remove covers");
  }
};
template <index_t... Numbers> struct axis_not_in_mesh : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.axis] the partition names an axis that its mesh does not have; name it in the mesh or leave it out");
  }
};
template <index_t... Numbers> struct axis_used_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.twice] an axis of the mesh may cut one dimension or have one meaning, not both or two; drop one use");
  }
};
template <index_t... Numbers> struct axes_of_one_name : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.name] two axes of one name have different extents; rename one of them");
  }
};
template <index_t... Numbers> struct too_many : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layout.size] a layout has at most 16 axes and 16 dimensions; merge some");
  }
};
template <index_t... Numbers> struct extent_not_positive : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.extent] an axis needs an extent of at least 1; give one");
  }
};
template <index_t... Numbers> struct mesh_too_large : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.size] a mesh has at most 2^31 - 1 workers; make its axes shorter");
  }
};
template <index_t... Numbers> struct rank_outside : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.rank] the ranks of workers go from 0 to 2^31 - 1; place the mesh among them");
  }
};
template <index_t... Numbers> struct placement_overlaps : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.placement] two coordinates of the mesh sit on one worker; choose strides that keep them apart");
  }
};
template <index_t... Numbers> struct axis_named_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.twice] a mesh names each axis once; drop one or derive another axis");
  }
};
template <index_t... Numbers> struct wrong_number_of_strides : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.strides] a placement names one stride for each axis; add or remove strides");
  }
};
template <index_t... Numbers> struct wrong_number_of_ranks : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.ranks] a mesh on a list of ranks names one for each worker; add or remove ranks");
  }
};
template <index_t... Numbers> struct coordinate_outside_axis : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.mesh.coordinate] the coordinate lies outside the axis; name one from 0 to extent - 1");
  }
};
template <index_t... Numbers> struct grain_not_positive : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partition.grain] a grain holds at least 1 element; write a larger one");
  }
};
template <index_t... Numbers> struct wrong_number_of_lengths : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.count] a cover names one length for each coordinate that cuts it; add or remove lengths");
  }
};
template <index_t... Numbers> struct lengths_do_not_add_up : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.sum] the lengths of the parts do not add up to the extent; correct one of them");
  }
};
template <index_t... Numbers> struct lengths_not_known : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.lengths.unknown] learned lengths are known of adopted tensors alone, along the axes they were learned on; adopt the boxes, or name the lengths");
  }
};
template <index_t... Numbers> struct mixed_combines : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.partial.combine] the terms of one tensor combine in one way, since a maximum of sums is no sum of maxima; all_reduce one axis first");
  }
};
template <index_t... Numbers> struct extent_negative : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.negative] an extent is at least 0; write a larger one");
  }
};
template <index_t... Numbers> struct extents_of_one_name : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.name] two extents have one name, so they would be one; rename one of them, or name the same type twice");
  }
};
template <index_t... Numbers> struct extent_bound_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.bound_twice] an extent is bound once; drop one binding, or rename one of two extents of one name");
  }
};
template <index_t... Numbers> struct ranks_differ : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.dimensions] the two tensors have different numbers of dimensions; give both the same");
  }
};
template <index_t... Numbers> struct extents_differ : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.extent] the two tensors have different extents in this dimension; give both the same");
  }
};
template <index_t... Numbers> struct range_outside : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.range] the range leaves the dimension; narrow it to one inside");
  }
};
template <index_t... Numbers> struct kernel_wider_than_padded_tensor : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.kernel] the kernel is wider than the padded tensor; make it smaller or the padding larger");
  }
};
template <index_t... Numbers> struct window_not_positive : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.positive] kernel, stride and dilation are at least 1 and padding at least 0; correct the window");
  }
};
template <index_t... Numbers> struct window_too_large : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.size] kernel, stride, dilation and padding are less than 2^31; write smaller ones");
  }
};
template <index_t... Numbers> struct reflection_too_wide : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.reflect] a reflection is narrower than the tensor; make the padding smaller or the boundary another one");
  }
};
template <index_t... Numbers> struct nothing_to_pad_from : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.empty] an empty dimension has no edge to continue; pad it with zeros or leave the padding out");
  }
};
template <index_t... Numbers> struct extent_not_static : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dynamic] this extent decides the size of a parameter and must be static; write dim<n> in the shape");
  }
};
template <index_t... Numbers> struct extent_not_bound : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.unbound] this needs an extent that is not known; bind it, as in bind<batch>(64)");
  }
};
template <index_t... Numbers> struct count_overflows : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shape.overflow] the tensor has more than 2^63 - 1 elements; make it smaller");
  }
};
template <index_t... Numbers> struct wrong_element : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.element] the tensor has another element type than its type says; convert it");
  }
};
template <index_t... Numbers> struct element_unknown : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.element.unknown] a tensor cannot hold this type; use double, float, half, bfloat16, complex64, complex128, bool or an integer of fixed width");
  }
};
template <index_t... Numbers> struct no_order : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.order] complex numbers have no maximum or minimum; combine their absolute values");
  }
};
template <index_t... Numbers> struct wrong_partition : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.partition] the tensor has another partition than is wanted here; repartition it");
  }
};
template <index_t... Numbers> struct element_has_no_cotangent : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.cotangent] integers and booleans have no gradient; convert the tensor to a floating element first");
  }
};
template <index_t... Numbers> struct combine_has_no_gradient : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.combine.gradient] only a sum of terms has a gradient; write detach(x) before a maximum, minimum, product, any or all");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::wrong_number_of_dimensions, Numbers...> { using type = wrong_number_of_dimensions<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::axis_not_in_mesh, Numbers...> { using type = axis_not_in_mesh<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::axis_used_twice, Numbers...> { using type = axis_used_twice<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::axes_of_one_name, Numbers...> { using type = axes_of_one_name<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::too_many, Numbers...> { using type = too_many<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extent_not_positive, Numbers...> { using type = extent_not_positive<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::mesh_too_large, Numbers...> { using type = mesh_too_large<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::rank_outside, Numbers...> { using type = rank_outside<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::placement_overlaps, Numbers...> { using type = placement_overlaps<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::axis_named_twice, Numbers...> { using type = axis_named_twice<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_number_of_strides, Numbers...> { using type = wrong_number_of_strides<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_number_of_ranks, Numbers...> { using type = wrong_number_of_ranks<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::coordinate_outside_axis, Numbers...> { using type = coordinate_outside_axis<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::grain_not_positive, Numbers...> { using type = grain_not_positive<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_number_of_lengths, Numbers...> { using type = wrong_number_of_lengths<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::lengths_do_not_add_up, Numbers...> { using type = lengths_do_not_add_up<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::lengths_not_known, Numbers...> { using type = lengths_not_known<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::mixed_combines, Numbers...> { using type = mixed_combines<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extent_negative, Numbers...> { using type = extent_negative<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extents_of_one_name, Numbers...> { using type = extents_of_one_name<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extent_bound_twice, Numbers...> { using type = extent_bound_twice<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::ranks_differ, Numbers...> { using type = ranks_differ<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extents_differ, Numbers...> { using type = extents_differ<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::range_outside, Numbers...> { using type = range_outside<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::kernel_wider_than_padded_tensor, Numbers...> { using type = kernel_wider_than_padded_tensor<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::window_not_positive, Numbers...> { using type = window_not_positive<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::window_too_large, Numbers...> { using type = window_too_large<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::reflection_too_wide, Numbers...> { using type = reflection_too_wide<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::nothing_to_pad_from, Numbers...> { using type = nothing_to_pad_from<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extent_not_static, Numbers...> { using type = extent_not_static<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::extent_not_bound, Numbers...> { using type = extent_not_bound<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::count_overflows, Numbers...> { using type = count_overflows<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_element, Numbers...> { using type = wrong_element<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::element_unknown, Numbers...> { using type = element_unknown<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::no_order, Numbers...> { using type = no_order<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_partition, Numbers...> { using type = wrong_partition<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::element_has_no_cotangent, Numbers...> { using type = element_has_no_cotangent<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::combine_has_no_gradient, Numbers...> { using type = combine_has_no_gradient<Numbers...>; };

}  // namespace detail
}  // namespace tessera
