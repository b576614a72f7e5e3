# Finds LibTorch in a Python package or in an unpacked archive, and defines LibTorch::LibTorch.
#
# TESSERA_LIBTORCH, a CMake or environment variable, names the folder that holds torch/, that torch/ itself, a Python
# virtual environment, or the archive's folder. Without it, the one that scripts/install made is taken, or one in
# CMAKE_PREFIX_PATH. LibTorch_REASON says why none was found.
#
# Only libtorch_cpu.so and libc10.so are linked. The package's own CMake files ask for a CUDA toolkit when it was built
# with CUDA; these two libraries need only libcudart and libcupti, which the package's own run path finds.
#
# LibTorch::cuda, where the package has it, is what computes on GPUs; it needs the libraries that the package asks for
# (cuBLAS, cuDNN and others).

set(TESSERA_LIBTORCH "$ENV{TESSERA_LIBTORCH}" CACHE PATH "The folder of an existing LibTorch")
if(NOT TESSERA_LIBTORCH AND NOT "$ENV{TESSERA_LIBTORCH}" STREQUAL "")
  set_property(CACHE TESSERA_LIBTORCH PROPERTY VALUE "$ENV{TESSERA_LIBTORCH}")
endif()

set(_roots ${TESSERA_LIBTORCH})
if(NOT _roots)
  set(_roots ${CMAKE_PREFIX_PATH})
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../build/libtorch/complete)  # written last, when nothing is missing
    list(PREPEND _roots ${CMAKE_CURRENT_LIST_DIR}/../build/libtorch)
  endif()
endif()

set(LibTorch_FOUND FALSE)
foreach(_root IN LISTS _roots)
  cmake_path(ABSOLUTE_PATH _root BASE_DIRECTORY ${CMAKE_SOURCE_DIR} NORMALIZE)
  file(GLOB _environment ${_root}/lib/python3*/site-packages/torch)
  foreach(_dir IN ITEMS ${_root}/torch ${_root} ${_root}/libtorch ${_environment})
    if(EXISTS ${_dir}/lib/libtorch_cpu.so AND EXISTS ${_dir}/lib/libc10.so AND EXISTS ${_dir}/include/ATen/ATen.h)
      cmake_path(ABSOLUTE_PATH _dir NORMALIZE OUTPUT_VARIABLE LibTorch_DIR)
      set(LibTorch_FOUND TRUE)
      break()
    endif()
  endforeach()
endforeach()

# Wheels up to 2.6 and some archives were built with the std::string of before 2011, which meets no other C++ library of
# today's systems.
set(LibTorch_REASON "")
if(LibTorch_FOUND AND EXISTS ${LibTorch_DIR}/share/cmake/Torch/TorchConfig.cmake)
  file(STRINGS ${LibTorch_DIR}/share/cmake/Torch/TorchConfig.cmake _old_string REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  if(_old_string)
    set(LibTorch_FOUND FALSE)
    set(LibTorch_REASON "The LibTorch in ${LibTorch_DIR} was built with the old std::string (_GLIBCXX_USE_CXX11_ABI=0): take a Python package from 2.7 on, or an archive whose name says cxx11-abi")
  endif()
endif()

if(NOT LibTorch_FOUND)
  if(TESSERA_LIBTORCH AND NOT LibTorch_REASON)
    set(LibTorch_REASON "TESSERA_LIBTORCH=${TESSERA_LIBTORCH} holds no LibTorch (lib/libtorch_cpu.so, lib/libc10.so and include/ATen)")
  endif()
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "LibTorch was not found. ${LibTorch_REASON}")
  endif()
  return()
endif()

set(LibTorch_INCLUDE_DIRS ${LibTorch_DIR}/include ${LibTorch_DIR}/include/torch/csrc/api/include)
set(LibTorch_VERSION "")
foreach(_file IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # since 2.9; before
  if(EXISTS ${LibTorch_DIR}/include/${_file})
    file(STRINGS ${LibTorch_DIR}/include/${_file} _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX REPLACE "[^;]* ([0-9]+)" "\\1" _lines "${_lines}")
    string(REPLACE ";" "." LibTorch_VERSION "${_lines}")
  endif()
  if(LibTorch_VERSION)
    break()
  endif()
endforeach()

if(NOT TARGET LibTorch::LibTorch)
  foreach(_library IN ITEMS c10 torch_cpu)
    add_library(LibTorch::${_library} SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::${_library} PROPERTIES
      IMPORTED_LOCATION ${LibTorch_DIR}/lib/lib${_library}.so
      INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIRS}")
  endforeach()
  # Where processes meet that have no MPI, if LibTorch was built with it, as it tells those that link it.
  set(_targets ${LibTorch_DIR}/share/cmake/Caffe2/Caffe2Targets.cmake)
  if(EXISTS ${_targets})
    file(STRINGS ${_targets} _distributed REGEX "INTERFACE_COMPILE_DEFINITIONS.*USE_DISTRIBUTED")
    if(_distributed)
      target_compile_definitions(LibTorch::torch_cpu INTERFACE USE_DISTRIBUTED)
    endif()
  endif()
  add_library(LibTorch::LibTorch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::torch_cpu LibTorch::c10)
  if(EXISTS ${LibTorch_DIR}/lib/libtorch_cuda.so)
    add_library(LibTorch::cuda INTERFACE IMPORTED GLOBAL)
    target_link_libraries(LibTorch::cuda INTERFACE LibTorch::LibTorch)
    # It registers itself when it is loaded: a program uses no symbol of it.
    target_link_options(LibTorch::cuda INTERFACE
      "SHELL:-Wl,--push-state,--no-as-needed ${LibTorch_DIR}/lib/libtorch_cuda.so -Wl,--pop-state" -Wl,--allow-shlib-undefined)
  endif()
endif()

file(GLOB _cudart ${LibTorch_DIR}/../nvidia/*/lib/libcudart.so* ${LibTorch_DIR}/lib/libcudart*.so*)
if(EXISTS ${LibTorch_DIR}/lib/libtorch_cuda.so AND NOT _cudart)
  message(WARNING "${LibTorch_DIR} was built with CUDA and needs libcudart and libcupti: install the Python packages nvidia-cuda-runtime and nvidia-cuda-cupti beside it.")
endif()
