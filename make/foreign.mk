# foreign.mk: published kernels of others, judged by the rules of a cell: results/foreign/GPU.csv.

# The shapes that a checkout of CUDA-L2 has are tasks of hgemm here.
ifneq ($(filter foreign foreign-%,$(goals)),)
$(if $(CUDA_L2),,$(error foreign: say CUDA_L2=checkout, of github.com/deepreinforce-ai/CUDA-L2))
foreign_shapes := $(sort $(basename $(notdir $(wildcard $(CUDA_L2)/kernels/*/*.cu))))
$(if $(foreign_shapes),,$(error foreign: $(CUDA_L2)/kernels has no sources: CUDA_L2 is a checkout of github.com/deepreinforce-ai/CUDA-L2))
shapes.hgemm   := $(filter-out $(file <tasks/hgemm/shapes),$(foreign_shapes))
export CUDA_L2 CUTLASS
endif

.PHONY: foreign foreign-timed foreign-compiled
foreign: export KP_MAKE = $(MAKE) --no-print-directory GPUS='$(gpus)'
foreign: export KP_DRY = $(dry)
foreign:
	@$(call given,$(cells),mkdir -p build)
	+@$(file >build/foreign.cells,$(foreach g,$(gpus),$(foreach t,$(filter hgemm_%,$(tasks)),$g $(arch.$g) $t$(newline))))harness/inspect/foreign $(if $(TASKS),--all) build/foreign.cells
foreign_targets := $(if $(filter foreign-timed,$(goals)),$(strip $(file <build/foreign/targets)))
foreign-timed: $(foreign_targets); @:
foreign-compiled: $(foreign_targets:.time.json=.build.json); @:
build/foreign/%.build.json: build/foreign/%.cu build/tasks/$$(*F)/task.h $$(compile_uses) build/$$(notdir $$(*D))/flags \
                            build/foreign/toolkit/nvcc build/foreign/toolkit/include/foreign.cuh | $(call need,nvcc jq g++)
	$QNVCC=build/foreign/toolkit/nvcc harness/compile/compile $(task.$(*F)) build/foreign/$* '$(call arch_of,$(gpu),own)' build/foreign/$*.cu

build/foreign/%/peaks.json: build/%/peaks.json
	@mkdir -p $(@D)
	$Qln -sf ../../$*/peaks.json $@
