#include <tessera/tessera.hpp>

#include <tessera/nn/cross_entropy.ipp>
