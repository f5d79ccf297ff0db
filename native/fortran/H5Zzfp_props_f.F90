! Filter 32013 for Fortran 2003, by the names of H5Z-ZFP: its properties interface, and cd_values for h5pset_filter_f.
!
! A source, since module files differ from compiler to compiler: compile it with the program, and link -lh5zzfp. What the
! functions do is said in H5Zzfp_lib.h and H5Zzfp_props.h; they return a negative number if they fail.
!
! Fortran's axes count from the fastest: a chunk of (/4, 8/) is 8x4 to h5dump and Python.
module h5zzfp_props_f

  use iso_c_binding
  use hdf5
  implicit none

  integer, parameter :: H5Z_FILTER_ZFP = 32013
  integer, parameter :: H5Z_FILTER_ZFP_VERSION_MAJOR = 1
  integer, parameter :: H5Z_FILTER_ZFP_VERSION_MINOR = 1
  integer, parameter :: H5Z_FILTER_ZFP_VERSION_PATCH = 1

  ! Most cd_values: of a request, and in a file.
  integer(c_size_t), parameter :: H5Z_ZFP_CD_NELMTS_MEM = 6
  integer(c_size_t), parameter :: H5Z_ZFP_CD_NELMTS_MAX = 6

  integer, parameter :: H5Z_ZFP_MODE_RATE = 1
  integer, parameter :: H5Z_ZFP_MODE_PRECISION = 2
  integer, parameter :: H5Z_ZFP_MODE_ACCURACY = 3
  integer, parameter :: H5Z_ZFP_MODE_EXPERT = 4
  integer, parameter :: H5Z_ZFP_MODE_REVERSIBLE = 5

  interface

    integer(c_int) function H5Z_zfp_initialize() bind(c, name='H5Z_zfp_initialize')
      import :: c_int
    end function

    integer(c_int) function H5Z_zfp_finalize() bind(c, name='H5Z_zfp_finalize')
      import :: c_int
    end function

    ! A request in a dataset creation property list.

    integer(c_int) function H5Pset_zfp_rate(plist, rate) bind(c, name='H5Pset_zfp_rate')
      import :: c_int, c_double, hid_t
      integer(hid_t), value :: plist
      real(c_double), value :: rate
    end function

    integer(c_int) function H5Pset_zfp_precision(plist, prec) bind(c, name='H5Pset_zfp_precision')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
      integer(c_int), value :: prec
    end function

    integer(c_int) function H5Pset_zfp_accuracy(plist, acc) bind(c, name='H5Pset_zfp_accuracy')
      import :: c_int, c_double, hid_t
      integer(hid_t), value :: plist
      real(c_double), value :: acc
    end function

    integer(c_int) function H5Pset_zfp_expert(plist, minbits, maxbits, maxprec, minexp) &
        bind(c, name='H5Pset_zfp_expert')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
      integer(c_int), value :: minbits, maxbits, maxprec, minexp
    end function

    integer(c_int) function H5Pset_zfp_reversible(plist) bind(c, name='H5Pset_zfp_reversible')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
    end function

    ! What a list says, also one that was read from a file: the mode is 0 without the filter.

    integer(c_int) function H5Pget_zfp_mode(plist) bind(c, name='H5Pget_zfp_mode')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
    end function

    integer(c_int) function H5Pget_zfp_rate(plist, rate) bind(c, name='H5Pget_zfp_rate')
      import :: c_int, c_double, hid_t
      integer(hid_t), value :: plist
      real(c_double), intent(out) :: rate
    end function

    integer(c_int) function H5Pget_zfp_precision(plist, prec) bind(c, name='H5Pget_zfp_precision')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
      integer(c_int), intent(out) :: prec
    end function

    integer(c_int) function H5Pget_zfp_accuracy(plist, acc) bind(c, name='H5Pget_zfp_accuracy')
      import :: c_int, c_double, hid_t
      integer(hid_t), value :: plist
      real(c_double), intent(out) :: acc
    end function

    integer(c_int) function H5Pget_zfp_expert(plist, minbits, maxbits, maxprec, minexp) &
        bind(c, name='H5Pget_zfp_expert')
      import :: c_int, hid_t
      integer(hid_t), value :: plist
      integer(c_int), intent(out) :: minbits, maxbits, maxprec, minexp
    end function

    ! cd_values for h5pset_filter_f: cd_nelmts is the size of cd_values before, and the count after.

    subroutine H5Pset_zfp_rate_cdata(rate, cd_nelmts, cd_values) bind(c, name='H5Pset_zfp_rate_cdata_f')
      import :: c_double, c_int, c_size_t
      real(c_double), value :: rate
      integer(c_size_t) :: cd_nelmts
      integer(c_int) :: cd_values(*)
    end subroutine

    subroutine H5Pset_zfp_precision_cdata(prec, cd_nelmts, cd_values) bind(c, name='H5Pset_zfp_precision_cdata_f')
      import :: c_int, c_size_t
      integer(c_int), value :: prec
      integer(c_size_t) :: cd_nelmts
      integer(c_int) :: cd_values(*)
    end subroutine

    subroutine H5Pset_zfp_accuracy_cdata(acc, cd_nelmts, cd_values) bind(c, name='H5Pset_zfp_accuracy_cdata_f')
      import :: c_double, c_int, c_size_t
      real(c_double), value :: acc
      integer(c_size_t) :: cd_nelmts
      integer(c_int) :: cd_values(*)
    end subroutine

    subroutine H5Pset_zfp_expert_cdata(minbits, maxbits, maxprec, minexp, cd_nelmts, cd_values) &
        bind(c, name='H5Pset_zfp_expert_cdata_f')
      import :: c_int, c_size_t
      integer(c_int), value :: minbits, maxbits, maxprec, minexp
      integer(c_size_t) :: cd_nelmts
      integer(c_int) :: cd_values(*)
    end subroutine

    subroutine H5Pset_zfp_reversible_cdata(cd_nelmts, cd_values) bind(c, name='H5Pset_zfp_reversible_cdata_f')
      import :: c_int, c_size_t
      integer(c_size_t) :: cd_nelmts
      integer(c_int) :: cd_values(*)
    end subroutine

  end interface

end module h5zzfp_props_f
