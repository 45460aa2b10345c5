/* A generated data set. Every class has one picture. Every image is the picture of its class plus
 * noise.
 *
 * The pictures are coarse, so convolutions or a single matrix can learn the set. The standard
 * deviation of the noise is twice that of the pictures. Use the set to measure time, or if the real
 * data is missing. Accuracies on this set cannot be compared with accuracies on real sets. The
 * generator uses integer arithmetic only, so every machine generates the same bytes. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/dataset.h"

#define IMAGES_DEFAULT 10000
#define IMAGES_MAX     ((size_t)1 << 24)
/* Training images per evaluation image. */
#define EVAL_SHARE 5
#define TILE       4 /* side of a square of pixels with equal values */

/* Numbers of the random streams. partition.c and the models use other numbers. */
#define STREAM_PICTURES ((uint64_t)3 << 60)
#define STREAM_TRAIN    (STREAM_PICTURES + 1)
#define STREAM_EVAL     (STREAM_PICTURES + 2)

/* Returns the sum of four random bytes minus the mean of such sums. The result has roughly a normal
 * distribution with standard deviation 148. */
static int noise(struct ddp_rng *rng, uint64_t *bits, int *left)
{
    if (*left == 0) {
        *bits = ddp_rng_u64(rng);
        *left = 2;
    }
    uint32_t four = (uint32_t)*bits;
    *bits >>= 32;
    --*left;
    return (int)(four & 255) + (int)(four >> 8 & 255) + (int)(four >> 16 & 255) +
           (int)(four >> 24) - 510;
}

/* Draws pictures [classes][c][h][w] of square tiles with values from -64 to 63. */
static void draw_pictures(const struct ddp_dataset_request *r, int8_t *pictures)
{
    struct ddp_rng rng;
    size_t tiles_w = (size_t)(r->width + TILE - 1) / TILE, at = 0;
    size_t tiles = tiles_w * ((size_t)(r->height + TILE - 1) / TILE);
    ddp_rng_init(&rng, r->seed, STREAM_PICTURES);
    uint64_t salt = ddp_rng_u64(&rng);
    for (size_t plane = 0; plane < (size_t)r->classes * (size_t)r->channels; plane++)
        for (int y = 0; y < r->height; y++)
            for (int x = 0; x < r->width; x++, at++) {
                size_t tile = plane * tiles + (size_t)(y / TILE) * tiles_w + (size_t)(x / TILE);
                pictures[at] = (int8_t)((int)(ddp_mix64(salt + tile) & 127) - 64);
            }
}

static int make(const struct ddp_dataset_request *r, const int8_t *pictures, size_t count,
                uint64_t stream, struct ddp_images *out, struct ddp_err *err)
{
    struct ddp_rng rng;
    size_t pixels = (size_t)r->channels * (size_t)r->height * (size_t)r->width, bytes;
    *out = (struct ddp_images){.count = count,
                               .channels = r->channels,
                               .height = r->height,
                               .width = r->width,
                               .classes = r->classes};
    if (ddp_mul_size(count, pixels, &bytes))
        out->pixels = ddp_calloc(bytes, 1);
    out->labels = ddp_calloc(count, 1);
    if (!out->pixels || !out->labels)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu generated images", count);
    ddp_rng_init(&rng, r->seed, stream);
    for (size_t i = 0; i < count; i++) {
        uint8_t label = out->labels[i] = (uint8_t)ddp_rng_below(&rng, (uint64_t)r->classes);
        const int8_t *picture = pictures + label * pixels;
        uint8_t *to = out->pixels + i * pixels;
        uint64_t bits = 0;
        int left = 0;
        for (size_t p = 0; p < pixels; p++) {
            int value = 128 + picture[p] + noise(&rng, &bits, &left) / 2;
            to[p] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
    }
    return 0;
}

static int load(const struct ddp_dataset_request *r, struct ddp_dataset *out, struct ddp_err *err)
{
    size_t images = r->images ? r->images : IMAGES_DEFAULT;
    struct ddp_dataset set = {.synthetic = true};
    int rc;
    if (r->channels < 1 || r->height < 1 || r->width < 1 || r->classes < 1 || r->classes > 256)
        return ddp_fail(err, DDP_EUSAGE, "generated images need a shape and 1 to 256 classes");
    if (images > IMAGES_MAX)
        return ddp_fail(err, DDP_EUSAGE, "at most %zu images can be generated", IMAGES_MAX);
    int8_t *pictures =
        ddp_calloc((size_t)r->classes * (size_t)r->channels, (size_t)r->height * (size_t)r->width);
    if (!pictures)
        return ddp_fail(err, DDP_ENOMEM, "no memory for the classes' pictures");
    draw_pictures(r, pictures);
    DDP_TRY_GOTO(make(r, pictures, images, STREAM_TRAIN, &set.train, err), err_set);
    DDP_TRY_GOTO(
        make(r, pictures, DDP_MAX(images / EVAL_SHARE, (size_t)1), STREAM_EVAL, &set.eval, err),
        err_set);
    free(pictures);
    *out = set;
    return 0;

err_set:
    ddp_dataset_release(&set);
    free(pictures);
    return rc;
}

extern const struct ddp_dataset_reader ddp_dataset_synthetic;
const struct ddp_dataset_reader ddp_dataset_synthetic = {
    .name = "synthetic",
    .summary = "random images in the model's input shape, made from the seed: one picture per "
               "class, plus noise",
    .load = load,
};
