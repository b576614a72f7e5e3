#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/tensor/refusals.hpp>

// Made by scripts/make_verdicts from tensor/refusals.hpp; a test holds the two against each other.

namespace tessera {

namespace with {

template <index_t> struct box;
template <index_t> struct device;
template <index_t> struct dimension;
template <index_t> struct dimensions;
template <index_t> struct given;
template <index_t> struct length;
template <index_t> struct other_length;
template <index_t> struct other_worker;
template <index_t> struct parts;
template <index_t> struct worker;

}  // namespace with

namespace verdicts {

template <class... Told> struct boxes_are_no_product {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.adopt.product] the boxes that workers hand in are no product of lengths; workers of one "
                  "part need the same length in its dimension");
  }
};
template <class... Told> struct uneven_shift {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.uneven] parts of different lengths cannot take each other's place; turn the deal "
                  "instead, with rotated<...>");
  }
};
template <class... Told> struct shift_inside {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.axis] only the outermost axis that cuts a dimension turns it; name that axis");
  }
};
template <class... Told> struct not_a_scalar {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.scalar] only a scalar starts backward or steers the program; sum the tensor first");
  }
};
template <class... Told> struct not_steering {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.copies] only a tensor that all workers hold alike may steer the program; change it "
                  "to invariant first");
  }
};
template <class... Told> struct wholes_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.agree.whole] two workers take their parts of different tensors; give all of them the "
                  "same one: read by all, drawn by one seed, or shuffled in one order");
  }
};
template <class... Told> struct holds_nothing {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.outside] this worker lies outside the tensor's mesh and has no value of it; ask on "
                  "a worker that does, or broadcast it first");
  }
};
template <class... Told> struct wrong_local_shape {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.shape] the local tensor has not the extents of this worker's box; hand in exactly "
                  "the box");
  }
};
template <class... Told> struct wrong_device {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.device] the tensor lies on another device than this transport serves; move it");
  }
};
template <class... Told> struct not_strided {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.strided] the tensor is sparse or packed, and a box is plain memory; hand in its "
                  "to_dense()");
  }
};
template <class... Told> struct tensor_wanted {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.wanted] a distributed tensor is wanted here; make one by distribute or "
                  "from_local, or compute with its box, x.local()");
  }
};
template <class... Told> struct undefined_tensor {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.undefined] the tensor is undefined or was moved from; assign it first");
  }
};
template <class... Told> struct other_team {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.team] the tensors belong to different teams; make both with one team");
  }
};
template <class... Told> struct no_gradient {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.gradient] the tensor has no gradient; call requires_grad() before it is used and "
                  "backward() behind, and ask a leaf");
  }
};
template <class... Told> struct forward_mode {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.forward_mode] derivatives go backward alone, and a forward-mode tangent would be "
                  "lost; compute outside of a dual level");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::boxes_are_no_product> {
  template <class Why> using type = verdicts::boxes_are_no_product<
      with::dimension<Why::number(0)>,
      with::worker<Why::number(1)>,
      with::length<Why::number(2)>,
      with::other_length<Why::number(3)>>;
};
template <> struct verdict_for<&code::uneven_shift> {
  template <class Why> using type = verdicts::uneven_shift<
      with::dimension<Why::number(0)>,
      with::parts<Why::number(1)>>;
};
template <> struct verdict_for<&code::shift_inside> {
  template <class Why> using type = verdicts::shift_inside<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::not_a_scalar> {
  template <class Why> using type = verdicts::not_a_scalar<with::dimensions<Why::number(0)>>;
};
template <> struct verdict_for<&code::not_steering> {
  template <class Why> using type = verdicts::not_steering<typename axis_of_refusal<Why>::type>;
};
template <> struct verdict_for<&code::wholes_differ> {
  template <class Why> using type = verdicts::wholes_differ<
      with::worker<Why::number(0)>,
      with::other_worker<Why::number(1)>>;
};
template <> struct verdict_for<&code::holds_nothing> {
  template <class Why> using type = verdicts::holds_nothing<with::worker<Why::number(0)>>;
};
template <> struct verdict_for<&code::wrong_local_shape> {
  template <class Why> using type = verdicts::wrong_local_shape<
      with::dimension<Why::number(0)>,
      with::box<Why::number(1)>,
      with::given<Why::number(2)>>;
};
template <> struct verdict_for<&code::wrong_device> {
  template <class Why> using type = verdicts::wrong_device<with::device<Why::number(0)>>;
};
template <> struct verdict_for<&code::not_strided> { template <class Why> using type = verdicts::not_strided<>; };
template <> struct verdict_for<&code::tensor_wanted> { template <class Why> using type = verdicts::tensor_wanted<>; };
template <> struct verdict_for<&code::undefined_tensor> {
  template <class Why> using type = verdicts::undefined_tensor<>;
};
template <> struct verdict_for<&code::other_team> { template <class Why> using type = verdicts::other_team<>; };
template <> struct verdict_for<&code::no_gradient> { template <class Why> using type = verdicts::no_gradient<>; };
template <> struct verdict_for<&code::forward_mode> { template <class Why> using type = verdicts::forward_mode<>; };

}  // namespace detail
}  // namespace tessera
