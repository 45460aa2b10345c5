/* A small learnable data set for the trainer's tests. */
#ifndef DDP_TESTS_TRAINER_IMAGES_H
#define DDP_TESTS_TRAINER_IMAGES_H

#include <stdlib.h>

#include "base/rng.h"
#include "model/dataset.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE };

/* Each class has a picture of noise, and each image is a blend of its class's picture and more
 * noise. One label in five is random, so that the loss does not reach 0. */
static void make_images(struct ddp_images *set, size_t count, uint64_t stream)
{
    struct ddp_rng look, rng;
    uint8_t classes[10][PIXELS];
    ddp_rng_init(&look, 1, 0);
    ddp_rng_init(&rng, 1, stream);
    for (int c = 0; c < 10; c++)
        for (int p = 0; p < PIXELS; p++)
            classes[c][p] = (uint8_t)ddp_rng_below(&look, 256);
    *set = (struct ddp_images){.pixels = malloc(count * PIXELS),
                               .labels = malloc(count),
                               .count = count,
                               .channels = 1,
                               .height = SIDE,
                               .width = SIDE,
                               .classes = 10};
    for (size_t i = 0; i < count; i++) {
        int c = (int)ddp_rng_below(&rng, 10);
        for (int p = 0; p < PIXELS; p++)
            set->pixels[i * PIXELS + (size_t)p] =
                (uint8_t)((classes[c][p] + 2 * (int)ddp_rng_below(&rng, 256)) / 3);
        set->labels[i] = (uint8_t)(ddp_rng_below(&rng, 5) ? c : (int)ddp_rng_below(&rng, 10));
    }
}

#endif
