/* half_table.cuh: the shapes of hgemm whose choice was measured; of others half_model() chooses.
 *
 * A line is {M, N, K, way, tile_m, tile_n, split, parts, walk}, and true if it is multiplied
 * transposed, as HalfChoice in half_choice.cuh has them, and ends in a comma. The first line of a
 * shape counts; their order is free otherwise.
 *
 * The comment behind a line says how long its choice took when it was tuned, and on which board, an
 * H200 unless it says H100. Some of these times are of earlier kernels; what a shape takes today is
 * in results/h200. By board:
 *   96bb19, 2aa728, 715ef6, 67107d   today's kernel
 *   a934cc               blocks did not yet share tiles of the last round
 *   b604de               before that, the L2 fetched two lines for each that it lacked
 *   08b401, 095972, H100 before that, blocks of a cluster sent all sums, two floats at a time
 *   other H200s          before that, threads fetched the slabs, not the copy engine
 * `recorded` in place of a board: no tuner timed it; the time was in results/h200 when the line was
 * written, and is of the kernel of those other H200s. */
{64, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.79 us, board b604de */
{64, 64, 12288, kp::HALF_TOGETHER, 64, 64, 8, 8, 32}, /* 9.37 us, board b47f7a */
{64, 64, 16384, kp::HALF_TOGETHER, 64, 64, 8, 8, 32}, /* 9.76 us, board ac38b2 */
{64, 128, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.84 us, board b604de */
{64, 128, 8192, kp::HALF_TOGETHER, 64, 64, 8, 4, 32}, /* 9.52 us, board b47f7a */
{64, 128, 12288, kp::HALF_TOGETHER, 64, 64, 8, 4, 32}, /* 9.99 us, board 0ad0f5 */
{64, 128, 16384, kp::HALF_TOGETHER, 64, 64, 8, 4, 32}, /* 10.32 us, board ee2c02 */
{64, 256, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.86 us, board b604de */
{64, 256, 16384, kp::HALF_TOGETHER, 64, 64, 8, 2, 32}, /* 11.70 us, board ac38b2 */
{64, 512, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.02 us, board b604de */
{64, 1024, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.15 us, board b604de */
{64, 1024, 512, kp::HALF_DIRECT, 16, 16, 16, 1, 32}, /* 5.41 us, board a934cc */
{64, 1024, 8192, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 10.31 us, board b604de */
{64, 1024, 12288, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 12.11 us, board 96bb19 */
{64, 1024, 16384, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 14.59 us, board a934cc */
{64, 2048, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.51 us, board a934cc */
{64, 2048, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.68 us, board b604de */
{64, 2048, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.73 us, board a934cc */
{64, 2048, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 5.49 us, board a934cc */
{64, 2048, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 6.39 us, board b604de */
{64, 2048, 8192, kp::HALF_TOGETHER, 64, 64, 2, 1, 32, true}, /* 14.75 us, board 2aa728 */
{64, 4096, 64, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.49 us, board b604de */
{64, 4096, 512, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 5.75 us, board b604de */
{64, 4096, 1024, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 9.13 us, board ee2c02 */
{64, 4096, 4096, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 12.80 us, board a934cc */
{64, 4096, 16384, kp::HALF_TOGETHER, 64, 128, 2, 2, 32}, /* 37.30 us, board 96bb19 */
{64, 8192, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.35 us, board 4a937c */
{64, 8192, 1024, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 8.49 us, board a934cc */
{64, 8192, 2048, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 15.57 us, H100 cc560d */
{64, 8192, 4096, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 20.61 us, board b604de */
{64, 8192, 12288, kp::HALF_PAIRED, 64, 64, 1, 1, 32, true}, /* 52.26 us, board 715ef6 */
{64, 8192, 16384, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 67.78 us, board b604de */
{64, 12288, 64, kp::HALF_APART, 64, 96, 1, 1, 32}, /* 7.11 us, board 993022 */
{64, 16384, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.27 us, board b604de */
{64, 16384, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.17 us, H100 3b57a1 */
{64, 16384, 8192, kp::HALF_PAIRED, 128, 64, 1, 1, 32, true}, /* 66.81 us, board 715ef6 */
{128, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.97 us, board b604de */
{128, 64, 8192, kp::HALF_TOGETHER, 64, 64, 8, 4, 32, true}, /* 7.68 us, board 2aa728 */
{128, 64, 12288, kp::HALF_TOGETHER, 64, 64, 8, 4, 32}, /* 9.87 us, board 0ad0f5 */
{128, 64, 16384, kp::HALF_TOGETHER, 64, 64, 8, 4, 32}, /* 10.27 us, board ee2c02 */
{128, 128, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.91 us, board b604de */
{128, 128, 12288, kp::HALF_TOGETHER, 64, 64, 8, 2, 32}, /* 10.96 us, board 0ad0f5 */
{128, 128, 16384, kp::HALF_TOGETHER, 64, 64, 8, 2, 32}, /* 9.49 us, board 08b401 */
{128, 256, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.91 us, board b604de */
{128, 512, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.08 us, board b604de */
{128, 512, 512, kp::HALF_DIRECT, 16, 16, 16, 1, 32}, /* 6.77 us, board 4a937c */
{128, 1024, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.59 us, board b604de */
{128, 1024, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.70 us, board a934cc */
{128, 1024, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.79 us, board a934cc */
{128, 1024, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 5.46 us, board a934cc */
{128, 1024, 8192, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 11.86 us, board 2aa728 */
{128, 1024, 12288, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 14.54 us, board 2aa728 */
{128, 1024, 16384, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 17.60 us, board 2aa728 */
{128, 2048, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.28 us, board 3adbe6 */
{128, 2048, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.40 us, board f1905c */
{128, 2048, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 6.57 us, board a934cc */
{128, 2048, 8192, kp::HALF_TOGETHER, 128, 64, 1, 4, 32}, /* 16.60 us, board b604de */
{128, 2048, 12288, kp::HALF_PAIRED, 64, 128, 1, 4, 32}, /* 20.75 us, board b604de */
{128, 2048, 16384, kp::HALF_PAIRED, 64, 128, 1, 4, 32}, /* 25.57 us, board b604de */
{128, 4096, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.76 us, board f1905c */
{128, 4096, 1024, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 9.27 us, board ee2c02 */
{128, 4096, 2048, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 11.95 us, board 0ad0f5 */
{128, 4096, 4096, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 13.74 us, board a934cc */
{128, 4096, 8192, kp::HALF_PAIRED, 64, 64, 1, 1, 32}, /* 22.84 us, board a934cc */
{128, 4096, 12288, kp::HALF_PAIRED, 64, 64, 1, 1, 32}, /* 31.34 us, board a934cc */
{128, 4096, 16384, kp::HALF_PAIRED, 64, 64, 1, 1, 32}, /* 39.51 us, board a934cc */
{128, 8192, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 6.63 us, board 4a937c */
{128, 8192, 256, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.08 us, board 08b401 */
{128, 8192, 512, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 7.05 us, board a934cc */
{128, 8192, 1024, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 9.09 us, board a934cc */
{128, 8192, 2048, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 13.05 us, board b604de */
{128, 8192, 4096, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 21.27 us, board b604de */
{128, 8192, 8192, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 38.26 us, board 08b401 */
{128, 8192, 12288, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 53.98 us, board b604de */
{128, 8192, 16384, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 71.84 us, board 08b401 */
{128, 12288, 64, kp::HALF_TOGETHER, 128, 96, 1, 1, 32}, /* 5.53 us, board a934cc */
{128, 12288, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 5.80 us, board b604de */
{128, 12288, 256, kp::HALF_APART, 64, 96, 1, 1, 32}, /* 8.60 us, board ac38b2 */
{128, 12288, 1024, kp::HALF_APART, 64, 96, 1, 1, 32}, /* 11.34 us, board 08b401 */
{128, 16384, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.33 us, board 08b401 */
{128, 16384, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 7.30 us, board 08b401 */
{128, 16384, 512, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 9.53 us, board a934cc */
{128, 16384, 1024, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 13.36 us, board 095972 */
{128, 16384, 2048, kp::HALF_PAIRED, 64, 128, 1, 1, 32}, /* 21.11 us, board 095972 */
{128, 16384, 4096, kp::HALF_PAIRED, 64, 256, 1, 1, 32}, /* 36.77 us, board a934cc */
{128, 16384, 8192, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 70.25 us, board 08b401 */
{128, 16384, 12288, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 99.35 us, board a934cc */
{256, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.82 us, board b604de */
{256, 64, 16384, kp::HALF_TOGETHER, 64, 64, 8, 2, 32}, /* 11.70 us, board ac38b2 */
{256, 128, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.89 us, board b604de */
{256, 256, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.02 us, board b604de */
{256, 256, 512, kp::HALF_DIRECT, 16, 16, 16, 1, 32}, /* 5.20 us, board b604de */
{256, 256, 12288, kp::HALF_TOGETHER, 64, 128, 8, 1, 32}, /* 10.62 us, board 96bb19 */
{256, 512, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.34 us, board b604de */
{256, 512, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.46 us, board b604de */
{256, 512, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.82 us, board a934cc */
{256, 512, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 5.25 us, board a934cc */
{256, 512, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 2}, /* 6.37 us, board 67107d */
{256, 512, 4096, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 8.44 us, board b604de */
{256, 512, 8192, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 10.86 us, board 2aa728 */
{256, 512, 12288, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 13.40 us, board 2aa728 */
{256, 512, 16384, kp::HALF_PAIRED, 128, 64, 1, 8, 32}, /* 15.55 us, board 095972 */
{256, 1024, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.65 us, board a934cc */
{256, 1024, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.77 us, board a934cc */
{256, 1024, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 2}, /* 4.84 us, board 67107d */
{256, 1024, 2048, kp::HALF_TOGETHER, 64, 64, 2, 1, 8, true}, /* 7.92 us, board 67107d */
{256, 1024, 4096, kp::HALF_TOGETHER, 128, 64, 1, 4, 32}, /* 12.44 us, board 0ad0f5 */
{256, 1024, 8192, kp::HALF_PAIRED, 128, 64, 1, 4, 32}, /* 14.91 us, board a934cc */
{256, 1024, 12288, kp::HALF_PAIRED, 128, 128, 1, 8, 32}, /* 20.30 us, board ee2c02 */
{256, 1024, 16384, kp::HALF_PAIRED, 128, 128, 1, 8, 32}, /* 21.86 us, board b604de */
{256, 2048, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.92 us, board a934cc */
{256, 2048, 1024, kp::HALF_APART, 64, 64, 1, 1, 2}, /* 6.80 us, board 67107d */
{256, 2048, 2048, kp::HALF_APART, 64, 64, 1, 1, 2}, /* 8.34 us, board 67107d */
{256, 2048, 4096, kp::HALF_TOGETHER, 128, 64, 2, 1, 1}, /* 13.02 us, board 67107d */
{256, 2048, 8192, kp::HALF_TOGETHER, 64, 128, 1, 2, 32}, /* 18.39 us, board 96bb19 */
{256, 2048, 12288, kp::HALF_TOGETHER, 64, 128, 1, 2, 32}, /* 24.05 us, board 96bb19 */
{256, 2048, 16384, kp::HALF_TOGETHER, 64, 128, 1, 2, 32}, /* 29.27 us, board 96bb19 */
{256, 4096, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 6.78 us, board 9ea0d4 */
{256, 4096, 256, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.74 us, board a934cc */
{256, 4096, 512, kp::HALF_PAIRED, 64, 128, 1, 1, 1}, /* 6.53 us, board 67107d */
{256, 4096, 1024, kp::HALF_APART, 128, 64, 1, 1, 32}, /* 8.06 us, board 08b401 */
{256, 4096, 2048, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 13.79 us, board ac38b2 */
{256, 4096, 4096, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 16.22 us, board 08b401 */
{256, 4096, 8192, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 26.79 us, board 96bb19 */
{256, 4096, 12288, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 37.92 us, board 96bb19 */
{256, 4096, 16384, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 48.91 us, board 96bb19 */
{256, 8192, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.08 us, board 08b401 */
{256, 8192, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 6.90 us, board 96bb19 */
{256, 8192, 512, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.25 us, board 08b401 */
{256, 8192, 1024, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 10.94 us, board 08b401 */
{256, 12288, 64, kp::HALF_APART, 64, 96, 1, 1, 32}, /* 6.21 us, board a934cc */
{256, 12288, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.88 us, board b47f7a */
{256, 12288, 512, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.77 us, board 08b401 */
{256, 12288, 1024, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 14.13 us, board 96bb19 */
{256, 16384, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.19 us, board 0022cd */
{256, 16384, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.64 us, board 08b401 */
{256, 16384, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 11.20 us, board a934cc */
{256, 16384, 1024, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 16.82 us, board a934cc */
{256, 16384, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 8}, /* 29.48 us, board b47f7a */
{512, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 3.98 us, board b604de */
{512, 128, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.06 us, board b604de */
{512, 128, 512, kp::HALF_DIRECT, 16, 16, 16, 1, 32}, /* 6.78 us, board 3adbe6 */
{512, 128, 4096, kp::HALF_TOGETHER, 64, 64, 4, 1, 4}, /* 7.33 us, board 67107d */
{512, 128, 8192, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 9.10 us, board a934cc */
{512, 128, 12288, kp::HALF_TOGETHER, 64, 128, 8, 1, 32}, /* 10.71 us, board b604de */
{512, 128, 16384, kp::HALF_TOGETHER, 64, 128, 8, 1, 32}, /* 16.03 us, board ee2c02 */
{512, 256, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.42 us, board b604de */
{512, 256, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 1}, /* 4.91 us, board 67107d */
{512, 256, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 1}, /* 5.61 us, board 67107d */
{512, 256, 2048, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 7.05 us, board b604de */
{512, 256, 8192, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 12.01 us, board 08b401 */
{512, 256, 12288, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 14.44 us, board 08b401 */
{512, 256, 16384, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 16.95 us, board 08b401 */
{512, 512, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.34 us, board b604de */
{512, 512, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.70 us, board a934cc */
{512, 512, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 1}, /* 5.54 us, board 67107d */
{512, 512, 1024, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.46 us, board 96bb19 */
{512, 512, 2048, kp::HALF_TOGETHER, 64, 64, 2, 1, 4}, /* 8.04 us, board 67107d */
{512, 512, 4096, kp::HALF_TOGETHER, 64, 128, 1, 4, 32}, /* 11.13 us, board 96bb19 */
{512, 512, 8192, kp::HALF_PAIRED, 64, 128, 1, 4, 2}, /* 14.40 us, board 67107d */
{512, 512, 12288, kp::HALF_PAIRED, 128, 128, 1, 8, 32}, /* 20.46 us, board ee2c02 */
{512, 512, 16384, kp::HALF_PAIRED, 128, 128, 1, 8, 32}, /* 21.59 us, board b604de */
{512, 1024, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.73 us, H100 760766 */
{512, 1024, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.67 us, board b604de */
{512, 1024, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 1}, /* 5.69 us, board 67107d */
{512, 1024, 1024, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 8.90 us, board ee2c02 */
{512, 1024, 2048, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 11.61 us, board 0ad0f5 */
{512, 1024, 4096, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 12.48 us, board 96bb19 */
{512, 1024, 8192, kp::HALF_PAIRED, 64, 256, 1, 4, 32}, /* 19.72 us, board a934cc */
{512, 1024, 16384, kp::HALF_PAIRED, 64, 256, 1, 4, 32}, /* 31.05 us, board a934cc */
{512, 2048, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.25 us, H100 3b57a1 */
{512, 2048, 256, kp::HALF_APART, 128, 64, 1, 1, 32}, /* 5.66 us, board b604de */
{512, 2048, 512, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 6.50 us, board 96bb19 */
{512, 2048, 1024, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 7.90 us, board a934cc */
{512, 2048, 2048, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 10.48 us, board b604de */
{512, 2048, 4096, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 15.90 us, board 08b401 */
{512, 2048, 8192, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 26.54 us, board 96bb19 */
{512, 2048, 12288, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 37.36 us, board 96bb19 */
{512, 2048, 16384, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 48.33 us, board 96bb19 */
{512, 4096, 256, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.92 us, board 96bb19 */
{512, 4096, 512, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 7.95 us, board 08b401 */
{512, 4096, 1024, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 10.71 us, board 08b401 */
{512, 4096, 16384, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 96.19 us, board ac38b2 */
{512, 8192, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.00 us, board ddf807 */
{512, 8192, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.38 us, board 08b401 */
{512, 8192, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 13.38 us, board ee2c02 */
{512, 8192, 1024, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 16.37 us, board a934cc */
{512, 8192, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 26.91 us, board 08b401 */
{512, 12288, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.44 us, board 08b401 */
{512, 12288, 256, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 10.12 us, board a934cc */
{512, 12288, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 13.93 us, board 08b401 */
{512, 12288, 1024, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 21.77 us, board b604de */
{512, 12288, 8192, kp::HALF_TOGETHER, 128, 192, 1, 1, 8}, /* 138.48 us, board 08b401 */
{512, 12288, 16384, kp::HALF_PAIRED, 128, 192, 1, 1, 32}, /* 264.29 us, board 96bb19 */
{512, 16384, 64, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.61 us, board 08b401 */
{512, 16384, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 9.59 us, board b604de */
{512, 16384, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 20.02 us, board b47f7a */
{1024, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.08 us, board b604de */
{1024, 64, 512, kp::HALF_DIRECT, 16, 16, 16, 1, 32}, /* 6.81 us, board ddf807 */
{1024, 64, 8192, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 10.04 us, board b604de */
{1024, 64, 16384, kp::HALF_TOGETHER, 64, 64, 4, 1, 32}, /* 14.52 us, board a934cc */
{1024, 128, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.30 us, board b604de */
{1024, 128, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.68 us, board a934cc */
{1024, 128, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 5.33 us, board a934cc */
{1024, 128, 8192, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 11.35 us, board a934cc */
{1024, 128, 12288, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 14.15 us, board a934cc */
{1024, 128, 16384, kp::HALF_TOGETHER, 64, 128, 4, 1, 32}, /* 16.88 us, board b604de */
{1024, 256, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.57 us, board a934cc */
{1024, 256, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 6.50 us, board b604de */
{1024, 256, 2048, kp::HALF_TOGETHER, 64, 64, 2, 1, 8}, /* 7.82 us, board 67107d */
{1024, 256, 4096, kp::HALF_TOGETHER, 128, 64, 1, 4, 32, true}, /* 10.79 us, board 2aa728 */
{1024, 256, 8192, kp::HALF_TOGETHER, 128, 64, 1, 4, 32, true}, /* 14.54 us, board 2aa728 */
{1024, 256, 12288, kp::HALF_PAIRED, 64, 256, 1, 8, 32}, /* 20.80 us, board b47f7a */
{1024, 256, 16384, kp::HALF_PAIRED, 128, 128, 1, 8, 32, true}, /* 21.37 us, board 2aa728 */
{1024, 512, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.50 us, board b604de */
{1024, 512, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.76 us, board b604de */
{1024, 512, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 1}, /* 5.13 us, board 67107d */
{1024, 512, 1024, kp::HALF_APART, 64, 64, 1, 1, 32, true}, /* 6.61 us, board 2aa728 */
{1024, 512, 2048, kp::HALF_APART, 64, 64, 1, 1, 4, true}, /* 8.51 us, board 67107d */
{1024, 512, 4096, kp::HALF_TOGETHER, 64, 64, 1, 1, 4, true}, /* 12.58 us, board 67107d */
{1024, 512, 8192, kp::HALF_TOGETHER, 64, 256, 1, 4, 32}, /* 19.97 us, board b604de */
{1024, 512, 16384, kp::HALF_TOGETHER, 64, 256, 1, 4, 32}, /* 30.47 us, board 08b401 */
{1024, 1024, 256, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 5.75 us, board 96bb19 */
{1024, 1024, 512, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 6.77 us, board 96bb19 */
{1024, 1024, 1024, kp::HALF_APART, 128, 64, 1, 1, 32}, /* 7.91 us, board a934cc */
{1024, 1024, 2048, kp::HALF_APART, 128, 64, 1, 1, 32}, /* 10.88 us, board 96bb19 */
{1024, 1024, 4096, kp::HALF_TOGETHER, 128, 64, 1, 1, 2}, /* 16.04 us, board 67107d */
{1024, 1024, 8192, kp::HALF_TOGETHER, 64, 256, 2, 1, 32}, /* 29.68 us, board b604de */
{1024, 1024, 12288, kp::HALF_PAIRED, 128, 128, 1, 2, 32}, /* 39.41 us, board 095972 */
{1024, 1024, 16384, kp::HALF_PAIRED, 128, 128, 1, 2, 32}, /* 49.85 us, board 095972 */
{1024, 2048, 256, kp::HALF_APART, 64, 128, 1, 1, 8}, /* 6.79 us, board 67107d */
{1024, 2048, 512, kp::HALF_TOGETHER, 64, 256, 1, 1, 1}, /* 8.02 us, board 67107d */
{1024, 2048, 1024, kp::HALF_APART, 128, 64, 1, 1, 32}, /* 10.69 us, board 96bb19 */
{1024, 4096, 64, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 6.78 us, board a934cc */
{1024, 4096, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.03 us, board ee2c02 */
{1024, 4096, 256, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 8.48 us, board 08b401 */
{1024, 4096, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 13.15 us, board ee2c02 */
{1024, 4096, 1024, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 16.10 us, board a934cc */
{1024, 4096, 2048, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 26.76 us, board 08b401 */
{1024, 8192, 64, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.66 us, board 08b401 */
{1024, 8192, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 9.62 us, board b604de */
{1024, 8192, 512, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 19.70 us, board ee2c02 */
{1024, 8192, 1024, kp::HALF_APART, 128, 128, 1, 1, 16}, /* 26.77 us, board 96bb19 */
{1024, 12288, 64, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 10.66 us, board 08b401 */
{1024, 12288, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 11.63 us, board a934cc */
{1024, 12288, 256, kp::HALF_TOGETHER, 128, 192, 1, 1, 32}, /* 14.34 us, board 08b401 */
{1024, 12288, 1024, kp::HALF_TOGETHER, 128, 256, 1, 1, 16}, /* 38.14 us, board a934cc */
{1024, 16384, 64, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 12.77 us, board b604de */
{1024, 16384, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 13.89 us, board 08b401 */
{1024, 16384, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 17.75 us, board b604de */
{1024, 16384, 512, kp::HALF_TOGETHER, 128, 256, 1, 1, 16}, /* 27.61 us, board 08b401 */
{1024, 16384, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 692.27 us, board b63f68 */
{2048, 64, 64, kp::HALF_DIRECT, 16, 16, 2, 1, 32}, /* 4.16 us, board b604de */
{2048, 64, 256, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 4.88 us, board a934cc */
{2048, 64, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 32}, /* 5.47 us, board a934cc */
{2048, 64, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 6.64 us, board b604de */
{2048, 64, 4096, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 9.78 us, board b604de */
{2048, 64, 8192, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 13.98 us, board a934cc */
{2048, 64, 12288, kp::HALF_TOGETHER, 64, 128, 4, 1, 32, true}, /* 18.05 us, board 2aa728 */
{2048, 128, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.55 us, board a934cc */
{2048, 128, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.40 us, board ddf807 */
{2048, 128, 512, kp::HALF_TOGETHER, 64, 64, 1, 1, 8}, /* 5.83 us, board 67107d */
{2048, 128, 1024, kp::HALF_TOGETHER, 64, 64, 2, 1, 32}, /* 6.46 us, board a934cc */
{2048, 128, 2048, kp::HALF_TOGETHER, 64, 64, 2, 1, 8}, /* 7.92 us, board 67107d */
{2048, 128, 4096, kp::HALF_TOGETHER, 64, 64, 2, 1, 8}, /* 11.27 us, board 67107d */
{2048, 128, 8192, kp::HALF_TOGETHER, 64, 128, 1, 4, 32}, /* 16.70 us, board b604de */
{2048, 128, 12288, kp::HALF_PAIRED, 64, 128, 1, 4, 32, true}, /* 20.22 us, board 2aa728 */
{2048, 128, 16384, kp::HALF_PAIRED, 64, 128, 1, 4, 32, true}, /* 24.95 us, board 2aa728 */
{2048, 256, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 4.62 us, board a934cc */
{2048, 256, 256, kp::HALF_APART, 64, 64, 1, 1, 1}, /* 4.98 us, board 67107d */
{2048, 256, 1024, kp::HALF_APART, 64, 64, 1, 1, 2, true}, /* 6.60 us, board 67107d */
{2048, 256, 2048, kp::HALF_APART, 64, 64, 1, 1, 32, true}, /* 8.47 us, board 2aa728 */
{2048, 256, 4096, kp::HALF_TOGETHER, 64, 128, 2, 1, 8}, /* 11.84 us, board 67107d */
{2048, 256, 8192, kp::HALF_TOGETHER, 64, 128, 1, 2, 32, true}, /* 18.71 us, board 2aa728 */
{2048, 256, 12288, kp::HALF_TOGETHER, 64, 128, 1, 2, 32, true}, /* 24.10 us, board 2aa728 */
{2048, 256, 16384, kp::HALF_TOGETHER, 64, 128, 1, 2, 32, true}, /* 29.51 us, board 2aa728 */
{2048, 512, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.10 us, H100 06b9ad */
{2048, 512, 128, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.20 us, board a934cc */
{2048, 512, 256, kp::HALF_PAIRED, 64, 128, 1, 1, 1}, /* 5.67 us, board 67107d */
{2048, 512, 512, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 8.54 us, board ee2c02 */
{2048, 512, 1024, kp::HALF_TOGETHER, 64, 128, 1, 1, 4}, /* 7.99 us, board 67107d */
{2048, 512, 2048, kp::HALF_TOGETHER, 64, 128, 1, 1, 32, true}, /* 10.77 us, board 2aa728 */
{2048, 512, 4096, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 16.08 us, board 2aa728 */
{2048, 512, 8192, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 26.69 us, board 2aa728 */
{2048, 512, 12288, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 37.77 us, board 2aa728 */
{2048, 512, 16384, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 48.87 us, board 2aa728 */
{2048, 1024, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.07 us, board 08b401 */
{2048, 1024, 256, kp::HALF_APART, 64, 128, 1, 1, 8}, /* 6.77 us, board 67107d */
{2048, 1024, 512, kp::HALF_TOGETHER, 64, 256, 1, 1, 32}, /* 10.00 us, board 0ad0f5 */
{2048, 1024, 1024, kp::HALF_PAIRED, 64, 256, 1, 1, 32}, /* 10.99 us, board 095972 */
{2048, 1024, 2048, kp::HALF_PAIRED, 64, 256, 1, 1, 32}, /* 16.22 us, board a934cc */
{2048, 2048, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 9.20 us, board ee2c02 */
{2048, 2048, 256, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 10.16 us, board ac38b2 */
{2048, 2048, 512, kp::HALF_APART, 128, 128, 1, 1, 8}, /* 10.85 us, board 67107d */
{2048, 2048, 1024, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 16.33 us, board 095972 */
{2048, 2048, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 8}, /* 26.74 us, board 08b401 */
{2048, 4096, 64, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 10.60 us, board ac38b2 */
{2048, 4096, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 9.59 us, board b604de */
{2048, 4096, 256, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 11.42 us, board a934cc */
{2048, 4096, 512, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 16.60 us, board 08b401 */
{2048, 4096, 1024, kp::HALF_APART, 128, 128, 1, 1, 8}, /* 26.79 us, board 96bb19 */
{2048, 8192, 64, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 12.77 us, board b604de */
{2048, 8192, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 14.06 us, board 08b401 */
{2048, 8192, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 17.77 us, board b604de */
{2048, 8192, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 27.62 us, board a934cc */
{2048, 8192, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 178.91 us, board 993022 */
{2048, 8192, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 347.76 us, board 3adbe6 */
{2048, 12288, 64, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 16.95 us, board 095972 */
{2048, 12288, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 18.59 us, board 08b401 */
{2048, 12288, 256, kp::HALF_PAIRED, 128, 192, 1, 1, 32}, /* 23.40 us, board a934cc */
{2048, 12288, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 38.67 us, board a934cc */
{2048, 12288, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 526.42 us, board 9ea0d4 */
{2048, 16384, 64, kp::HALF_APART, 128, 128, 1, 1, 4}, /* 21.70 us, board 715ef6 */
{2048, 16384, 128, kp::HALF_TOGETHER, 128, 256, 1, 1, 32}, /* 23.91 us, board b604de */
{2048, 16384, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 30.37 us, board b604de */
{2048, 16384, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 351.08 us, board b63f68 */
{2048, 16384, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 699.43 us, board 3adbe6 */
{4096, 64, 512, kp::HALF_APART, 64, 64, 1, 1, 32, true}, /* 5.73 us, board 2aa728 */
{4096, 64, 2048, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 9.03 us, board 08b401 */
{4096, 128, 64, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.17 us, board 3adbe6 */
{4096, 128, 512, kp::HALF_PAIRED, 64, 64, 1, 1, 8}, /* 6.29 us, board 67107d */
{4096, 128, 1024, kp::HALF_APART, 64, 64, 1, 1, 32, true}, /* 7.08 us, board 2aa728 */
{4096, 128, 2048, kp::HALF_APART, 64, 64, 1, 1, 32, true}, /* 9.05 us, board 2aa728 */
{4096, 128, 4096, kp::HALF_TOGETHER, 64, 128, 2, 1, 32}, /* 14.13 us, board b604de */
{4096, 128, 8192, kp::HALF_PAIRED, 64, 64, 1, 1, 32, true}, /* 22.72 us, board 2aa728 */
{4096, 128, 12288, kp::HALF_TOGETHER, 64, 128, 2, 1, 32}, /* 31.21 us, board b604de */
{4096, 128, 16384, kp::HALF_PAIRED, 64, 128, 1, 2, 32, true}, /* 40.20 us, board 2aa728 */
{4096, 256, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32, true}, /* 5.21 us, board 2aa728 */
{4096, 256, 128, kp::HALF_TOGETHER, 64, 128, 1, 1, 32}, /* 5.23 us, board 08b401 */
{4096, 256, 256, kp::HALF_TOGETHER, 64, 128, 1, 1, 1}, /* 6.05 us, board 67107d */
{4096, 256, 512, kp::HALF_TOGETHER, 64, 128, 1, 1, 8}, /* 6.94 us, board 67107d */
{4096, 256, 1024, kp::HALF_TOGETHER, 64, 128, 1, 1, 4}, /* 7.96 us, board 67107d */
{4096, 256, 2048, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 11.05 us, board 2aa728 */
{4096, 256, 4096, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 16.28 us, board 2aa728 */
{4096, 256, 8192, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 27.19 us, board 2aa728 */
{4096, 256, 12288, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 38.44 us, board 2aa728 */
{4096, 256, 16384, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 49.29 us, board 2aa728 */
{4096, 512, 64, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 5.83 us, board 2aa728 */
{4096, 512, 128, kp::HALF_APART, 64, 64, 1, 1, 32}, /* 6.01 us, board 08b401 */
{4096, 512, 256, kp::HALF_APART, 64, 128, 1, 1, 8}, /* 6.74 us, board 67107d */
{4096, 512, 512, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 8.25 us, board 2aa728 */
{4096, 512, 1024, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 10.78 us, board 2aa728 */
{4096, 512, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 1}, /* 16.07 us, board 67107d */
{4096, 1024, 128, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 8.96 us, board ac38b2 */
{4096, 1024, 256, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 10.26 us, board ee2c02 */
{4096, 1024, 512, kp::HALF_APART, 64, 256, 1, 1, 8}, /* 10.93 us, board 67107d */
{4096, 1024, 1024, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 16.42 us, board 095972 */
{4096, 1024, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 8}, /* 26.96 us, board 08b401 */
{4096, 2048, 64, kp::HALF_APART, 64, 128, 1, 1, 32}, /* 10.33 us, board ddf807 */
{4096, 2048, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 32}, /* 9.64 us, board a934cc */
{4096, 2048, 256, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 14.29 us, board 0ad0f5 */
{4096, 2048, 512, kp::HALF_APART, 64, 256, 1, 1, 32}, /* 16.42 us, board 08b401 */
{4096, 2048, 1024, kp::HALF_APART, 128, 128, 1, 1, 8}, /* 26.93 us, board 96bb19 */
{4096, 2048, 4096, kp::HALF_TOGETHER, 128, 256, 1, 1, 8}, /* 91.23 us, board 08b401 */
{4096, 4096, 64, kp::HALF_APART, 128, 128, 1, 1, 32}, /* 13.01 us, board b604de */
{4096, 4096, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 32}, /* 14.25 us, board 08b401 */
{4096, 4096, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 17.69 us, board b604de */
{4096, 4096, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 27.62 us, board a934cc */
{4096, 4096, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 181.12 us, board 4a937c */
{4096, 4096, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 350.74 us, board 9ea0d4 */
{4096, 4096, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 533.73 us, board 0022cd */
{4096, 4096, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 685.21 us, board f1905c */
{4096, 8192, 64, kp::HALF_APART, 128, 128, 1, 1, 4}, /* 21.62 us, board 715ef6 */
{4096, 8192, 128, kp::HALF_PAIRED, 128, 256, 1, 1, 1}, /* 23.61 us, board 715ef6 */
{4096, 8192, 256, kp::HALF_TOGETHER, 128, 256, 1, 1, 8}, /* 29.43 us, board 08b401 */
{4096, 8192, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 353.08 us, board ddf807 */
{4096, 8192, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 707.93 us, board 9ea0d4 */
{4096, 8192, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1061.66 us, board ddf807 */
{4096, 12288, 64, kp::HALF_APART, 128, 128, 1, 1, 1}, /* 30.34 us, board 715ef6 */
{4096, 12288, 128, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 34.54 us, board a934cc */
{4096, 12288, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 42.43 us, board b604de */
{4096, 12288, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 266.73 us, board 993022 */
{4096, 12288, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 531.36 us, board ddf807 */
{4096, 12288, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1091.28 us, board 0022cd */
{4096, 16384, 64, kp::HALF_APART, 128, 128, 1, 1, 4}, /* 39.95 us, board 715ef6 */
{4096, 16384, 128, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 45.39 us, board b604de */
{4096, 16384, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 55.28 us, board 08b401 */
{4096, 16384, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 97.37 us, board 08b401 */
{4096, 16384, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 354.55 us, board b63f68 */
{4096, 16384, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 696.29 us, board f1905c */
{8192, 64, 64, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 6.51 us, board f1905c */
{8192, 64, 1024, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 8.60 us, board 08b401 */
{8192, 64, 2048, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 12.66 us, board 08b401 */
{8192, 64, 8192, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 36.86 us, board 08b401 */
{8192, 64, 12288, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 51.74 us, board 08b401 */
{8192, 64, 16384, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 66.70 us, board a934cc */
{8192, 128, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 32, true}, /* 5.17 us, board 2aa728 */
{8192, 128, 256, kp::HALF_TOGETHER, 64, 128, 1, 1, 16}, /* 6.05 us, board 08b401 */
{8192, 128, 512, kp::HALF_TOGETHER, 64, 128, 1, 1, 16}, /* 8.92 us, board ac38b2 */
{8192, 128, 1024, kp::HALF_TOGETHER, 64, 128, 1, 1, 16}, /* 10.96 us, board ee2c02 */
{8192, 128, 2048, kp::HALF_PAIRED, 64, 128, 1, 1, 32, true}, /* 13.05 us, board 2aa728 */
{8192, 128, 4096, kp::HALF_PAIRED, 64, 128, 1, 1, 32, true}, /* 21.38 us, board 2aa728 */
{8192, 128, 8192, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 38.32 us, board 2aa728 */
{8192, 128, 12288, kp::HALF_PAIRED, 64, 128, 1, 1, 32, true}, /* 53.25 us, board 2aa728 */
{8192, 128, 16384, kp::HALF_PAIRED, 64, 128, 1, 1, 32, true}, /* 71.09 us, board 2aa728 */
{8192, 256, 128, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 6.11 us, board 08b401 */
{8192, 256, 256, kp::HALF_APART, 64, 128, 1, 1, 8}, /* 6.75 us, board 67107d */
{8192, 256, 512, kp::HALF_APART, 64, 128, 1, 1, 1}, /* 8.28 us, board 67107d */
{8192, 256, 1024, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 11.00 us, board 2aa728 */
{8192, 256, 2048, kp::HALF_TOGETHER, 128, 128, 1, 1, 1}, /* 16.11 us, board 67107d */
{8192, 256, 4096, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 29.45 us, board b604de */
{8192, 256, 8192, kp::HALF_APART, 128, 128, 1, 1, 32, true}, /* 48.61 us, board 2aa728 */
{8192, 256, 12288, kp::HALF_PAIRED, 64, 256, 1, 1, 32, true}, /* 79.33 us, board 2aa728 */
{8192, 256, 16384, kp::HALF_PAIRED, 128, 256, 1, 2, 16}, /* 102.67 us, board 08b401 */
{8192, 512, 128, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 9.16 us, board ddf807 */
{8192, 512, 256, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 8.40 us, board b604de */
{8192, 512, 512, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 11.18 us, board 08b401 */
{8192, 512, 1024, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 16.35 us, board 095972 */
{8192, 512, 2048, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 26.99 us, board 095972 */
{8192, 1024, 64, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 8.47 us, board 08b401 */
{8192, 1024, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 9.96 us, board a934cc */
{8192, 1024, 512, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 16.34 us, board 08b401 */
{8192, 1024, 1024, kp::HALF_APART, 128, 128, 1, 1, 8}, /* 26.73 us, board 96bb19 */
{8192, 2048, 64, kp::HALF_APART, 128, 128, 1, 1, 16}, /* 12.54 us, board b604de */
{8192, 2048, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 16}, /* 13.91 us, board 08b401 */
{8192, 2048, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 27.80 us, board b604de */
{8192, 2048, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 179.01 us, board 993022 */
{8192, 2048, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 350.61 us, board ddf807 */
{8192, 2048, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 525.99 us, board 9ea0d4 */
{8192, 2048, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 689.49 us, board 993022 */
{8192, 4096, 64, kp::HALF_APART, 128, 128, 1, 1, 1}, /* 21.34 us, board 715ef6 */
{8192, 4096, 128, kp::HALF_TOGETHER, 128, 256, 1, 1, 1}, /* 23.28 us, board 715ef6 */
{8192, 4096, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 32.34 us, board 0ad0f5 */
{8192, 4096, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 49.28 us, board a934cc */
{8192, 4096, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 350.33 us, board 993022 */
{8192, 4096, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 710.25 us, board 9ea0d4 */
{8192, 4096, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1068.05 us, board 4a937c */
{8192, 8192, 64, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 38.81 us, board 08b401 */
{8192, 8192, 128, kp::HALF_TOGETHER, 128, 192, 1, 1, 1}, /* 41.43 us, board 715ef6 */
{8192, 8192, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 2}, /* 53.11 us, board 715ef6 */
{8192, 8192, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 2}, /* 96.13 us, board 715ef6 */
{8192, 8192, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 356.76 us, board 4a937c */
{8192, 8192, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 712.30 us, board 3adbe6 */
{8192, 12288, 64, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 60.56 us, board 0ad0f5 */
{8192, 12288, 128, kp::HALF_TOGETHER, 128, 192, 1, 1, 4}, /* 64.80 us, board 715ef6 */
{8192, 12288, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 542.93 us, board 0022cd */
{8192, 12288, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1056.04 us, board b63f68 */
{8192, 16384, 64, kp::HALF_APART, 64, 256, 1, 1, 1}, /* 76.42 us, board 715ef6 */
{8192, 16384, 128, kp::HALF_PAIRED, 128, 256, 1, 1, 1}, /* 87.55 us, board 715ef6 */
{8192, 16384, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 111.07 us, board 08b401 */
{8192, 16384, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 191.69 us, board b63f68 */
{8192, 16384, 1024, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 360.00 us, board b63f68 */
{8192, 16384, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 720.66 us, recorded */
{8192, 16384, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1440.99 us, board ddf807 */
{12288, 64, 64, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 5.53 us, board 2aa728 */
{12288, 64, 256, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 6.20 us, board 2aa728 */
{12288, 64, 512, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 7.77 us, board 2aa728 */
{12288, 64, 1024, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 10.80 us, board 2aa728 */
{12288, 64, 2048, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 16.25 us, board 2aa728 */
{12288, 64, 8192, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 50.75 us, board 2aa728 */
{12288, 64, 12288, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 73.92 us, board 2aa728 */
{12288, 64, 16384, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 96.84 us, board 2aa728 */
{12288, 128, 64, kp::HALF_PAIRED, 64, 64, 1, 1, 16}, /* 5.77 us, board a934cc */
{12288, 128, 256, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 6.92 us, board 2aa728 */
{12288, 128, 512, kp::HALF_TOGETHER, 128, 96, 1, 1, 32, true}, /* 8.47 us, board 2aa728 */
{12288, 128, 1024, kp::HALF_APART, 64, 96, 1, 1, 32, true}, /* 11.18 us, board 2aa728 */
{12288, 128, 8192, kp::HALF_TOGETHER, 128, 96, 1, 1, 32, true}, /* 56.68 us, board 2aa728 */
{12288, 128, 12288, kp::HALF_TOGETHER, 128, 96, 1, 1, 32, true}, /* 81.68 us, board 2aa728 */
{12288, 256, 128, kp::HALF_PAIRED, 128, 64, 1, 1, 16}, /* 7.31 us, board a934cc */
{12288, 256, 256, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 10.00 us, board ac38b2 */
{12288, 256, 512, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 10.04 us, board 2aa728 */
{12288, 256, 1024, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 14.11 us, board 2aa728 */
{12288, 256, 2048, kp::HALF_PAIRED, 192, 128, 1, 1, 16}, /* 22.71 us, board b604de */
{12288, 512, 64, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 7.45 us, board 08b401 */
{12288, 512, 128, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 8.41 us, board 08b401 */
{12288, 512, 256, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 12.58 us, board 9ea0d4 */
{12288, 512, 512, kp::HALF_APART, 128, 128, 1, 1, 16}, /* 14.04 us, board a934cc */
{12288, 512, 4096, kp::HALF_PAIRED, 192, 128, 1, 1, 16}, /* 72.28 us, board 08b401 */
{12288, 1024, 64, kp::HALF_APART, 128, 128, 1, 1, 16}, /* 10.77 us, board b604de */
{12288, 1024, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 12.00 us, board 08b401 */
{12288, 1024, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 14.62 us, board a934cc */
{12288, 1024, 512, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 22.30 us, board 08b401 */
{12288, 1024, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 262.16 us, board f1905c */
{12288, 1024, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 393.06 us, board 3adbe6 */
{12288, 1024, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 536.93 us, board 0022cd */
{12288, 2048, 128, kp::HALF_TOGETHER, 128, 192, 1, 1, 16}, /* 18.34 us, board 08b401 */
{12288, 2048, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 38.79 us, board b604de */
{12288, 2048, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 520.49 us, board b63f68 */
{12288, 2048, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 783.78 us, board 993022 */
{12288, 2048, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1074.38 us, board 4a937c */
{12288, 4096, 64, kp::HALF_APART, 128, 128, 1, 1, 1}, /* 30.32 us, board 715ef6 */
{12288, 4096, 128, kp::HALF_TOGETHER, 128, 256, 1, 1, 1}, /* 33.22 us, board 715ef6 */
{12288, 4096, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 44.39 us, board b47f7a */
{12288, 4096, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 72.02 us, board 08b401 */
{12288, 4096, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 532.66 us, board 3adbe6 */
{12288, 4096, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1081.24 us, board 9ea0d4 */
{12288, 8192, 64, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 57.32 us, board 08b401 */
{12288, 8192, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 1}, /* 62.11 us, board 715ef6 */
{12288, 8192, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 2}, /* 79.20 us, board 715ef6 */
{12288, 8192, 512, kp::HALF_TOGETHER, 128, 256, 1, 1, 32}, /* 143.10 us, board 08b401 */
{12288, 8192, 1024, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 271.45 us, board 3adbe6 */
{12288, 8192, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 534.86 us, board 9ea0d4 */
{12288, 8192, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1082.85 us, board 4a937c */
{12288, 12288, 64, kp::HALF_APART, 64, 256, 1, 1, 8}, /* 86.35 us, board 08b401 */
{12288, 12288, 128, kp::HALF_TOGETHER, 128, 192, 1, 1, 1}, /* 96.01 us, board 715ef6 */
{12288, 12288, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 783.04 us, board 4a937c */
{12288, 12288, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1603.88 us, board ddf807 */
{12288, 16384, 64, kp::HALF_APART, 64, 256, 1, 1, 1}, /* 112.49 us, board 715ef6 */
{12288, 16384, 128, kp::HALF_PAIRED, 128, 256, 1, 1, 1}, /* 129.05 us, board 715ef6 */
{12288, 16384, 1024, kp::HALF_PAIRED, 128, 256, 1, 1, 32}, /* 541.76 us, board 0022cd */
{12288, 16384, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 2207.66 us, board 3adbe6 */
{16384, 64, 64, kp::HALF_TOGETHER, 64, 64, 1, 1, 16}, /* 7.13 us, board ddf807 */
{16384, 64, 128, kp::HALF_TOGETHER, 64, 64, 1, 1, 16}, /* 5.82 us, board b604de */
{16384, 64, 512, kp::HALF_APART, 128, 64, 1, 1, 16}, /* 8.48 us, board 96bb19 */
{16384, 64, 1024, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 12.71 us, board 08b401 */
{16384, 64, 2048, kp::HALF_APART, 128, 64, 1, 1, 16}, /* 20.57 us, board 08b401 */
{16384, 64, 4096, kp::HALF_PAIRED, 128, 64, 1, 1, 16}, /* 36.10 us, board b604de */
{16384, 64, 16384, kp::HALF_APART, 128, 64, 1, 1, 16}, /* 123.82 us, board a934cc */
{16384, 128, 128, kp::HALF_APART, 64, 64, 1, 1, 16}, /* 8.16 us, board ddf807 */
{16384, 128, 256, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 7.27 us, board 08b401 */
{16384, 128, 512, kp::HALF_TOGETHER, 64, 128, 1, 1, 16}, /* 9.50 us, board a934cc */
{16384, 128, 1024, kp::HALF_PAIRED, 64, 128, 1, 1, 32, true}, /* 13.41 us, board 2aa728 */
{16384, 128, 2048, kp::HALF_APART, 64, 128, 1, 1, 32, true}, /* 21.10 us, board 2aa728 */
{16384, 128, 4096, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 38.06 us, board b604de */
{16384, 128, 8192, kp::HALF_APART, 64, 256, 1, 1, 32, true}, /* 70.62 us, board 2aa728 */
{16384, 256, 64, kp::HALF_TOGETHER, 64, 128, 1, 1, 16}, /* 6.83 us, board b604de */
{16384, 256, 128, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 9.27 us, board 4a937c */
{16384, 256, 256, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 10.54 us, board 0ad0f5 */
{16384, 256, 512, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 13.85 us, board b47f7a */
{16384, 256, 1024, kp::HALF_APART, 128, 128, 1, 1, 32, true}, /* 17.00 us, board 2aa728 */
{16384, 512, 64, kp::HALF_APART, 64, 128, 1, 1, 16}, /* 10.28 us, board 4a937c */
{16384, 512, 256, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 11.72 us, board a934cc */
{16384, 512, 512, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 16.72 us, board 08b401 */
{16384, 512, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 357.50 us, board 3adbe6 */
{16384, 1024, 64, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 12.84 us, board 08b401 */
{16384, 1024, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 16}, /* 14.16 us, board 08b401 */
{16384, 1024, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 27.96 us, board b604de */
{16384, 1024, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 181.28 us, board 3adbe6 */
{16384, 1024, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 352.94 us, board 4a937c */
{16384, 1024, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 529.51 us, board 4a937c */
{16384, 1024, 16384, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 693.89 us, board b63f68 */
{16384, 2048, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 16}, /* 22.86 us, board a934cc */
{16384, 2048, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 29.04 us, board b604de */
{16384, 2048, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 180.38 us, board 993022 */
{16384, 2048, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 356.50 us, board 9ea0d4 */
{16384, 2048, 8192, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 711.07 us, board 4a937c */
{16384, 2048, 12288, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1053.13 us, board f1905c */
{16384, 4096, 64, kp::HALF_APART, 128, 128, 1, 1, 1}, /* 38.78 us, board 715ef6 */
{16384, 4096, 128, kp::HALF_PAIRED, 128, 128, 1, 1, 4}, /* 42.09 us, board 715ef6 */
{16384, 4096, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 56.23 us, board ee2c02 */
{16384, 4096, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 101.38 us, board b47f7a */
{16384, 4096, 1024, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 185.00 us, board 4a937c */
{16384, 4096, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 355.89 us, board ddf807 */
{16384, 4096, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 700.92 us, board f1905c */
{16384, 8192, 64, kp::HALF_APART, 64, 256, 1, 1, 16}, /* 75.74 us, board 08b401 */
{16384, 8192, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 1}, /* 83.19 us, board 715ef6 */
{16384, 8192, 256, kp::HALF_PAIRED, 128, 256, 1, 1, 2}, /* 106.13 us, board 715ef6 */
{16384, 8192, 512, kp::HALF_PAIRED, 128, 256, 1, 1, 2}, /* 185.07 us, board 715ef6 */
{16384, 8192, 1024, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 356.05 us, recorded */
{16384, 8192, 2048, kp::HALF_PAIRED, 128, 256, 1, 1, 16}, /* 709.12 us, recorded */
{16384, 8192, 4096, kp::HALF_PAIRED, 128, 256, 1, 1, 8}, /* 1428.55 us, board 993022 */
{16384, 12288, 64, kp::HALF_APART, 64, 256, 1, 1, 8}, /* 114.99 us, board ee2c02 */
{16384, 12288, 128, kp::HALF_TOGETHER, 128, 128, 1, 1, 1}, /* 122.05 us, board 715ef6 */
{16384, 16384, 64, kp::HALF_APART, 64, 256, 1, 1, 1}, /* 148.56 us, board 715ef6 */
{16384, 16384, 128, kp::HALF_TOGETHER, 128, 256, 1, 1, 1}, /* 170.41 us, board 715ef6 */
