# stamps.mk: what has changed: programs and flags, by content, and headers.

# build/id/PROGRAM is rewritten only if what the program does has changed (make/identity); .seen is
# when that was looked at last.  The recipe $(as_written) does nothing: make then looks at the
# file itself and sees whether it is newer, under -n, too (which is what the + is for).
as_written = +$(empty)

compile_uses := $(addprefix build/id/,compile gate confine)

build/id/%: build/id/%.seen; $(as_written)
build/id/compile.seen: build/id/%.seen: harness/compile/%
$(programs:%=build/id/%.seen): build/id/%.seen: build/%
build/id/compile.seen $(programs:%=build/id/%.seen): make/identity
	@mkdir -p $(@D) && make/identity $(@:.seen=) $(filter-out make/identity,$^) && touch $@

# build/uses/STEP/TASK is what of the programs that measure can alter the numbers of a task: a hash of
# sources, as `inputs --uses` writes it, and of flags.  It is looked at where one of these programs
# does something else, so what has to change before a cell is measured again is both.
# A task that is added makes its own alone.
verify_programs := verify recorder runner baseline
time_programs   := time runner baseline

$(foreach s,verify time,$(eval build/uses/$s.seen: $(addprefix build/id/,$($s_programs))))
build/uses/verify.seen build/uses/time.seen: build/tasks.list | build/inputs build/cuda.flags
	@mkdir -p $(@:.seen=) && sed 's/ *-gencode [^ ]*//g' build/host.flags build/cuda.flags | build/inputs $(if $(filter build/id/%,$?),--uses,--missing-uses) $(@:.seen=) $< && touch $@
$(all_tasks:%=build/uses/verify/%): build/uses/verify.seen; $(as_written)
$(all_tasks:%=build/uses/time/%): build/uses/time.seen; $(as_written)

# A file for each set of flags, with the identity of the compilers.  Only those whose contents are
# out of date have a rule, so that make -n, too, tells the truth.  (strip: make 4.3 does not always
# take the last newline off a file that it reads.)
text.build/host.flags  := $(call found,cc) $(HOST_FLAGS) $(CFLAGS) $(LINK) $(CURL_LIBS)
text.build/cuda.flags  := $(call found,cxx) $(call found,nvcc.id) $(CUDA_FLAGS) $(DEVICE_FLAGS) $(CUDA_LIBS)
text.build/archs.flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(ARCHS)
text.build/sanitize.flags := $(TOOLS) $(SMALL) $(KP_SMALL_MB) $(KP_SMALL_GFLOP) $(KP_SMALL_TRIES) $(KP_SANITIZE_SECONDS)
text.build/cells := $(or $(gpus),$(sort $(foreach f,$(wildcard build/*/*.time.json build/*/*.modes.json),$(word 2,$(subst /, ,$f))))) : $(tasks)
text.build/tasks.list := $(sort $(foreach s,$(suites),$(addprefix $s/,$(tasks_of.$s))))
$(foreach g,$(gpus),$(eval text.build/$g/kernels := $(if $(moved.$g),moved,$(call kernels_of,$g))))
$(foreach g,$(gpus),$(eval text.build/$g/flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(arch.$g)))

stamps := $(patsubst %,build/%,host.flags cuda.flags archs.flags sanitize.flags cells tasks.list $(gpus:%=%/flags) $(gpus:%=%/kernels))
stale  := $(foreach s,$(stamps),$(if $(call is_in,$(text.$s),$s),,$s))
$(stale): export TEXT = $(text.$@)
$(stale): FORCE; @mkdir -p $(@D) && printf '%s\n' "$$TEXT" > $@

# Which headers of optimized/include each kernel includes (HEADERS: any, it lacked one); one that is
# gone repeats those that did.  (`include` would make 5000 files targets, for a quarter of a second.)
HEADERS := $(wildcard optimized/include/*)
define newline


endef
$(eval $(foreach f,$(wildcard $(gpus:%=build/%/*.d) build/archs/*/*.d build/attempts/*/*/*.d build/tune/*/*.d build/foreign/*/*.d),$(file <$f)$(newline)))
optimized/include/%:;
