# tests.mk: tests without a GPU, and those that need one.

.PHONY: test test-gpu mutations

# Unit tests: each is linked with what the folder that it tests may use and that needs no CUDA.
unit_sources := $(wildcard tests/unit/*/test_*.c)
unit_tests   := $(patsubst %.c,build/tests/%,$(notdir $(unit_sources)))
plain_parts   = $(if $(filter $(on_cuda),$1),$(without_cuda)) $(call archive,$(filter-out $(on_cuda),$1 $(uses.$1)))
$(foreach s,$(unit_sources),$(eval build/tests/$(basename $(notdir $s)): $(s:%.c=build/obj/%.o) $(call plain_parts,$(word 3,$(subst /, ,$s)))))
$(unit_tests): build/obj/tests/unit/chosen_case.o build/host.flags | $(call need,libcmocka-dev libcurl4-openssl-dev)
	@mkdir -p $(@D) && echo "  LD $@"
	$Q$(CC) $(LINK) -o $@+ $(call grouped,$^) $(LINK_DEPS) -lcmocka $(CURL_LIBS) && mv $@+ $@
build/obj/tests/unit/%.o: HOST_FLAGS += -iquote tests/unit

# What end-to-end tests ask a server with.
build/ask: build/obj/tests/mock/ask.o $(call archive,llm base) build/host.flags | $(call need,libcurl4-openssl-dev)
	@echo "  LD $@"
	$Q$(CC) $(LINK) -o $@+ $(call grouped,$^) $(CURL_LIBS) && mv $@+ $@

# The GPU programs on a pretend GPU (tests/fake).  Its archive comes before the real ones that define
# the same, so the linker takes that from it: device code, vendor libraries, the reference.
# LD_LIBRARY_PATH, which names the driver's folder on some machines with a GPU, must not come first: RPATH, not RUNPATH.
fake_rpath    := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN'
fake_programs := $(addprefix build/fake/,recorder runner baseline verify time replay oracle calibrate choose contestant)
fake_objects   = $(patsubst %.c,build/obj/tests/fake/%.o,device.c elf.c exec.c knobs.c machine.c)
fake_parts     = $(call archive,measure replay) build/fake/fake.a $(call archive,stay gpu define task base) build/fake/libcudart.so
build/fake/fake.a: $(fake_objects)
	@mkdir -p $(@D)
	$Qrm -f $@+ && $(AR) rcsD $@+ $^ && mv $@+ $@
build/fake/libcuda.so.1: $(addprefix build/obj/tests/fake/,cuda.o graph.o knobs.o)
build/fake/libcudart.so: build/obj/tests/fake/cudart.o build/fake/libcuda.so.1
build/fake/libcuda.so.1 build/fake/libcudart.so:
	@mkdir -p $(@D)
	$Q$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) $(fake_rpath) -o $@+ $^ -ldl && mv $@+ $@
fake_link = $(CC) $(LDFLAGS) $(fake_rpath) -Wl,-rpath-link,build/fake -o $@+ $(call grouped,$^) build/fake/libcudart.so $(LINK_DEPS) $1 -lseccomp -ldl $(JSON_LIBS) && mv $@+ $@
$(fake_programs): build/fake/%: $$(main.$$*) $(fake_parts)
	@echo "  LD $@"
	$Q$(fake_link)
build/obj/tests/fake/%.o: HOST_FLAGS += $(CUDA_FLAGS) -fPIC -iquote tests/unit

# Unit tests of what needs a GPU: tests/fake/test_*.c, on the pretend one.
fake_tests := $(patsubst tests/fake/%.c,build/fake/%,$(wildcard tests/fake/test_*.c))
$(fake_tests): build/fake/%: build/obj/tests/fake/%.o build/obj/tests/unit/chosen_case.o $(fake_parts) | $(call need,libcmocka-dev)
	@echo "  LD $@"
	$Q$(call fake_link,-lcmocka)
# This one has the real reference, but for device code.
build/fake/test_plan build/fake/test_oracle: $(patsubst %,build/obj/reference/%.o,cuda/exec cuda/plan cuda/demand cuda_base/array) build/obj/tests/fake/host_ops.o
build/fake/test_conv: $(patsubst %,build/obj/reference/%.o,cuda_products/conv cuda_products/conv_cublas cuda_base/array)
$(patsubst %.c,build/obj/%.o,$(wildcard tests/fake/*.c)): build/cuda.flags

# NAMES chooses tests; an end-to-end test names the programs that it runs in a line `# uses: `.
with_cuda := $(if $(filter nvcc,$(lacks)),,yes)
c_tests   := $(unit_tests) $(if $(with_cuda),$(fake_tests))
e2e_tests := $(filter-out lib,$(patsubst tests/e2e/%.sh,%,$(wildcard tests/e2e/*.sh)))
$(foreach n,$(if $(filter test,$(goals)),$(filter-out $(e2e_tests) $(notdir $(c_tests)),$(NAMES))),$(error NAMES: no test '$n': there are $(e2e_tests) $(notdir $(c_tests))))
chosen    := $(if $(NAMES),$(filter $(NAMES:%=build/tests/%) $(NAMES:%=build/fake/%),$(c_tests)) $(filter $(NAMES),$(e2e_tests)),$(c_tests) $(e2e_tests))
scripts   := $(patsubst %,tests/e2e/%.sh,$(filter $(e2e_tests),$(chosen)))
used      := $(if $(filter test mutations,$(goals)),$(if $(scripts),$(sort $(shell sed -n 's/^. uses: //p' $(scripts)))))
host_programs := $(filter-out $(cuda_programs),$(programs))
test: $(filter build/%,$(chosen)) $(if $(NAMES),,$(host_programs:%=build/%)) $(if $(with_cuda),$(used),$(filter-out build/fake/%,$(used))) | $(INSTALL)
	tests/run $(chosen)

# Each rule of the judge and the timer broken in turn: a test has to notice.
mutations: test
	tests/mutate

# On a GPU.  Those of optimized/include are whole in one file; what needs Hopper's own instructions
# says so elsewhere, and ends.
gpu_c_tests  := $(patsubst tests/gpu/%.c,build/tests/gpu/%,$(wildcard tests/gpu/test_*.c))
gpu_cu_tests := $(patsubst tests/gpu/%.cu,build/tests/gpu/%,$(wildcard tests/gpu/test_*.cu))
test_gpu     := $(firstword $(gpus))
ifneq ($(gpus),) # without one nothing is compiled before that is said
test-gpu: $(gpu_c_tests) $(gpu_cu_tests) build/tests/gpu/ballast $(programs:%=build/%) $(all_tasks:%=build/tasks/%/task.h) build/cells | $(INSTALL)
endif
test-gpu:
	@$(call given,$(gpus),:)
	tests/run-gpu $(test_gpu) $(arch.$(test_gpu)) '$(call run,$(test_gpu))' $(gpu_c_tests) $(gpu_cu_tests) tests/gpu/tampered tests/gpu/memory tests/gpu/modules

$(gpu_cu_tests): build/tests/gpu/%: tests/gpu/%.cu $(wildcard tests/gpu/*.cuh)
# Without a GPU they are only compiled, and so are kernels: not optimised, and for the GPU alone (whose
# compiler reads the host's code, too), which takes a third.
compiled_tests   := $(gpu_cu_tests:build/tests/gpu/%=build/tests/compiled/%)
compiled_kernels := $(kernels:optimized/%.cu=build/tests/compiled/%)
tested_task       = $(firstword $(tasks_of.$1) $1)
$(compiled_tests):   build/tests/compiled/%: tests/gpu/%.cu $(wildcard tests/gpu/*.cuh)
$(compiled_kernels): build/tests/compiled/%: optimized/%.cu build/tasks/$$(call tested_task,$$(*F))/task.h
arch_of_test   = $(if $(findstring hopper,$1),90a,$(or $(arch.$(test_gpu)),90))
arch_of_kernel = $(if $(filter portable,$1),90,$(call archs_for,$1))
$(gpu_cu_tests) $(compiled_tests): tested_arch = $(call arch_of_test,$@)
$(compiled_kernels):               tested_arch = $(call arch_of_kernel,$(notdir $(@D)))
$(gpu_cu_tests):                       optimised = -O2
$(compiled_tests) $(compiled_kernels): optimised = -Xcicc -O0 -Xptxas -O0 -cubin
$(gpu_cu_tests) $(compiled_tests) $(compiled_kernels): $(wildcard optimized/include/*) build/cuda.flags | $(call need,nvcc g++)
	@mkdir -p $(@D) && echo "  NVCC $@"
	$Q$(NVCC) -std=c++17 $(optimised) -Ioptimized/include -Ibuild/tasks/$(call tested_task,$(@F)) -gencode arch=compute_$(tested_arch)$(,)code=sm_$(tested_arch) -o $@+ $(filter %.cu,$^) && mv $@+ $@

$(gpu_c_tests) build/tests/gpu/ballast: build/tests/gpu/%: build/obj/tests/gpu/%.o $(call archive,measure replay cuda gpu device $(reference)) build/cuda.flags
	@mkdir -p $(@D) && echo "  LD $@"
	$Q$(CXX) $(LINK) -o $@+ $(call grouped,$^) $(CUDA_LIBS) && mv $@+ $@
build/obj/tests/gpu/%.o: HOST_FLAGS += $(CUDA_FLAGS) -iquote tests/unit
