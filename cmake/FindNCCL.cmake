# Finds NCCL beside a CUDA toolkit, and defines NCCL::NCCL: its library and CUDA's runtime.
#
# NCCL_ROOT names the folder of an NCCL that lies elsewhere. Needed is 2.14 or later, the first whose communicators do
# not block their host.

find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})

set(NCCL_VERSION "")
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h _lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" NCCL_VERSION "${_lines}")
  list(JOIN NCCL_VERSION . NCCL_VERSION)
endif()

set(NCCL_FOUND FALSE)
if(TARGET CUDA::cudart AND NCCL_LIBRARY AND NCCL_VERSION VERSION_GREATER_EQUAL 2.14)
  set(NCCL_FOUND TRUE)
  if(NOT TARGET NCCL::NCCL)
    add_library(NCCL::NCCL INTERFACE IMPORTED)
    target_include_directories(NCCL::NCCL SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
    target_link_libraries(NCCL::NCCL INTERFACE ${NCCL_LIBRARY} CUDA::cudart)
  endif()
elseif(NCCL_FIND_REQUIRED)
  message(FATAL_ERROR "NCCL 2.14 or later was not found beside a CUDA toolkit; NCCL_ROOT names its folder.")
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
