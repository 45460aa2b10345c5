# deps: see build helper
