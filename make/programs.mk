# programs.mk: the harness's own programs.
#
# harness/FOLDER/PROGRAM_main.c is build/PROGRAM; no other file has a main.  Everything else of a
# folder is in build/lib/FOLDER.a, device code of all folders in build/lib/device.a.  uses.FOLDER
# is what a folder may include from others, and is linked with.

# What the CUDA reference consists of, under its door (cuda/exec.h).
reference := cuda_ops cuda_products cuda_base define task base

uses.base    :=
uses.task    := base
uses.compile := base
uses.gpu     := cuda_base task base
uses.define  := task base
uses.cuda_base := task base
uses.cuda_ops  := cuda_base define task base
uses.cuda_products := cuda_base define task base
uses.cuda    := $(reference)
uses.stay    := gpu task base
uses.replay  := cuda $(reference) gpu
uses.measure := stay cuda $(reference) gpu
uses.inspect := measure stay replay cuda $(reference) gpu
uses.record  := base
uses.report  := record task base
uses.llm     := base
uses.gen     := llm record task base
uses.judge   := gen llm record task base
uses.promote := gen llm record task base

$(foreach l,define cuda cuda_ops cuda_products cuda_base,$(eval folder.$l := reference/$l))
libraries := base task compile gpu stay define cuda_base cuda_ops cuda_products cuda replay measure inspect record report llm gen judge promote
$(foreach l,$(libraries),$(eval folder.$l ?= harness/$l))

# Folders whose programs need CUDA, and those whose programs call a model.
on_cuda := gpu cuda cuda_ops cuda_products cuda_base replay measure inspect
on_curl := llm gen judge promote

mains    := $(wildcard harness/*/*_main.c)
program   = $(patsubst %_main.c,%,$(notdir $1))
$(foreach m,$(mains),$(eval main.$(call program,$m) := $(patsubst %.c,build/obj/%.o,$m))$(eval in.$(call program,$m) := $(word 2,$(subst /, ,$m))))
programs := $(foreach m,$(mains),$(call program,$m))
cuda_programs := $(foreach p,$(programs),$(if $(filter $(on_cuda),$(in.$p)),$p))

objects = $(patsubst %.c,build/obj/%.o,$(filter-out %_main.c,$(wildcard $(folder.$1)/*.c)))
archive = $(1:%=build/lib/%.a)
device  := $(patsubst %.cu,build/obj/%.o,$(wildcard harness/*/*.cu reference/*/*.cu))
libs_of = $(if $(filter $(on_cuda),$1),$(CUDA_LIBS),$(if $(filter $(on_curl),$1),$(CURL_LIBS),$(JSON_LIBS)))
parts_of = $(call archive,$1 $(uses.$1)$(if $(filter $(on_cuda),$1), device))
grouped  = $(filter %.o,$1) -Wl,--start-group $(filter %.a,$1) -Wl,--end-group

# Everything is written beside its place and renamed: even kill -9 leaves no half a program.
$(programs:%=build/%): build/%: $$(main.$$*) $$(call parts_of,$$(in.$$*)) build/host.flags | \
        $$(if $$(filter $(on_curl),$$(in.$$*)),$(call need,libcurl4-openssl-dev))
	@echo "  LD $@"
	$Q$(if $(filter $(on_cuda),$(in.$*)),$(CXX),$(CC)) $(LINK) -o $@+ $(call grouped,$^) $(call libs_of,$(in.$*)) && mv $@+ $@
$(cuda_programs:%=build/%): build/cuda.flags

# Libraries that the recorder opens find a function of the driver in it.
build/recorder build/fake/recorder: harness/replay/offered.list
build/recorder build/fake/recorder: private LDFLAGS += -Wl,--dynamic-list=harness/replay/offered.list

$(call archive,$(libraries)): build/lib/%.a: $$(call objects,$$*)
build/lib/device.a: $(device)
$(call archive,$(libraries) device):
	@mkdir -p $(@D)
	$Qrm -f $@+ && $(AR) rcsD $@+ $(filter %.o,$^) && mv $@+ $@

# Objects of those folders that need no CUDA: unit tests link them on any machine.
without_cuda := $(addprefix build/obj/harness/,measure/tolerance.o measure/doubts.o gpu/values.o)
$(filter-out $(without_cuda),$(foreach l,$(on_cuda),$(call objects,$l))) $(cuda_programs:%=$$(main.%)): build/cuda.flags | $(call need,nvcc libseccomp-dev)
$(foreach l,$(on_cuda),build/obj/$(folder.$l)/%.o): HOST_FLAGS += $(CUDA_FLAGS)

# What the compiler says is kept, too: tests/e2e/style.sh has it be nothing.
build/obj/%.o: %.c build/host.flags | $(call need,gcc libcjson-dev libmd-dev)
	@mkdir -p $(@D) && echo "  CC $@"
	$Q$(CC) $(HOST_FLAGS) $(CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@+ $< 2> $(@:.o=.said) || { cat $(@:.o=.said) >&2; exit 1; }
	$Qcat $(@:.o=.said) >&2 && mv $@+ $@

build/obj/%.o: %.cu build/cuda.flags | $(call need,nvcc g++)
	@mkdir -p $(@D) && echo "  NVCC $@"
	$Q$(NVCC) $(DEVICE_FLAGS) $(CUDNN) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@+ $< && mv $@+ $@

-include $(wildcard build/obj/*/*/*.d build/obj/*/*/*/*.d)
