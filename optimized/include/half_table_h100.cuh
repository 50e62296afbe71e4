/* half_table_h100.cuh: as half_table.cuh, and before it: the choices that were measured on H100s.
 */
