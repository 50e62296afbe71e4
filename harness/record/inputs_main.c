/* inputs_main.c: what a cell is measured of, as hashes of sources (inputs.h).
 *
 *   inputs TASK.json [KERNEL.cu]     one line of JSON, which make hands to `time` */
#include "record/inputs.h"
#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    struct inputs in;
    kp_program("inputs");
    if (argc != 2 && argc != 3) die(KP_USAGE, "usage: inputs TASK.json [KERNEL.cu]");
    struct sources *s = sources_open();
    char *task = file_read(argv[1], NULL);
    inputs_of(s, task, argc == 3 ? argv[2] : NULL, &in);
    cJSON *json = inputs_json(&in);
    char *line = cJSON_PrintUnformatted(json);
    puts(line);
    free(line);
    cJSON_Delete(json);
    free(task);
    sources_close(s);
    return KP_OK;
}
