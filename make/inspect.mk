# inspect.mk: a closer look at kernels.  Nothing depends on what these find.

# A kernel against itself, and in other modes than the headline's (METHOD.md, *Other modes*).
aa:    $(cells:%=build/%.aa.json)
modes: $(cells:%=build/%.modes.json)
build/%.aa.json: build/%.verify.json build/$$(*D)/peaks.json build/uses/time/$$(*F)
	@rm -f $@
	$Q$(on_gpu) build/time --aa $(task.$(*F)) build/$*
	$(made)
build/%.modes.json: build/%.verify.json build/$$(*D)/peaks.json build/uses/time/$$(*F) | build/inputs
	@rm -f $@
	$Q$(with_inputs) $(commit) $(on_gpu) build/time --modes $(task.$(*F)) build/$*
	$(made)

# Where the time of a cell's kernel goes, as ncu sees it.
profile: $(if $(filter profile,$(goals)),$(cells:%=build/%.profile.json))
	@$(call given,$(cells),:)
build/%.profile.json: build/%.verify.json build/replay harness/inspect/profile harness/inspect/profile.jq FORCE
	$Q$(on_gpu) harness/inspect/profile $(task.$(*F)) build/$*

# Every kernel under compute-sanitizer.
sanitize: $(if $(filter sanitize,$(goals)),$(cells:%=build/%.sanitize.json))
	@$(call given,$(cells),harness/inspect/sanitize --summary $^)
build/%.sanitize.json: build/%.verify.json build/replay $(addprefix harness/inspect/,sanitize shrink shrink.jq) build/sanitize.flags
	$Q$(on_gpu) harness/inspect/sanitize $(task.$(*F)) build/$* $(TOOLS)

# How well the judge tells arithmetics apart: results/GPU/calibration.{csv,md}, of the tasks and of
# products of 27 to 16384 terms, also of f16.  A task that fails must not cost the others: a make -k of
# its own tries each, and the table says what is missing.  What TASKS does not name stays in both.
.PHONY: calibrate calibrated
calibrate:
	@$(call given,$(gpus),mkdir -p build)
	+@$(file >build/calibration.tasks,$(foreach t,$(products) $(all_tasks),$(call suite_of,$t)/$t$(if $(filter $t,$(products) $(tasks)), chosen)$(newline)))status=0; $(MAKE) --no-print-directory -k calibrated || status=4; $(if $(dry),exit $$status;) \
	$(foreach g,$(gpus),harness/inspect/calibration $g build/calibration.tasks;) exit $$status
products := $(foreach s,product half,$(addprefix $s_,$(file <harness/inspect/$s/shapes)))
$(foreach p,$(products),$(eval task.$p := build/tasks/$(firstword $(subst _, ,$p))/$p.json))
$(foreach p,$(products),$(task.$p)): build/tasks/%.json: harness/inspect/$$(*D)/template.json build/id/task
	@mkdir -p $(@D)
	$Qbuild/task expand $< $(*F) > $@+ && mv $@+ $@
calibrated: $(if $(filter calibrated,$(goals)),$(foreach g,$(gpus),$(patsubst %,build/$g/%.calibration.csv,$(products) $(tasks)))); @:
build/%.calibration.csv: $$(task.$$(*F)) build/id/calibrate
	@mkdir -p $(@D)
	$Q$(on_gpu) build/calibrate $(task.$(*F)) > $@+ && mv $@+ $@

# Compile checks for other architectures: a portable kernel for each of ARCHS, any other for its
# own.  No result depends on them.
archs     := $(if $(filter all,$(ARCHS)),80 86 89 90 100 120,$(ARCHS))
archs_for  = $(or $(if $(filter portable,$1),$(archs)),$(patsubst sm_%,%,$(filter sm_%,$1)),$(call arch_of,$1,own))
folders   := $(if $(archs),$(sort $(patsubst optimized/%/,%,$(dir $(kernels)))))
$(foreach d,$(folders),$(call set_kernels,archs/$d,$d))
.PHONY: arch-checks
arch-checks: $(foreach d,$(folders),$(foreach t,$(tasks),$(if $(kernel.archs/$d/$t),build/archs/$d/$t.build.json)))

build/archs/%.build.json: $$(kernel.archs/$$*) build/tasks/$$(*F)/task.h $(compile_uses) build/archs.flags | $(call need,nvcc jq g++)
	@mkdir -p $(@D)
	$Qharness/compile/compile $(task.$(*F)) build/archs/$* '$(call archs_for,$(*D))' $(kernel.archs/$*)

# The fastest of the ways that kernels know (// tuned: NAME), for each shape.
.PHONY: tune tuned
tune: export KP_MAKE = $(MAKE) --no-print-directory GPUS='$(gpus)'
tune: export KP_DRY = $(dry)
tune:
	@$(call given,$(cells),mkdir -p build)
	+@$(file >build/tune.cells,$(foreach c,$(cells),$(if $(kernel.$c),$c $(kernel.$c) $(task.$(notdir $c))$(newline))))harness/inspect/tune build/tune.cells
tuned: $(if $(filter tuned,$(goals)),$(strip $(file <build/tune/targets))); @:
build/tune/%.build.json: build/tune/%.cu build/tasks/$$(*F)/task.h $(compile_uses) build/$$(*D)/flags | $(call need,nvcc jq g++)
	$Qharness/compile/compile $(task.$(*F)) build/tune/$* '$(call arch_of,$(gpu),$(kernel.$*))' build/tune/$*.cu
build/tune/%.times: build/tune/%.list build/choose build/contestant
	$Q$(on_gpu) build/choose < $< >> build/tune/times.tsv

# What PyTorch needs for the chosen tasks, in WAYS ("eager graph": without torch.compile, which takes
# most of the time): one process a GPU, which keeps the times of other tasks and ways.
# The file is not its target, as a make that fails deletes those.
PYTHON ?= python3
.PHONY: pytorch $(gpus:%=pytorch-%)
pytorch: $(gpus:%=pytorch-%)
	@$(call given,$(gpus),:)
$(gpus:%=pytorch-%): pytorch-%: $(if $(filter pytorch,$(goals)),$(foreach t,$(tasks),$(task.$t)))
	$QKP_GPU=$* $(PYTHON) harness/pytorch/times.py $(if $(WAYS),--ways '$(WAYS)') --run '$(call run,$*)' \
	    --gpus $(gpus_here) results/pytorch/$*.csv $^
