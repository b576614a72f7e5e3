#include <tessera/tessera.hpp>

#include <tessera/nn/copies.ipp>
#include <tessera/nn/cross_entropy.ipp>
#include <tessera/nn/forward.ipp>
#include <tessera/nn/grad_norm.ipp>
#include <tessera/nn/layer_table.ipp>
#include <tessera/nn/network_file.ipp>
#include <tessera/nn/normalisation.ipp>
#include <tessera/nn/observer.ipp>
#include <tessera/nn/parameter.ipp>
#include <tessera/nn/pooling.ipp>
#include <tessera/nn/running_program.ipp>
#include <tessera/nn/state_dict.ipp>
#include <tessera/nn/state_tensor.ipp>
#include <tessera/nn/weights_file.ipp>
