# SPDX-License-Identifier: MIT
# msprobe: one Makefile, everything it makes lies under $(B).   make help

VERSION := 0.1.0
B       ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CFLAGS  ?= -O3 -g
PYTHON  ?= /usr/bin/python3
# CROSS=aarch64 builds for that processor with Debian's cross compiler and its libraries of arm64.
ARCH    := $(or $(CROSS),$(shell uname -m))
ifneq ($(CROSS),)
B       := build/$(CROSS)
CC      := $(CROSS)-linux-gnu-gcc
CXX     := $(CROSS)-linux-gnu-g++
AR      := $(CROSS)-linux-gnu-ar
PKG_CONFIG ?= env PKG_CONFIG_LIBDIR=/usr/lib/$(CROSS)-linux-gnu/pkgconfig:/usr/share/pkgconfig pkg-config
endif
PKG_CONFIG ?= pkg-config
.DEFAULT_GOAL := all
Q       := $(if $(V),,@)
say     = $(if $(V),@:,@printf '  %-7s %s\n')

# ---- flags ------------------------------------------------------------------

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough
HARDEN := $(if $(SAN),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong
ALL_CPPFLAGS := -I. -I$(B) $(if $(SAN)$(ASSERT),-DMS_ASSERT) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DMS_VERSION='"$(VERSION)"'
# User flags come last, so they win.
ALL_CFLAGS = -std=c17 -ffp-contract=off -fPIC -fvisibility=hidden -fno-omit-frame-pointer -pthread $(WARN) \
             $(if $(W),-Werror) $(HARDEN) $(SAN:%=-fsanitize=% -fno-sanitize-recover=all) $(CFLAGS)
ALL_LDFLAGS = -pthread -Wl,-z,relro,-z,now $(SAN:%=-fsanitize=%) $(LDFLAGS)

pkg = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
DEP_PKGS   := sqlite3 libcjson yaml-0.1 xlsxwriter expat zlib libmicrohttpd ncursesw
DEP_CFLAGS := $(call pkg,--cflags,$(DEP_PKGS))
DEP_LIBS   := $(call pkg,--libs,$(DEP_PKGS)) -lm
CHECK_LIBS := $(call pkg,--libs,check)

# ---- sources ----------------------------------------------------------------
# Each top folder is a library of rooms; its room cmd/ belongs to the program.

rooms = $(foreach r,$(2),$(wildcard $(1)/$(r)/*.c))
obj   = $(patsubst %.c,$(B)/%.o,$(1))
LAYERS := base probe mstx compare viz web
SRC_base    := $(filter-out probe/base/par_mpi.c,$(wildcard probe/base/*.c))
SRC_probe   := $(call rooms,probe,dump tensor write monitor overflow trend checkpoint settings quantise)
SRC_rt      := $(filter-out mstx/rt/dropin_%,$(call rooms,mstx,rt rt/dev rt/nvtx))
SRC_mstx    := $(SRC_rt) $(call rooms,mstx,format read rundb cluster import conclude foreign official differ memory launch)
SRC_compare := $(call rooms,compare,read align pair measure judge table observe source write checkpoint quantise config graph/build graph/merge graph/run graph/view check official run recompute blame reproduce bisect)
SRC_viz     := $(call rooms,viz,words model tui)
SRC_web     := $(call rooms,web,api serve)
PROG := $(filter-out probe/cli/launch.c,$(wildcard probe/cli/*.c)) $(wildcard */cmd/*.c)
LAUNCH := $(addprefix probe/cli/,launch.c main.c signals.c terminal.c) mstx/cmd/cmd_run.c

# What enters someone else's process: libc and pthread alone.
BASE_CLI   := $(addprefix probe/base/,conf.c csv.c store.c store_bulk.c store_guard.c store_pages.c store_vtab.c opt.c complete.c par.c exchange.c beside.c mapsafe.c jprint.c message.c regex.c)
BASE_RT    := $(filter-out $(BASE_CLI),$(SRC_base))
PROBE_CLI  := $(wildcard probe/trend/*.c probe/checkpoint/*.c probe/settings/*.c probe/quantise/*.c)
SO_MSPROBE := $(BASE_RT) $(filter-out $(PROBE_CLI),$(SRC_probe))
# The recorder needs little of base: it allocates nothing and calls little.
SO_MSTX    := $(SRC_rt) $(addprefix mstx/format/,comm_text.c stage.c) probe/base/held.c
# Preloaded before communication libraries and device runtimes; thin, over the recorder.
SO_HOOK    := $(filter-out mstx/hook/dlsym.c,$(wildcard mstx/hook/*.c mstx/hook/ccl/*.c)) mstx/format/comm_text.c
# Preloaded before the C library's allocator, by `msprobe run --memory`.
SO_ALLOC   := mstx/hook/real_function.c $(filter-out mstx/hook/alloc/alloc_calls.c,$(wildcard mstx/hook/alloc/*.c))
HOOK_LIBS  := $(B)/libmstx_hook.so $(B)/libmstx_dlsym.so $(B)/libmstx_memory.so
MSTX_LIBS  := $(HOOK_LIBS) $(B)/libmstx.so $(B)/dropin/libms_tools_ext.so $(B)/dropin/libmspti.so

# A hook library for each flavour of MPI whose headers are there; the same sources, compiled once each.
MPI_FLAVOURS := $(strip $(foreach f,openmpi:ompi-c mpich:mpich,$(if $(call pkg,--cflags,$(lastword $(subst :, ,$(f)))),$(firstword $(subst :, ,$(f))))))
MPI_CFLAGS_openmpi := $(patsubst -I%,-isystem %,$(call pkg,--cflags-only-I,ompi-c))
MPI_CFLAGS_mpich   := $(patsubst -I%,-isystem %,$(call pkg,--cflags-only-I,mpich))
SO_MPI   := mstx/hook/real_function.c $(wildcard mstx/hook/mpi/*.c)
MPI_LIBS := $(foreach f,$(MPI_FLAVOURS),$(B)/libmstx_mpi_$(f).so)
MPI_WITHOUT := $(filter-out $(MPI_FLAVOURS),openmpi mpich)

# The Python modules are built for each of PYTHONS whose headers are there; one is written SUFFIX:INCLUDE.
PYTHONS ?= $(PYTHON)
PY_FACTS := $(foreach p,$(PYTHONS),$(shell $(p) -c 'import os, sysconfig as s; i = s.get_paths()["include"]; \
  os.path.exists(i + "/Python.h") and print(s.get_config_var("EXT_SUFFIX").replace(os.uname().machine, "$(ARCH)") + ":" + i)' 2>/dev/null))
PY_SUFFIXES := $(foreach f,$(PY_FACTS),$(firstword $(subst :, ,$(f))))
py_include = $(patsubst $(1):%,%,$(filter $(1):%,$(PY_FACTS)))
PY_AUTO := $(patsubst mstx/%,$(B)/python/%,$(wildcard mstx/auto/*.py))
PY_SRC := $(patsubst probe/python/%,$(B)/python/%,$(wildcard probe/python/msprobe/*.py probe/python/msprobe/*/*.py))
# One mstx.so is for Python 3.10 and later; Python 3.9 has a file of its own in front of it.
PY_OLD := $(filter .cpython-39-%,$(PY_SUFFIXES))
PY_MSTX := $(if $(filter-out $(PY_OLD),$(PY_SUFFIXES)),$(B)/python/mstx.so) $(PY_OLD:%=$(B)/python/mstx%)
PY_LIB := $(PY_MSTX) $(PY_SUFFIXES:%=$(B)/python/msprobe/_probe%) $(PY_SRC) $(PY_AUTO)

# For `mpirun msprobe`: a plugin for every flavour of MPI that is here.
PAR_LIBS := $(MPI_FLAVOURS:%=$(B)/libmsprobe_mpi_%.so)
MPI_LD_openmpi := $(call pkg,--libs,ompi-c)
MPI_LD_mpich   := $(call pkg,--libs,mpich)

# Linked top-down; a folder without sources yet makes no archive.
LIBS := $(foreach l,web viz compare mstx probe base,$(if $(SRC_$(l)),$(B)/lib$(l).a))

# The sources of tests lie in the rooms that they test; the programs lie side by side.
TEST_SRC := $(wildcard $(foreach k,test fuzz bench tool,tests/*/$(k)_*.c tests/*/*/$(k)_*.c))
test_programs = $(patsubst %.c,$(B)/tests/%,$(filter $(1)_%,$(notdir $(TEST_SRC))))
TESTS   := $(call test_programs,test)
FUZZ    := $(call test_programs,fuzz)
TOOLS   := $(call test_programs,tool)
BENCH   := $(call test_programs,bench)
$(foreach s,$(TEST_SRC),$(eval $(B)/tests/$(basename $(notdir $(s))): $(B)/$(s:.c=.o)))
# Programs that the tests of the recorder run; with them a library that marks.
RT_APPS := $(addprefix $(B)/tests/programs/, \
           app app_old app_router \
           nvtx_app nvtx_next.so \
           mspti_app chain.so image.so broken_disk.so \
           comm_app clock_app agree_app \
           device_app ccl_app hccl_app ccl_mod.so ccl_static.so loader)
STANDIN := $(addprefix $(B)/tests/standin/,libcuda.so.1 libascendcl.so libnccl.so.2 libhccl.so)
SAMPLES := $(patsubst %.c,$(B)/%,$(wildcard samples/*.c)) $(if $(MPI_FLAVOURS),$(B)/samples/train_mpi)
# The tests and what they start.
TESTED  := all $(RT_APPS) $(STANDIN) $(TESTS) $(TOOLS)
MAN     := $(wildcard */*.[135] */*/*.[135])

# ---- build ------------------------------------------------------------------

.PHONY: all test check contracts asan tsan valgrind fuzz \
        bench bench-align bench-source bench-graphs mindspore-versions bench-bugs bench-models bench-torch bench-whatif bench-cluster \
        bench-mpi bench-routes \
        soak storms load harm simulate planted mutants against analyze layers calls docs format install uninstall portable wheel tarball python-versions emulated fresh deb dist deps demo clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/msprobe $(B)/libmsprobe.so $(MSTX_LIBS) $(MPI_LIBS) $(PAR_LIBS) $(PY_LIB) ## build the program and the libraries
	$(if $(MPI_WITHOUT),@echo 'no headers of $(MPI_WITHOUT): MPI programs of that kind are not hooked')

# Data are text files; awk makes headers of them, which the compiler finds under $(B) by the same path.
# Every object waits for all of these headers the first time; later for those that it includes.
AWK ?= awk
awk_header = $(Q)mkdir -p $(@D) && LC_ALL=C $(AWK) -f
SQL    := $(wildcard mstx/*/sql/*.sql)
TABLES := compare/pair/api_twins probe/write/risk viz/tui/cell_width
GENERATED := $(addprefix $(B)/,$(SQL:.sql=.h) $(TABLES:=.h) compare/align/family_table.h probe/base/num_pow10.h)
# A file of named statements becomes C strings, a file of rows becomes arrays.
$(B)/%.h: %.sql probe/base/sql_header.awk
	$(awk_header) probe/base/sql_header.awk $< >$@
$(TABLES:%=$(B)/%.h): $(B)/%.h: %.txt probe/base/table.awk
	$(awk_header) probe/base/table.awk $< >$@
$(B)/compare/align/family_table.h: compare/align/families.txt compare/align/families.awk
	$(awk_header) compare/align/families.awk $< >$@
$(B)/probe/base/num_pow10.h: probe/base/num_pow10.awk
	$(awk_header) $< >$@

$(B)/%.o: %.c Makefile | $(GENERATED)
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(CPPFLAGS) $(ALL_CFLAGS) $(DEP_CFLAGS) -MMD -MP -c -o $@ $<

define library
$(B)/lib$(1).a: $(call obj,$(SRC_$(1)))
	$$(say) AR $$@
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(if $(SRC_$(l)),$(eval $(call library,$(l)))))

# The files of the page, compressed, become part of the program.
PAGE := $(filter %.html %.css %.svg %.js,$(wildcard web/page/* web/page/*/*))
PAGE_GZ := $(PAGE:web/page/%=$(B)/web/page/%.gz)
$(B)/web/page/%.gz: web/page/%
	@mkdir -p $(@D)
	$(Q)gzip -9nc $< >$@
$(B)/web/serve/route.o: $(PAGE_GZ)
$(B)/web/serve/route.o: ALL_CPPFLAGS += -DWEB_PAGE='"$(B)/web/page"'

# What "msprobe version -v" tells; a report of a bug should hold it.
$(B)/probe/cli/builtin.o: ALL_CPPFLAGS += -DMS_BUILD_FLAGS='"$(subst ",,$(strip $(CFLAGS) $(SAN:%=-fsanitize=%)))"'

# `msprobe run` is in the program, all other commands are in a library that it opens.
$(B)/msprobe: $(call obj,$(LAUNCH)) $(LIBS) | $(B)/libmsprobe_cli.so
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $^ -lm
$(B)/libmsprobe_cli.so: $(call obj,$(PROG)) $(LIBS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-Bsymbolic $(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DEP_LIBS)

SO_FLAGS = -shared $(if $(SAN),,-Wl,-z,defs) -Wl,-z,nodelete -Wl,-soname,$(@F).0
$(B)/libmsprobe.so: $(call obj,$(SO_MSPROBE))
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -o $@ $^ -lm
	$(Q)ln -sf $(@F) $@.0

$(B)/libmsprobe_mpi_%.so: probe/base/par_mpi.c probe/base/par_plugin.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(CPPFLAGS) $(MPI_CFLAGS_$*) $(ALL_CFLAGS) -DMS_FLAVOUR='"$*"' $(ALL_LDFLAGS) \
	  -shared -o $@ $< $(MPI_LD_$*)

# Thread-local storage that a preloaded library has room for, and fields that were written one by one
# are not read together, which would wait until all that was written is in the cache; names by
# mstx/rt/exports.map alone.  What they cost was measured at -O2, and there it stays.
RT_CFLAGS := -ftls-model=initial-exec -fno-tree-slp-vectorize -fno-plt $(if $(filter -O3,$(CFLAGS)),-O2)
$(call obj,$(SO_MSTX)): ALL_CFLAGS += $(RT_CFLAGS)
$(B)/libmstx.so: $(call obj,$(SO_MSTX)) mstx/rt/exports.map
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -Wl,--version-script=mstx/rt/exports.map -o $@ $(filter %.o,$^)
	$(Q)ln -sf $(@F) $@.0

$(call obj,$(SO_HOOK) mstx/hook/dlsym.c): ALL_CFLAGS += $(RT_CFLAGS)
$(B)/libmstx_hook.so: $(call obj,$(SO_HOOK)) $(B)/libmstx.so
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' -o $@ $(filter %.o,$^) -L$(B) -lmstx
	$(Q)ln -sf $(@F) $@.0
# A sanitizer looks its own functions up by this dlsym before it is ready.
$(B)/named/mstx/hook/dlsym.o: ALL_CFLAGS += $(if $(SAN),-fno-sanitize=all) -DNAME='"dlsym"'
$(B)/named/%.o: %.c Makefile
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(B)/libmstx_dlsym.so: $(B)/named/mstx/hook/dlsym.o
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -Wl,--version-script=mstx/hook/dlsym.map -o $@ $^
	$(Q)ln -sf $(@F) $@.0
$(call obj,$(SO_ALLOC)) $(B)/named/mstx/hook/alloc/alloc_calls.o: ALL_CFLAGS += $(RT_CFLAGS)
$(B)/named/mstx/hook/alloc/alloc_calls.o: ALL_CFLAGS += -fno-builtin $(if $(SAN),-fno-sanitize=all) -DALLOC_PREFIX='""'
$(B)/libmstx_memory.so: $(call obj,$(SO_ALLOC)) $(B)/named/mstx/hook/alloc/alloc_calls.o $(B)/libmstx.so
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' -o $@ $(filter %.o,$^) -L$(B) -lmstx
	$(Q)ln -sf $(@F) $@.0
# Functions that stand before those of NCCL, HCCL and OpenCL and those of streams.
WRAPPERS := hook/ccl/nccl hook/ccl/hccl hook/device_streams
$(B)/wrappers/%_wrappers.inc: mstx/hook/%_calls.txt mstx/hook/wrappers.awk
	@mkdir -p $(@D)
	$(Q)awk -f mstx/hook/wrappers.awk $< >$@
$(B)/wrappers/%_wrappers.inc: mstx/hook/ccl/%_calls.txt mstx/hook/wrappers.awk
	@mkdir -p $(@D)
	$(Q)awk -f mstx/hook/wrappers.awk $< >$@
$(WRAPPERS:%=$(B)/mstx/%.o): ALL_CPPFLAGS += -I$(B)/wrappers
$(WRAPPERS:%=$(B)/mstx/%.o): $(patsubst %,$(B)/wrappers/%_wrappers.inc,nccl hccl opencl stream)
# What this mpi.h has: a line for each function that it declares.
define mpi_library
$(B)/mpi_$(1)/mpi_have.h: Makefile
	@mkdir -p $$(@D)
	$$(Q)printf '#include <mpi.h>\n#if defined(OPEN_MPI)\n#include <mpi-ext.h>\n#endif\n' >$$(@:.h=.c)
	$$(Q)$$(CC) $$(MPI_CFLAGS_$(1)) -E $$(@:.h=.c) | grep -oE '\bMPIX?_[A-Z][A-Za-z0-9_]*[[:space:]]*\(' | \
	  tr -d '( ' | sort -u | sed 's/.*/#define HAVE_& ,/' >$$@
# The wrappers of that flavour.
$(B)/mpi_$(1)/mpi_wrappers.inc: MPI_LANG := c
$(B)/mpi_$(1)/mpi_fortran.inc: MPI_LANG := fortran
$(B)/mpi_$(1)/mpi_wrappers.inc $(B)/mpi_$(1)/mpi_fortran.inc: mstx/hook/mpi/mpi_wrappers.awk $(B)/mpi_$(1)/mpi_have.h mstx/hook/mpi/mpi_calls.txt
	$$(Q)awk -v lang=$$(MPI_LANG) -v flavour=$(1) -f $$^ >$$@
$(B)/mpi_$(1)/mstx/hook/mpi/mpi_calls.o: $(B)/mpi_$(1)/mpi_wrappers.inc
$(B)/mpi_$(1)/mstx/hook/mpi/mpi_fortran.o: $(B)/mpi_$(1)/mpi_fortran.inc
$(B)/mpi_$(1)/%.o: %.c $(B)/mpi_$(1)/mpi_have.h Makefile
	$$(say) CC "$$< ($(1))"
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(CPPFLAGS) -I$(B)/mpi_$(1) $$(MPI_CFLAGS_$(1)) $$(ALL_CFLAGS) \
	  $(RT_CFLAGS) -MMD -MP -c -o $$@ $$<
$(B)/libmstx_mpi_$(1).so: $$(patsubst %.c,$(B)/mpi_$(1)/%.o,$$(SO_MPI)) $(B)/libmstx.so
	$$(say) LD $$@
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$(SO_FLAGS) -Wl,-rpath,'$$$$ORIGIN:$$$$ORIGIN/..' \
	  -o $$@ $$(filter %.o,$$^) -L$(B) -lmstx
endef
$(foreach f,$(MPI_FLAVOURS),$(eval $(call mpi_library,$(f))))

$(PY_MSTX): mstx/auto/py_mstx.c mstx/ms_tools_ext.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) -isystem $(call py_include,$(or $(filter $(@F:mstx%=%),$(PY_OLD)),$(firstword $(filter-out $(PY_OLD),$(PY_SUFFIXES))))) \
	  $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -o $@ $<

# What `msprobe run` puts in the way of Python: it marks PyTorch.
$(B)/python/auto/%.py: mstx/auto/%.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The adapters' C half holds a dumper of its own, so it needs no other library of ours. It knows how each
# version of Python lays out its objects, so there is one file for each.
define python_library
$(B)/python$(1)/%.o: %.c Makefile | $(GENERATED)
	$$(say) CC "$$< ($(1))"
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CPPFLAGS) $$(CPPFLAGS) -isystem $(call py_include,$(1)) $$(ALL_CFLAGS) -MMD -MP -c -o $$@ $$<
$(B)/python/msprobe/_probe$(1): $(patsubst %.c,$(B)/python$(1)/%.o,$(wildcard probe/python/*.c)) $(call obj,$(SO_MSPROBE))
	$$(say) LD $$@
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,nodelete -o $$@ $$^ -lm
endef
$(foreach s,$(PY_SUFFIXES),$(eval $(call python_library,$(s))))
$(B)/python/%.py: probe/python/%.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Real files under the vendor's names: thin doors to the one recorder beside them.
$(B)/dropin/libmspti.so: $(B)/mstx/rt/dropin_mspti.o
$(B)/dropin/%.so: $(B)/mstx/rt/dropin_forward.o $(B)/libmstx.so
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-z,nodelete -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/../..' \
	  -o $@ $(filter %.o,$^) -L$(B) -lmstx -Wl,--no-as-needed -lc

$(B)/tests/test_%: $(LIBS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(DEP_LIBS) \
	  $(TEST_LIBS_$*)
TEST_LIBS_crc := -lz
$(B)/tests/test_dump $(B)/tests/test_out $(B)/tests/test_pairing: $(B)/tests/gen/big_dump.o
$(B)/tests/test_web_api: $(B)/mstx/cmd/cmd_sql.o $(B)/mstx/cmd/sql_rows.o
$(B)/tests/test_cluster $(B)/tests/bench_cluster $(B)/tests/tool_sim: $(B)/tests/gen/sim.o

# Programs and libraries that the tests of the recorder run; built from one file each, so that
# they hold nothing but what the test is about.
$(B)/tests/test_rt $(B)/tests/test_rt_control $(B)/tests/test_rt_nvtx $(B)/tests/test_rt_comm $(B)/tests/test_device $(B)/tests/test_ccl $(B)/tests/test_plugin $(B)/tests/test_dumper_device $(B)/tests/bench_mstx $(B)/tests/bench_hook: | $(RT_APPS) $(STANDIN) $(MSTX_LIBS)
RT_CC = mkdir -p $(@D) && $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -MMD -MP -MF $@.d
$(B)/tests/programs/app_old: RT_DEFS := -DPROTO_OLD
$(B)/tests/programs/app_router: RT_DEFS := -DPROTO_ROUTER
$(B)/tests/programs/app $(B)/tests/programs/app_old $(B)/tests/programs/app_router: tests/programs/app.c
	$(say) LD $@
	$(Q)$(RT_CC) $(RT_DEFS) -o $@ $<
$(B)/tests/programs/chain.so $(B)/tests/programs/nvtx_next.so $(B)/tests/programs/broken_disk.so: $(B)/tests/programs/%.so: tests/programs/%.c
	$(say) LD $@
	$(Q)$(RT_CC) -shared -o $@ $<
$(B)/tests/programs/nvtx_app $(B)/tests/programs/mspti_app $(B)/tests/programs/loader: $(B)/tests/programs/%: tests/programs/%.c
	$(say) LD $@
	$(Q)$(RT_CC) -o $@ $<
$(B)/tests/programs/agree_app $(B)/tests/programs/comm_app $(B)/tests/programs/clock_app $(B)/tests/programs/device_app: $(B)/tests/programs/%: tests/programs/%.c $(B)/libmstx.so
	$(say) LD $@
	$(Q)$(RT_CC) -o $@ $< -L$(B) -lmstx -Wl,-rpath,'$$ORIGIN/../..'
# Libraries of accelerators for machines without one: real names and prototypes.
$(B)/tests/standin/libcuda.so.1: tests/standin/cuda.c
$(B)/tests/standin/libascendcl.so: tests/standin/acl.c
$(B)/tests/standin/libnccl.so.2: tests/standin/nccl.c
$(B)/tests/standin/libhccl.so: tests/standin/hccl.c
$(STANDIN): $(B)/libmstx.so
	$(say) LD $@
	$(Q)$(RT_CC) -shared -Wl,-soname,$(@F) -o $@ $(filter %.c,$^) -L$(B) -lmstx -Wl,-rpath,'$$ORIGIN/../..'
$(B)/tests/programs/ccl_mod.so: RT_DEFS := -DMODULE -shared
$(B)/tests/programs/ccl_app $(B)/tests/programs/ccl_mod.so: tests/programs/ccl_app.c $(STANDIN)
	$(say) LD $@
	$(Q)$(RT_CC) $(RT_DEFS) -o $@ $< $(filter %/libcuda.so.1 %/libnccl.so.2,$(STANDIN)) -Wl,-rpath,'$$ORIGIN/../standin'
$(B)/tests/programs/hccl_app: tests/programs/hccl_app.c $(STANDIN)
	$(say) LD $@
	$(Q)$(RT_CC) -o $@ $< -Wl,-rpath,'$$ORIGIN/../standin'
# ... and one that holds a copy of the library.
$(B)/tests/programs/ccl_static.so: tests/programs/ccl_app.c tests/standin/nccl.c $(STANDIN)
	$(say) LD $@
	$(Q)$(RT_CC) -DMODULE -DOWN_VERSION=22105 -DSTANDIN_VERSION=22105 -shared -o $@ $(filter %.c,$^) $(filter %/libcuda.so.1,$(STANDIN)) -L$(B) -lmstx -Wl,-rpath,'$$ORIGIN/../standin:$$ORIGIN/../..'
$(B)/tests/programs/image3.o: tests/programs/image3.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++11 -I. -fPIC -fvisibility=hidden -Wall -Wextra -O2 -MMD -MP -c -o $@ $<
$(B)/tests/programs/image.so: $(addprefix $(B)/tests/programs/,image.o image2.o image3.o)
	$(say) LD $@
	$(Q)$(CXX) $(ALL_LDFLAGS) -shared -o $@ $^

$(B)/tests/tool_%: $(LIBS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DEP_LIBS)

# The simulator stands between the program and the system: each of these calls asks it first.
SEAM := open64 openat64 mkdir write pread64 pwrite64 mmap64 madvise posix_fallocate64 fstatfs64 renameat rename linkat \
        unlinkat fsync clock_gettime nanosleep sched_yield syscall getpid gettid pthread_create pthread_join \
        pthread_key_create pthread_setspecific pthread_setname_np pthread_sigmask
$(B)/tests/tool_simulate: $(addprefix $(B)/tests/mstx/simulate/,seam.o recording.o importing.o reporting.o asking.o writing.o)
$(B)/tests/tool_simulate: private LDFLAGS += $(SEAM:%=-Wl,--wrap=%)

$(B)/tests/bench_%: $(B)/tests/gen/big_dump.o $(LIBS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DEP_LIBS) $(TEST_LIBS_$*)

# Without a fuzzing engine a target replays the files it is given.
FUZZ_MAIN := $(if $(filter fuzzer%,$(SAN)),,$(B)/tests/support/replay.o)
$(B)/tests/fuzz_%: $(FUZZ_MAIN) $(LIBS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DEP_LIBS)

# The sample trainer is built with the first MPI that is there.
MPI_FIRST := $(firstword $(MPI_FLAVOURS))
$(call obj,$(wildcard samples/train/*.c)): ALL_CPPFLAGS += $(MPI_CFLAGS_$(MPI_FIRST))
$(B)/samples/train_mpi: $(call obj,$(wildcard samples/train/*.c)) $(B)/libmsprobe.so
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -lmsprobe -Wl,-rpath,'$$ORIGIN/..' \
	  $(MPI_LD_$(MPI_FIRST)) -lm
$(B)/samples/%: $(B)/samples/%.o $(B)/libmsprobe.so
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -L$(B) -lmsprobe -Wl,-rpath,'$$ORIGIN/..' -lm

# ---- targets for people -----------------------------------------------------

deps: ## install the packages that are missing (Debian, Ubuntu)
	@sh tests/deps.sh

# pkg-config is asked when make starts, so what needs packages starts a second make:
# on every processor, unless whoever calls says otherwise.
AGAIN = +@$(MAKE) $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc)) --no-print-directory
test: deps ## install what is missing, build, run every test
	$(AGAIN) check
check: $(TESTED) $(FUZZ) $(SAMPLES) layers ## run every test with what is installed
	@B=$(B) PYTHON=$(PYTHON) sh tests/run.sh

test-programs: $(TESTED) $(FUZZ)
.PHONY: test-programs

demo: deps ## install what is missing, build, run the samples and show what msprobe says of them
	$(AGAIN) demo-run
.PHONY: demo-run
demo-run: all $(SAMPLES)
	@B=$(B) sh samples/demo.sh

contracts: ## unit tests and fuzz corpora with every ms_assert on
	@$(MAKE) --no-print-directory B=$(B)/contracts ASSERT=1 CFLAGS="-O1 -g" UNITS=1 check
asan: ## tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory B=$(B)/asan SAN="address undefined" CFLAGS="-O1 -g -gz" check
tsan: ## tests of threaded parts under ThreadSanitizer
	@$(MAKE) --no-print-directory B=$(B)/tsan SAN=thread CFLAGS="-O1 -g -gz" TSAN=1 check
valgrind: $(TESTED) ## unit tests under valgrind
	@B=$(B) sh tests/valgrind.sh
FUZZ_SECONDS ?= 60
fuzz: ## fuzz every target for FUZZ_SECONDS (clang)
	@$(MAKE) --no-print-directory B=$(B)/fuzz CC=clang SAN="fuzzer address undefined" \
	  CFLAGS="-O1 -g" fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ)
	@B=$(B) SECONDS_EACH=$(FUZZ_SECONDS) sh tests/fuzz.sh
bench: all $(BENCH) ## measure the figures of the README
	@B=$(B) PYTHON=$(PYTHON) sh tests/bench.sh
bench-mpi: all $(B)/tests/tool_sim ## what two processes gain; what a hooked call of MPI and lammps pay for it
	@B=$(B) sh tests/bench/bench_mpi.sh
bench-torch: all ## CPU time that dumps add to PyTorch; OFFICIAL=DIR: beside the official tool
	@$(PYTHON) tests/bench/bench_torch.py $(B) $(OFFICIAL)
bench-web: all $(B)/tests/tool_big_run ## measure the page in a browser, with a large run and a large graph
	@B=$(B) PYTHON=$(PYTHON) sh tests/web/page/bench.sh
bench-align: all $(B)/tests/tool_align ## how often the alignment of two frameworks is right
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/gen/align_accuracy.py --speed
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/gen/align_csv.py
AGAINST ?= 500
against: all ## why is a run slower: AGAINST generated pairs with a planted change, and twice as many equal ones
	@dir=$$(mktemp -d) && $(PYTHON) tests/suites/against.py $(B)/msprobe "$$dir" --pairs $(AGAINST) \
	  --equal $$((2 * $(AGAINST))) --seed 100; rc=$$?; rm -rf "$$dir"; exit $$rc
bench-whatif: $(B)/tests/bench_whatif ## how fast dependency graphs are built and replayed
	@$(B)/tests/bench_whatif

RANKS ?= 512
bench-cluster: all $(B)/tests/bench_cluster $(B)/tests/tool_sim ## how often slow ranks and links are found, and how commands grow up to RANKS ranks
	@echo "seeds that thresholds were chosen with"; $(B)/tests/bench_cluster 100 1
	@echo "seeds nobody looked at"; $(B)/tests/bench_cluster 200 1000001
	@$(PYTHON) tests/bench/bench_ranks.py $(B) $(RANKS)
bench-routes: all $(B)/tests/tool_sim ## how long the page waits for each question about RANKS ranks
	@dir=$$(mktemp -d) && $(B)/tests/tool_sim "$$dir" straggler 0.2 7 8 4 $$(($(RANKS) / 32)) 156 4 8 $(RANKS) >/dev/null && \
	  $(PYTHON) tests/bench/bench_routes.py $(B) "$$dir"; rc=$$?; rm -rf "$$dir"; exit $$rc
bench-source: $(B)/msprobe ## how often the operator that introduces an error is named
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/gen/source_accuracy.py
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/gen/torch_faults.py
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/gen/torch_shapes.py
mindspore-versions: all ## the MindSpore adapter with versions 2.7 to 2.10, numpy 1 and 2; INTO=DIR: environments
	@sh tests/suites/mindspore_versions.sh $(B) $(or $(INTO),$(B)/mindspore)

bench-graphs: all ## 910 mistakes planted in networks that MindSpore compiles; MINDSPORE_PYTHON=FILE, TORCH_PYTHON=FILE
	@PYTHONDONTWRITEBYTECODE=1 $(or $(MINDSPORE_PYTHON),$(PYTHON)) tests/suites/graph_mistakes.py $(B) all
bench-bugs: all ## bugs of public trackers, each as a small program; PYTHON has torch
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/bugs/bench.py
bench-models: all ## mistakes and harmless changes in models people use; PYTHON has torch and transformers, SET=first, third, fourth to twelfth
	@rm -rf $(B)/models && mkdir -p $(B)/models
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/models/score.py record $(B)/models --set $(or $(SET),first)
	@B=$(B) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/models/score.py show $(B)/models
bench-view: all $(B)/tests/tool_big_run ## measure the terminal viewer, with a large run and a large graph; VIEW=PATH: with that
	@B=$(B) PYTHON=$(PYTHON) sh tests/bench/bench_view.sh $(VIEW)
storms: all $(B)/tests/tool_sim ## press 10,000 random keys 25 times in the terminal viewer on each kind of file
	@$(PYTHON) tests/suites/key_storms.py $(B) --storms 25
soak: all $(B)/samples/mstx_c ## record, import and look 1,000 times; nothing may grow
	@ITERATIONS=1000 B=$(B) PYTHON=$(PYTHON) sh tests/suites/suite_soak.sh
load: all $(B)/tests/tool_sim ## 100,000 requests of 200 clients, 10,000 ranks, a million findings, a day that is followed; memory stays bounded
	@B=$(B) PYTHON=$(PYTHON) LOAD=full sh tests/suites/suite_load.sh
SCHEDULES ?= 1000000
simulate: $(B)/tests/tool_simulate ## SCHEDULES simulated lives of the recorder and of writers; each ends in nothing lost, or told
	@B=$(B) sh tests/simulate.sh $(SCHEDULES)
planted: ## plant faults in the recorder; the simulator finds each
	@$(PYTHON) tests/mutants/planted.py --at $(B)/mutants/planted
MUTANTS ?= 600
mutants: ## change one thing at a time in MUTANTS places; a test must notice
	@$(PYTHON) tests/mutants/mutants.py -n $(MUTANTS) --suites --at $(B)/mutants/tree
harm: all ## every way to write a PyTorch training in every mode of a dump, beside the same without us
	@B=$(B) PYTHON=$(PYTHON) HARM="--full $(HARM)" sh tests/suites/suite_harm.sh
	@B=$(B) PYTHON=$(PYTHON) HARM="--full $(HARM)" TORCH_PARTS=harm sh tests/suites/suite_torch_peers.sh
analyze: $(GENERATED) ## static analysis: gcc -fanalyzer, cppcheck, clang-tidy
	@B=$(B) PKG_CONFIG=$(PKG_CONFIG) sh tests/analyze.sh
layers: ## check who includes whom
	@sh tests/layers.sh
calls: all ## check who calls whom: chains and circles of files and rooms
	@$(PYTHON) tests/calls.py $(B)
docs: all ## check man pages and that every option has its place in one
	@B=$(B) sh tests/docs.sh
format: ## format the lines changed since the last commit
	@git clang-format --extensions c,h

# ---- for other systems --------------------------------------------------------
# The compiler of PyPI's ziglang links for an older C library; the program's libraries come with it.
GLIBC    ?= 2.28
PORTABLE := build/portable/$(ARCH)
# What takes minutes to make is made once: the compiler with what it compiled, and the libraries.
PORTABLE_HOME ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/msprobe-portable
PORTABLE_CC   := $(PORTABLE_HOME)/$(ARCH)-$(GLIBC)/cc
PORTABLE_LIBS := $(PORTABLE_HOME)/$(ARCH)-$(GLIBC)/libs
# Every Python of this machine that the wheel is for; its headers are all that is needed.
WHEEL_PYTHONS ?= $(foreach v,9 10 11 12 13,$(firstword $(wildcard $(HOME)/.pyenv/versions/3.$(v).*/bin/python3.$(v)) \
  $(shell command -v python3.$(v))))
$(PORTABLE_CC): tests/portable/compiler.sh
	@ARCH=$(ARCH) GLIBC=$(GLIBC) sh tests/portable/compiler.sh $@
$(PORTABLE_LIBS)/done: tests/portable/libraries.sh | $(PORTABLE_CC)
	@CC=$(PORTABLE_CC) AR="$(PORTABLE_CC) --archive" RANLIB=true HOST=$(ARCH)-linux-gnu sh tests/portable/libraries.sh $(@D)
PORTABLE_MAKE = $(MAKE) --no-print-directory CROSS= ARCH=$(ARCH) B=$(PORTABLE) CC="$(CCACHE) $(PORTABLE_CC)" AR="$(PORTABLE_CC) --archive" \
  DEP_CFLAGS="-isystem $(PORTABLE_LIBS)/include" PAR_LIBS= PYTHONS="$(WHEEL_PYTHONS)" \
  DEP_LIBS="-L$(PORTABLE_LIBS)/lib -lsqlite3 -lcjson -lyaml -lxlsxwriter -lexpat -lz -lmicrohttpd -lncursesw -lm"
portable: $(PORTABLE_CC) $(PORTABLE_LIBS)/done ## program and libraries for systems with glibc 2.28 or later, under build/portable
	@$(PORTABLE_MAKE) all
	@sh tests/portable/symbols.sh $(PORTABLE) $(GLIBC)
wheel: portable ## Python wheel of the portable build, build/portable/*.whl
	@$(PYTHON) tests/portable/wheel.py $(PORTABLE) --arch $(ARCH) --glibc $(GLIBC) --version $(VERSION)

tarball: portable ## archive of the portable build that runs from any folder, build/portable/*.tar.gz
	@$(PYTHON) tests/portable/tarball.py $(PORTABLE) --arch $(ARCH) --version $(VERSION)

python-versions: wheel ## the wheel with the oldest and the newest PyTorch of CPython 3.9 to 3.13, from PyPI
	@sh tests/suites/python_versions.sh $(or $(INTO),$(B)/pythons)

EMULATED_SECONDS ?=
emulated: ## tests and fuzz corpora of another processor, CROSS=aarch64, in its emulator; EMULATED_SECONDS=240: drawn ones
	@$(if $(CROSS),:,echo 'make emulated CROSS=aarch64: say which processor' >&2; exit 2)
	@$(MAKE) --no-print-directory CROSS=$(CROSS) test-programs
	@ARCH=$(CROSS) B=$(B) NATIVE=build sh tests/portable/emulated.sh $(EMULATED_SECONDS)

fresh: ## README's commands in new root file systems of Debian 12 and 13, amd64 and arm64; SYSTEMS=trixie-arm64, INTO=DIR
	@$(if $(INTO),INTO=$(INTO)) $(if $(COMMANDS),COMMANDS='$(COMMANDS)') sh tests/portable/fresh.sh $(SYSTEMS)

install: all ## install under $(DESTDIR)$(PREFIX)
	@B=$(B) VERSION=$(VERSION) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) CROSS=$(CROSS) sh tests/install.sh install
uninstall: ## remove what install put there
	@B=$(B) VERSION=$(VERSION) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) sh tests/install.sh uninstall
deb: all ## Debian package msprobe_VERSION_ARCH.deb in $(B); CROSS=aarch64: of arm64
	@B=$(B) VERSION=$(VERSION) CROSS=$(CROSS) sh tests/deb.sh
dist: ## source archive build/msprobe-VERSION.tar.gz
	@mkdir -p $(B)
	@git archive --prefix=msprobe-$(VERSION)/ -o $(B)/msprobe-$(VERSION).tar.gz HEAD
	@echo $(B)/msprobe-$(VERSION).tar.gz
clean: ## remove $(B)
	rm -rf $(B)
help: ## this list
	@echo 'make TARGET [CC=clang] [W=1: warnings are errors] [ASSERT=1: check contracts] [V=1: show commands] [B=build] [SAN=address]'
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | \
	  awk -F '\t' '{printf "  %-10s %s\n", $$1, $$2}'

-include $(shell find $(B) \( -name mutants -o -name portable \) -prune -o -type f -name '*.d' -print 2>/dev/null)
