# install, uninstall: below $(DESTDIR)$(PREFIX). The binary finds its modules beside itself or in
# ../lib/ddpbench, the library in ddpbench/ beside it, so the tree can be moved as a whole.

BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBDIR = $(DESTDIR)$(PREFIX)/lib/ddpbench
SHARE = $(DESTDIR)$(PREFIX)/share
MANDIR = $(SHARE)/man/man1
DOCDIR = $(SHARE)/doc/ddpbench
SCHEMADIR = $(SHARE)/ddpbench/schema
DDPDIR = $(DESTDIR)$(PREFIX)/lib
PKGDIR = $(DDPDIR)/pkgconfig
INCDIR = $(DESTDIR)$(PREFIX)/include

# Written by the binary itself, so that they cannot differ from its --help.
GENERATED := $(O)/ddpbench.1 $(O)/ddpbench.bash
$(O)/ddpbench.1: $(O)/ddpbench
	$(Q)$(O)/ddpbench help --man > $@
$(O)/ddpbench.bash: $(O)/ddpbench
	$(Q)$(O)/ddpbench completion bash > $@

.PHONY: install uninstall
install: $(O)/ddpbench $(MODULES) $(GENERATED) $(LIBDDP) $(O)/ddp.pc ## into PREFIX: binary, modules, libddp, man page, schema, completion
	install -d $(BINDIR) $(LIBDIR) $(MANDIR) $(DOCDIR) $(SCHEMADIR) $(SHARE)/bash-completion/completions $(PKGDIR) $(INCDIR)
	install -m 755 $(O)/ddpbench $(BINDIR)/ddpbench
	$(if $(MODULES),install -m 755 $(MODULES) $(LIBDIR)/)
	install -m 644 $(O)/ddpbench.1 $(MANDIR)/ddpbench.1
	install -m 644 LICENSE README.md $(DOCDIR)/
	install -m 644 results/schema/ddpbench-1.schema.json $(SCHEMADIR)/
	install -m 644 $(O)/ddpbench.bash $(SHARE)/bash-completion/completions/ddpbench
	install -m 644 $(O)/libddp.a $(DDPDIR)/libddp.a
	install -m 755 $(O)/$(LIBDDP_SO) $(DDPDIR)/$(LIBDDP_SO)
	ln -sfn $(LIBDDP_SO) $(DDPDIR)/libddp.so.$(DDP_SOVERSION)
	ln -sfn $(LIBDDP_SO) $(DDPDIR)/libddp.so
	install -m 644 $(O)/ddp.h $(INCDIR)/ddp.h
	install -m 644 $(O)/ddp.pc $(PKGDIR)/ddp.pc

uninstall: ## remove what install wrote, and nothing else
	rm -f $(BINDIR)/ddpbench $(LIBDIR)/ddpbench-mpi-openmpi.so $(LIBDIR)/ddpbench-mpi-mpich.so \
	  $(MANDIR)/ddpbench.1 $(DOCDIR)/LICENSE $(DOCDIR)/README.md \
	  $(SCHEMADIR)/ddpbench-1.schema.json $(SHARE)/bash-completion/completions/ddpbench \
	  $(DDPDIR)/libddp.a $(DDPDIR)/$(LIBDDP_SO) $(DDPDIR)/libddp.so.$(DDP_SOVERSION) \
	  $(DDPDIR)/libddp.so $(INCDIR)/ddp.h $(PKGDIR)/ddp.pc
	@for d in $(LIBDIR) $(DOCDIR) $(SCHEMADIR) $(SHARE)/ddpbench; do \
	  if [ -d $$d ]; then rmdir --ignore-fail-on-non-empty $$d; fi; done
