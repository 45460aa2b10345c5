# libddp: the public API (lib/exchange/ddp.h), static and shared, from the same objects as the
# binary: those a framework needs, which are all layers up to exchange, without files and options.

# Raised when a program linked before would no longer run: a function or a field changes or goes.
DDP_SOVERSION := 0

LIBDDP_SRC = $(filter-out lib/base/json% lib/base/opt% lib/base/log.c,$(filter \
  lib/base/% lib/device/% lib/comm/% lib/coll/% lib/compress/% lib/exchange/%,$(LIB_SRC)))
LIBDDP_OBJ = $(LIBDDP_SRC:%.c=$(O)/%.o) $(filter $(O)/lib/device/%,$(CU_OBJ))
LIBDDP_SO := libddp.so.$(VERSION)
LIBDDP := $(O)/libddp.a $(O)/$(LIBDDP_SO) $(O)/ddp.h

$(O)/libddp.a: $(LIB_OBJ) $(O)/objects
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $(LIBDDP_OBJ)

# All ddp_* are exported: tests, and tools that look inside, use more than ddp.h has.
$(O)/$(LIBDDP_SO): $(LIB_OBJ) $(O)/objects ci/libddp.map
	@echo "  LD    $@"
	$(Q)$(CC) -shared $(BASE_LDFLAGS) -Wl,-soname,libddp.so.$(DDP_SOVERSION) -Wl,--as-needed \
	  -Wl,-Bsymbolic-functions -Wl,--version-script=ci/libddp.map $(if $(SAN),,-Wl,--no-undefined) \
	  $(LDFLAGS) -o $@ $(LIBDDP_OBJ) $(CUDA_LIBS) -lm -ldl
	$(Q)ln -sfn $(LIBDDP_SO) $(O)/libddp.so.$(DDP_SOVERSION)
	$(Q)ln -sfn $(LIBDDP_SO) $(O)/libddp.so

$(O)/ddp.h: ci/public_header.sh lib/base/err.h lib/base/dtype.h lib/exchange/ddp.h
	$(Q)ci/public_header.sh $(VERSION) > $@

# Found from where the file lies, so that the tree can be moved.
$(O)/ddp.pc: ci/libddp.mk ci/knobs.mk
	$(Q)printf '%s\n' 'prefix=$${pcfiledir}/../..' 'libdir=$${prefix}/lib' \
	  'includedir=$${prefix}/include' '' 'Name: ddp' 'Version: $(VERSION)' \
	  'Description: data-parallel communication for training frameworks' \
	  'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lddp' 'Libs.private: $(strip $(CUDA_LIBS) -lm -ldl -pthread)' > $@
