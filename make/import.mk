# import.mk: task files of PyTorch modules.  Nothing else needs Python, and no other goal needs this.
.PHONY: import
import: build/task
	@$(if $(KERNELBENCH),$(if $(MODULE)$(NAME),$(error import: KERNELBENCH or MODULE and NAME; not both)),$(if $(and $(MODULE),$(NAME)),,$(error import: say MODULE=file.py NAME=my_task, or KERNELBENCH=checkout)))
	$Q$(PYTHON) harness/import/import.py --task build/task $(if $(KERNELBENCH),--kernelbench '$(KERNELBENCH)' --suite '$(SUITE)','$(MODULE)' --name '$(NAME)')

$(if $(filter pytorch import conformance,$(goals)),$(call must_run,PYTHON,: PYTHON names a Python with PyTorch))

# KernelBench's own modules against the oracle, at full size: results/GPU/conformance.csv.  Tasks of
# another commit than the checkout's are left out.
.PHONY: conformance $(gpus:%=conformance-%)
ifneq ($(filter conformance,$(goals)),)
$(if $(KERNELBENCH),,$(error conformance: say KERNELBENCH=checkout))
$(if $(shell ls -d '$(KERNELBENCH)'/KernelBench/level* 2> /dev/null),,$(error conformance: $(KERNELBENCH): no KernelBench/level1/; KERNELBENCH is a checkout of github.com/ScalingIntelligence/KernelBench))
endif
conformance: $(gpus:%=conformance-%)
	@$(call given,$(gpus),:)
conforming := $(foreach t,$(if $(TASKS)$(SUITE),$(tasks),$(all_tasks)),$(filter tasks/%,$(task.$t)))
$(gpus:%=conformance-%): conformance-%: build/oracle
	$QKP_GPU=$* $(PYTHON) harness/import/conformance.py --kernelbench '$(KERNELBENCH)' --out results/$*/conformance.csv \
	    --run '$(call run,$*)' --gpus $(gpus_here) $(conforming)
