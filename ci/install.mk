# install: see build helper
