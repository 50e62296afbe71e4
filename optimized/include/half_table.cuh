/* half_table.cuh: the shapes of hgemm whose choice is measured; of others half_model() chooses.
 *
 * A line is {M, N, K, way, tile_m, tile_n, split, parts, walk}, as HalfChoice in half_choice.cuh
 * has them, and ends in a comma. The first line of a shape counts; their order is free otherwise.
 */
