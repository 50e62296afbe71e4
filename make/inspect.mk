# inspect.mk: a closer look at kernels.  Nothing depends on what these find.

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
