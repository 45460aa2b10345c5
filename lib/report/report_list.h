/* One line a reporter: DDP_REPORTER(symbol). */
DDP_REPORTER(table)
DDP_REPORTER(json)
