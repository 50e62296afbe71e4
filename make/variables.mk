# variables.mk: the variables that make may be told on its command line.  One that nothing reads would be
# ignored without a word: TASKSS=l1_019 would measure every task, BUDGET_USDD=5 spend without a cap.

variables := GPUS TASKS SUITE ARCHS RUN V Q PREFIX PYTHON NVCC NVCCFLAGS CUDA_HOME CUDNN_HOME CUDA_LIB
# Of one goal or a few.
variables += NAME MODULE KERNELBENCH CUDA_L2 CUTLASS WAYS TOOLS SMALL SANITIZER SANITIZERFLAGS NCU NCUFLAGS
variables += NAMES CASE KERNELS JOBS SECONDS_MOST PACKAGES
variables += MODE MODES ROUNDS WIDTH SAMPLES SEEDS BUDGET ROUND INDEX IDEAS TURNS BUCKETS TAU SEED_KERNEL SEARCH_SEED \
             PROFILE FORCE JUDGE JUDGE_LLM
variables += $(foreach c,USD TOKENS CALLS HOURS,BUDGET_$c TASK_$c)
variables += LLM $(addprefix LLM_,KEY_ENV TEMPERATURE EFFORT SEED MAX_TOKENS TOKEN_FIELD SECONDS IDLE_SECONDS TRIES \
             BACKOFF_MS PLAIN_HTTP) OPENAI_BASE_URL ANTHROPIC_BASE_URL
variables += $(addprefix KP_,CELL_SECONDS DEADLINE COMPILE_SECONDS STAY LOCKS COMMIT SERVER_GAP_US PROFILE_SECONDS \
             SANITIZE_SECONDS SMALL_MB SMALL_GFLOP SMALL_TRIES TORCH_SECONDS TUNE_MOST TUNE_SHARE TUNE_GAIN \
             FOREIGN_DRAWN FOREIGN_SEED FOREIGN_KERNELS EMULATE_SECONDS REQUIRE_SLURM TEST_CACHE RUN)
# What make hands to a make of its own, and what a test or a packager may set.
variables += COMPILED DEVICE_ARCHS HOST_FLAGS CUDA_FLAGS DEVICE_FLAGS DEPS_FLAGS LINK LINK_DEPS JSON_LIBS CURL_LIBS CUDA_LIBS
# As to any make, and to the programs that it starts.
variables += CC CXX CPP AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LDLIBS ARFLAGS MAKE MAKEFLAGS SHELL PATH HOME TMPDIR LANG LC_% \
             LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH CUDA_% NVIDIA_% SSL_CERT_% CURL_CA_BUNDLE http_proxy https_proxy no_proxy \
             HTTP_PROXY HTTPS_PROXY NO_PROXY SLURM_% ASAN_OPTIONS UBSAN_OPTIONS
# A key is refused there, too, but make/toolchain.mk says why.
variables += %_API_KEY ANTHROPIC_AUTH_TOKEN $(LLM_KEY_ENV)

unknown := $(filter-out $(variables) arch.% RUN.%,$(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$v)))
$(foreach v,$(unknown),$(error no variable '$v'; $(shell make/nearest '$(subst ','\'',$v)' $(filter-out %\%,$(variables)))))
