# The filter library, by the names of H5Z-ZFP's package:
#
#   h5z_zfp::h5z_zfp - the library, with the program's HDF5 (find_package(HDF5), unless HDF5_LIBRARIES is set)
#   H5Z_ZFP_INCLUDE_DIR, H5Z_ZFP_LIBRARY, H5Z_ZFP_WITH_OPENMP
#
# H5Z_ZFP_USE_STATIC_LIBS chooses the static library. Where Fortran is enabled, the targets have the module
# h5zzfp_props_f, compiled as part of the project: module files differ from compiler to compiler.
#
# Beyond H5Z-ZFP's package:
#
#   h5z_zfp::h5z_zfp_shared, h5z_zfp::h5z_zfp_static - one kind of library, whatever the variable says
#   h5z_zfp::fortran - h5z_zfp::h5z_zfp and the module's object file, where Fortran is enabled
#   H5Z_ZFP_FORTRAN_SOURCE, H5Z_ZFP_PLUGIN_DIR
get_filename_component(_h5z_zfp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(H5Z_ZFP_INCLUDE_DIR "${_h5z_zfp_prefix}/include")
set(H5Z_ZFP_FORTRAN_SOURCE "${_h5z_zfp_prefix}/fortran/H5Zzfp_props_f.F90")
set(H5Z_ZFP_WITH_OPENMP FALSE)

# A folder that `tamis config --install` wrote has lib/shared and plugin; the Python package, lib and hdf5_plugin.
set(_h5z_zfp_STATIC "${_h5z_zfp_prefix}/lib/libh5zzfp${CMAKE_STATIC_LIBRARY_SUFFIX}")
set(_h5z_zfp_SHARED "${_h5z_zfp_prefix}/lib/libh5zzfp${CMAKE_SHARED_LIBRARY_SUFFIX}")
set(H5Z_ZFP_PLUGIN_DIR "${_h5z_zfp_prefix}/hdf5_plugin")
if(EXISTS "${_h5z_zfp_prefix}/lib/shared")
  set(_h5z_zfp_SHARED "${_h5z_zfp_prefix}/lib/shared/libh5zzfp${CMAKE_SHARED_LIBRARY_SUFFIX}")
  set(H5Z_ZFP_PLUGIN_DIR "${_h5z_zfp_prefix}/plugin")
endif()
set(_h5z_zfp_kind SHARED)
if(H5Z_ZFP_USE_STATIC_LIBS OR WIN32) # Windows has no other
  set(_h5z_zfp_kind STATIC)
endif()
set(H5Z_ZFP_LIBRARY "${_h5z_zfp_${_h5z_zfp_kind}}")

include(CMakeFindDependencyMacro)
# FindHDF5 fails for a language that the project lacks.
set(_h5z_zfp_components)
if(CMAKE_C_COMPILER_LOADED)
  list(APPEND _h5z_zfp_components C)
elseif(CMAKE_CXX_COMPILER_LOADED)
  list(APPEND _h5z_zfp_components CXX)
endif()
if(CMAKE_Fortran_COMPILER_LOADED)
  list(APPEND _h5z_zfp_components Fortran)
endif()
if(NOT HDF5_LIBRARIES OR (CMAKE_Fortran_COMPILER_LOADED AND NOT HDF5_Fortran_LIBRARIES))
  find_dependency(HDF5 COMPONENTS ${_h5z_zfp_components})
endif()

set(_h5z_zfp_includes "${H5Z_ZFP_INCLUDE_DIR}" ${HDF5_INCLUDE_DIRS})
if(CMAKE_Fortran_COMPILER_LOADED)
  set(_h5z_zfp_modules "${CMAKE_BINARY_DIR}/h5z_zfp_fortran")
  file(MAKE_DIRECTORY "${_h5z_zfp_modules}")
  if(NOT TARGET h5z_zfp_fortran)
    add_library(h5z_zfp_fortran STATIC EXCLUDE_FROM_ALL "${H5Z_ZFP_FORTRAN_SOURCE}")
    set_target_properties(h5z_zfp_fortran PROPERTIES Fortran_MODULE_DIRECTORY "${_h5z_zfp_modules}")
    target_include_directories(h5z_zfp_fortran PRIVATE ${HDF5_Fortran_INCLUDE_DIRS})
  endif()
  # First, before a module file of another compiler in the library's own folder.
  list(INSERT _h5z_zfp_includes 0 "$<$<COMPILE_LANGUAGE:Fortran>:${_h5z_zfp_modules}>")
  list(APPEND _h5z_zfp_includes ${HDF5_Fortran_INCLUDE_DIRS})
endif()

if(NOT MSVC)
  set(_h5z_zfp_math ";m")
endif()
function(_h5z_zfp_add_library name kind)
  if(TARGET h5z_zfp::${name})
    return()
  endif()
  add_library(h5z_zfp::${name} ${kind} IMPORTED)
  set_target_properties(h5z_zfp::${name} PROPERTIES
    IMPORTED_LOCATION "${_h5z_zfp_${kind}}"
    INTERFACE_INCLUDE_DIRECTORIES "${_h5z_zfp_includes}"
    INTERFACE_LINK_LIBRARIES "${HDF5_LIBRARIES}${_h5z_zfp_math}")
  if(CMAKE_Fortran_COMPILER_LOADED)
    # Only so that the module is compiled first: it has no code, and linked it would make Fortran's compiler link C.
    add_dependencies(h5z_zfp::${name} h5z_zfp_fortran)
  endif()
endfunction()
_h5z_zfp_add_library(h5z_zfp ${_h5z_zfp_kind})
if(NOT WIN32)
  _h5z_zfp_add_library(h5z_zfp_shared SHARED)
endif()
_h5z_zfp_add_library(h5z_zfp_static STATIC)
if(CMAKE_Fortran_COMPILER_LOADED AND NOT TARGET h5z_zfp::fortran)
  add_library(h5z_zfp::fortran INTERFACE IMPORTED)
  set_target_properties(h5z_zfp::fortran PROPERTIES INTERFACE_LINK_LIBRARIES "h5z_zfp_fortran;h5z_zfp::h5z_zfp")
endif()
set(H5Z_ZFP_FOUND TRUE)
