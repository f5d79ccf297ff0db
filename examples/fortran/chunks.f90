! Chunks that the program itself encodes and writes directly; and a tensor that grows in time, whose steps are collected
! until they fill a chunk. Fortran's axes count from the fastest, so time comes first here, and last in h5dump.
!
!     h5fc $(tamis config --fortran) $(tamis config --fortran --codec) chunks.f90 $(tamis config --libs) $(tamis config --libs --codec) -o chunks
program chunks

  use hdf5
  use h5zzfp_props_f
  use tamis_zfp
  use iso_c_binding
  implicit none

  ! Newer than Debian's Fortran interface of HDF5.
  interface
    integer(c_int) function H5Dwrite_chunk(dataset, dxpl, filters, offset, nbytes, buf) &
        bind(c, name='H5Dwrite_chunk')
      import :: c_int, c_size_t, c_int32_t, c_ptr, hid_t, hsize_t
      integer(hid_t), value :: dataset, dxpl
      integer(c_int32_t), value :: filters
      integer(hsize_t), intent(in) :: offset(*)
      integer(c_size_t), value :: nbytes
      type(c_ptr), value :: buf
    end function
  end interface

  character(len=1024) :: path
  integer(hid_t) :: file
  integer :: error

  path = 'chunks.h5'
  if (command_argument_count() > 0) call get_command_argument(1, path)
  call h5open_f(error)
  call check(H5Z_zfp_initialize() > 0, 'H5Z_zfp_initialize')
  call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, error)
  call check(error >= 0, 'h5fcreate_f')
  call write_direct()
  call write_tensor()
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

  subroutine write_direct()
    integer, parameter :: columns = 90, rows = 70
    integer(hsize_t), parameter :: extents(2) = [columns, rows], origin(2) = 0
    real(c_float), target :: values(columns, rows), back(columns, rows)
    integer(c_int8_t), allocatable, target :: stream(:)
    integer(hid_t) :: space, dcpl, dataset
    type(tamis_array) :: chunk
    type(tamis_zfp_params) :: params
    integer(c_size_t) :: nbytes
    integer(c_int) :: code
    integer :: i, j
    type(c_ptr) :: at

    do j = 1, rows
      do i = 1, columns
        values(i, j) = real(300 + 20 * sin(j / 11d0) * cos(i / 17d0), c_float)
      end do
    end do
    call h5screate_simple_f(2, extents, space, error)
    call h5pcreate_f(H5P_DATASET_CREATE_F, dcpl, error)
    call h5pset_chunk_f(dcpl, 2, extents, error)
    call check(H5Pset_zfp_accuracy(dcpl, 0.01d0) >= 0, 'H5Pset_zfp_accuracy')
    call h5dcreate_f(file, 'direct', H5T_NATIVE_REAL, space, dataset, error, dcpl)
    call check(error >= 0, 'h5dcreate_f')

    chunk = tamis_array(TAMIS_FLOAT, 2, [integer(c_size_t) :: rows, columns, 0, 0])
    call check(tamis_zfp_set_accuracy(params, 0.01d0) == TAMIS_OK, 'tamis_zfp_set_accuracy')
    allocate (stream(tamis_zfp_max_nbytes(chunk, params)))
    code = tamis_zfp_encode(chunk, params, 0, c_loc(values), c_loc(stream), size(stream, kind=c_size_t), nbytes, 2)
    call check(code == TAMIS_OK, 'tamis_zfp_encode')
    call check(H5Dwrite_chunk(dataset, H5P_DEFAULT_F, 0, origin, nbytes, c_loc(stream)) >= 0, 'H5Dwrite_chunk')
    at = c_loc(back)
    call h5dread_f(dataset, H5T_NATIVE_REAL, at, error)
    call check(error >= 0 .and. all(abs(values - back) <= 0.01), 'the accuracy')
    code = tamis_zfp_decode(chunk, params, c_loc(stream), nbytes, 0_c_size_t, c_loc(values), 2)
    call check(code == TAMIS_OK .and. all(values == back), 'tamis_zfp_decode')
    write (*, '(a, i0, a)') 'direct: ', nbytes, ' bytes'
    call h5dclose_f(dataset, error)
    call check(error >= 0, 'h5dclose_f')
    call h5pclose_f(dcpl, error)
    call h5sclose_f(space, error)
  end subroutine

  subroutine write_tensor()
    integer, parameter :: n = 11, c = 3, depth = 4, steps = 9
    integer(hsize_t), parameter :: chunk(6) = [depth, 1, 1, n, n, n]
    real(c_double), allocatable, target :: gathered(:, :, :, :, :, :)
    integer(hsize_t) :: extents(6), limits(6)
    integer(hid_t) :: space, dcpl, dataset
    integer :: t

    allocate (gathered(depth, c, c, n, n, n))
    extents = [0, c, c, n, n, n]
    limits = extents
    limits(1) = H5S_UNLIMITED_F
    call h5screate_simple_f(6, extents, space, error, limits)
    call h5pcreate_f(H5P_DATASET_CREATE_F, dcpl, error)
    call h5pset_chunk_f(dcpl, 6, chunk, error)
    call check(H5Pset_zfp_rate(dcpl, 12d0) >= 0, 'H5Pset_zfp_rate')
    call h5dcreate_f(file, 'tensor', H5T_NATIVE_DOUBLE, space, dataset, error, dcpl)
    call check(error >= 0, 'h5dcreate_f')
    call h5sclose_f(space, error)
    do t = 0, steps - 1
      call gather(t, gathered)
      if (mod(t, depth) == depth - 1 .or. t == steps - 1) call append(dataset, t, mod(t, depth) + 1, gathered)
    end do
    call h5dclose_f(dataset, error)
    call check(error >= 0, 'h5dclose_f')
    call h5pclose_f(dcpl, error)
  end subroutine

  subroutine gather(t, gathered)
    integer, intent(in) :: t
    real(c_double), intent(inout) :: gathered(:, :, :, :, :, :)
    integer :: x, y, z, i, j
    do x = 1, size(gathered, 6)
      do y = 1, size(gathered, 5)
        do z = 1, size(gathered, 4)
          do i = 1, size(gathered, 3)
            do j = 1, size(gathered, 2)
              gathered(mod(t, size(gathered, 1)) + 1, j, i, z, y, x) = (i + 3 * (j - 1)) * &
                sin((x - 1) / 5d0 + t / 7d0) * cos((y - 1) / 6d0) * cos((z - 1) / 8d0)
            end do
          end do
        end do
      end do
    end do
  end subroutine

  ! Append the first `count` of the collected steps; the last one is `last`.
  subroutine append(dataset, last, count, gathered)
    integer(hid_t), intent(in) :: dataset
    integer, intent(in) :: last, count
    real(c_double), intent(in), target :: gathered(:, :, :, :, :, :)
    integer(hsize_t) :: whole(6), part(6), start(6), extents(6)
    integer(hid_t) :: memory, space
    whole = shape(gathered)
    part = whole
    part(1) = count
    start = 0
    extents = whole
    extents(1) = last + 1
    call h5dset_extent_f(dataset, extents, error)
    call h5screate_simple_f(6, whole, memory, error)
    call h5sselect_hyperslab_f(memory, H5S_SELECT_SET_F, start, part, error)
    call h5dget_space_f(dataset, space, error)
    start(1) = last + 1 - count
    call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, part, error)
    call h5dwrite_f(dataset, H5T_NATIVE_DOUBLE, c_loc(gathered), error, memory, space)
    call check(error >= 0, 'h5dwrite_f')
    call h5sclose_f(memory, error)
    call h5sclose_f(space, error)
  end subroutine

end program chunks
