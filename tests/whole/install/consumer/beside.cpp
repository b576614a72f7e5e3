// What it needs is in the header that was precompiled for another target.
struct line : tessera::axis<2> {};
static_assert(tessera::mesh<line>::value.size() == 2);
