# import.mk: task files of PyTorch modules.  Nothing else needs Python, and no other goal needs this.
.PHONY: import
import: build/task
	@$(if $(KERNELBENCH),$(if $(MODULE)$(NAME),$(error import: KERNELBENCH or MODULE and NAME; not both)),$(if $(and $(MODULE),$(NAME)),,$(error import: say MODULE=file.py NAME=my_task, or KERNELBENCH=checkout)))
	$Q$(PYTHON) harness/import/import.py --task build/task $(if $(KERNELBENCH),--kernelbench '$(KERNELBENCH)' --suite '$(SUITE)','$(MODULE)' --name '$(NAME)')
