#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason boxes_are_no_product{"tessera.adopt.product", "dimension, worker, length, other length",
                                             "the boxes that workers hand in are no product of lengths; workers of one "
                                             "part need the same length in its dimension"};
inline constexpr reason uneven_shift{
    "tessera.shift.uneven", "dimension, parts",
    "parts of different lengths cannot take each other's place; turn the deal instead, with rotated<...>"};
inline constexpr reason shift_inside{"tessera.shift.axis", "axis",
                                     "only the outermost axis that cuts a dimension turns it; name that axis"};
inline constexpr reason not_a_scalar{"tessera.tensor.scalar", "dimensions",
                                     "only a scalar starts backward or steers the program; sum the tensor first"};
inline constexpr reason not_steering{
    "tessera.value.copies", "axis",
    "only a tensor that all workers hold alike may steer the program; change it to invariant first"};
inline constexpr reason wholes_differ{"tessera.agree.whole", "worker, other worker",
                                      "two workers take their parts of different tensors; give all of them the same "
                                      "one: read by all, drawn by one seed, or shuffled in one order"};
inline constexpr reason holds_nothing{"tessera.value.outside", "worker",
                                      "this worker lies outside the tensor's mesh and has no value of it; ask on a "
                                      "worker that does, or broadcast it first"};
inline constexpr reason wrong_local_shape{
    "tessera.tensor.shape", "dimension, box, given",
    "the local tensor has not the extents of this worker's box; hand in exactly the box"};
inline constexpr reason wrong_device{"tessera.tensor.device", "device",
                                     "the tensor lies on another device than this transport serves; move it"};
inline constexpr reason not_strided{
    "tessera.tensor.strided", "", "the tensor is sparse or packed, and a box is plain memory; hand in its to_dense()"};
inline constexpr reason tensor_wanted{
    "tessera.tensor.wanted", "",
    "a distributed tensor is wanted here; make one by distribute or from_local, or compute with its box, x.local()"};
inline constexpr reason undefined_tensor{"tessera.tensor.undefined", "",
                                         "the tensor is undefined or was moved from; assign it first"};
inline constexpr reason other_team{"tessera.tensor.team", "",
                                   "the tensors belong to different teams; make both with one team"};
inline constexpr reason no_gradient{
    "tessera.tensor.gradient", "",
    "the tensor has no gradient; call requires_grad() before it is used and backward() behind, and ask a leaf"};
inline constexpr reason forward_mode{
    "tessera.tensor.forward_mode", "",
    "derivatives go backward alone, and a forward-mode tangent would be lost; compute outside of a dual level"};

}  // namespace tessera::code
