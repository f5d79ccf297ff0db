! The ZFP codec for Fortran 2003: the functions of tamis.h, which says what they do. Compile it with the program, and link
! -ltamis.
!
! Arrays of tamis.h are in C order: shape(1) of tamis_array is the slowest axis, the last one of a Fortran array.
module tamis_zfp

  use iso_c_binding
  implicit none

  integer(c_int), parameter :: TAMIS_OK = 0, TAMIS_NO_ROOM = 11
  integer(c_int), parameter :: TAMIS_INT32 = 1, TAMIS_INT64 = 2, TAMIS_FLOAT = 3, TAMIS_DOUBLE = 4

  type, bind(c) :: tamis_array
    integer(c_int) :: type
    integer(c_int) :: rank
    integer(c_size_t) :: shape(4)
  end type

  type, bind(c) :: tamis_zfp_params
    integer(c_int) :: minbits, maxbits, maxprec, minexp
  end type

  interface

    integer(c_int) function tamis_zfp_set_rate(params, rate, type, rank) bind(c)
      import :: c_int, c_double, tamis_zfp_params
      type(tamis_zfp_params), intent(out) :: params
      real(c_double), value :: rate
      integer(c_int), value :: type, rank
    end function

    integer(c_int) function tamis_zfp_set_precision(params, precision) bind(c)
      import :: c_int, tamis_zfp_params
      type(tamis_zfp_params), intent(out) :: params
      integer(c_int), value :: precision
    end function

    integer(c_int) function tamis_zfp_set_accuracy(params, accuracy) bind(c)
      import :: c_int, c_double, tamis_zfp_params
      type(tamis_zfp_params), intent(out) :: params
      real(c_double), value :: accuracy
    end function

    integer(c_int) function tamis_zfp_set_expert(params, minbits, maxbits, maxprec, minexp) bind(c)
      import :: c_int, tamis_zfp_params
      type(tamis_zfp_params), intent(out) :: params
      integer(c_int), value :: minbits, maxbits, maxprec, minexp
    end function

    integer(c_int) function tamis_zfp_set_reversible(params) bind(c)
      import :: c_int, tamis_zfp_params
      type(tamis_zfp_params), intent(out) :: params
    end function

    integer(c_size_t) function tamis_zfp_max_nbytes(array, params) bind(c)
      import :: c_size_t, tamis_array, tamis_zfp_params
      type(tamis_array), intent(in) :: array
      type(tamis_zfp_params), intent(in) :: params
    end function

    integer(c_int) function tamis_zfp_encode(array, params, with_header, data, out, capacity, nbytes, threads) bind(c)
      import :: c_int, c_size_t, c_ptr, tamis_array, tamis_zfp_params
      type(tamis_array), intent(in) :: array
      type(tamis_zfp_params), intent(in) :: params
      integer(c_int), value :: with_header, threads
      type(c_ptr), value :: data, out
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: nbytes
    end function

    integer(c_int) function tamis_zfp_decode(array, params, in, nbytes, first_bit, data, threads) bind(c)
      import :: c_int, c_size_t, c_ptr, tamis_array, tamis_zfp_params
      type(tamis_array), intent(in) :: array
      type(tamis_zfp_params), intent(in) :: params
      type(c_ptr), value :: in, data
      integer(c_size_t), value :: nbytes, first_bit
      integer(c_int), value :: threads
    end function

    integer(c_int) function tamis_zfp_read_header(in, nbytes, array, params, end_bit) bind(c)
      import :: c_int, c_size_t, c_ptr, tamis_array, tamis_zfp_params
      type(c_ptr), value :: in
      integer(c_size_t), value :: nbytes
      type(tamis_array), intent(out) :: array
      type(tamis_zfp_params), intent(out) :: params
      integer(c_size_t), intent(out) :: end_bit
    end function

    integer(c_int) function tamis_zfp_read_cd_values(cd_values, count, chunk, params) bind(c)
      import :: c_int, c_size_t, tamis_array, tamis_zfp_params
      integer(c_int), intent(in) :: cd_values(*)
      integer(c_size_t), value :: count
      type(tamis_array), intent(out) :: chunk
      type(tamis_zfp_params), intent(out) :: params
    end function

  end interface

end module tamis_zfp
