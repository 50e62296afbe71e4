# gen.mk: kernels by models: attempts, searches, promotion, and what is made of them.
#
# An attempt lies in build/attempts/MODE.rRaA/GPU/TASK.* (A counts within round R; A = 0 asks for
# ideas), so the rules of a cell serve it, too.  harness/gen/search decides which attempts are made,
# round after round, and starts a make for each round.

MODE    ?= branching
ROUNDS  ?= 5
WIDTH   ?= 6
SAMPLES ?= 1
MODES   ?= best_of_n repair contrastive branching
SEEDS   ?= 2
BUDGET  ?= 24
export ROUNDS WIDTH SEEDS BUDGET
.PHONY: gen search experiment prompt gen-ready can-measure attempted promoted judge judge-eval judge-ready reward-ready

# What calls a model sees its key.  It has no prerequisites, which would see it, too.
with_key := build/attempts/%.gen.json gen search experiment judge judge-eval
$(foreach k,$(KEYS),$(eval $(with_key): export $k := $$(value $k)))

# -n, and -q and -t, which measure nothing either.
dry = $(strip $(foreach f,n q t,$(findstring $f,$(firstword -$(MAKEFLAGS)))))
gen search experiment: export KP_MAKE  = $(MAKE) --no-print-directory GPUS='$(gpus)'
gen search experiment: export KP_KEYS  = $(KEYS)
gen search experiment: export KP_GPUS  = $(gpus)
gen search experiment: export KP_TASKS = $(tasks)
gen search experiment: export MODE_SET = $(if $(filter experiment,$(goals)),$(MODES),$(MODE))
gen search experiment: export SAMPLES_SET = $(if $(filter file,$(origin SAMPLES)),,$(SAMPLES))
gen search experiment:
	$(if $(filter-out $@,$(filter gen search experiment,$(goals))),@echo 'gen and search are two goals: one after the other' >&2; exit 2)
	+@harness/gen/search $@ $(if $(dry),--plan)

# Whether what a model is paid for can be compiled and measured here.
can-measure: $(gpus:%=can-measure-%) build/trivial.o
build/trivial.o: build/cuda.flags | $(call need,nvcc jq g++)
	@echo 'void trivial() {}' > build/trivial.cu
	@$(NVCC) --keep-dir build -MD -MF build/trivial.d -c -o $@ build/trivial.cu > build/trivial.log 2>&1 || \
	    { echo "$(NVCC) cannot compile an empty function: $$(grep -m1 . build/trivial.log)" >&2; rm -f $@; exit 4; }
can-measure-%: | $(call need,nvcc jq g++)
	@$(call own,$*) true

# What a search needs before it asks anything: the client.  What measures is built while a model thinks.
gen-ready: build/gen build/best build/cells $(foreach t,$(if $(filter gen-ready,$(goals)),$(tasks)),$(task.$t)) | $(INSTALL); @:

# The targets that harness/gen/search has listed.
attempted: $(if $(filter attempted,$(goals)),$(strip $(file <build/attempts/targets))); @:

present = $(kernel.$(notdir $(patsubst %/,%,$(dir $1)))/$(notdir $1))
# Where no call of a run can succeed (budget_stop), make ends: with -k it would say of each that it failed.
build/attempts/%.gen.json:
	$(if $(filter $(KP_RUN),$(file <build/attempts/ledger.stop)),$(error no call of this run can succeed, see above))
	$Qharness/gen/attempt make $* '$(call arch_of,$(gpu),)' $(task.$(*F)) $(call present,$*)

build/attempts/%.build.json: build/attempts/%.gen.json build/tasks/$$(*F)/task.h $(compile_uses) harness/compile/compile-attempt \
                             build/$$(notdir $$(*D))/flags | $(call need,nvcc jq g++)
	$Qharness/compile/compile-attempt $(task.$(*F)) build/attempts/$* '$(call arch_of,$(gpu),)'

build/attempts/%/peaks.json: build/$$(notdir $$*)/peaks.json
	@mkdir -p $(@D)
	$Qln -sf "$$(realpath --relative-to=$(@D) $<)" $@

# The best attempt of each cell is measured again, beside the kernel that is there.  Where there is
# nothing to promote, nothing is needed.
to_promote := $(if $(filter promoted,$(goals)),$(cells:%=promote/%))
.PHONY: $(to_promote)
promoted: $(to_promote)
$(to_promote): promote/%: $$(if $$(wildcard build/attempts/*/$$*.time.json),build/$$*.build.json build/$$(*D)/peaks.json build/uses/verify/$$(*F) build/uses/time/$$(*F)) build/best
	$QKP_GPU=$(*D) harness/promote/promote $(*D) $(task.$(*F)) '$(call arch_of,$(*D),)' $(call run,$(*D))

# listed LINES - what a goal does to each cell is read from build/asked: so many names are no argument.
listed = $(if $(dry),,$(file >build/asked,$1))

# MODE, ROUND, INDEX: of which attempt (else the first of gen).
prompt: build/gen $(foreach t,$(if $(filter prompt,$(goals)),$(tasks)),$(task.$t))
	@$(call given,$(cells),:)
	@$(call listed,$(foreach m,$(if $(filter file,$(origin MODE)),one_shot,$(MODE)),$(foreach c,$(cells),$m.r$(or $(ROUND),1)a$(or $(INDEX),1)/$c \
	    $(call arch_of,$(firstword $(subst /, ,$c)),) $(task.$(notdir $c)) $(kernel.$c)$(newline))))while read -r place; do \
	    harness/gen/attempt show $$place < /dev/null; done < build/asked

export: build/best
	harness/export/export build/export.d build/attempts

# Standard output is the answers, and nothing else.
reward-ready: $(addprefix build/,stay verify recorder runner baseline time gate confine task peaks gen)
reward:
	+@$(MAKE) --no-print-directory reward-ready < /dev/null >&2
	@harness/export/reward $(foreach g,$(gpus),'$g:$(arch.$g):$(call run,$g)')

# A second opinion of a model on the kernels that are verified.  Advice: nothing depends on it.  An
# answer that is none (3) does not cost the other kernels theirs.
judge-ready: build/judge $(if $(filter judge-ready,$(goals)),$(cells:%=build/%.verify.json))
judge:
	@$(call given,$(cells),:)
	+@$(MAKE) --no-print-directory GPUS='$(gpus)' judge-ready
	@$(call listed,$(foreach c,$(cells),$(if $(kernel.$c),$c $(task.$(notdir $c)) $(kernel.$c)$(newline))))status=0; \
	    export KP_RUN_STARTED=$${KP_RUN_STARTED:-$$(date +%s)}; while read -r place; do \
	    [ -z "$$place" ] || harness/judge/judge-cell $$place < /dev/null || { status=$$?; [ $$status = 3 ] || exit $$status; }; done < build/asked; exit $$status
judge-eval:
	+@$(MAKE) --no-print-directory build/judge build/task
	tests/judge-eval
