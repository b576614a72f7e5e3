// What comm takes from elsewhere is found by a file that links it.
#ifdef TESSERA_HAS_MPI
#include <tessera/comm/mpi/mailbox.hpp>
#endif

#include "error.cpp"
