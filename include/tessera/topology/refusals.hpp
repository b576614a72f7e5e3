#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason wrong_number_of_dimensions{
    "tessera.partition.dimensions", "covers, dimensions",
    "a partition needs one cover for each dimension of the shape; add or remove covers"};
inline constexpr reason axis_not_in_mesh{
    "tessera.partition.axis", "axis, mesh axes",
    "the partition names an axis that its mesh does not have; name it in the mesh or leave it out"};
inline constexpr reason axis_used_twice{"tessera.partition.twice", "axis",
                                        "an axis of the mesh has one placement, not two; drop one use"};
inline constexpr reason axes_of_one_name{"tessera.partition.name", "axis, extent in the mesh, extent of the other",
                                         "two axes of one name have different extents; rename one of them"};
inline constexpr reason too_many{"tessera.layout.size", "given",
                                 "a layout has at most 16 axes and 16 dimensions; merge some"};
inline constexpr reason extent_not_positive{"tessera.mesh.extent", "axis, extent",
                                            "an axis needs an extent of at least 1; give one"};
inline constexpr reason mesh_too_large{"tessera.mesh.size", "axis, extent",
                                       "a mesh has at most 2^31 - 1 workers; make its axes shorter"};
inline constexpr reason rank_outside{"tessera.mesh.rank", "lowest, highest",
                                     "the ranks of workers go from 0 to 2^31 - 1; place the mesh among them"};
inline constexpr reason placement_overlaps{
    "tessera.mesh.placement", "workers",
    "two coordinates of the mesh sit on one worker; choose strides that keep them apart"};
inline constexpr reason axis_named_twice{"tessera.mesh.twice", "axis",
                                         "a mesh names each axis once; drop one or derive another axis"};
inline constexpr reason wrong_number_of_strides{"tessera.mesh.strides", "axes, strides",
                                                "a placement names one stride for each axis; add or remove strides"};
inline constexpr reason wrong_number_of_ranks{
    "tessera.mesh.ranks", "workers, ranks", "a mesh on a list of ranks names one for each worker; add or remove ranks"};
inline constexpr reason coordinate_outside_axis{"tessera.mesh.coordinate", "axis, extent, coordinate",
                                                "the coordinate lies outside the axis; name one from 0 to extent - 1"};
inline constexpr reason grain_not_positive{"tessera.partition.grain", "dimension, grain",
                                           "a grain holds at least 1 element; write a larger one"};
inline constexpr reason wrong_number_of_lengths{
    "tessera.lengths.count", "dimension, parts, lengths",
    "a cover names one length for each coordinate that cuts it; add or remove lengths"};
inline constexpr reason lengths_do_not_add_up{
    "tessera.lengths.sum", "dimension, extent, sum",
    "the lengths of the parts do not add up to the extent; correct one of them"};
inline constexpr reason lengths_not_known{"tessera.lengths.unknown", "dimension",
                                          "learned lengths are known of tensors made by from_local alone, along the "
                                          "axes they were learned on; make the tensor of its boxes, name "
                                          "the lengths, or repartition in front"};
inline constexpr reason interval_wanted{
    "tessera.deal.interval", "dimension",
    "workers hold two intervals of a dimension that is dealt in zigzag, and this takes one; cut the dimension in "
    "blocks, or repartition in front"};
inline constexpr reason mixed_combines{"tessera.partial.combine", "axis, dimension or none",
                                       "the terms of one tensor combine in one way, since a maximum of sums is no sum "
                                       "of maxima; all_reduce one axis first"};
inline constexpr reason extent_negative{"tessera.shape.negative", "dimension, extent",
                                        "an extent is at least 0; write a larger one"};
inline constexpr reason extents_of_one_name{
    "tessera.shape.name", "dimension, other dimension",
    "two extents have one name, so they would be one; rename one of them, or name the same type twice"};
inline constexpr reason extent_bound_twice{
    "tessera.shape.bound_twice", "binding, other binding",
    "an extent is bound once; drop one binding, or rename one of two extents of one name"};
inline constexpr reason ranks_differ{"tessera.shape.dimensions", "first, second",
                                     "the two tensors have different numbers of dimensions; give both the same"};
inline constexpr reason extents_differ{"tessera.shape.extent", "dimension, first, second",
                                       "the two tensors have different extents in this dimension; give both the same"};
inline constexpr reason range_outside{"tessera.signature.range", "dimension, extent, begin, end",
                                      "the range leaves the dimension; narrow it to one inside"};
inline constexpr reason kernel_too_wide{
    "tessera.window.kernel", "dimension, extent, padding, kernel",
    "the kernel is wider than the padded tensor; make it smaller or the padding larger"};
inline constexpr reason window_not_positive{
    "tessera.window.positive", "dimension, kernel, stride, dilation",
    "kernel, stride and dilation are at least 1 and padding at least 0; correct the window"};
inline constexpr reason window_too_large{"tessera.window.size", "dimension, kernel, stride, dilation",
                                         "kernel, stride, dilation and padding are less than 2^31; write smaller ones"};
inline constexpr reason reflection_too_wide{
    "tessera.window.reflect", "dimension, extent, padding",
    "a reflection is narrower than the tensor; make the padding smaller or the boundary another one"};
inline constexpr reason windows_move_inside{
    "tessera.window.inward", "dimension",
    "windows that move inside at the edge are those of neighbourhood attention; take another boundary"};
inline constexpr reason nothing_to_pad_from{
    "tessera.window.empty", "dimension, before, after",
    "an empty dimension has no edge to continue; pad it with zeros or leave the padding out"};
inline constexpr reason extent_not_static{
    "tessera.layer.dynamic", "dimension",
    "this extent decides the size of a parameter and must be static; write dim<n> in the shape"};
inline constexpr reason extent_not_bound{"tessera.shape.unbound", "dimension",
                                         "this needs an extent that is not known; bind it, as in bind<batch>(64)"};
inline constexpr reason count_overflows{"tessera.shape.overflow", "dimension, extent",
                                        "the tensor has more than 2^63 - 1 elements; make it smaller"};
inline constexpr reason wrong_element{"tessera.tensor.element", "expected element, given element",
                                      "the tensor has another element type than its type says; convert it"};
inline constexpr reason element_unknown{"tessera.element.unknown", "bytes",
                                        "a tensor cannot hold this type; use double, float, half, bfloat16, complex64, "
                                        "complex128, bool or an integer of fixed width"};
inline constexpr reason no_order{"tessera.combine.order", "axis",
                                 "complex numbers have no maximum or minimum; combine their absolute values"};
inline constexpr reason wrong_partition{"tessera.tensor.partition", "axis, dimension or none",
                                        "the tensor has another partition than is wanted here; repartition it"};
inline constexpr reason element_has_no_cotangent{
    "tessera.tensor.cotangent", "",
    "integers and booleans have no gradient; convert the tensor to a floating element first"};
inline constexpr reason combine_has_no_gradient{
    "tessera.combine.gradient", "axis",
    "only a sum of terms has a gradient; write detach(x) before a maximum, minimum, product, any or all"};

}  // namespace tessera::code
