# libddp is the public API (lib/exchange/ddp.h) as a static and a shared library. It consists of the
# binary's objects from all layers up to exchange, without JSON, options and logs.

# Raise this when a change of a function or a field would break programs that are already linked.
DDP_SOVERSION := 0

# libddp contains no code that needs CUDA, so that programs link the static library with libc's libraries alone.
LIBDDP_ALL := $(foreach d,base device diag launch comm coll compress exchange,$(wildcard lib/$d/*.c lib/$d/*/*.c))
LIBDDP_GPU := $(call cuda_named,$(LIBDDP_ALL)) $(call nccl_named,$(LIBDDP_ALL))
LIBDDP_SRC = $(filter-out lib/base/json% lib/base/opt% lib/base/log.c $(LIBDDP_GPU),$(filter \
  $(LIBDDP_ALL),$(LIB_SRC))) $(filter %_absent.c,$(LIBDDP_GPU))
LIBDDP_OBJ = $(LIBDDP_SRC:%.c=$(O)/%.o)
-include $(patsubst %.c,$(O)/%.d,$(filter %_absent.c,$(LIBDDP_GPU)))
LIBDDP_SO := libddp.so.$(VERSION)
LIBDDP := $(O)/libddp.a $(O)/$(LIBDDP_SO) $(O)/ddp.h

$(O)/libddp.a: $(LIBDDP_OBJ) $(O)/objects
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $(LIBDDP_OBJ)

# All ddp_* symbols are exported, because tests and tools use more functions than ddp.h declares.
$(O)/$(LIBDDP_SO): $(LIBDDP_OBJ) $(O)/objects ci/libddp.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared $(BASE_LDFLAGS) -Wl,-soname,libddp.so.$(DDP_SOVERSION) -Wl,--as-needed \
	  -Wl,-Bsymbolic-functions -Wl,--version-script=ci/libddp.map $(if $(SAN),,-Wl,--no-undefined) \
	  $(LDFLAGS) -o $@ $(LIBDDP_OBJ) -lm -ldl
	$(Q)ln -sfn $(LIBDDP_SO) $(O)/libddp.so.$(DDP_SOVERSION)
	$(Q)ln -sfn $(LIBDDP_SO) $(O)/libddp.so

$(O)/ddp.h: ci/public_header.sh lib/base/err.h lib/base/dtype.h lib/base/dtype_list.h lib/exchange/ddp.h | $(O)/ready
	$(Q)ci/public_header.sh $(VERSION) > $@

# The prefix is relative to the file's own folder, so that the tree can be moved.
$(O)/ddp.pc: ci/libddp.mk ci/knobs.mk | $(O)/ready
	$(Q)printf '%s\n' 'prefix=$${pcfiledir}/../..' 'libdir=$${prefix}/lib' \
	  'includedir=$${prefix}/include' '' 'Name: ddp' 'Version: $(VERSION)' \
	  'Description: data-parallel communication for training frameworks' \
	  'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lddp' 'Libs.private: -lm -ldl -pthread' > $@
