# world.sh: a tree with the real programs that call a model, a pretend toolkit and GPU
# (tests/e2e/pretend), and the scripted server.  Sourced after tests/mock/lib.sh.
# shellcheck shell=bash disable=SC2016,SC2154,SC2034  # out, root, scratch are lib.sh's

mock_build
number=0

# world - make a fresh tree with its own server, and change into it.  The programs of the previous
# world move into it; the rest of that one is kept elsewhere.
world() {
    mkdir "$scratch/next" && tree_in=$scratch/next tree || exit
    if [ -e "$scratch/world" ]; then
        mkdir build && mv "$scratch"/world/build/{obj,lib,id} build/ && find "$scratch/world/build" -maxdepth 1 -type f ! -name .make -exec mv -t build {} +
        mv "$scratch/world" "$scratch/world.$number"
    fi
    mv "$scratch/next" "$scratch/world" && cd "$scratch/world" || exit
    out=$PWD/out
    rm -r tasks optimized/portable/*
    mkdir -p tasks pretend harness/gen/prompts harness/llm harness/measure
    cp -r "$root"/tasks/level1 tasks/
    cp "$root"/optimized/include/{map,reduce,softmax}.cuh optimized/include/ # a few: a prompt takes long to offer all
    cp "$root"/harness/gen/prompts/* harness/gen/prompts/
    cp "$root"/tests/mock/prompts/* harness/gen/prompts/ # short texts: see there
    cp "$root/harness/measure/tolerance.h" harness/measure/
    cp "$root/harness/gen/prompt.h" harness/gen/
    cp "$root/harness/llm/"{prices.json,llm.h,settings.h} harness/llm/
    cp "$root"/tests/e2e/pretend/* pretend/
    for p in gen best modes; do ln -s "$root/build/$p" "pretend/$p"; done
    printf '#!/bin/sh\nenv >> environment.log\nexec toolkit/bin/nvcc.real "$@"\n' > nvcc
    mv toolkit/bin/nvcc toolkit/bin/nvcc.real
    mv nvcc toolkit/bin/nvcc
    chmod +x toolkit/bin/nvcc
    touch -d @1000000000 toolkit/bin/* toolkit/include/* # the same compiler in every world
    number=$((number + 1))
    mock_start world$number
    rules=$scratch/world$number.rules journal=$scratch/world$number.journal
}

# ask_make GOAL... - run make with a model; the key is only in the environment.
ask_make() {
    OPENAI_API_KEY=$key mk LLM="${llm:-openai:model-x}" OPENAI_BASE_URL="http://127.0.0.1:$port/v1" LLM_BACKOFF_MS=10 \
        LLM_TRIES=2 "$@"
}

# kernel SPEED [WORD] - write an answer with a kernel of this speed; WORD is WRONG, CRASH, FLAKY,
# BROKEN or 'class = X'.
kernel() {
    local file=$scratch/answer.$1.${2//[^a-zA-Z0-9]/_}
    printf '## Analysis\nIt is bound by memory.\n\n## Code\n```cuda\n#include "task.h"\nconst double speed = %s;\n%s\nextern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *, cudaStream_t stream) {}\n```\n' \
        "$1" "${2:+int $2;}" > "$file"
    echo "$file"
}
# reply TIMES BODY FILE - answer the next TIMES requests that contain BODY with FILE.
reply() { printf 'on\nbody %s\ntimes %s\nanswer %s\nusage 1000 0 500 0\n' "$2" "$1" "$3" >> "$rules"; }
requested() { grep -c '^{"request":' "$journal"; }
asked() { [ "$(requested)" = "$1" ] || { echo "$(requested) requests, not $1"; return 1; }; }
exits() { [ "$2" -eq "$1" ] || { echo "exit $2, not $1"; return 1; }; }
relu=l1_019_relu
