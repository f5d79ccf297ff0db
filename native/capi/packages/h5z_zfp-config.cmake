# The filter library, by the names of H5Z-ZFP's package:
#
#   h5z_zfp::h5z_zfp - the library, with the program's HDF5 (find_package(HDF5), unless HDF5_LIBRARIES is set)
#   h5z_zfp::fortran - with the Fortran module, where Fortran is enabled: compiled as part of the project
#   H5Z_ZFP_FORTRAN_SOURCE, H5Z_ZFP_PLUGIN_DIR
#
# H5Z_ZFP_USE_STATIC_LIBS chooses the static library.
get_filename_component(_h5z_zfp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(H5Z_ZFP_FORTRAN_SOURCE "${_h5z_zfp_prefix}/fortran/H5Zzfp_props_f.F90")
set(H5Z_ZFP_PLUGIN_DIR "${_h5z_zfp_prefix}/hdf5_plugin")
include(CMakeFindDependencyMacro)
if(NOT HDF5_LIBRARIES)
  if(CMAKE_Fortran_COMPILER_LOADED)
    find_dependency(HDF5 COMPONENTS C Fortran)
  else()
    find_dependency(HDF5 COMPONENTS C)
  endif()
endif()
if(NOT TARGET h5z_zfp::h5z_zfp)
  if(H5Z_ZFP_USE_STATIC_LIBS)
    add_library(h5z_zfp::h5z_zfp STATIC IMPORTED)
    set_target_properties(h5z_zfp::h5z_zfp PROPERTIES
      IMPORTED_LOCATION "${_h5z_zfp_prefix}/lib/libh5zzfp.a"
      INTERFACE_LINK_LIBRARIES "${HDF5_LIBRARIES};stdc++;m")
  else()
    add_library(h5z_zfp::h5z_zfp SHARED IMPORTED)
    set_target_properties(h5z_zfp::h5z_zfp PROPERTIES
      IMPORTED_LOCATION "${_h5z_zfp_prefix}/lib/libh5zzfp${CMAKE_SHARED_LIBRARY_SUFFIX}"
      INTERFACE_LINK_LIBRARIES "${HDF5_LIBRARIES}")
  endif()
  set_target_properties(h5z_zfp::h5z_zfp PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_h5z_zfp_prefix}/include;${HDF5_INCLUDE_DIRS}")
endif()
if(CMAKE_Fortran_COMPILER_LOADED AND NOT TARGET h5z_zfp_fortran)
  # Module files differ from compiler to compiler.
  add_library(h5z_zfp_fortran STATIC EXCLUDE_FROM_ALL "${H5Z_ZFP_FORTRAN_SOURCE}")
  add_library(h5z_zfp::fortran ALIAS h5z_zfp_fortran)
  set_target_properties(h5z_zfp_fortran PROPERTIES
    Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/h5z_zfp_fortran")
  target_include_directories(h5z_zfp_fortran PUBLIC
    "${CMAKE_CURRENT_BINARY_DIR}/h5z_zfp_fortran" ${HDF5_Fortran_INCLUDE_DIRS})
  target_link_libraries(h5z_zfp_fortran PUBLIC h5z_zfp::h5z_zfp ${HDF5_Fortran_LIBRARIES})
endif()
set(H5Z_ZFP_FOUND TRUE)
unset(_h5z_zfp_prefix)
