# What each component needs from elsewhere. The build and the installed package both ask here.
#
# tessera_need(component mpi reason): finds it; `reason` becomes empty, or says what is missing and how to get it.
# `mpi` says whether comm serves MPI.
macro(tessera_need component mpi reason)
  set(${reason} "")
  if("${component}" STREQUAL "comm")
    _tessera_find(${reason} comm Threads "libc6-dev (Debian, Ubuntu) or the headers of your C library")
  endif()
  if("${component}" MATCHES "^(comm|inspect)$")
    _tessera_find(${reason} ${component} fmt "libfmt-dev (Debian, Ubuntu) or https://fmt.dev" CONFIG)
  endif()
  if("${component}" STREQUAL "comm" AND ${mpi})
    set(MPI_CXX_SKIP_MPICXX ON)  # the old C++ bindings cost every file 0.4 s
    _tessera_find(${reason} comm MPI "libopenmpi-dev openmpi-bin (Debian, Ubuntu) or another MPI" COMPONENTS CXX)
    _tessera_find(${reason} comm Boost "libboost-mpi-dev (Debian, Ubuntu), which holds Boost.MPI" CONFIG COMPONENTS mpi serialization)
  endif()
  if("${component}" STREQUAL "nccl")
    _tessera_find(${reason} nccl NCCL "a CUDA toolkit (https://developer.nvidia.com/cuda-downloads) and libnccl-dev" MODULE)
  endif()
  if("${component}" STREQUAL "torch")
    _tessera_find(${reason} torch LibTorch "LibTorch (pip install torch, or an archive of https://pytorch.org) and name its folder in TESSERA_LIBTORCH" MODULE)
    if(${reason} AND LibTorch_REASON)
      string(APPEND ${reason} " ${LibTorch_REASON}.")
    endif()
  endif()
  if("${component}" STREQUAL "header_only" AND TARGET tessera::torch)  # its files of weights and networks
    _tessera_find(${reason} header_only nlohmann_json "nlohmann-json3-dev (Debian, Ubuntu) or https://json.nlohmann.me" CONFIG)
  endif()
endmacro()

macro(_tessera_find reason component package install)
  if(NOT ${reason})
    find_package(${package} QUIET ${ARGN})
    if(NOT ${package}_FOUND)
      set(${reason} "tessera::${component} needs ${package}, which was not found: install ${install}.")
    endif()
  endif()
endmacro()
