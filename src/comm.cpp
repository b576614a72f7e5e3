#include <tessera/core.hpp>

#include <tessera/comm/error.ipp>
#include <tessera/comm/team_state.ipp>
#include <tessera/comm/workers.ipp>
