# stamps.mk: what has changed, by content: programs and flags.

# build/id/PROGRAM is rewritten only if what the program does has changed (make/identity); .seen is
# when that was looked at last.  The recipe $(as_written) does nothing: make then looks at the
# file itself and sees whether it is newer, under -n, too (which is what the + is for).
as_written = +$(empty)

compile_uses := $(addprefix build/id/,compile gate confine)
verify_uses  := $(addprefix build/id/,verify recorder runner baseline)
time_uses    := $(addprefix build/id/,time runner baseline)

build/id/%: build/id/%.seen; $(as_written)
build/id/compile.seen: build/id/%.seen: harness/compile/%
$(programs:%=build/id/%.seen): build/id/%.seen: build/%
build/id/compile.seen $(programs:%=build/id/%.seen): make/identity
	@mkdir -p $(@D) && make/identity $(@:.seen=) $(filter-out make/identity,$^) && touch $@

# A file for each set of flags, with the identity of the compilers.  Only those whose contents are
# out of date have a rule, so that make -n, too, tells the truth.  (strip: make 4.3 does not always
# take the last newline off a file that it reads.)
text.build/host.flags  := $(call found,cc) $(HOST_FLAGS) $(CFLAGS) $(LINK) $(CURL_LIBS)
text.build/cuda.flags  := $(call found,cxx) $(call found,nvcc.id) $(CUDA_FLAGS) $(DEVICE_FLAGS) $(CUDA_LIBS)
text.build/archs.flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(ARCHS)
text.build/sanitize.flags := $(TOOLS) $(SMALL) $(KP_SMALL_MB) $(KP_SMALL_GFLOP) $(KP_SMALL_TRIES) $(KP_SANITIZE_SECONDS)
text.build/cells := $(or $(gpus),$(sort $(foreach f,$(wildcard build/*/*.time.json),$(word 2,$(subst /, ,$f))))) : $(tasks)
$(foreach g,$(gpus),$(eval text.build/$g/flags := $(call found,cxx) $(call found,nvcc.id) $(NVCCFLAGS) $(arch.$g)))

stamps := $(patsubst %,build/%,host.flags cuda.flags archs.flags sanitize.flags cells $(gpus:%=%/flags))
stale  := $(foreach s,$(stamps),$(if $(findstring [$(strip $(text.$s))],[$(strip $(file <$s))]),,$s))
$(stale): export TEXT = $(text.$@)
$(stale): FORCE; @mkdir -p $(@D) && printf '%s\n' "$$TEXT" > $@
