# toolchain.mk: this machine: compilers, packages, GPUs, and the flags that follow from them.

CFLAGS    ?= -O2 -g
NVCCFLAGS ?= -lineinfo
CC  := $(if $(filter default,$(origin CC)),gcc,$(CC))
CXX := $(if $(filter default,$(origin CXX)),g++,$(CXX))

# Architectures of the GPUs that are known by name.
$(foreach g,a100 a30,$(eval arch.$g := 80))
$(foreach g,a10 a10g a40 rtx3090 rtxa6000,$(eval arch.$g := 86))
$(foreach g,l4 l40 l40s rtx4090,$(eval arch.$g := 89))
$(foreach g,h100 h200 gh200,$(eval arch.$g := 90))
$(foreach g,b200 gb200,$(eval arch.$g := 100))
arch.rtx5090 := 120
known_gpus := $(sort $(patsubst arch.%,%,$(filter arch.%,$(.VARIABLES))))

# Keys of models are for the client alone.  No recipe sees them but those that export them again
# (make/gen.mk), and these have no prerequisites, to which make would hand them on.
KEYS := $(sort OPENAI_API_KEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN OPENROUTER_API_KEY GEMINI_API_KEY \
        DEEPSEEK_API_KEY TOGETHER_API_KEY $(LLM_KEY_ENV))
$(foreach k,$(KEYS),$(if $(and $(filter command,$(origin $k)),$(value $k)),$(error $k on the command line of make is for everyone to read: put it into the environment)))
KEYS := $(foreach k,$(KEYS),$(if $(filter environment,$(origin $k)),$k))
keyless := $(if $(KEYS),env $(KEYS:%=-u %))
unexport $(KEYS)
# Nor an exported `set -e` or `set -C`: each bash would take it over, and a kernel that does not compile end make.
unexport SHELLOPTS

# One make at a time in a tree: another waits here.  A dry run and a look around need not.
free  := help print-%
idle  := $(or $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),$(if $(filter-out $(free),$(goals)),,free))
BUSY  := $(if $(idle),,$(shell $(keyless) make/lock "$$PPID"))
$(if $(BUSY),$(error $(BUSY)))

# One call of make/detect finds compilers and their identity, packages that are missing and, where
# a goal has cells but does not name their GPU, the GPUs.
goal_gpus := $(sort $(foreach f,$(filter-out build/archs/%,$(filter build/%.json,$(goals))),$(notdir $(patsubst %/,%,$(dir $f)))))
no_cells  := report compare record failed tasks deps test clean help print-NVCC print-CUDA_HOME
detect    := $(if $(GPUS)$(goal_gpus),,$(if $(filter-out $(no_cells),$(goals)),--gpus))
FOUND     := $(shell $(keyless) make/detect $(detect) '$(PREFIX)' '$(NVCC)' '$(CUDA_HOME)' '$(CC)' '$(CXX)')
found      = $(patsubst $1=%,%,$(filter $1=%,$(FOUND)))

# Goals that build everything use all cores, unless -j says otherwise.
MAKEFLAGS += $(if $(filter reproduce foreign test test-gpu,$(goals)),-j$(shell nproc))

NVCC_told := $(NVCC)
NVCC      := $(or $(NVCC),$(call found,nvcc))
CUDA_HOME := $(or $(CUDA_HOME),$(call found,cuda))
CUDA_LIB  := $(patsubst %/,%,$(dir $(firstword $(wildcard $(addsuffix /libcudart.so,$(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(CUDA_HOME)/lib/$(call found,multiarch))))))
export NVCC CUDA_HOME CUDA_LIB CXX NVCCFLAGS
export PATH := $(PATH):$(abspath $(PREFIX))/usr/bin

$(foreach g,$(call found,gpu),$(eval arch.$(subst :, := ,$g)))
gpus := $(or $(GPUS),$(goal_gpus),$(sort $(foreach g,$(call found,gpu),$(firstword $(subst :, ,$g)))))
$(foreach g,$(gpus),$(if $(arch.$g),,$(error unknown GPU '$g': known are $(known_gpus); of another say its architecture, e.g. arch.$g=90)))

# What is no architecture is not left to nvcc, which would be blamed: numbers of at least 80, in ARCHS with the
# suffix of those that go with no other (90a, 100f).
no_number = $(shell printf '%s\n' '$(subst $(space),' ',$(strip $(subst ','\'',$1)))' | grep -vxE '([89][0-9]|[1-9][0-9]{2})$2')
space    := $(subst ,, )
$(foreach g,$(gpus),$(if $(filter command environment,$(origin arch.$g)),$(if $(call no_number,$(arch.$g))$(word 2,$(arch.$g)),$(error arch.$g=$(arch.$g): an architecture is a number of at least 80, as 86 or 90))))
$(if $(ARCHS),$(if $(call no_number,$(patsubst all,80,$(ARCHS)),[af]?),$(error ARCHS=$(ARCHS): 'all', or numbers of at least 80, as 86 or 90a)))

# A prefix that is not there is not left to the shell: its first word that is no assignment.
no_command = $(shell set -f; for w in $1; do case $$w in ([A-Za-z_]*=*) ;; (*) command -v "$$w" > /dev/null || echo "$$w"; break ;; esac; done 2> /dev/null)
must_run   = $(if $(call no_command,$(value $1)),$(error $1: no command '$(call no_command,$(value $1))' here$2))
runs      := $(sort $(foreach g,$(gpus),$(if $(filter-out undefined,$(origin RUN.$g)),RUN.$g,RUN)))
$(if $(filter-out $(no_cells) $(free) build tasks,$(goals)),$(foreach r,$(runs),$(if $(filter file undefined,$(origin $r)),,$(call must_run,$r,: RUN is the prefix that runs a command with a free GPU))))

# need-X stands where the missing package X keeps something from being made: it says so in one
# line.  Main goals try to install what is missing first.
lacks   := $(call found,lacks)
need     = $(addprefix need-,$(filter $1,$(lacks)))
INSTALL := $(if $(lacks),$(if $(filter reproduce test test-gpu gen search,$(goals)),install))
told.gcc = $(CC)
told.g++ = $(CXX)
told.nvcc = $(NVCC_told)
need-%: $(INSTALL); @make/deps check $* '$(PREFIX)' '$(told.$*)'
install:; @make/deps install '$(PREFIX)' $(lacks)
deps:; make/deps unpack '$(PREFIX)'

# ---- Flags --------------------------------------------------------------------

isystem     = $(addprefix -isystem ,$(filter-out /usr/include,$1))
deps_lib   := $(abspath $(PREFIX))/usr/lib/$(call found,multiarch)
DEPS_FLAGS := -I$(abspath $(PREFIX))/usr/include -I$(abspath $(PREFIX))/usr/include/$(call found,multiarch)
CUDNN_H    := $(firstword $(wildcard $(addsuffix /cudnn.h,$(CUDNN_HOME)/include $(CUDA_HOME)/include /usr/include /usr/include/$(call found,multiarch))))
CUDNN      := $(if $(CUDNN_H),$(call isystem,$(patsubst %/,%,$(dir $(CUDNN_H)))),-DKP_NO_CUDNN)

HOST_FLAGS := -std=gnu11 -Wall -Wextra -iquote harness -iquote reference $(DEPS_FLAGS)
CUDA_FLAGS := $(call isystem,$(CUDA_HOME)/include) $(CUDNN)
# The harness's own device code is the same whichever GPUs are asked for, as a change of it would
# be a change of every measurement (sm_80's runs on all 8.x).
DEVICE_ARCHS ?= 80 90 $(sort $(filter-out 8% 90,$(foreach g,$(gpus),$(arch.$g))))
DEVICE_FLAGS := -std=c++17 -O3 -t2 -Iharness -Ireference $(foreach a,$(DEVICE_ARCHS),-gencode arch=compute_$a$(,)code=sm_$a)

# No build id: it would tell two programs apart that differ in debug information alone.
LINK       = $(LDFLAGS) -Wl,--as-needed -Wl,--build-id=none
LINK_DEPS := -L$(deps_lib) -Wl,-rpath,$(deps_lib)
JSON_LIBS := $(LINK_DEPS) -lcjson -lmd -lm
# A libcurl of PREFIX loads others of PREFIX: a RPATH is for those, too, a RUNPATH is not.
CURL_LIBS := $(LINK_DEPS) -Wl,--disable-new-dtags -lcurl -lcjson -lmd -lm
CUDA_LIBS := $(LINK_DEPS) -L$(CUDA_LIB) -Wl,-rpath,$(CUDA_LIB) -lcudart -lcublas -lcublasLt \
    $(if $(CUDNN_H),$(if $(CUDNN_HOME),-L$(CUDNN_HOME)/lib -Wl$(,)-rpath$(,)$(CUDNN_HOME)/lib) -lcudnn) -lseccomp -lcjson -lmd -ldl -lm
