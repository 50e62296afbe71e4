# Usage: make [-j N] [TARGET] [GPUS="h200 a100"] [SUITE="level1 crfm"] [TASKS="l1_019 l2_076"]
#
#   report      tables and figures from results/; needs no GPU, no nvcc (the default)
#   reproduce   build, verify, time every cell with a kernel (or those named) on this machine's GPUs,
#               compare with the recorded results, record where none exist, then report
#   build       compile each kernel and check what it may contain
#   verify      check each kernel against its task
#   time        measure each kernel, alone on a GPU
#   aa          measure each kernel against itself: the harness's own noise and bias
#   modes       measure each kernel back to back (offline) and after gaps (server)
#   compare     this machine's measurements against results/, cell by cell
#   record      copy this machine's measurements, other modes' too, and attempts into results/
#   failed      list measured cells that did not pass, and recorded results (or how many) that are stale
#   pytorch     PyTorch's times for the tasks, into results/pytorch/: PYTHON names a python with torch,
#               WAYS="eager graph" leaves torch.compile out
#   import      a PyTorch module as a task, tasks/my/NAME.json: MODULE=file.py NAME=my_task; or all of
#               KernelBench: KERNELBENCH=checkout.  PYTHON as for pytorch
#   conformance KernelBench's modules against the oracle, in float64: KERNELBENCH=checkout
#   tasks       the chosen tasks: ops, bytes, flops, floor, memory, recorded verdict, kernels, flags
#   gen         ask a model for one more kernel of each cell; keep it where it is better
#   search      spend a budget on finding the best kernel: MODE=branching, contrastive, repair or
#               best_of_n (a control, which SEED_KERNEL=1 shows the cell's kernel).  Only gen,
#               search, experiment, judge and judge-eval call a model
#   experiment  compare MODES of search at an equal BUDGET of calls a task, SEEDS searches of each
#   prompt      print what gen would send, and send nothing
#   profile     where the time of each kernel goes, as ncu sees it
#   calibrate   how well the judge tells arithmetics apart, for each task
#   tune        the fastest of the ways that a family's kernel knows, for each shape: SUITE=hgemm
#   foreign     CUDA-L2's published kernels by the rules of a cell: SUITE=hgemm CUDA_L2=checkout
#   sanitize    every kernel under compute-sanitizer: TOOLS="memcheck racecheck", SMALL=1
#   export      attempts as data for training, in build/export.d
#   judge       a second opinion on kernels: does this one cheat?  Advice only; judge-eval rates it
#   reward      judge kernels read from standard input, one JSON line each
#   deps        unpack the packages needed into PREFIX (default deps/); needs no root
#   test        unit and end-to-end tests; needs no GPU.  NAMES="steps test_tape": just those
#   mutations   break each rule of the judge and the timer in turn: a test notices
#   test-gpu    the tests that need a GPU
#   clean       remove build/, but for what a model was paid for (build/attempts)
#   print-VAR   show the value of the variable VAR
#
#   make reproduce                                   the published numbers, on this machine
#   make time TASKS=l2_076                           one task; a unique prefix will do, % is a wildcard
#   make build/h200/l1_019_relu.time.json            one cell, one step
#   make build ARCHS=all                             compile every kernel for each architecture
#   make time TASKS=l1_019 RUN='harness/gpu/with-gpu ncu'     under a profiler
#   make gen TASKS=l2_076 LLM=anthropic:MODEL        one attempt; the key comes from the environment
#   make -n search TASKS=l2_076 LLM=openai:MODEL     how many calls, what they cost, and the most
#   make -j64 time GPUS="a100 h200" RUN.a100='srun --gres=gpu:a100:1' RUN.h200='srun --gres=gpu:h200:1'
#
# A cell is one GPU and one task.  In every rule of a cell % is GPU/TASK, so $(*D) is its GPU
# and $(*F) its task.  Its kernel is the first found of TASK.cu and SUITE.cu, in optimized/GPU/,
# then optimized/sm_XX/ (XX: its architecture, 80 86 89 90a 100a 120a), then optimized/portable/.
# A kernel that does not compile, crashes or computes something else is a result: its step writes the
# verdict and succeeds.  A step fails only where the machine does, and the next make repeats just
# those.  A result depends on the content of what it uses: an edited comment measures nothing again.
#
# LLM is openai:MODEL, responses:MODEL, anthropic:MODEL or replay:DIR (transcripts, no network);
# OPENAI_API_KEY, ANTHROPIC_API_KEY or the variable that LLM_KEY_ENV names holds the key,
# OPENAI_BASE_URL and ANTHROPIC_BASE_URL the server.  REPRODUCE.md has the rest: LLM_..., BUDGET_...
#
# NVCC and CUDA_HOME name the toolkit, CUDNN_HOME cuDNN; CC, CXX, CFLAGS, LDFLAGS, NVCCFLAGS are as
# usual; V=1 shows commands.  A GPU that make/toolchain.mk lacks: GPUS=rtx2000ada arch.rtx2000ada=89.

$(if $(filter grouped-target,$(.FEATURES)),,$(error GNU make 4.3 or newer is needed; this is $(MAKE_VERSION)))
$(if $(word 2,$(CURDIR)),$(error make cannot work in a folder whose path has a space: $(CURDIR)))
include make/variables.mk

PREFIX ?= deps
RUN    ?= harness/gpu/with-gpu
TOOLS  ?= memcheck racecheck

MAKEFLAGS  += -r
SHELL       = /bin/sh
.SHELLFLAGS = -ec
Q          := $(if $(V),,@)
,          := ,
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:
.PHONY: FORCE report reproduce build verify time aa modes compare record failed tasks profile sanitize \
        export reward deps install clean help compiled

report:
goals := $(or $(MAKECMDGOALS),report)
include make/toolchain.mk make/programs.mk make/foreign.mk

# ---- Tasks, kernels, cells ----------------------------------------------------
# A suite is a folder of tasks/: a file for each task, or, for a family, a template.json and
# a list of shapes, one word each; the shape 64_64_64 of hgemm is the task hgemm_64_64_64.

task_files := $(filter-out %/template.json,$(wildcard tasks/*/*.json))
families   := $(patsubst tasks/%/template.json,%,$(wildcard tasks/*/template.json))
named       = $(basename $(notdir $1))
suite_of    = $(notdir $(patsubst %/,%,$(dir $(task.$1))))
$(foreach f,$(task_files),$(eval task.$(call named,$f) := $f))
# Suites of which only what SUITE or TASKS names is built and measured.
aside  := my v0
suites := $(sort $(families) $(notdir $(patsubst %/,%,$(dir $(task_files)))))
$(foreach s,$(suites),$(eval tasks_of.$s := $(call named,$(filter tasks/$s/%,$(task_files)))))
$(foreach s,$(families),$(eval tasks_of.$s += $(addprefix $s_,$(file <tasks/$s/shapes) $(shapes.$s))))
$(foreach s,$(families),$(foreach t,$(tasks_of.$s),$(if $(task.$t),,$(eval task.$t := build/tasks/$s/$t.json))))
every_task := $(foreach s,$(suites),$(tasks_of.$s))
all_tasks  := $(sort $(every_task))
$(if $(filter $(words $(all_tasks)),$(words $(every_task))),,$(error two tasks have the same name: $(strip $(foreach t,$(all_tasks),$(if $(word 2,$(filter $t,$(every_task))),$t in $(foreach s,$(suites),$(if $(filter $t,$(tasks_of.$s)),tasks/$s)))))))

asked_tasks := $(filter-out peaks,$(foreach g,$(filter build/%.json,$(goals)),$(firstword $(subst ., ,$(notdir $g)))))
$(foreach t,$(filter-out $(all_tasks),$(asked_tasks)),$(error no task '$t'; `make tasks` lists them))

# The tasks that a word of TASKS stands for: its name, a pattern with %, or a unique prefix.
choose = $(or $(filter $1,$(all_tasks)),$(call unique,$1,$(filter $1%,$(all_tasks))))
unique = $(if $2,$(if $(word 2,$2),$(error TASKS: '$1' could be $(wordlist 1,4,$2)$(if $(word 5,$2), ...)),$2),$(error TASKS: no task begins with '$1'; `make tasks` lists them))
$(foreach s,$(if $(filter import,$(goals)),,$(filter-out $(suites),$(SUITE))),$(error SUITE: no suite '$s'; there are $(suites)))
tasks := $(or $(sort $(foreach t,$(TASKS),$(call choose,$t))),$(if $(SUITE),$(all_tasks),$(sort $(foreach s,$(filter-out $(aside),$(suites)),$(tasks_of.$s)))))
tasks := $(if $(strip $(SUITE)),$(or $(filter $(foreach s,$(SUITE),$(tasks_of.$s)),$(tasks)),$(if $(TASKS),$(error TASKS: none of '$(TASKS)' is in SUITE '$(SUITE)'))),$(tasks))
# Other modes are measured of a family's sample, if it has one, unless TASKS names others.
unsampled = $(foreach s,$(families),$(if $(wildcard tasks/$s/sample),$(filter-out $(addprefix $s_,$(file <tasks/$s/sample)),$(tasks_of.$s))))
tasks := $(if $(TASKS)$(filter-out modes,$(goals)),$(tasks),$(filter-out $(unsampled),$(tasks)))
cells := $(foreach g,$(gpus),$(tasks:%=$g/%))

# Only portable kernels keep to the instructions that later architectures have, too.
arch_of = $(arch.$1)$(if $(filter optimized/portable/%,$2),,$(if $(filter 80 86 89,$(arch.$1)),,a))

# kernel.GPU/TASK is the kernel of a cell: later folders overrule earlier ones, and in a folder the
# kernel of a task that of its suite.
kernels := $(wildcard optimized/*/*.cu)
$(foreach k,$(kernels),$(if $(filter $(call named,$k),$(all_tasks) $(suites)),,$(error $k: no task and no suite has this name: rename the kernel; `make tasks` lists the tasks)))
of_suites  := $(foreach k,$(kernels),$(if $(filter $(call named,$k),$(suites)),$k))
set_kernel  = $(foreach k,$2,$(foreach t,$(or $(tasks_of.$(call named,$k)),$(call named,$k)),$(eval kernel.$1/$t := $k)))
set_kernels = $(call set_kernel,$1,$(filter optimized/$2/%,$(of_suites)))$(call set_kernel,$1,$(filter-out $(of_suites),$(filter optimized/$2/%,$(kernels))))
$(foreach g,$(gpus),$(foreach d,portable sm_$(call arch_of,$g,own) $g,$(call set_kernels,$g,$d)))

# A kernel that is now found in another folder may be older than what was built: timestamps
# cannot tell, so the path in each build.json is compared, unless build/GPU/kernels says that none
# had moved where the kernels were these.
kernels_of = $(foreach t,$(all_tasks),$(or $(kernel.$1/$t),missing))
is_in      = $(findstring [$(strip $1)],[$(strip $(file <$2))])
moved_of   = $(foreach b,$(wildcard $(all_tasks:%=build/$1/%.build.json)),$(if $(findstring "$(or $(kernel.$(b:build/%.build.json=%)),missing)",$(file <$b)),,$b))
$(foreach g,$(gpus),$(eval moved.$g := $(if $(call is_in,$(call kernels_of,$g),build/$g/kernels),,$(call moved_of,$g))))
$(foreach g,$(gpus),$(moved.$g)): FORCE

include make/stamps.mk

# ---- Steps of a cell ----------------------------------------------------------

# given SOMETHING,COMMAND: where there is nothing, the recipe says why there is no GPU, and ends.
given = $(if $(strip $1),$2,make/detect --why >&2; exit 4)

# The command prefix that owns a GPU, and the GPU that it has to be.  On this machine, all commands of a make share
# one list of its GPUs, which make/lock removes at the start.
gpu    = $(notdir $(*D))
run    = $(or $(RUN.$1),$(RUN))
own    = KP_GPU=$1 $(if $(filter harness/gpu/with-gpu,$(firstword $(run))),KP_GPU_LIST=build/gpus.list) $(run)
on_gpu = $(call own,$(gpu))
# How many GPUs of the kind $* this machine has, for what starts a process on each.
gpus_here = "$$(harness/gpu/list-gpus 2> /dev/null | awk -v gpu=$* '$$3 == gpu' | wc -l)"
# A step's old result goes before it starts, and a step that leaves none has failed, whatever its
# prefix says: srun ends with 0 where a node went down.  (ls has NFS look again.)
made   = @ls $(@D) > /dev/null; [ -e $@ ] || { echo '$@: not made: its job ended early' >&2; exit 4; }
# The hashes of what a result is of; where that cannot be read, there is no result.
with_inputs = KP_INPUTS=$$(build/inputs $(task.$(*F)) $(kernel.$*)) && export KP_INPUTS &&
commit = KP_COMMIT=$${KP_COMMIT:-$$(git describe --always --dirty --abbrev=12 2>/dev/null || :)}

build:  $(cells:%=build/%.build.json) $(if $(ARCHS),arch-checks)
verify: $(cells:%=build/%.verify.json)
time:   $(cells:%=build/%.time.json)
build verify time aa modes:
	@$(call given,$(cells)$(if $(filter build,$@),$(ARCHS)),:)

# A task of a family is a file like the others, made from its template.
$(foreach s,$(families),$(patsubst %,build/tasks/$s/%.json,$(filter-out $(call named,$(task_files)),$(tasks_of.$s)))): build/tasks/%.json: tasks/$$(*D)/template.json build/id/task
	@mkdir -p $(@D)
	$Qbuild/task expand $< $(*F) > $@+ && mv $@+ $@

build/tasks/%/task.h: $$(task.$$*) build/id/task
	@mkdir -p $(@D)
	$Q{ build/task header $< && jq -cS 'del(.title, .source, .notes)' $< | sha256sum | sed 's|.*|/* & */|'; } > $@+ && mv $@+ $@

build/%.build.json: $$(kernel.$$*) build/tasks/$$(*F)/task.h $(compile_uses) \
                    build/$$(*D)/flags | build/$$(*D)/kernels build/inputs $(call need,nvcc jq g++)
	@mkdir -p $(@D)
	$Q$(with_inputs) harness/compile/compile $(task.$(*F)) build/$* '$(call arch_of,$(*D),$(kernel.$*))' $(kernel.$*)

# What of a build can alter a number.  compile rewrites it only where that has changed, so a
# comment in a kernel or a header compiles it again, and measures nothing.
build/%.code: build/%.build.json; $(as_written)

build/%.verify.json: build/%.code build/uses/verify/$$(*F) | build/%.build.json build/stay $(COMPILED)
	@rm -f $@
	$Q$(on_gpu) build/verify $(task.$(*F)) build/$*
	$(made)

build/%.time.json: build/%.verify.json build/$$(*D)/peaks.json build/uses/time/$$(*F) | build/report build/inputs build/cells $(if $(PROFILE),build/replay)
	@rm -f $@
	$Q$(with_inputs) $(commit) $(on_gpu) build/time $(task.$(*F)) build/$*
	$(made)
	@$(if $(and $(PROFILE),$(filter attempts/%,$*)),$(on_gpu) harness/inspect/profile $(task.$(*F)) build/$*)
	@harness/report/progress $*

$(gpus:%=build/%/peaks.json): build/%/peaks.json: build/id/peaks
	@mkdir -p $(@D)
	$Q$(call own,$*) build/peaks $@
	$(made)

# ---- Results: published data, never a target of measurement -------------------

draw = build/report $(if $(SUITE),--suites '$(SUITE)')
report: build/report | $(INSTALL)
	$(draw)

# Compiles on all cores (make/toolchain.mk), and measures after that (COMPILED makes each measurement
# wait for every kernel); where no task is named, those with a kernel.  A machine that fails on one
# cell must not cost the others: a make -k of its own tries each.  Nor must a damaged file of one (3).
with_kernel = $(foreach t,$(tasks),$(if $(strip $(foreach g,$(gpus),$(kernel.$g/$t))),$t))
compiled: $(cells:%=build/%.build.json)
reproduce: build/report $(if $(gpus),build/cells build/compare) | $(INSTALL)
ifneq ($(gpus),)
	+@status=0; $(MAKE) --no-print-directory -k COMPILED=compiled TASKS='$(if $(SUITE)$(TASKS),$(TASKS),$(with_kernel))' time || status=4; $(if $(dry),exit $$status;) \
	damaged=0; for step in compare new; do harness/record/record-results $$step || damaged=$$?; case $$damaged in 0|3) ;; *) exit $$damaged ;; esac; done; $(draw); \
	[ $$status = 0 ] || echo 'reproduce: the machine failed on some cells, see above; the next make reproduce tries those again' >&2; \
	[ $$damaged = 0 ] || exit $$damaged; exit $$status
else
	@make/detect --why
	@echo 'reproduce: nothing is measured; the recorded results are drawn'
	$(draw)
endif

compare: build/compare build/cells
	@$(call given,$(gpus)$(wildcard build/*/*.time.json),:)
	harness/record/record-results compare

# What cannot be recorded costs no other: results that are of another commit, say, no mode and no attempt.
attempts_here := $(wildcard build/attempts)
record: build/cells $(if $(attempts_here),build/best)
	@status=0; for step in 'results all' modes$(if $(attempts_here), 'results attempts'); do harness/record/record-$$step || status=$$?; done; exit $$status

failed: build/report
	@build/report --failed build

tasks: build/report # asked in a file, as so many names are no argument
	@$(file >build/tasks.asked,$(foreach t,$(tasks),$(call suite_of,$t) $t$(newline)))build/report --tasks-of '$(firstword $(gpus))' < build/tasks.asked

include make/inspect.mk make/import.mk make/gen.mk make/tests.mk

help:; @sed '/^$$/q; s/^# \{0,1\}//' Makefile
# What a model was paid for stays.
clean:; @[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name attempts -exec rm -rf {} +; rmdir build 2> /dev/null || :
print-%:; $(info $* = $(if $(filter $*,$(KEYS)),(a key),$($*))) @:
