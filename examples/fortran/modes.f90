! Every mode of ZFP through both interfaces, written and read back.
!
!     h5fc $(tamis config --fortran) modes.f90 $(tamis config --libs) -o modes && ./modes modes.h5
program modes

  use hdf5
  use h5zzfp_props_f
  use iso_c_binding
  implicit none

  integer, parameter :: columns = 100, rows = 60
  character(len=*), parameter :: names(5) = &
    [character(len=10) :: 'rate', 'precision', 'accuracy', 'expert', 'reversible']
  integer(hsize_t), parameter :: shape(2) = [columns, rows], chunk(2) = [50, 20]
  real(c_double), target :: values(columns, rows), back(columns, rows)
  character(len=1024) :: path
  integer(hid_t) :: file, space, dcpl, dataset
  integer :: mode, error, i, j
  logical :: generic

  do j = 1, rows
    do i = 1, columns
      values(i, j) = 20 + 15 * sin((j - 1) / 9d0) * cos((i - 1) / 13d0)
    end do
  end do
  path = 'modes.h5'
  if (command_argument_count() > 0) call get_command_argument(1, path)

  call h5open_f(error)
  call check(H5Z_zfp_initialize() > 0, 'H5Z_zfp_initialize')
  call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, error)
  call check(error >= 0, 'h5fcreate_f')
  call h5screate_simple_f(2, shape, space, error)
  do mode = H5Z_ZFP_MODE_RATE, H5Z_ZFP_MODE_REVERSIBLE
    generic = .false.
    do i = 1, 2
      call h5pcreate_f(H5P_DATASET_CREATE_F, dcpl, error)
      call h5pset_chunk_f(dcpl, 2, chunk, error)
      if (generic) then
        call set_cd_values(mode)
      else
        call set_properties(mode)
      end if
      call write_and_read(trim(names(mode)) // merge('_generic   ', '_properties', generic))
      call h5pclose_f(dcpl, error)
      generic = .true.
    end do
  end do
  call h5sclose_f(space, error)
  call h5fclose_f(file, error)
  call check(error >= 0, 'h5fclose_f')
  call check(H5Z_zfp_finalize() > 0, 'H5Z_zfp_finalize')
  call h5close_f(error)

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    integer :: ignored
    if (ok) return
    call h5eprint_f(ignored)
    write (*, *) 'failed: ', what
    stop 1
  end subroutine

  ! The properties interface: one call.
  subroutine set_properties(mode)
    integer, intent(in) :: mode
    integer(c_int) :: status
    select case (mode)
    case (H5Z_ZFP_MODE_RATE)
      status = H5Pset_zfp_rate(dcpl, 8.5d0)
    case (H5Z_ZFP_MODE_PRECISION)
      status = H5Pset_zfp_precision(dcpl, 20_c_int)
    case (H5Z_ZFP_MODE_ACCURACY)
      status = H5Pset_zfp_accuracy(dcpl, 0.001d0)
    case (H5Z_ZFP_MODE_EXPERT)
      status = H5Pset_zfp_expert(dcpl, 64_c_int, 512_c_int, 30_c_int, -12_c_int)
    case default
      status = H5Pset_zfp_reversible(dcpl)
    end select
    call check(status >= 0, 'the properties interface')
  end subroutine

  ! The generic interface: cd_values.
  subroutine set_cd_values(mode)
    integer, intent(in) :: mode
    integer(c_int) :: cd_values(H5Z_ZFP_CD_NELMTS_MEM)
    integer(c_size_t) :: cd_nelmts
    cd_nelmts = H5Z_ZFP_CD_NELMTS_MEM
    select case (mode)
    case (H5Z_ZFP_MODE_RATE)
      call H5Pset_zfp_rate_cdata(8.5d0, cd_nelmts, cd_values)
    case (H5Z_ZFP_MODE_PRECISION)
      call H5Pset_zfp_precision_cdata(20_c_int, cd_nelmts, cd_values)
    case (H5Z_ZFP_MODE_ACCURACY)
      call H5Pset_zfp_accuracy_cdata(0.001d0, cd_nelmts, cd_values)
    case (H5Z_ZFP_MODE_EXPERT)
      call H5Pset_zfp_expert_cdata(64_c_int, 512_c_int, 30_c_int, -12_c_int, cd_nelmts, cd_values)
    case default
      call H5Pset_zfp_reversible_cdata(cd_nelmts, cd_values)
    end select
    call h5pset_filter_f(dcpl, H5Z_FILTER_ZFP, 0, cd_nelmts, cd_values, error)
    call check(error >= 0, 'h5pset_filter_f')
  end subroutine

  subroutine write_and_read(name)
    character(len=*), intent(in) :: name
    integer(hid_t) :: stored
    type(c_ptr) :: at
    call h5dcreate_f(file, trim(name), H5T_NATIVE_DOUBLE, space, dataset, error, dcpl)
    call check(error >= 0, 'h5dcreate_f')
    call h5dwrite_f(dataset, H5T_NATIVE_DOUBLE, c_loc(values), error)
    call check(error >= 0, 'h5dwrite_f')
    call h5dclose_f(dataset, error)
    call check(error >= 0, 'h5dclose_f')

    call h5dopen_f(file, trim(name), dataset, error)
    at = c_loc(back)
    call h5dread_f(dataset, H5T_NATIVE_DOUBLE, at, error)
    call check(error >= 0, 'h5dread_f')
    call h5dget_create_plist_f(dataset, stored, error)
    write (*, '(a, a, i0, a, es8.1)') trim(name), ': mode ', H5Pget_zfp_mode(stored), ', error ', &
      maxval(abs(values - back))
    call h5pclose_f(stored, error)
    call h5dclose_f(dataset, error)
  end subroutine

end program modes
