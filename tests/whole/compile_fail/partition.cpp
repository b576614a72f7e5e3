// A partition that does not fit its mesh or its tensor is refused by the first primitive, operation or network that
// uses it.
#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
struct ring : ts::axis<4> {};
struct no_worker : ts::axis<0> {};
using grid = ts::mesh<row, col>;

template <class... Entries>
using matrix = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<10, 8>>;

using held_by_all = matrix<ts::whole, ts::whole>;
using cut = matrix<ts::blocks<row>, ts::blocks<col>>;
static_assert(ts::primitive<held_by_all, cut>::cost().total == 0);
static_assert(ts::sequential_type<cut, ts::nn::relu>::program.count == 1);

// A cover for each dimension.
#if defined(TOO_FEW_COVERS)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<1>,
// tessera::with::dimensions<2>>
using used = ts::primitive<held_by_all, matrix<ts::blocks<row>>>;
static_assert(used::cost().total == 0);
#elif defined(TOO_MANY_COVERS)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<3>,
// tessera::with::dimensions<2>>
using used = ts::primitive<matrix<ts::blocks<row>, ts::whole, ts::whole>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(TOO_FEW_COVERS_NETWORK)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<1>,
// tessera::with::dimensions<2>>
using used = ts::sequential_type<matrix<ts::blocks<row>>, ts::nn::linear<6>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(TOO_FEW_COVERS_REPARTITION)
// expect: [tessera.partition.dimensions] && at_layer<1, &&
// tessera::verdicts::wrong_number_of_dimensions<tessera::with::covers<1>, tessera::with::dimensions<2>>
using used =
    ts::sequential_type<cut, ts::nn::relu, ts::nn::repartition<ts::partition<grid, ts::blocks<row>>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(TOO_FEW_COVERS_OPERATION)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<1>,
// tessera::with::dimensions<2>>
using used = ts::result_type<ts::functions::relu, matrix<ts::blocks<row>>>;
static_assert(sizeof(used*) > 0);
#endif

// Axes of the mesh, ...
#if defined(FOREIGN_AXIS)
// expect: [tessera.partition.axis] && axis_not_in_mesh<ring, tessera::with::mesh_axes<2>>
using used = ts::primitive<held_by_all, matrix<ts::blocks<row>, ts::blocks<ring>>>;
static_assert(used::cost().total == 0);
#elif defined(FOREIGN_AXIS_MEANING)
// expect: [tessera.partition.axis] && axis_not_in_mesh<ring, tessera::with::mesh_axes<2>>
using used = ts::primitive<matrix<ts::whole, ts::whole, ts::partial<ring>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(FOREIGN_AXIS_ON)
// expect: [tessera.partition.axis] && axis_not_in_mesh<ring, tessera::with::mesh_axes<2>>
using used = ts::primitive<matrix<ts::whole, ts::whole, ts::on<ring, 1>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(FOREIGN_AXIS_NETWORK)
// expect: [tessera.partition.axis] && axis_not_in_mesh<ring, tessera::with::mesh_axes<2>>
using used = ts::sequential_type<matrix<ts::blocks<row>, ts::blocks<ring>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(FOREIGN_AXIS_REPARTITION)
// expect: [tessera.partition.axis] && at_layer<0, && tessera::verdicts::axis_not_in_mesh<ring,
// tessera::with::mesh_axes<2>>
using used =
    ts::sequential_type<cut, ts::nn::repartition<ts::partition<grid, ts::blocks<ring>, ts::whole>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(FOREIGN_AXIS_WEIGHT)
// expect: [tessera.partition.axis] && at_layer<1, && tessera::verdicts::axis_not_in_mesh<ring,
// tessera::with::mesh_axes<2>>
using used = ts::sequential_type<held_by_all, ts::nn::relu, ts::nn::linear<6, ts::cut_out<ring>>>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(FOREIGN_AXIS_RESULT)
// expect: [tessera.partition.axis] && at_layer<1, && tessera::verdicts::axis_not_in_mesh<ring,
// tessera::with::mesh_axes<2>>
using result = ts::partition<grid, ts::blocks<row>, ts::blocks<ring>>;
using used = ts::sequential_type<held_by_all, ts::nn::relu, ts::nn::linear<6, ts::output_as<result>>>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#endif

// ... each used once.
static_assert(ts::sequential_type<held_by_all, ts::nn::linear<6, ts::cut_out<row>, ts::cut_in<col>>>::program.count ==
              1);
#if defined(TWICE)
// expect: [tessera.partition.twice] && axis_used_twice<row>
using used = ts::primitive<held_by_all, matrix<ts::blocks<row>, ts::blocks<row>>>;
static_assert(used::cost().total == 0);
#elif defined(TWICE_MEANING)
// expect: [tessera.partition.twice] && axis_used_twice<col>
using used = ts::primitive<held_by_all, matrix<ts::whole, ts::blocks<col>, ts::partial<col>>>;
static_assert(used::cost().total == 0);
#elif defined(TWICE_NETWORK)
// expect: [tessera.partition.twice] && axis_used_twice<col>
using used = ts::sequential_type<matrix<ts::blocks<col>, ts::blocks<col>>, ts::nn::linear<6>>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(TWICE_WEIGHT)
// expect: [tessera.partition.twice] && at_layer<0, && tessera::verdicts::axis_used_twice<row>
using used = ts::sequential_type<held_by_all, ts::nn::linear<6, ts::cut_out<row>, ts::cut_in<row>>>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#endif

// Coordinates inside their axes.
static_assert(ts::primitive<matrix<ts::whole, ts::whole, ts::on<col, 2>>, held_by_all>::verb == ts::verb::broadcast);
static_assert(ts::fixed<grid, col, 2>::value.size() == 2);
#if defined(OUTSIDE)
// expect: [tessera.mesh.coordinate] && coordinate_outside_axis<col, tessera::with::extent<3>,
// tessera::with::coordinate<3>>
using used = ts::primitive<matrix<ts::whole, ts::whole, ts::on<col, 3>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(OUTSIDE_NEGATIVE)
// expect: [tessera.mesh.coordinate] && coordinate_outside_axis<row, tessera::with::extent<2>,
// tessera::with::coordinate<-1>>
using used = ts::sequential_type<matrix<ts::whole, ts::whole, ts::on<row, -1>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(OUTSIDE_FIXED)
// expect: [tessera.mesh.coordinate] && coordinate_outside_axis<col, tessera::with::extent<3>,
// tessera::with::coordinate<5>>
using line = ts::tensor<ts::partition<ts::fixed<grid, col, 5>, ts::blocks<row>, ts::whole>, ts::shape_of<10, 8>>;
using used = ts::primitive<line, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(FOREIGN_FIXED)
// expect: [tessera.partition.axis] && axis_not_in_mesh<ring, tessera::with::mesh_axes<2>>
using line = ts::tensor<ts::partition<ts::fixed<grid, ring>, ts::blocks<row>, ts::whole>, ts::shape_of<10, 8>>;
using used = ts::primitive<line, held_by_all>;
static_assert(used::cost().total >= 0);
#endif

// A mesh with workers, each in one place.
static_assert(
    ts::primitive<ts::tensor<ts::partition<ts::placed<grid, 4, 3, 1>, ts::whole, ts::whole>, ts::shape_of<10, 8>>,
                  held_by_all>::verb == ts::verb::repartition);
#if defined(NO_WORKER)
// expect: [tessera.mesh.extent] && extent_not_positive<no_worker, tessera::with::extent<0>>
using used = ts::sequential_type<
    ts::tensor<ts::partition<ts::mesh<row, no_worker>, ts::blocks<row>, ts::blocks<no_worker>>, ts::shape_of<10, 8>>,
    ts::nn::linear<6>>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(NEGATIVE_EXTENT)
// expect: [tessera.mesh.extent] && extent_not_positive<row, tessera::with::extent<-2>>
using empty = ts::partition<ts::mesh<ts::extent<row, -2>, col>, ts::blocks<row>, ts::whole>;
using used = ts::primitive<ts::tensor<empty, ts::shape_of<10, 8>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(OVERLAPPING_PLACES)
// expect: [tessera.mesh.placement] && placement_overlaps<tessera::with::workers<6>>
using crossed = ts::partition<ts::placed<grid, 0, 2, 1>, ts::blocks<row>, ts::whole>;
using used = ts::primitive<ts::tensor<crossed, ts::shape_of<10, 8>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(STRIDES)
// expect: [tessera.mesh.strides] && wrong_number_of_strides<tessera::with::axes<2>, tessera::with::strides<1>>
using misplaced = ts::partition<ts::placed<grid, 0, 1>, ts::whole, ts::whole>;
using used = ts::primitive<ts::tensor<misplaced, ts::shape_of<10, 8>>, held_by_all>;
static_assert(used::cost().total >= 0);
#elif defined(NAMED_TWICE)
// expect: [tessera.mesh.twice] && axis_named_twice<row>
using twice = ts::partition<ts::mesh<row, col, row>, ts::blocks<row>, ts::whole>;
using used = ts::sequential_type<ts::tensor<twice, ts::shape_of<10, 8>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#endif

// Grains with elements.
static_assert(ts::primitive<matrix<ts::grains<4, row>, ts::whole>, held_by_all>::verb == ts::verb::all_gather);
#if defined(NO_GRAIN)
// expect: [tessera.partition.grain] && grain_not_positive<tessera::with::dimension<1>, tessera::with::grain<0>>
using used = ts::primitive<matrix<ts::whole, ts::grains<0, row>>, held_by_all>;
static_assert(used::cost().total >= 0);
#endif

// At most 16 axes and 16 dimensions.
template <int>
struct one : ts::axis<1> {};
template <int... I>
using mesh_of = ts::mesh<one<I>...>;
using axes_16 = mesh_of<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
template <class Mesh>
using number = ts::tensor<ts::partition<Mesh, ts::whole>, ts::shape_of<4>>;
static_assert(ts::sequential_type<number<axes_16>, ts::nn::relu>::program.count == 1);
#if defined(MANY_AXES)
// expect: [tessera.layout.size] && too_many<tessera::with::given<17>>
using used =
    ts::sequential_type<number<mesh_of<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>>, ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#elif defined(MANY_DIMENSIONS)
// expect: [tessera.layout.size] && too_many<tessera::with::given<17>>
using w = ts::whole;
using used = ts::sequential_type<ts::tensor<ts::partition<grid, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w>,
                                            ts::shape_of<1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>>,
                                 ts::nn::relu>;
static_assert(ts::traffic<used>().forward.bytes == 0);
#endif
