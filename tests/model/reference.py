#!/usr/bin/python3
"""An independent reference of the training arithmetic, in numpy and double, from first principles.

Trains each net for 20 steps on images from a linear congruential generator and writes the results:
the losses, and the change of every tensor (its norm, and its sum with fixed signs).
tests/unit/test_reference.c runs the shipped code on the same inputs and compares.

    tests/model/reference.py            > tests/model/reference_values.h
    tests/model/reference.py --check      compares with that file instead; exits with 1 if they differ
"""
import os
import re
import sys

import numpy as np

STEPS, BATCHES, BATCH = 20, 4, 16


class Lcg:
    """Knuth's MMIX generator. Its numbers in [0, 1) have 24 bits and are exact in f32."""

    def __init__(self, seed):
        self.state = seed

    def draw(self, n):
        out, s = np.empty(n), self.state
        for i in range(n):
            s = (s * 6364136223846793005 + 1442695040888963407) % 2**64
            out[i] = (s >> 40) / 2**24
        self.state = s
        return out


def f32(x):
    return np.asarray(x, np.float32).astype(np.float64)


class Conv:
    def __init__(self, cin, cout, k, stride=1, pad=0):
        self.stride, self.pad, self.k = stride, pad, k
        self.shapes = [(cout, cin, k, k), (cout,)]
        self.fans = cin * k * k, cout * k * k

    def taps(self, x):
        """Returns, for each kernel position, a view of the pixels of padded x that it multiplies."""
        s, side = self.stride, (x.shape[2] - self.k) // self.stride + 1
        for ky in range(self.k):
            for kx in range(self.k):
                yield ky, kx, x[:, :, ky : ky + s * side : s, kx : kx + s * side : s][
                    :, :, :side, :side
                ]

    def forward(self, x, p, training):
        w, b = p
        self.x = np.pad(x, ((0, 0), (0, 0), (self.pad,) * 2, (self.pad,) * 2))
        y = b[None, :, None, None]
        for ky, kx, part in self.taps(self.x):
            y = y + np.einsum("nchw,oc->nohw", part, w[:, :, ky, kx], optimize=True)
        return y

    def backward(self, dy, p):
        w, dw, dx = p[0], np.zeros_like(p[0]), np.zeros_like(self.x)
        for ky, kx, part in self.taps(self.x):
            dw[:, :, ky, kx] = np.einsum("nohw,nchw->oc", dy, part, optimize=True)
        for ky, kx, part in self.taps(dx):
            part += np.einsum("nohw,oc->nchw", dy, w[:, :, ky, kx], optimize=True)
        edge = slice(self.pad, dx.shape[2] - self.pad)
        return dx[:, :, edge, edge], [dw, dy.sum((0, 2, 3))]


class Linear:
    def __init__(self, inputs, outputs):
        self.shapes, self.fans = [(outputs, inputs), (outputs,)], (inputs, outputs)

    def forward(self, x, p, training):
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        return self.x @ p[0].T + p[1]

    def backward(self, dy, p):
        return (dy @ p[0]).reshape(self.shape), [dy.T @ self.x, dy.sum(0)]


class Norm:
    """Batch normalisation with needle's running statistics: momentum 0.1, biased variance."""

    def __init__(self, channels):
        self.shapes, self.fans = [(channels,), (channels,)], None
        self.mean, self.var = np.zeros(channels), np.ones(channels)

    def forward(self, x, p, training):
        mean, var = self.mean, self.var
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean, self.var = 0.9 * self.mean + 0.1 * mean, 0.9 * self.var + 0.1 * var
        self.inv = 1 / np.sqrt(var + 1e-5)
        self.hat = (x - mean[:, None, None]) * self.inv[:, None, None]
        return p[0][:, None, None] * self.hat + p[1][:, None, None]

    def backward(self, dy, p):
        dgamma, dbeta = (dy * self.hat).sum((0, 2, 3)), dy.sum((0, 2, 3))
        m = dy.size / dy.shape[1]
        inner = dy - (dbeta[:, None, None] + self.hat * dgamma[:, None, None]) / m
        return (p[0] * self.inv)[:, None, None] * inner, [dgamma, dbeta]


class Relu:
    shapes = []

    def forward(self, x, p, training):
        self.on = x > 0
        return x * self.on

    def backward(self, dy, p):
        return dy * self.on, []


class Pool:
    """2 x 2 max pooling with stride 2. The gradient goes to the first maximum."""

    shapes = []

    def forward(self, x, p, training):
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2).swapaxes(3, 4).reshape(n, c, h // 2, w // 2, 4)
        self.at = windows.argmax(-1)
        return windows.max(-1)

    def backward(self, dy, p):
        n, c, h, w = dy.shape
        windows = (np.arange(4) == self.at[..., None]) * dy[..., None]
        return windows.reshape(n, c, h, w, 2, 2).swapaxes(3, 4).reshape(n, c, 2 * h, 2 * w), []


class Chain:
    def __init__(self, *layers):
        self.layers = layers
        self.shapes = [s for layer in layers for s in layer.shapes]

    def parts(self, p):
        at = 0
        for layer in self.layers:
            yield layer, p[at : at + len(layer.shapes)]
            at += len(layer.shapes)

    def forward(self, x, p, training):
        for layer, own in self.parts(p):
            x = layer.forward(x, own, training)
        return x

    def backward(self, dy, p):
        grads = []
        for layer, own in reversed(list(self.parts(p))):
            dy, own_grads = layer.backward(dy, own)
            grads = own_grads + grads
        return dy, grads

    def leaves(self):
        for layer in self.layers:
            yield from layer.leaves() if isinstance(layer, Chain) else [layer]


class Residual(Chain):
    def forward(self, x, p, training):
        return x + super().forward(x, p, training)

    def backward(self, dy, p):
        dx, grads = super().backward(dy, p)
        return dx + dy, grads


def conv_norm(cin, cout, k, stride):
    return Chain(Conv(cin, cout, k, stride, (k - 1) // 2), Norm(cout), Relu())


def momentum_sgd(lr, momentum, decay):
    def step(p, g, state, t):
        state.setdefault("v", np.zeros_like(p))
        state["v"] = momentum * state["v"] + g + decay * p
        return p - lr * state["v"]

    return step


def adam(lr, decay):
    def step(p, g, state, t):
        g = g + decay * p
        state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
        state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
        hat_m, hat_v = state["m"] / (1 - 0.9**t), state["v"] / (1 - 0.999**t)
        return p - lr * hat_m / (np.sqrt(hat_v) + 1e-8)

    return step


NETS = {
    "singa-cnn": (
        (1, 28, 28), 10, momentum_sgd(0.005, 0.9, 1e-5),
        lambda: Chain(Conv(1, 20, 5), Relu(), Pool(), Conv(20, 50, 5), Relu(), Pool(),
                      Linear(800, 500), Relu(), Linear(500, 10)),
    ),
    "lenet": (
        (1, 28, 28), 10, momentum_sgd(0.04, 0, 0),
        lambda: Chain(Conv(1, 6, 5), Relu(), Pool(), Conv(6, 16, 3), Relu(), Pool(),
                      Linear(400, 120), Relu(), Linear(120, 84), Relu(), Linear(84, 10)),
    ),
    "resnet9": (
        (3, 32, 32), 10, adam(1e-3, 1e-3),
        lambda: Chain(conv_norm(3, 16, 7, 4), conv_norm(16, 32, 3, 2),
                      Residual(conv_norm(32, 32, 3, 1), conv_norm(32, 32, 3, 1)),
                      conv_norm(32, 64, 3, 2), conv_norm(64, 128, 3, 2),
                      Residual(conv_norm(128, 128, 3, 1), conv_norm(128, 128, 3, 1)),
                      Linear(128, 128), Relu(), Linear(128, 10)),
    ),
    "nnabla-tiny": (
        (1, 32, 32), 2, adam(1e-3, 0),
        lambda: Chain(Conv(1, 1, 3, 1, 1), Linear(1024, 2)),
    ),
}  # fmt: skip


def first_parameters(net, lcg):
    """Weights are He-uniform, biases in +-0.1, gamma in 0.5..1.5, all rounded to f32."""
    out = []
    for layer in net.leaves():
        for i, shape in enumerate(layer.shapes):
            u = lcg.draw(int(np.prod(shape))).reshape(shape)
            if i == 0 and layer.fans:
                out.append(f32(np.sqrt(6 / layer.fans[0]) * (2 * u - 1)))
            else:
                out.append(f32(u + 0.5 if i == 0 else 0.2 * u - 0.1))
    return out


def loss_and_gradient(logits, labels):
    shifted = logits - logits.max(1, keepdims=True)
    soft = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    loss = -np.log(soft[np.arange(len(labels)), labels]).mean()
    return loss, (soft - np.eye(logits.shape[1])[labels]) / len(labels)


def run(name):
    shape, classes, rule, make = NETS[name]
    net, lcg = make(), Lcg(2024)
    params = first_parameters(net, lcg)
    start, states = [p.copy() for p in params], [{} for _ in params]
    batches = []
    for _ in range(BATCHES):
        x = lcg.draw(BATCH * int(np.prod(shape))).reshape(BATCH, *shape)
        batches.append((x, (lcg.draw(BATCH) * classes).astype(int)))
    losses = []
    for t in range(1, STEPS + 1):
        x, labels = batches[(t - 1) % BATCHES]
        loss, d = loss_and_gradient(net.forward(x, params, True), labels)
        losses.append(loss)
        _, grads = net.backward(d, params)
        params = [rule(p, g, s, t) for p, g, s in zip(params, grads, states)]
    evaluated, _ = loss_and_gradient(net.forward(batches[0][0], params, False), batches[0][1])
    moved = []
    for p, q in zip(start, params):
        delta = (q - p).ravel()
        index = np.arange(delta.size, dtype=np.uint32)
        signs = 1.0 - 2.0 * ((index * np.uint32(2654435761) >> np.uint32(16)) % 2)
        moved.append((np.linalg.norm(delta), float(delta @ signs)))
    return losses, evaluated, moved


def text():
    rows = [
        "/* Written by tests/model/reference.py: the expected results of 20 steps of each net. */",
        "#ifndef DDP_TESTS_REFERENCE_VALUES_H",
        "#define DDP_TESTS_REFERENCE_VALUES_H",
        "",
        f"enum {{ REF_STEPS = {STEPS}, REF_BATCHES = {BATCHES}, REF_BATCH = {BATCH} }};",
        "",
        "/* moved: for each tensor, the norm of its change and the sum of its change with fixed signs. */",
        "static const struct reference {",
        "    const char *model;",
        f"    double loss[{STEPS}], evaluated, moved[40][2];",
        "} references[] = {",
    ]
    for name in NETS:
        losses, evaluated, moved = run(name)
        rows.append(f'    {{"{name}",')
        rows.append("     {" + ", ".join(f"{v:.9g}" for v in losses) + "},")
        rows.append(f"     {evaluated:.9g},")
        rows.append("     {" + ", ".join(f"{{{a:.8g}, {b:.8g}}}" for a, b in moved) + "}},")
    return "\n".join(rows + ["};", "", "#endif", ""])


def numbers(header):
    return [float(n) for n in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", header)]


def main():
    if sys.argv[1:] != ["--check"]:
        sys.stdout.write(text())
        return
    with open(os.path.join(os.path.dirname(__file__), "reference_values.h")) as f:
        have, want = numbers(f.read()), numbers(text())
    sys.exit(0 if len(have) == len(want) > 100 and np.allclose(have, want, 1e-5, 1e-7) else 1)


if __name__ == "__main__":
    main()
