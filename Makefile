# Usage: make [-j N] [TARGET] [GPUS="h200 a100"] [SUITE="level1 crfm"] [TASKS="l1_019 l2_076"]
#
#   report      tables and figures from results/; needs no GPU, no nvcc (the default)
#   reproduce   build, verify and time every cell on this machine's GPUs, compare with the
#               recorded results, record where none exist, then report
#   build       compile each kernel and run the gates over it
#   verify      check each kernel against its task
#   time        measure each kernel, alone on a GPU
#   aa          measure each kernel against itself: the harness's own noise and bias
#   compare     this machine's measurements against results/, cell by cell
#   record      copy this machine's measurements into results/
#   failed      list the measured cells that did not pass
#   tasks       list the chosen tasks
#   gen         ask a model for one more kernel of each cell; keep it where it is better
#   search      spend a budget on finding the best kernel: MODE=branching, contrastive,
#               repair or best_of_n.  No goal but gen, search, judge and judge-eval
#               calls a model
#   prompt      print what gen would send, and send nothing
#   profile     where the time of the newest kernels goes, as ncu sees it
#   sanitize    every kernel under compute-sanitizer: TOOLS="memcheck racecheck", SMALL=1
#   export      attempts as data for training, in build/export.d
#   judge       a second opinion on kernels: does this one cheat?  Advice only
#   judge-eval  how well that advisory checker tells cheats from honest kernels
#   reward      judge kernels read from standard input, one JSON line each
#   deps        unpack the packages needed into PREFIX (default deps/); needs no root
#   test        unit and end-to-end tests; needs no GPU
#   test-gpu    the tests that need one
#   clean       remove build/, but for what a model was paid for (build/attempts)
#   print-VAR   show the value of the variable VAR
#
#   make reproduce                                   the published numbers, on this machine
#   make time TASKS=l2_076                           one task; a unique prefix will do, % is a wildcard
#   make -n time TASKS=l2_076                        what that would run
#   make build/h200/l1_019_relu.time.json            one cell, one step
#   make build ARCHS=all                             compile every kernel for each architecture
#   make -j16 build && make time                     compile in parallel, then measure in quiet
#   make time TASKS=l1_019 RUN='harness/ongpu ncu'   under a profiler
#   make gen TASKS=l2_076 LLM=anthropic:MODEL        one attempt; the key comes from the environment
#   make -n search TASKS=l2_076 LLM=openai:MODEL     how many calls, and the most they can cost
#   make -j8 search TASKS=l2_076 MODE=contrastive BUDGET_USD=5
#   make -j64 time GPUS=a100 RUN='srun -p ampere --gres=gpu:1'
#   make -j64 time GPUS="a100 h200" RUN.a100='srun -p ampere --gres=gpu:1' RUN.h200='srun -p hopper --gres=gpu:1'
#
# A cell is one GPU and one task.  In every rule of a cell % is GPU/TASK, so $(*D) is
# its GPU and $(*F) its task.  Its kernel is the first found of optimized/GPU/TASK.cu,
# optimized/sm_XX/TASK.cu (XX: the GPU's architecture, 80 86 89 90a 100a 120a) and
# optimized/portable/TASK.cu.
#
# A kernel that does not compile, crashes or computes something else is a result: its
# step writes the verdict and succeeds.  A step fails only where the machine does, and
# the next make repeats just those.  A result depends on its kernel, the headers that this
# includes, its task, the compiler, the flags and the harness; `make -o build/time`
# overlooks one of these once.
#
# LLM is openai:MODEL, responses:MODEL, anthropic:MODEL or replay:DIR (transcripts, no
# network); OPENAI_API_KEY, ANTHROPIC_API_KEY or the variable that LLM_KEY_ENV names holds the
# key, OPENAI_BASE_URL and ANTHROPIC_BASE_URL the server.  REPRODUCE.md, section 7, has
# the rest: LLM_..., BUDGET_..., TASK_..., ROUNDS, WIDTH, SAMPLES.
#
# NVCC and CUDA_HOME name the toolkit (else: PATH, then /usr/local/cuda), CUDNN_HOME
# cuDNN; CC, CXX, CFLAGS, LDFLAGS and NVCCFLAGS are as usual.  V=1 shows commands.  For a
# GPU that the Makefile does not list say its architecture: make GPUS=rtx2000ada
# arch.rtx2000ada=89.

$(if $(filter grouped-target,$(.FEATURES)),,$(error GNU make 4.3 or newer is needed; this is $(MAKE_VERSION)))

$(if $(word 2,$(CURDIR)),$(error make cannot work in a folder whose path has a space: $(CURDIR)))

CFLAGS    ?= -O2 -g
NVCCFLAGS ?= -lineinfo
PREFIX    ?= deps
RUN       ?= harness/ongpu
TASKS     ?=
SUITE     ?=
ARCHS     ?=
MODE      ?= branching
ROUNDS    ?= 5
WIDTH     ?= 6
SAMPLES   ?= 1
TOOLS     ?= memcheck racecheck
export ROUNDS WIDTH

# A misspelt name on the command line would be ignored, and TASK=l1_019 measure all of them.
VARIABLES := GPUS SUITE TASKS ARCHS RUN RUN.% arch.% PREFIX PACKAGES NVCC CUDA_HOME CUDA_LIB CUDNN_HOME DEVICE_ARCHS \
    CC CXX CFLAGS LDFLAGS NVCCFLAGS V TOOLS SMALL SANITIZER% NCU% PROFILE FORCE NAMES KP_% OBJS_% LIBS_% \
    LLM LLM_% JUDGE_% BUDGET_% TASK_% MODE ROUNDS WIDTH SAMPLES IDEAS BUCKETS TAU TURNS SEARCH_SEED ROUND INDEX \
    COMPILED OPENAI_% ANTHROPIC_% %_KEY %_TOKEN
$(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$(if $(filter $(VARIABLES),$v),,$(error no variable '$v'; `make help` names them))))

ALL_ARCHS := 80 86 89 90 100 120
arch.a100     := 80
arch.a30      := 80
arch.a10      := 86
arch.a10g     := 86
arch.a40      := 86
arch.rtx3090  := 86
arch.rtxa6000 := 86
arch.l4       := 89
arch.l40      := 89
arch.l40s     := 89
arch.rtx4090  := 89
arch.h100     := 90
arch.h200     := 90
arch.gh200    := 90
arch.b200     := 100
arch.gb200    := 100
arch.rtx5090  := 120

MAKEFLAGS  += -r
Q          := $(if $(V),,@)
,          := ,
SHELL       = /bin/sh
.SHELLFLAGS = -ec
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:
.PHONY: FORCE report reproduce build verify time aa compare record failed tasks gen search prompt \
        profile sanitize export judge judge-eval reward deps install test test-gpu clean help

# Keys are for the client alone: every recipe sees them empty but those that say otherwise
# (`unexport` would not do: a target hands its own variables on to its prerequisites).
KEYS := OPENAI_API_KEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN OPENROUTER_API_KEY GEMINI_API_KEY \
        DEEPSEEK_API_KEY TOGETHER_API_KEY $(LLM_KEY_ENV)
$(foreach k,$(KEYS),$(if $(and $(filter command,$(origin $k)),$(value $k)),$(error $k on the command line of make is for everyone to read: put it into the environment)))
KEYS := $(sort $(foreach k,$(KEYS),$(if $(filter environment,$(origin $k)),$k)))
$(foreach k,$(KEYS),$(eval key.$k := $$(value $k))$(eval unexport key.$k)$(eval %: export $k :=))
keyless   = $(if $(KEYS),env $(KEYS:%=-u %))
with_keys = $(foreach k,$(KEYS),$(eval $1: export $k := $$(value key.$k)))

report:

# ---- This machine -------------------------------------------------------------
# One call finds the compilers and their identity, the packages that are missing and,
# where a goal has cells but does not name their GPU, the GPUs.

CC  := $(if $(filter default,$(origin CC)),gcc,$(CC))
CXX := $(if $(filter default,$(origin CXX)),g++,$(CXX))

GOALS     := $(or $(MAKECMDGOALS),report)
GOAL_GPUS := $(filter-out archs,$(sort $(foreach g,$(filter build/%.json,$(GOALS)),$(word 2,$(subst /, ,$g)))))
NO_CELLS  := report compare record failed tasks deps test clean help print-NVCC
DETECT    := $(if $(GPUS)$(GOAL_GPUS),,$(if $(filter-out $(NO_CELLS),$(GOALS)),--gpus))

FOUND := $(shell $(keyless) harness/probe $(DETECT) '$(PREFIX)' '$(NVCC)' '$(CUDA_HOME)' '$(CC)' '$(CXX)')
found  = $(patsubst $1=%,%,$(filter $1=%,$(FOUND)))

NVCC      := $(or $(NVCC),$(call found,nvcc))
CUDA_HOME := $(or $(CUDA_HOME),$(call found,cuda))
LACKS     := $(call found,lacks)
export NVCC CUDA_HOME CXX NVCCFLAGS
export PATH := $(PATH):$(abspath $(PREFIX))/usr/bin

$(foreach g,$(call found,gpu),$(eval arch.$(subst :, := ,$g)))
GPUS := $(or $(GPUS),$(GOAL_GPUS),$(sort $(foreach g,$(call found,gpu),$(firstword $(subst :, ,$g)))))
$(foreach g,$(GPUS),$(if $(arch.$g),,$(error unknown GPU '$g': say its architecture, e.g. arch.$g=90)))

# need-X stands where the missing package X keeps something from being made: it says
# so in one line.  `reproduce` and `test` try to install what is missing first.
need    = $(addprefix need-,$(filter $1,$(LACKS)))
INSTALL := $(if $(LACKS),$(if $(filter reproduce test test-gpu gen search,$(GOALS)),install))
need-%: $(INSTALL); @harness/deps check $* $(PREFIX)
install:; @harness/deps install $(PREFIX) $(LACKS)
deps:; harness/deps unpack $(PREFIX)

# ---- Tasks, kernels, cells ----------------------------------------------------

TASK_FILES := $(wildcard tasks/*/*.json)
ALL_TASKS  := $(sort $(basename $(notdir $(TASK_FILES))))
$(foreach f,$(TASK_FILES),$(eval task.$(basename $(notdir $f)) := $f))
$(if $(filter $(words $(ALL_TASKS)),$(words $(TASK_FILES))),,$(error two files under tasks/ have the same name: $(foreach t,$(ALL_TASKS),$(if $(word 2,$(filter %/$t.json,$(TASK_FILES))),$(filter %/$t.json,$(TASK_FILES))))))
$(foreach t,$(filter-out peaks $(ALL_TASKS),$(foreach g,$(filter build/%.json,$(GOALS)),$(firstword $(subst ., ,$(notdir $g))))),\
    $(error no task '$t'; `make tasks` lists them))

# The tasks that a word of TASKS stands for: its name, a pattern with %, or a unique prefix.
choose = $(or $(filter $1,$(ALL_TASKS)),$(call unique,$1,$(filter $1%,$(ALL_TASKS))))
unique = $(if $2,$(if $(word 2,$2),$(error TASKS: '$1' could be $(wordlist 1,4,$2)$(if $(word 5,$2), ...)),$2),$(error TASKS: no task begins with '$1'; `make tasks` lists them))
override TASKS := $(or $(sort $(foreach t,$(TASKS),$(call choose,$t))),$(ALL_TASKS))

SUITES := $(sort $(notdir $(patsubst %/,%,$(dir $(TASK_FILES)))))
$(foreach s,$(filter-out $(SUITES),$(SUITE)),$(error SUITE: no suite '$s'; there are $(SUITES)))
ifneq ($(strip $(SUITE)),)
override TASKS := $(filter $(basename $(notdir $(filter $(SUITE:%=tasks/%/%),$(TASK_FILES)))),$(TASKS))
endif

# Only portable kernels keep to the instructions that later architectures have, too.
arch_of = $(arch.$1)$(if $(filter optimized/portable/%,$2),,$(if $(filter 80 86 89,$(arch.$1)),,a))

# kernel.GPU/TASK is the kernel of a cell: later folders overrule earlier ones.
folders = portable sm_$(call arch_of,$1,own) $1
$(foreach g,$(GPUS),$(foreach d,$(call folders,$g),$(foreach k,$(wildcard optimized/$d/*.cu),\
    $(eval kernel.$g/$(basename $(notdir $k)) := $k))))
HEADERS := $(wildcard optimized/include/*)

CELLS := $(foreach g,$(GPUS),$(TASKS:%=$g/%))
BUILT := $(wildcard $(CELLS:%=build/%.build.json))
# A kernel that is now found in another folder may be older than what was built.
MOVED := $(foreach b,$(BUILT),$(if $(findstring "$(or $(kernel.$(b:build/%.build.json=%)),missing)",$(file <$b)),,$b))
$(MOVED): FORCE

override ARCHS := $(if $(filter all,$(ARCHS)),$(ALL_ARCHS),$(ARCHS))
CHECKS := $(if $(ARCHS),$(patsubst optimized/%.cu,build/archs/%.build.json,$(wildcard $(TASKS:%=optimized/*/%.cu))))

# ---- Flags --------------------------------------------------------------------
# A file for each set of flags, with the identity of the compilers.  Only those whose
# contents are out of date have a rule, so that make -n, too, tells the truth.  (strip: make
# 4.3 does not always take the last newline off a file that it reads.)

isystem      = $(addprefix -isystem ,$(filter-out /usr/include,$1))
DEPS_FLAGS  := -I$(abspath $(PREFIX))/usr/include -I$(abspath $(PREFIX))/usr/include/$(call found,multiarch)
DEPS_LIBS   := -L$(abspath $(PREFIX))/usr/lib/$(call found,multiarch) -Wl,-rpath,$(abspath $(PREFIX))/usr/lib/$(call found,multiarch)
# A libcurl of PREFIX loads others of PREFIX: a RPATH is for those, too, a RUNPATH is not.
CURL_LIBS   := -Wl,--disable-new-dtags -lcurl
CUDA_LIB    := $(firstword $(wildcard $(addsuffix /libcudart.so,$(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(CUDA_HOME)/lib/$(call found,multiarch))))
CUDA_LIB    := $(patsubst %/,%,$(dir $(CUDA_LIB)))
CUDNN_H     := $(firstword $(wildcard $(addsuffix /cudnn.h,$(CUDNN_HOME)/include $(CUDA_HOME)/include /usr/include /usr/include/$(call found,multiarch))))
CUDNN_FLAGS := $(if $(CUDNN_H),$(call isystem,$(patsubst %/,%,$(dir $(CUDNN_H)))),-DKP_NO_CUDNN)
CUDNN_LIBS  := $(if $(CUDNN_H),$(if $(CUDNN_HOME),-L$(CUDNN_HOME)/lib -Wl$(,)-rpath$(,)$(CUDNN_HOME)/lib) -lcudnn)
export CUDA_LIB

HOST_FLAGS  := -std=gnu11 -Wall -Wextra -iquote harness -iquote reference $(DEPS_FLAGS)
CUDA_FLAGS  := $(call isystem,$(CUDA_HOME)/include) $(CUDNN_FLAGS)
# Device code of the harness: the same whichever GPUS are asked for, as a change of it
# would be a change of every measurement (sm_80's runs on all 8.x).
DEVICE_ARCHS ?= 80 90 $(sort $(filter-out 8% 90,$(foreach g,$(GPUS),$(arch.$g))))
DEVICE_FLAGS := -std=c++17 -O3 -t2 $(foreach a,$(DEVICE_ARCHS),-gencode arch=compute_$a$(,)code=sm_$a)

text.build/host.flags  := $(call found,cc) $(HOST_FLAGS) $(CFLAGS) $(DEPS_LIBS) $(CURL_LIBS) $(LDFLAGS)
text.build/cuda.flags  := $(call found,cxx) $(call found,nvcc.id) $(CUDA_FLAGS) $(DEVICE_FLAGS) $(CUDA_LIB) $(CUDNN_LIBS)
text.build/fake.flags  := $(CUDA_HOME)
text.build/archs.flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(ARCHS)
text.build/sanitize.flags := $(TOOLS) $(SMALL) $(KP_SMALL_MB) $(KP_SMALL_GFLOP) $(KP_SMALL_TRIES) $(KP_SANITIZE_SECONDS)
text.build/cells       := $(or $(GPUS),$(sort $(foreach f,$(wildcard build/*/*.time.json),$(word 2,$(subst /, ,$f))))) : $(TASKS)
$(foreach g,$(GPUS),$(eval text.build/$g/flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(arch.$g)))

STAMPS := build/host.flags build/cuda.flags build/fake.flags build/archs.flags build/sanitize.flags build/cells $(GPUS:%=build/%/flags)
STALE  := $(foreach s,$(STAMPS),$(if $(findstring [$(strip $(text.$s))],[$(strip $(file <$s))]),,$s))
$(STALE): export TEXT = $(text.$@)
$(STALE): FORCE | $$(@D)/; @printf '%s\n' "$$TEXT" > $@

# ---- Programs -----------------------------------------------------------------
# Compilers write beside their target: even kill -9 leaves no half a program.
# What each is made of.  Those of the first line need no CUDA.

PROGRAMS     := task gate confine report compare
GPU_PROGRAMS := record arm baseline verify time peaks replay

GEN_PROGRAMS := gen ask judge
ATTEMPT_PROGRAMS := best promote export
READ_OBJS    := $(addprefix build/obj/,$(addprefix harness/,taskfile.o graph.o attr.o fill.o scan.o error.o) $(addprefix reference/,ops.o infer.o slice.o))
OBJS_task    := build/obj/harness/task_main.o build/obj/harness/task_text.o $(READ_OBJS)
OBJS_gate    := $(addprefix build/obj/harness/,gate_main.o gate.o elf.o error.o)
OBJS_confine := $(addprefix build/obj/harness/,confine.o error.o)
OBJS_report  := $(patsubst %.c,build/obj/%.o,$(wildcard harness/report_*.c)) $(addprefix build/obj/harness/,result.o json.o stats.o error.o gen/llm_text.o)
OBJS_compare := $(addprefix build/obj/harness/,compare_main.o compare.o result.o json.o error.o)

# Those that call a model need libcurl; what looks at attempts does not.
GEN_OBJS     := $(patsubst %.c,build/obj/%.o,$(filter-out %_main.c,$(wildcard harness/gen/*.c))) \
    $(addprefix build/obj/harness/,error.o hash.o json.o result.o stats.o task_text.o) $(READ_OBJS)
GEN_OBJS     := $(sort $(GEN_OBJS))
$(foreach p,$(GEN_PROGRAMS) $(ATTEMPT_PROGRAMS),$(eval OBJS_$p := build/obj/harness/gen/$p_main.o $(GEN_OBJS)))
$(foreach p,$(GEN_PROGRAMS) $(ATTEMPT_PROGRAMS),$(eval LIBS_$p := $(CURL_LIBS) -lcjson))

# The reference (all of reference/cuda) and what every GPU program stands on.
CUDA_OBJS  := $(addsuffix .o,$(basename $(patsubst %,build/obj/%,$(wildcard reference/cuda/*.c reference/cuda/*.cu))))
ARM_OBJS   := $(addprefix build/obj/harness/,arm_loop.o buffers.o device.o driver.o error.o json.o tape.o tape_graph.o)
JUDGE_OBJS := $(addprefix build/obj/harness/,judge.o referee.o process.o buffers.o device.o driver.o hash.o json.o stats.o)
OBJS_record   := $(sort $(addprefix build/obj/harness/,record.o sandbox.o) $(ARM_OBJS) $(READ_OBJS))
OBJS_arm      := $(sort $(addprefix build/obj/harness/,arm.o elf.o) $(ARM_OBJS) $(READ_OBJS))
OBJS_baseline := $(sort build/obj/harness/baseline.o $(ARM_OBJS) $(READ_OBJS) $(CUDA_OBJS))
OBJS_verify   := $(sort $(addprefix build/obj/harness/,verify.o audit.o tape.o) $(JUDGE_OBJS) $(READ_OBJS) $(CUDA_OBJS))
OBJS_time     := $(sort $(addprefix build/obj/harness/,time.o timing.o machine.o) $(JUDGE_OBJS) $(READ_OBJS) $(CUDA_OBJS))
OBJS_replay   := $(sort $(addprefix build/obj/harness/,replay.o process.o referee.o elf.o hash.o) $(ARM_OBJS) $(READ_OBJS))
OBJS_peaks    := $(sort $(addprefix build/obj/harness/,peaks.o machine.o device.o driver.o json.o stats.o) $(READ_OBJS))

LIBS_task    := -lcjson
LIBS_report  := -lcjson
LIBS_compare := -lcjson
LIBS_record  := -lcudart -lseccomp -lcjson
LIBS_arm     := -lcudart -lcjson
LIBS_replay  := -lcudart -lcjson
LIBS_baseline := -lcudart -lcublas -lcublasLt $(CUDNN_LIBS) -lcjson
LIBS_verify  := $(LIBS_baseline)
LIBS_time    := $(LIBS_baseline)
LIBS_peaks   := $(LIBS_baseline)

GPU_OBJS := $(sort $(foreach p,$(GPU_PROGRAMS),$(OBJS_$p)))
HOST_OBJS := $(sort $(foreach p,$(PROGRAMS),$(OBJS_$p)))

# What a GPU step runs: a change of any of these is a change of the measurement.
STEP_verify := build/verify build/record build/arm build/baseline
STEP_time   := build/time build/arm build/baseline

$(PROGRAMS:%=build/%): build/%: $$(OBJS_$$*) build/host.flags
	@echo "  LD $@"
	$Q$(CC) $(LDFLAGS) -o $@+ $(OBJS_$*) $(DEPS_LIBS) $(LIBS_$*) -lm && mv $@+ $@

$(addprefix build/,$(GEN_PROGRAMS) $(ATTEMPT_PROGRAMS)): build/%: $$(OBJS_$$*) build/host.flags | $(call need,libcurl4-openssl-dev)
	@echo "  LD $@"
	$Q$(CC) $(LDFLAGS) -o $@+ $(OBJS_$*) $(DEPS_LIBS) $(LIBS_$*) -lm && mv $@+ $@

$(GPU_PROGRAMS:%=build/%): build/%: $$(OBJS_$$*) build/host.flags build/cuda.flags | $(call need,nvcc libseccomp-dev)
	@echo "  LD $@"
	$Q$(CXX) $(LDFLAGS) -o $@+ $(OBJS_$*) $(DEPS_LIBS) -L$(CUDA_LIB) -Wl,-rpath,$(CUDA_LIB) $(LIBS_$*) -ldl -lm && mv $@+ $@

# Objects of the GPU programs alone see the headers of CUDA; tape.o is tested without.
ONLY_GPU := $(filter-out $(HOST_OBJS) $(GEN_OBJS) %/tape.o,$(GPU_OBJS))
$(ONLY_GPU): HOST_FLAGS += $(CUDA_FLAGS)
$(ONLY_GPU): build/cuda.flags | $(call need,nvcc libseccomp-dev)

build/obj/%.o: %.c build/host.flags | $$(@D)/ $(call need,gcc libcjson-dev)
	@echo "  CC $@"
	$Q$(CC) $(HOST_FLAGS) $(CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@+ $< && mv $@+ $@

build/obj/%.o: %.cu build/cuda.flags | $$(@D)/ $(call need,nvcc g++)
	@echo "  NVCC $@"
	$Q$(NVCC) $(DEVICE_FLAGS) $(CUDNN_FLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@+ $< && mv $@+ $@

-include $(wildcard build/obj/*/*.d build/obj/*/*/*.d)

%/:; @mkdir -p $@

# `reproduce` compiles on all cores, unless -j says otherwise, and measures after that
# (COMPILED=compiled makes each measurement wait for every kernel).
ifneq ($(filter reproduce,$(GOALS)),)
MAKEFLAGS += -j$(call found,cores)
endif
.PHONY: compiled
compiled: $(CELLS:%=build/%.build.json)

# ---- Steps of a cell ----------------------------------------------------------

# given SOMETHING COMMAND: where there is nothing, the recipe says why there is no GPU, and ends.
given = $(if $1,$2,harness/probe --why; exit 4)

# The command prefix that owns a GPU, and the GPU that it has to be.
commit = KP_COMMIT=$${KP_COMMIT:-$$(git describe --always --dirty --abbrev=12 2>/dev/null || :)}
gpu    = $(notdir $(*D))
on_gpu = KP_GPU=$(gpu) $(or $(RUN.$(gpu)),$(RUN))

build:  $(CELLS:%=build/%.build.json) $(CHECKS)
verify: $(CELLS:%=build/%.verify.json)
time:   $(CELLS:%=build/%.time.json)
aa:     $(CELLS:%=build/%.aa.json)
build verify time aa:
	@$(call given,$(CELLS)$(CHECKS),:)

build/tasks/%/task.h: $$(task.$$*) build/task | $$(@D)/
	$Qbuild/task header $< > $@+
	$Qmv $@+ $@

build/%.build.json: $$(kernel.$$*) build/tasks/$$(*F)/task.h harness/compile build/gate build/confine \
                    build/$$(*D)/flags | build/$$(*D)/ $(call need,nvcc jq g++)
	$Qharness/compile $(task.$(*F)) build/$* '$(call arch_of,$(*D),$(kernel.$*))' $(kernel.$*)

build/%.verify.json: build/%.build.json $$(task.$$(*F)) $(STEP_verify) | $(COMPILED)
	$Q$(on_gpu) build/verify $(task.$(*F)) build/$*

build/%.time.json: build/%.verify.json build/$$(*D)/peaks.json $$(task.$$(*F)) $(STEP_time) | build/report build/cells $(if $(PROFILE),build/replay)
	$Q$(commit) $(on_gpu) build/time $(task.$(*F)) build/$*
	@$(if $(and $(PROFILE),$(filter attempts/%,$*)),$(on_gpu) harness/profile $(task.$(*F)) build/$*)
	@$(if $(filter attempts/%,$*),printf '%s: %s\n' $(word 2,$(subst /, ,$*)) "$$(build/report --cell $@)",harness/progress $*)

build/%.aa.json: build/%.verify.json build/$$(*D)/peaks.json $$(task.$$(*F)) $(STEP_time)
	$Q$(on_gpu) build/time --aa $(task.$(*F)) build/$*

$(GPUS:%=build/%/peaks.json): build/%/peaks.json: build/peaks | build/%/
	$QKP_GPU=$* $(or $(RUN.$*),$(RUN)) build/peaks $@

# Compile checks for other architectures: a portable kernel for each of ARCHS, any
# other for its own.  No result depends on them.
archs_for = $(or $(if $(filter portable,$1),$(ARCHS)),$(patsubst sm_%,%,$(filter sm_%,$1)),$(call arch_of,$1,own))

build/archs/%.build.json: optimized/%.cu build/tasks/$$(*F)/task.h harness/compile build/gate build/confine \
                          build/archs.flags | build/archs/$$(*D)/ $(call need,nvcc jq g++)
	$Qharness/compile $(task.$(*F)) build/archs/$* '$(call archs_for,$(*D))' $<

# Which headers of optimized/include each kernel includes; one that is gone repeats those that did.
# (Read by `include`, files are targets, too, and 5000 of them would take a quarter of a second.)
define newline


endef
$(eval $(foreach f,$(wildcard $(GPUS:%=build/%/*.d) build/archs/*/*.d build/attempts/*/*/*.d),$(file <$f)$(newline)))
optimized/include/%:;

# ---- Results: published data, never a target of measurement -------------------

report: build/report | $(INSTALL)
	build/report

reproduce: $(if $(GPUS),measured) build/report | $(INSTALL)
ifneq ($(GPUS),)
	harness/keep compare
	harness/keep new
else
	@harness/probe --why
	@echo 'reproduce: nothing is measured; the recorded results are drawn'
endif
	build/report
	@[ ! -e build/unmeasured ] || { rm build/unmeasured; exec >&2; \
	    echo 'reproduce: the machine failed on some cells, see above; the next make reproduce tries those again'; exit 4; }

# A machine that fails on one cell must not cost the others: a make of its own tries each.
.PHONY: measured
measured: build/cells build/compare build/report | $(INSTALL)
	@rm -f build/unmeasured
	+@$(MAKE) --no-print-directory -k COMPILED=compiled time || touch build/unmeasured

compare: build/compare build/cells
	@$(call given,$(GPUS)$(wildcard build/*/*.time.json),:)
	harness/keep compare

record: build/cells
	harness/keep all

failed: build/report
	@build/report --failed build/

tasks:; @$(foreach t,$(TASKS),$(info $(word 2,$(subst /, ,$(task.$t))) $t)):

# ---- Attempts of a model ------------------------------------------------------
# An attempt lies in build/attempts/MODE.rRaA/GPU/TASK.* (A counts within round R; A = 0
# asks for ideas), so the rules of a cell serve it, too.  What it builds upon has to be there
# first, but makes nothing again: no timestamp spends money.

ASKING := $(filter gen generated search attempted,$(GOALS))
count  := $(if $(ASKING),$(shell $(keyless) seq 1 1000))
whole   = $(if $(and $(filter 1,$(words $($1))),$(filter $2 $(count),$($1))),,$(error $1=$($1): expected a whole number from $(or $2,1) to 1000))
$(if $(ASKING),$(call whole,ROUNDS)$(call whole,WIDTH)$(call whole,SAMPLES,0))
$(if $(and $(filter gen generated,$(ASKING)),$(filter search attempted,$(ASKING))),$(error gen and search are two goals: one after the other))
numbers = $(wordlist 1,$1,$(count))
before  = $(word $1,0 $(count))
index   = $(call numbers,$(if $(filter best_of_n,$1),$(many),$(WIDTH)))
rounds  = $(if $(filter best_of_n,$1),1,$(call numbers,$(ROUNDS)))

# What is there before an attempt: all of the round before, or for branching its round's
# ideas, which come after that.
earlier = $(if $(filter 1,$2),,$(foreach a,$(call index,$1),$1.r$(call before,$2)a$a/%.time.json))
there   = $(if $(and $(filter branching,$1),$(filter-out 0,$3)),$1.r$2a0/%.gen.json,$(call earlier,$1,$2))

# A prompt names the GPU's peaks: of a kind that has no results they are measured first.  Where
# there is no such GPU, prompts go without.
UNKNOWN := $(if $(ASKING),$(foreach g,$(GPUS),$(if $(wildcard results/$g/*.json build/$g/peaks.json),,build/$g/peaks.json)))

# What a search is shown of the cell's kernel is the one that was there when it began: what
# was promoted since must not change what is asked.  An empty file: there was none.
shows    = $(filter branching contrastive,$1)
REPLAYED := $(patsubst replay:%,%,$(filter replay:%,$(LLM)))
start    = build/attempts/$1.start/$2.cu
define begin
build/attempts/$1.start/%.cu: | build/attempts/$1.start/$$$$(*D)/
	$$Qcp $$(or $$(wildcard $$(REPLAYED:%=%/$1.start/$$*.cu)),$$(kernel.$$*),/dev/null) $$@+ && mv $$@+ $$@
endef
present  = $(if $(call shows,$1),$$([ ! -s $(call start,$1,$2) ] || echo $(call start,$1,$2)),$(kernel.$2))

# A client that outlived its make holds the lock until it has its answer, which is then there.
once = exec 9> $(@:.gen.json=.lock); $(keyless) flock 9; [ -e $@ ] || exec
define attempt
build/attempts/$1.r$2a$3/%.gen.json: | build/gen build/attempts/$1.r$2a$3/$$$$(*D)/ \
                                       $(if $(call shows,$1),$(call start,$1,%)) $(patsubst %,build/attempts/%,$4)
	$$Q$$(once) $(if $(filter one_shot,$1),env WIDTH=$3) build/gen attempt $$(*D) $$(call arch_of,$$(*D),) $$(task.$$(*F)) $1 $2 $3 $$(call present,$1,$$*)
endef

MODES := branching contrastive repair best_of_n
ifneq ($(filter search attempted,$(ASKING)),)
$(foreach m,$(filter-out $(MODES),$(MODE)),$(error MODE: no '$m'; there are $(MODES)))
many     := $(shell $(keyless) expr $(ROUNDS) \* $(WIDTH))
$(if $(filter best_of_n,$(MODE)),$(if $(filter $(many),$(count)),,$(error ROUNDS x WIDTH is $(many): MODE=best_of_n makes up to 1000 samples)))
ATTEMPTS := $(foreach m,$(MODE),$(foreach r,$(call rounds,$m),$(foreach a,$(call index,$m),$(CELLS:%=build/attempts/$m.r$ra$a/%))))
THOUGHT  := $(foreach r,$(if $(filter branching,$(MODE)),$(call rounds)),$(CELLS:%=build/attempts/branching.r$ra0/%))
$(foreach m,$(MODE),$(eval $(call begin,$m))$(foreach r,$(call rounds,$m),$(foreach a,$(if $(filter branching,$m),0) $(call index,$m),\
    $(eval $(call attempt,$m,$r,$a,$(call there,$m,$r,$a))))))
endif

# gen makes the next SAMPLES attempts of a cell, and finishes first what was begun: those are the
# first that have no result.  Of transcripts it makes all attempts that are there (or SAMPLES).
ifneq ($(filter gen generated,$(ASKING)),)
name_of  = $(word 3,$(subst /, ,$1))
done     = $(foreach f,$(wildcard build/attempts/*/$1.time.json),$(call name_of,$f))
next     = $(patsubst %,one_shot.r1a%,$(wordlist 1,$(SAMPLES),$(filter-out $(patsubst one_shot.r1a%,%,$(call done,$1)),$(count))))
kept     = $(sort $(foreach d,$(REPLAYED),$(patsubst $d/%/$1.jsonl,%,$(wildcard $(foreach m,one_shot $(MODES),$d/$m.r*/$1.jsonl)))))
some     = $(if $(filter file,$(origin SAMPLES)),$1,$(wordlist 1,$(SAMPLES),$1))
ATTEMPTS := $(foreach c,$(CELLS),$(patsubst %,build/attempts/%/$c,$(if $(call kept,$c),$(call some,$(filter-out %a0 $(call done,$c),$(call kept,$c))),$(call next,$c))))
place    = $(subst a, ,$(patsubst .r%,%,$(suffix $1)))
$(foreach n,$(sort $(foreach a,$(ATTEMPTS),$(call name_of,$a))),$(eval $(call attempt,$(basename $n),$(word 1,$(call place,$n)),$(word 2,$(call place,$n)))))
$(foreach m,$(MODES),$(eval $(call begin,$m)))
endif
CALLS = $(filter-out $(wildcard $(addsuffix .gen.json,$(ATTEMPTS) $(THOUGHT))),$(addsuffix .gen.json,$(ATTEMPTS) $(THOUGHT)))

$(call with_keys,build/attempts/%.gen.json)

build/attempts/%.build.json: build/attempts/%.gen.json build/tasks/$$(*F)/task.h harness/compile harness/compile-attempt \
                             build/gate build/confine build/$$(notdir $$(*D))/flags | $(call need,nvcc jq g++)
	$Qharness/compile-attempt $(task.$(*F)) build/attempts/$* '$(call arch_of,$(gpu),)'

build/attempts/%/peaks.json: build/$$(notdir $$*)/peaks.json | build/attempts/%/
	$Qln -sf ../../../$(notdir $*)/peaks.json $@

# A model that fails on one attempt must not cost the others: a make of its own tries each.
# Then the best of each cell is measured again, beside the kernel that is there.
.PHONY: configured asked attempted generated promoted
attempted generated: $(ATTEMPTS:%=%.time.json); @:
search: tried = attempted
gen:    tried = generated
dry = $(findstring n,$(firstword -$(MAKEFLAGS)))

configured:
	@$(call given,$(CELLS),:)
	@$(if $(LLM),:,echo 'not configured: set LLM=openai:MODEL$(,) anthropic:MODEL or replay:DIR; make help has more' >&2; exit 2)
	+@$(if $(and $(dry),$(LLM)),harness/plan $(words $(CALLS)) $(words $(CELLS)),:)

$(call with_keys,asked)
asked: configured build/gen build/best build/promote build/report build/cells | $(INSTALL)
	@mkdir -p build/attempts && rm -f build/unmeasured
	+@$(if $(UNKNOWN),$(MAKE) --no-print-directory -k $(UNKNOWN) || echo 'prompts do not name what could not be measured' >&2,:)
	+@KP_RUN_STARTED=$${KP_RUN_STARTED:-$$(date +%s)} $(MAKE) --no-print-directory -k $(tried) || $(if $(dry),:,touch build/unmeasured)

search gen: asked
	+@$(MAKE) --no-print-directory -k promoted || $(if $(dry),:,touch build/unmeasured)
	@harness/keep attempts
	@build/report
	@[ ! -e build/unmeasured ] || { rm build/unmeasured; exec >&2; \
	    echo '$@: not every attempt was made or measured, see above; the next make $@ goes on there'; exit 4; }

# Where there is nothing to promote, nothing is needed.
PROMOTED := $(if $(filter promoted,$(GOALS)),$(CELLS:%=promote/%))
promoted: $(PROMOTED)
.PHONY: $(PROMOTED)
$(PROMOTED): promote/%: $$(if $$(wildcard build/attempts/*/$$*.time.json),build/$$*.build.json build/$$(*D)/peaks.json $(STEP_verify) build/time) build/best build/promote
	$QKP_GPU=$(*D) harness/promote $(*D) $(task.$(*F)) '$(call arch_of,$(*D),)' $(or $(RUN.$(*D)),$(RUN))

# Where the time of a cell's kernel goes, as ncu sees it.
profile: $(if $(filter profile,$(GOALS)),$(CELLS:%=build/%.profile.json))
	@$(call given,$(CELLS),:)
build/%.profile.json: build/%.verify.json build/replay harness/profile harness/profile.jq FORCE
	$Q$(on_gpu) harness/profile $(task.$(*F)) build/$*

# Every kernel under compute-sanitizer.  What it finds is a result; nothing depends on it.
sanitize: $(if $(filter sanitize,$(GOALS)),$(CELLS:%=build/%.sanitize.json))
	@$(call given,$(CELLS),harness/sanitize --summary $^)
build/%.sanitize.json: build/%.verify.json build/replay harness/sanitize harness/shrink harness/shrink.jq build/sanitize.flags
	$Q$(on_gpu) harness/sanitize $(task.$(*F)) build/$* $(TOOLS)

export: build/export
	build/export build/export.d build/attempts

$(call with_keys,judge-eval)
judge-eval: build/judge
	tests/judge-eval

# A second opinion on the kernels that are verified.  Advice: nothing depends on it.
JUDGED := $(if $(filter judge,$(GOALS)),$(foreach c,$(CELLS),$(if $(kernel.$c),build/$c.judge.json)))
$(call with_keys,$(JUDGED))
judge: $(JUDGED)
	@$(call given,$(CELLS),:)
$(JUDGED): build/%.judge.json: build/%.verify.json build/judge FORCE | build/attempts/judge/$$(*D)/
	@[ ! -e build/$*.tape ] || exec build/judge $(*D) $(task.$(*F)) $(kernel.$*) --tape build/$*.tape \
	    --transcript build/attempts/judge/$*.jsonl > $@+
	@[ -e build/$*.tape ] || echo 'judge: $*: the kernel has no tape: see make failed'
	@[ ! -e $@+ ] || { mv $@+ $@ && $(keyless) jq -r '"judge: $*: \(.verdict)\(if .rule then ", " + .rule else "" end)"' $@; }

# Its standard output is the answers, and nothing else.
.PHONY: judges
judges: build/gate build/confine build/task build/export build/peaks $(STEP_verify) build/time
reward:
	+@$(MAKE) --no-print-directory judges < /dev/null >&2
	@harness/reward $(foreach g,$(GPUS),'$g:$(arch.$g):$(or $(RUN.$g),$(RUN))')

# MODE, ROUND, INDEX: of which attempt (else the first of gen).
asked_of = $(or $(INDEX),1) $(if $(wildcard $(call start,$1,$2)),$(call present,$1,$2),$(kernel.$2))
prompt: build/gen
	@$(call given,$(CELLS),:)
	@$(foreach m,$(if $(filter file,$(origin MODE)),one_shot,$(MODE)),$(foreach c,$(CELLS),$(if $(filter one_shot,$m),WIDTH=$(or $(INDEX),1) )build/gen prompt \
	    $(subst /, $(call arch_of,$(firstword $(subst /, ,$c)),) $(task.$(notdir $c)) ,$(dir $c)) $m $(or $(ROUND),1) $(call asked_of,$m,$c);)) :

# ---- Tests --------------------------------------------------------------------

# The GPU programs on a pretend GPU (tests/fake): their own sources, but for device code
# and vendor libraries.  CUDA's headers are all that this needs of the toolkit.
FAKED     := $(addprefix build/fake/harness/,device.o elf.o machine.o) $(CUDA_OBJS:build/obj/%=build/fake/%)
FAKE_OBJS := $(patsubst %.c,build/fake/%.o,$(addprefix tests/fake/,device.c elf.c exec.c knobs.c machine.c) $(wildcard reference/define/*.c))
FAKE      := $(if $(filter nvcc,$(LACKS)),,$(addprefix build/fake/,record arm baseline verify time replay))

build/fake/%.o: %.c build/host.flags build/fake.flags | $$(@D)/ $(call need,gcc libcjson-dev libseccomp-dev)
	@echo "  CC $@"
	$Q$(CC) $(HOST_FLAGS) -isystem $(CUDA_HOME)/include -fPIC $(CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@+ $< && mv $@+ $@

build/fake/libcuda.so.1: $(addprefix build/fake/tests/fake/,cuda.o graph.o knobs.o)
	$Q$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@+ $^ -ldl && mv $@+ $@

build/fake/libcudart.so: build/fake/tests/fake/cudart.o build/fake/libcuda.so.1
	$Q$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@+ $^ && mv $@+ $@

$(FAKE): build/fake/%: $$(filter-out $(FAKED),$$(subst build/obj/,build/fake/,$$(OBJS_$$*))) $(FAKE_OBJS) build/fake/libcudart.so
	@echo "  LD $@"
	$Q$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-rpath-link,build/fake -o $@+ $^ $(DEPS_LIBS) -lseccomp -lcjson -ldl -lm && mv $@+ $@

# Unit tests of what needs a GPU: linked with all that `verify` is made of, but its main program.
FAKE_UNIT := $(if $(FAKE),$(patsubst tests/fake/%.c,build/fake/%,$(wildcard tests/fake/test_*.c)))
$(FAKE_UNIT): build/fake/%: build/fake/tests/fake/%.o $(filter-out $(FAKED) %/verify.o,$(subst build/obj/,build/fake/,$(OBJS_verify))) $(FAKE_OBJS) build/fake/libcudart.so
	@echo "  LD $@"
	$Q$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-rpath-link,build/fake -o $@+ $^ $(DEPS_LIBS) -lcmocka -lcjson -ldl -lm && mv $@+ $@

$(FAKE_UNIT:build/fake/%=build/fake/tests/fake/%.o): | $(call need,libcmocka-dev)

-include $(wildcard build/fake/*/*.d build/fake/*/*/*.d)

UNIT := $(patsubst tests/unit/%.c,build/tests/%,$(wildcard tests/unit/test_*.c))
UNIT_OBJS := $(sort $(filter-out %_main.o %/confine.o,$(HOST_OBJS) $(GEN_OBJS))) build/obj/harness/tape.o \
    $(patsubst %.c,build/obj/%.o,$(wildcard reference/define/*.c))

test: $(UNIT) $(addprefix build/,$(PROGRAMS) $(GEN_PROGRAMS) $(ATTEMPT_PROGRAMS)) $(FAKE) $(FAKE_UNIT) | $(INSTALL)
	tests/run $(UNIT) $(FAKE_UNIT)

# The linker takes from the archive what a test needs.
build/tests/units.a: $(UNIT_OBJS) | build/tests/
	$Qrm -f $@ && ar rcs $@ $^

build/tests/%: build/obj/tests/unit/%.o build/tests/units.a build/host.flags | $$(@D)/
	@echo "  LD $@"
	$Q$(CC) $(LDFLAGS) -o $@+ $< build/tests/units.a $(DEPS_LIBS) -lcmocka $(CURL_LIBS) -lcjson -lm && mv $@+ $@

$(UNIT:build/tests/%=build/obj/tests/unit/%.o): | $(call need,libcmocka-dev libcurl4-openssl-dev)

GPU_TESTS := $(patsubst tests/gpu/%.c,build/tests/gpu/%,$(wildcard tests/gpu/test_*.c)) \
             $(patsubst tests/gpu/%.cu,build/tests/gpu/%,$(wildcard tests/gpu/test_*.cu))

test-gpu: $(GPU_TESTS) $(PROGRAMS:%=build/%) $(GPU_PROGRAMS:%=build/%) $(ALL_TASKS:%=build/tasks/%/task.h) build/cells | $(INSTALL)
	@$(call given,$(GPUS),:)
	tests/run-gpu $(firstword $(GPUS)) $(arch.$(firstword $(GPUS))) '$(or $(RUN.$(firstword $(GPUS))),$(RUN))' $(GPU_TESTS) tests/gpu/tampered

# Those of optimized/include are whole in one file; what needs Hopper's own instructions says so
# elsewhere, and ends.
tested_arch = $(if $(findstring hopper,$1),90a,$(or $(arch.$(firstword $(GPUS))),90))
build/tests/gpu/%: tests/gpu/%.cu $(HEADERS) $(wildcard tests/gpu/*.cuh) build/cuda.flags | build/tests/gpu/ $(call need,nvcc g++)
	@echo "  NVCC $@"
	$Q$(NVCC) -std=c++17 -O2 -Ioptimized/include -gencode arch=compute_$(call tested_arch,$*)$(,)code=sm_$(call tested_arch,$*) -o $@+ $< && mv $@+ $@

build/tests/gpu/%: build/obj/tests/gpu/%.o $(filter-out %/baseline.o,$(OBJS_baseline)) build/tests/units.a build/cuda.flags | $$(@D)/
	@echo "  LD $@"
	$Q$(CXX) $(LDFLAGS) -o $@+ $(filter %.o %.a,$^) $(DEPS_LIBS) -L$(CUDA_LIB) -Wl,-rpath,$(CUDA_LIB) $(LIBS_baseline) -ldl -lm && mv $@+ $@

build/obj/tests/gpu/%.o: HOST_FLAGS += $(CUDA_FLAGS)

# ---- The rest -----------------------------------------------------------------

help:; @sed '/^$$/q; s/^# \{0,1\}//' Makefile
# What a model was paid for stays.
clean:; @[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name attempts -exec rm -rf {} +; rmdir build 2> /dev/null || :
print-%:; $(info $* = $(if $(filter $*,$(KEYS) $(KEYS:%=key.%)),(a key),$($*))) @:
