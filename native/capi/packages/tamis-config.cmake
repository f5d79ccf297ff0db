# tamis::tamis: the ZFP codec. TAMIS_USE_STATIC_LIBS chooses the static library. TAMIS_FORTRAN_SOURCE is the source of
# the Fortran module, which is compiled with a program.
get_filename_component(_tamis_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TAMIS_FORTRAN_SOURCE "${_tamis_prefix}/fortran/tamis_zfp.f90")
if(NOT TARGET tamis::tamis)
  if(TAMIS_USE_STATIC_LIBS)
    include(CMakeFindDependencyMacro)
    find_dependency(Threads)
    add_library(tamis::tamis STATIC IMPORTED)
    set_target_properties(tamis::tamis PROPERTIES
      IMPORTED_LOCATION "${_tamis_prefix}/lib/libtamis.a"
      INTERFACE_LINK_LIBRARIES "stdc++;m;Threads::Threads")
  else()
    add_library(tamis::tamis SHARED IMPORTED)
    set_target_properties(tamis::tamis PROPERTIES
      IMPORTED_LOCATION "${_tamis_prefix}/lib/libtamis${CMAKE_SHARED_LIBRARY_SUFFIX}")
  endif()
  set_target_properties(tamis::tamis PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_tamis_prefix}/include")
endif()
unset(_tamis_prefix)
