/* One line per fault point: DDP_FAULT_POINT(symbol, name, collector, code, data, help). `collector`
 * is 1 if the point lies outside the work of the ranks (fault.h), and else 0. `code` is the return
 * code of the action errno. `data` is 1 if the point has data for the action flip. */
DDP_FAULT_POINT(DATA_LOAD, "data-load", 1, DDP_EIO, 0, "before a data set is read")
DDP_FAULT_POINT(SEGMENT, "segment", 1, DDP_ENOMEM, 0, "before the shared segment is made")
DDP_FAULT_POINT(FORK, "fork", 1, DDP_ENOMEM, 0, "before a rank is started; the n-th is rank n-1")
DDP_FAULT_POINT(COLLECTOR_WRITE, "collector-write", 1, DDP_EIO, 0,
                "after a document is written, before it is renamed")
DDP_FAULT_POINT(RANK_START, "rank-start", 0, DDP_EINTERNAL, 0, "when a rank starts")
DDP_FAULT_POINT(COMM_INIT, "comm-init", 0, DDP_ENOMEM, 0, "before the backend is opened")
DDP_FAULT_POINT(ATTACH, "attach", 0, DDP_ENOMEM, 0, "shm: before the rank joins the segment")
DDP_FAULT_POINT(GROUP, "group", 0, DDP_ENOMEM, 0, "before a group is made")
DDP_FAULT_POINT(ALLOC, "alloc", 0, DDP_ENOMEM, 0, "shm: before registered memory is allocated")
DDP_FAULT_POINT(EXCHANGE, "exchange", 0, DDP_EINTERNAL, 0, "before small data are exchanged")
DDP_FAULT_POINT(BARRIER, "barrier", 0, DDP_EINTERNAL, 0, "before a barrier is entered")
DDP_FAULT_POINT(WAIT, "wait", 0, DDP_ELOST, 0, "shm: before a wait for another rank's flag")
DDP_FAULT_POINT(COLL_ENTER, "coll-enter", 0, DDP_EINTERNAL, 0, "before a collective is entered")
DDP_FAULT_POINT(COLL_LEAVE, "coll-leave", 0, DDP_EINTERNAL, 1,
                "after a collective, before its result is used")
DDP_FAULT_POINT(SEND, "send", 0, DDP_ENOMEM, 1, "before a message is sent")
DDP_FAULT_POINT(RECV, "recv", 0, DDP_EMISMATCH, 0, "before a message is received")
DDP_FAULT_POINT(TRAIN_STEP, "train-step", 0, DDP_EINTERNAL, 1,
                "after a training step; the data are the parameters")
DDP_FAULT_POINT(SEND_COLLECTOR, "send-collector", 0, DDP_EIO, 0,
                "rank 0: before a result is sent to the collector")
DDP_FAULT_POINT(EXIT, "exit", 0, DDP_EINTERNAL, 0, "after a rank's work, before it reports success")
