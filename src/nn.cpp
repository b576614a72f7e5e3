#include <tessera/tessera.hpp>

#include <tessera/nn/cross_entropy.ipp>
#include <tessera/nn/forward.ipp>
#include <tessera/nn/parameter.ipp>
#include <tessera/nn/pooling.ipp>
#include <tessera/nn/running_network.ipp>
