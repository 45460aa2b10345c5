/* The module of backend ucx: the calls of UCX's library UCP. It is built as ddpbench-ucx.so, and
 * backend_ucx_load.c loads it. The module contains copies of the few ddp_* functions that it calls
 * (ci/build.mk). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "build_facts.h"
#include "comm/ucx/ucx_impl.h"

/* Time between two checks of an idle connection by UCX. With UCX's default of 20 s, a lost host
 * would be reported too late. */
#define KEEPALIVE "500ms"
/* Time limit for closing all connections of a run that ended without a failure. */
#define CLOSE_NS INT64_C(1000000000)

struct peer {
    struct ddp_ucx *ucx;
    int rank;
    bool same_host;
    ucp_ep_h endpoint;
};

struct ddp_ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    int ranks, lost; /* lost: the first rank whose connection failed, or -1 */
    ucs_status_t why;
    bool closing;
    struct peer *peers; /* [ranks] */
};

static int code_of(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_NO_MEMORY:
        return DDP_ENOMEM;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return DDP_EMISMATCH;
    default:
        return DDP_ELOST;
    }
}

static int fail(ucs_status_t status, const char *call, struct ddp_err *err)
{
    return ddp_fail(err, code_of(status), "%s: %s", call, ucs_status_string(status));
}

static const char *ucx_library(void)
{
    static char text[48];
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    snprintf(text, sizeof text, "UCX %u.%u.%u", major, minor, release);
    return text;
}

static void on_lost(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    struct peer *peer = arg;
    struct ddp_ucx *ucx = peer->ucx;
    (void)endpoint;
    if (ucx->closing || ucx->lost >= 0)
        return;
    ucx->lost = peer->rank;
    ucx->why = status;
}

static void ucx_close(struct ddp_ucx *ucx, bool orderly)
{
    const int64_t deadline = ddp_now_ns() + CLOSE_NS;
    const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    if (!orderly)
        return;
    ucx->closing = true;
    for (int r = 0; ucx->peers != NULL && r < ucx->ranks; r++) {
        /* ucp_worker_destroy closes connections to ranks of the same host. */
        if (ucx->peers[r].endpoint == NULL || ucx->peers[r].same_host)
            continue;
        ucs_status_ptr_t request = ucp_ep_close_nbx(ucx->peers[r].endpoint, &force);
        if (!UCS_PTR_IS_PTR(request))
            continue;
        while (ucp_request_check_status(request) == UCS_INPROGRESS && ddp_now_ns() < deadline)
            ucp_worker_progress(ucx->worker);
        ucp_request_free(request);
    }
    if (ucx->address != NULL)
        ucp_worker_release_address(ucx->worker, ucx->address);
    if (ucx->worker != NULL)
        ucp_worker_destroy(ucx->worker);
    if (ucx->context != NULL)
        ucp_cleanup(ucx->context);
    free(ucx->peers);
    free(ucx);
}

/* Opens UCX's context. UCX prints its messages to stdout, among the results. ddpbench reports
 * errors itself, so UCX prints only fatal errors, unless the user has set UCX_LOG_LEVEL. */
static int open_context(struct ddp_ucx *ucx, struct ddp_err *err)
{
    ucp_config_t *config;
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                               UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                                               UCP_PARAM_FIELD_NAME,
                                 .features = UCP_FEATURE_TAG,
                                 .estimated_num_eps = (size_t)ucx->ranks,
                                 .name = "ddpbench"};
    if (getenv("UCX_LOG_LEVEL") == NULL)
        (void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return ddp_fail(err, DDP_EUNAVAIL, "ucp_config_read: %s", ucs_status_string(status));
    if (getenv("UCX_KEEPALIVE_INTERVAL") == NULL)
        (void)ucp_config_modify(config, "KEEPALIVE_INTERVAL", KEEPALIVE);
    status = ucp_init(&params, config, &ucx->context);
    ucp_config_release(config);
    if (status == UCS_OK)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "ucp_init: %s", ucs_status_string(status));
    return ddp_hint(
        err, "check UCX_TLS, UCX_NET_DEVICES and other variables UCX_*; UCX_LOG_LEVEL=info shows "
             "UCX's messages");
}

static int ucx_open(int ranks, struct ddp_ucx **out, struct ddp_err *err)
{
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    struct ddp_ucx *ucx;
    int rc;
    DDP_TRY(DDP_NEW(&ucx, 1, err));
    ucx->ranks = ranks;
    ucx->lost = -1;
    DDP_TRY_GOTO(DDP_NEW(&ucx->peers, (size_t)ranks, err), err_ucx);
    DDP_TRY_GOTO(open_context(ucx, err), err_ucx);
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (status != UCS_OK) {
        rc = ddp_fail(err, DDP_EUNAVAIL, "ucp_worker_create: %s", ucs_status_string(status));
        ddp_hint(err, "check UCX_TLS and UCX_NET_DEVICES");
        goto err_ucx;
    }
    *out = ucx;
    return 0;

err_ucx:
    ucx_close(ucx, true);
    return rc;
}

static int ucx_address(struct ddp_ucx *ucx, const void **out, size_t *bytes, struct ddp_err *err)
{
    const ucs_status_t status = ucp_worker_get_address(ucx->worker, &ucx->address, bytes);
    if (status != UCS_OK)
        return fail(status, "ucp_worker_get_address", err);
    *out = ucx->address;
    return 0;
}

/* UCX 1.13 reports a lost peer only with transports over a network. Therefore a connection inside a
 * host does not request such reports. */
static int ucx_connect(struct ddp_ucx *ucx, int rank, const void *address, bool same_host,
                       struct ddp_err *err)
{
    struct peer *peer = &ucx->peers[rank];
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = same_host ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_lost, .arg = peer},
    };
    peer->ucx = ucx;
    peer->rank = rank;
    peer->same_host = same_host;
    const ucs_status_t status = ucp_ep_create(ucx->worker, &params, &peer->endpoint);
    if (status == UCS_OK)
        return 0;
    peer->endpoint = NULL;
    ddp_fail(err, DDP_EUNAVAIL, "ucp_ep_create: %s", ucs_status_string(status));
    return ddp_hint(err, "the hosts have no common UCX transport; check UCX_TLS and "
                         "UCX_NET_DEVICES on all hosts");
}

static int started(ucs_status_ptr_t pointer, const char *call, void **request, struct ddp_err *err)
{
    *request = NULL;
    if (UCS_PTR_IS_ERR(pointer))
        return fail(UCS_PTR_STATUS(pointer), call, err);
    *request = pointer; /* NULL: done */
    return 0;
}

static int ucx_isend(struct ddp_ucx *ucx, int rank, uint64_t tag, const void *buf, size_t bytes,
                     void **request, struct ddp_err *err)
{
    const ucp_request_param_t none = {.op_attr_mask = 0};
    return started(ucp_tag_send_nbx(ucx->peers[rank].endpoint, buf, bytes, tag, &none),
                   "ucp_tag_send_nbx", request, err);
}

static int ucx_irecv(struct ddp_ucx *ucx, uint64_t tag, void *buf, size_t bytes, void **request,
                     struct ddp_err *err)
{
    /* If the message has already arrived, UCX 1.13 does not always report its length in this call.
     * A test of a request always reports the length, so force UCX to make a request. */
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    return started(ucp_tag_recv_nbx(ucx->worker, buf, bytes, tag, UINT64_MAX, &param),
                   "ucp_tag_recv_nbx", request, err);
}

static int ucx_test(struct ddp_ucx *ucx, void **request, bool receives, size_t *got,
                    struct ddp_err *err)
{
    ucp_tag_recv_info_t info = {.length = 0};
    (void)ucx;
    const ucs_status_t status =
        receives ? ucp_tag_recv_request_test(*request, &info) : ucp_request_check_status(*request);
    if (status == UCS_INPROGRESS)
        return 0;
    *got = info.length;
    ucp_request_free(*request);
    *request = NULL;
    return status == UCS_OK ? 0 : fail(status, receives ? "receive" : "send", err);
}

static void ucx_progress(struct ddp_ucx *ucx)
{
    ucp_worker_progress(ucx->worker);
}

static int ucx_lost(const struct ddp_ucx *ucx, const char **why)
{
    *why = ucs_status_string(ucx->why);
    return ucx->lost;
}

static int ucx_flush(struct ddp_ucx *ucx, void **request, struct ddp_err *err)
{
    const ucp_request_param_t none = {.op_attr_mask = 0};
    return started(ucp_worker_flush_nbx(ucx->worker, &none), "ucp_worker_flush_nbx", request, err);
}

static int ucx_map(struct ddp_ucx *ucx, void *ptr, size_t bytes, void **handle, struct ddp_err *err)
{
    ucp_mem_h memory;
    const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = ptr,
                                         .length = bytes};
    const ucs_status_t status = ucp_mem_map(ucx->context, &params, &memory);
    if (status == UCS_OK) {
        *handle = memory;
        return 0;
    }
    ddp_fail(err, DDP_ENOMEM, "cannot register %zu bytes with the network: ucp_mem_map: %s", bytes,
             ucs_status_string(status));
    return ddp_hint(err, "raise the limit of locked memory (ulimit -l), or use --memory private");
}

static void ucx_unmap(struct ddp_ucx *ucx, void *handle)
{
    (void)ucp_mem_unmap(ucx->context, handle);
}

/* Adds the transport of a line "# lane[0]: 2:tcp/eth0.0 md[1] ..." of ucp_ep_print_info to `out`.
 * Ignores transports that connect the rank only to itself. */
static void add_lane(const char *line, char *out, size_t out_bytes)
{
    char lane[64];
    int resource;
    const char *at = strstr(line, "lane[");
    if (at == NULL || sscanf(at, "lane[%*d]: %d:%63s", &resource, lane) != 2)
        return;
    char *dot = strrchr(lane, '.'); /* ".0" is the number of the path */
    if (dot != NULL && strspn(dot + 1, "0123456789") == strlen(dot + 1))
        *dot = '\0';
    if (strncmp(lane, "self/", 5) != 0)
        ddp_text_list_add(out, out_bytes, lane);
}

static void ucx_transports(const struct ddp_ucx *ucx, char *out, size_t out_bytes)
{
    out[0] = '\0';
    for (int r = 0; r < ucx->ranks; r++) {
        char *text = NULL, *rest = NULL;
        size_t bytes;
        FILE *f = open_memstream(&text, &bytes);
        if (f == NULL)
            continue;
        if (ucx->peers[r].endpoint != NULL)
            ucp_ep_print_info(ucx->peers[r].endpoint, f);
        if (fclose(f) == 0)
            for (char *line = strtok_r(text, "\n", &rest); line != NULL;
                 line = strtok_r(NULL, "\n", &rest))
                add_lane(line, out, out_bytes);
        free(text);
    }
}

extern const struct ddp_ucx_module ddp_backend_module;
const struct ddp_ucx_module ddp_backend_module = {
    .abi = DDP_UCX_MODULE_ABI,
    .commit = DDP_COMMIT,
    .library = ucx_library,
    .open = ucx_open,
    .close = ucx_close,
    .address = ucx_address,
    .connect = ucx_connect,
    .isend = ucx_isend,
    .irecv = ucx_irecv,
    .test = ucx_test,
    .progress = ucx_progress,
    .lost = ucx_lost,
    .flush = ucx_flush,
    .map = ucx_map,
    .unmap = ucx_unmap,
    .transports = ucx_transports,
};
