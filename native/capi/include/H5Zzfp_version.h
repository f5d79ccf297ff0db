/* Numbers of the filter, as H5Z-ZFP names them. */
#ifndef H5Z_ZFP_VERSION_H
#define H5Z_ZFP_VERSION_H

#define H5Z_FILTER_ZFP 32013 /* the number by which files know it */

/* The version of H5Z-ZFP whose interface and files these are. */
#define H5Z_FILTER_ZFP_VERSION_MAJOR 1
#define H5Z_FILTER_ZFP_VERSION_MINOR 1
#define H5Z_FILTER_ZFP_VERSION_PATCH 1

#define H5Z_ZFP_MODE_RATE 1
#define H5Z_ZFP_MODE_PRECISION 2
#define H5Z_ZFP_MODE_ACCURACY 3
#define H5Z_ZFP_MODE_EXPERT 4
#define H5Z_ZFP_MODE_REVERSIBLE 5

/* Most cd_values: of a request, and in a file. */
#define H5Z_ZFP_CD_NELMTS_MEM 6
#define H5Z_ZFP_CD_NELMTS_MAX 6

#endif
