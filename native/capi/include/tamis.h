/* The ZFP codec of tamis: arrays to streams and back, with the bytes of libzfp 1.0. It needs no HDF5.
 *
 * For C99 and C++. Functions return TAMIS_OK or another code; tamis_last_error() describes the failure of this thread.
 * All functions may be called from several threads at once. The caller owns all memory.
 *
 * The kernel is chosen for the processor, or by the environment variable TAMIS_KERNEL.
 */
#ifndef TAMIS_H
#define TAMIS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
typedef enum tamis_code {
    TAMIS_OK = 0,
    TAMIS_BAD_ARGUMENT = 1,  /* a null pointer, an unknown type, an impossible shape */
    TAMIS_BAD_PARAMETER = 2, /* a rate, accuracy or number of bits that the codec does not support */
    TAMIS_BAD_HEADER = 3,    /* no ZFP header, or no stored parameters of filter 32013 */
    TAMIS_OTHER_CODEC = 4,   /* a header of another codec than ZFP's codec 5 */
    TAMIS_BYTE_ORDER = 5,    /* cd_values of a machine of the other byte order */
    TAMIS_TOO_LONG = 6,      /* an axis that the header cannot store, or more values than memory has addresses */
    TAMIS_NON_FINITE = 7,    /* NaN or infinity in a lossy mode */
    TAMIS_OUT_OF_RANGE = 8,  /* integers of 2^30 (2^62) or more in a lossy mode */
    TAMIS_CHANGED = 9,       /* values were changed while they were encoded */
    TAMIS_TRUNCATED = 10,    /* the stream ends before the array does */
    TAMIS_NO_ROOM = 11,      /* the stream does not fit into the caller's memory */
    TAMIS_NO_MEMORY = 12
} tamis_code;

/* Scalar types, numbered like libzfp's zfp_type. */
typedef enum tamis_type { TAMIS_INT32 = 1, TAMIS_INT64 = 2, TAMIS_FLOAT = 3, TAMIS_DOUBLE = 4 } tamis_type;

/* An array in C order: the last axis is the fastest. A Fortran array has its axes in reverse order. The HDF5 filter
 * leaves out axes of length 1 of a chunk; here they count. */
typedef struct tamis_array {
    tamis_type type;
    unsigned rank; /* 1 to 4 */
    size_t shape[4];
} tamis_array;

/* The four numbers that drive the codec. The functions below set them; you may also set them directly. */
typedef struct tamis_zfp_params {
    unsigned minbits; /* per block of 4^rank values, at least */
    unsigned maxbits; /* per block, at most */
    unsigned maxprec; /* bit planes per block, at most */
    int minexp;       /* exponent of the lowest bit plane kept; below -1074: reversible */
} tamis_zfp_params;

/* Bits per value, of this type and rank: rounded to whole bits per block, of which float takes at least 9, double 12.
 */
extern int tamis_zfp_set_rate(tamis_zfp_params* params, double rate, tamis_type type, unsigned rank);
/* Bit planes per block, 1 to 64. */
extern int tamis_zfp_set_precision(tamis_zfp_params* params, unsigned precision);
/* Largest absolute error, rounded down to a power of two; 0 means all bit planes. */
extern int tamis_zfp_set_accuracy(tamis_zfp_params* params, double accuracy);
/* The four numbers: minbits not above maxbits or 32768, maxbits 1 or more, maxprec 1 to 64. */
extern int tamis_zfp_set_expert(tamis_zfp_params* params, unsigned minbits, unsigned maxbits, unsigned maxprec,
                                int minexp);
/* Every bit is kept. */
extern int tamis_zfp_set_reversible(tamis_zfp_params* params);

/* Bytes that hold any stream of such an array, including the header; 0 if array or parameters are refused, or no
 * memory could hold it. */
extern size_t tamis_zfp_max_nbytes(const tamis_array* array, const tamis_zfp_params* params);

/* Write the stream of `data` to `out`, which holds `capacity` bytes, and its length to `nbytes`. A capacity of
 * tamis_zfp_max_nbytes is always enough, and fastest; with a smaller one the result may be TAMIS_NO_ROOM, and `nbytes`
 * is then the required capacity. Streams in HDF5 chunks have no header; others may begin with one, like zfp's files.
 * `threads` only changes the time: 0 and 1 mean only the calling thread. */
extern int tamis_zfp_encode(const tamis_array* array, const tamis_zfp_params* params, int with_header, const void* data,
                            void* out, size_t capacity, size_t* nbytes, unsigned threads);

/* Fill `data` with the values of a stream that begins at bit `first_bit` of `in`: 0, or where its header ends. The
 * stream may be damaged; nothing is read or written beyond `in` and `data`. */
extern int tamis_zfp_decode(const tamis_array* array, const tamis_zfp_params* params, const void* in, size_t nbytes,
                            size_t first_bit, void* data, unsigned threads);

/* Read a stream's header, and the bit at which it ends. */
extern int tamis_zfp_read_header(const void* in, size_t nbytes, tamis_array* array, tamis_zfp_params* params,
                                 size_t* end_bit);

/* Describe the chunks of a dataset with filter 32013, from its stored cd_values (H5Pget_filter_by_id of
 * H5Dget_create_plist): for streams that H5Dwrite_chunk writes and H5Dread_chunk reads. */
extern int tamis_zfp_read_cd_values(const unsigned* cd_values, size_t count, tamis_array* chunk,
                                    tamis_zfp_params* params);

/* The general meaning of a code; and the last failure of this thread, with its place. Neither is ever null. */
extern const char* tamis_error_text(int code);
extern const char* tamis_last_error(void);

/* The version of tamis, such as "1.0.0". */
extern const char* tamis_version(void);

#ifdef __cplusplus
}
#endif

#endif
