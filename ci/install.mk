# install and uninstall work below $(DESTDIR)$(PREFIX). The binary finds its modules beside itself or
# in ../lib/ddpbench, and libddp finds them in ddpbench/ beside it, so the tree can be moved.

BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBDIR = $(DESTDIR)$(PREFIX)/lib/ddpbench
SHARE = $(DESTDIR)$(PREFIX)/share
MANDIR = $(SHARE)/man/man1
DOCDIR = $(SHARE)/doc/ddpbench
SCHEMADIR = $(SHARE)/ddpbench/schema
CONFIGDIR = $(SHARE)/ddpbench/configs
DDPDIR = $(DESTDIR)$(PREFIX)/lib
PKGDIR = $(DDPDIR)/pkgconfig
INCDIR = $(DESTDIR)$(PREFIX)/include

# The same folders quoted for the shell, because DESTDIR and PREFIX may contain blanks.
$(foreach v,BINDIR LIBDIR SHARE MANDIR DOCDIR SCHEMADIR CONFIGDIR DDPDIR PKGDIR INCDIR,$(eval Q_$v = $$(call sq,$$($v))))

CONFIGS := $(sort $(wildcard configs/*.json configs/*.md)) # platforms/ serves only make sim-1024

# The binary writes these files itself, so that they agree with its --help.
GENERATED := $(O)/ddpbench.1 $(O)/ddpbench.bash
$(O)/ddpbench.1: $(O)/ddpbench
	$(Q)$(O)/ddpbench help --man > $@
$(O)/ddpbench.bash: $(O)/ddpbench
	$(Q)$(O)/ddpbench completion bash > $@

.PHONY: install uninstall
install: $(O)/ddpbench $(MODULES) $(HELPERS) $(GENERATED) $(LIBDDP) $(O)/ddp.pc ## install binary, modules, libddp, man page, schema, configurations and completion into PREFIX
	install -d $(Q_BINDIR) $(Q_LIBDIR) $(Q_MANDIR) $(Q_DOCDIR) $(Q_SCHEMADIR) $(Q_CONFIGDIR) \
	  $(Q_SHARE)/bash-completion/completions $(Q_PKGDIR) $(Q_INCDIR)
	install -m 755 $(O)/ddpbench $(Q_BINDIR)/ddpbench
	$(if $(MODULES)$(HELPERS),install -m 755 $(MODULES) $(HELPERS) $(Q_LIBDIR)/)
	install -m 644 $(O)/ddpbench.1 $(Q_MANDIR)/ddpbench.1
	install -m 644 LICENSE README.md $(Q_DOCDIR)/
	install -m 644 results/schema/ddpbench-1.schema.json $(Q_SCHEMADIR)/
	install -m 644 $(CONFIGS) $(Q_CONFIGDIR)/
	install -m 644 results/convergence.json $(Q_SHARE)/ddpbench/
	install -m 644 $(O)/ddpbench.bash $(Q_SHARE)/bash-completion/completions/ddpbench
	install -m 644 $(O)/libddp.a $(Q_DDPDIR)/libddp.a
	install -m 755 $(O)/$(LIBDDP_SO) $(Q_DDPDIR)/$(LIBDDP_SO)
	ln -sfn $(LIBDDP_SO) $(Q_DDPDIR)/libddp.so.$(DDP_SOVERSION)
	ln -sfn $(LIBDDP_SO) $(Q_DDPDIR)/libddp.so
	install -m 644 $(O)/ddp.h $(Q_INCDIR)/ddp.h
	install -m 644 $(O)/ddp.pc $(Q_PKGDIR)/ddp.pc

uninstall: ## remove only the files that install wrote
	rm -f $(Q_BINDIR)/ddpbench $(Q_LIBDIR)/ddpbench-mpi-openmpi.so $(Q_LIBDIR)/ddpbench-mpi-mpich.so \
	  $(Q_LIBDIR)/ddpbench-ucx.so $(Q_LIBDIR)/ddpbench-cuda.so $(Q_LIBDIR)/ddpbench-kernels \
	  $(Q_MANDIR)/ddpbench.1 $(Q_DOCDIR)/LICENSE $(Q_DOCDIR)/README.md \
	  $(Q_SCHEMADIR)/ddpbench-1.schema.json $(Q_SHARE)/ddpbench/convergence.json $(foreach c,$(notdir $(CONFIGS)),$(Q_CONFIGDIR)/$c) $(Q_SHARE)/bash-completion/completions/ddpbench \
	  $(Q_DDPDIR)/libddp.a $(Q_DDPDIR)/$(LIBDDP_SO) $(Q_DDPDIR)/libddp.so.$(DDP_SOVERSION) \
	  $(Q_DDPDIR)/libddp.so $(Q_INCDIR)/ddp.h $(Q_PKGDIR)/ddp.pc
	@for d in $(Q_LIBDIR) $(Q_DOCDIR) $(Q_SCHEMADIR) $(Q_CONFIGDIR) $(Q_SHARE)/ddpbench; do \
	  if [ -d "$$d" ]; then rmdir --ignore-fail-on-non-empty "$$d"; fi; done
