#!/usr/bin/env python3
"""Trains the demo network on scikit-learn's digits and writes everything in models/digits but its README and manifest.

  python3 -m venv venv && venv/bin/pip install -r scripts/train_demo_requirements.txt && venv/bin/python scripts/train_demo.py

A residual network of 8x8 pictures, plain numpy, one seed, one thread: the same versions of the packages give the same
files. It takes half a minute. The graph keeps BatchNormalization apart from Conv, as exporters of training frameworks do,
so that the demo has something to fuse.
"""
import os

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"                                # sums in one order: the same weights every time

import argparse  # noqa: E402
import sys  # noqa: E402

import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "models", "digits")
EPSILON = 1e-5
HELD_OUT = 450


# ------------------------------------------------------------------------------------------------ layers, NHWC
class Conv:
    """A convolution without bias, zero padded to the same size; weight [kernel, kernel, in, out]."""

    def __init__(self, rng, kernel, n_in, n_out, stride=1):
        self.weight = (rng.standard_normal((kernel, kernel, n_in, n_out)) * np.sqrt(2 / (kernel * kernel * n_in))).astype(np.float32)
        self.kernel, self.stride, self.parameters = kernel, stride, ["weight"]

    def windows(self, padded, size):
        for i in range(self.kernel):
            for j in range(self.kernel):
                yield i, j, padded[:, i:i + size[0]:self.stride, j:j + size[1]:self.stride]

    def forward(self, x, training):
        p = self.kernel // 2
        padded, size = np.pad(x, ((0, 0), (p, p), (p, p), (0, 0))), x.shape[1:3]
        y = sum(w @ self.weight[i, j] for i, j, w in self.windows(padded, size))
        self.saved = padded, size
        return y

    def backward(self, dy):
        padded, size = self.saved
        self.d_weight, dx, flat = np.zeros_like(self.weight), np.zeros_like(padded), dy.reshape(-1, dy.shape[-1])
        targets = self.windows(dx, size)
        for (i, j, w), (_, _, d) in zip(self.windows(padded, size), targets):
            self.d_weight[i, j] = w.reshape(-1, w.shape[-1]).T @ flat
            d += dy @ self.weight[i, j].T
        p = self.kernel // 2
        return dx[:, p:p + size[0], p:p + size[1]]


class BatchNorm:
    def __init__(self, n):
        self.scale, self.bias = np.ones(n, np.float32), np.zeros(n, np.float32)
        self.mean, self.var = np.zeros(n, np.float32), np.ones(n, np.float32)
        self.parameters = ["scale", "bias"]

    def forward(self, x, training):
        mean, var = self.mean, self.var
        if training:
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.mean += 0.1 * (mean - self.mean)
            self.var += 0.1 * (var - self.var)
        deviation = 1 / np.sqrt(var + EPSILON)
        unit = (x - mean) * deviation
        self.saved = unit, deviation
        return unit * self.scale + self.bias

    def backward(self, dy):
        unit, deviation = self.saved
        self.d_scale, self.d_bias = (dy * unit).sum((0, 1, 2)), dy.sum((0, 1, 2))
        n = dy.size // dy.shape[-1]
        return self.scale * deviation * (dy - self.d_bias / n - unit * self.d_scale / n)


class Relu:
    parameters = []

    def forward(self, x, training):
        self.saved = x > 0
        return x * self.saved

    def backward(self, dy):
        return dy * self.saved


class Chain:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x, training):
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy

    def leaves(self):
        for layer in self.layers:
            yield from layer.leaves() if hasattr(layer, "leaves") else [layer]


class Residual:
    """relu(main(x) + short(x)); short is the identity, or a 1x1 convolution where size or channels change."""

    def __init__(self, rng, n_in, n_out, stride=1):
        self.main = Chain(Conv(rng, 3, n_in, n_out, stride), BatchNorm(n_out), Relu(), Conv(rng, 3, n_out, n_out), BatchNorm(n_out))
        self.short = Chain(Conv(rng, 1, n_in, n_out, stride), BatchNorm(n_out)) if (n_in, stride) != (n_out, 1) else Chain()
        self.relu = Relu()

    def forward(self, x, training):
        return self.relu.forward(self.main.forward(x, training) + self.short.forward(x, training), training)

    def backward(self, dy):
        dy = self.relu.backward(dy)
        return self.main.backward(dy) + self.short.backward(dy)

    def leaves(self):
        yield from self.main.leaves()
        yield from self.short.leaves()


class Head:
    """The mean over the picture, then a linear layer."""

    def __init__(self, rng, n_in, n_out):
        self.weight = (rng.standard_normal((n_in, n_out)) * n_in ** -0.5).astype(np.float32)
        self.bias, self.parameters = np.zeros(n_out, np.float32), ["weight", "bias"]

    def forward(self, x, training):
        self.saved = x.mean((1, 2)), x.shape
        return self.saved[0] @ self.weight + self.bias

    def backward(self, dy):
        mean, shape = self.saved
        self.d_weight, self.d_bias = mean.T @ dy, dy.sum(0)
        return np.broadcast_to((dy @ self.weight.T / (shape[1] * shape[2]))[:, None, None], shape)


def network(rng):
    return Chain(Conv(rng, 3, 1, 16), BatchNorm(16), Relu(), Residual(rng, 16, 16), Residual(rng, 16, 32, 2), Residual(rng, 32, 32),
                 Head(rng, 32, 10))


# ------------------------------------------------------------------------------------------------ training
def shifted(images, rng):
    """Each picture moved by up to one pixel, so that the network learns strokes and not places."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    moves = rng.randint(0, 3, (len(images), 2))
    return np.stack([p[a:a + 8, b:b + 8] for p, (a, b) in zip(padded, moves)])


def accuracy(net, images, labels):
    return float((net.forward(images, False).argmax(1) == labels).mean())


def train(net, images, labels, rng, epochs, batch=64):
    state = [(layer, name, np.zeros_like(getattr(layer, name)), np.zeros_like(getattr(layer, name)))
             for layer in net.leaves() for name in layer.parameters]
    steps, step = epochs * (len(images) // batch), 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - batch + 1, batch):
            part = order[start:start + batch]
            logits = net.forward(shifted(images[part], rng), True)
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            target = np.full_like(p, 0.1 / 10)
            target[np.arange(batch), labels[part]] += 0.9     # smoothed labels: the margins stay small
            net.backward((p - target) / batch)
            rate, step = 2e-3 * 0.5 * (1 + np.cos(np.pi * step / steps)), step + 1
            for layer, name, m, v in state:                   # Adam with decoupled weight decay
                w, g = getattr(layer, name), getattr(layer, "d_" + name)
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                w -= rate * (m / (1 - 0.9 ** step) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8) + (1e-2 * w if w.ndim > 1 else 0)).astype(np.float32)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: training accuracy {accuracy(net, images, labels):.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ ONNX
class Export:
    def __init__(self):
        self.nodes, self.weights, self.names = [], [], {}

    def constant(self, name, array):
        from onnx import numpy_helper
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def op(self, kind, inputs, output, **attributes):
        from onnx import helper
        self.nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def layer(self, layer, x, name):
        if isinstance(layer, Conv):
            p = layer.kernel // 2
            w = self.constant(name + ".weight", layer.weight.transpose(3, 2, 0, 1))
            return self.op("Conv", [x, w], name, kernel_shape=[layer.kernel] * 2, strides=[layer.stride] * 2, pads=[p] * 4)
        if isinstance(layer, BatchNorm):
            values = [self.constant(f"{name}.{k}", getattr(layer, k)) for k in ("scale", "bias", "mean", "var")]
            return self.op("BatchNormalization", [x, *values], name, epsilon=EPSILON)
        return self.op("Relu", [x], name)

    def chain(self, chain, x, name):
        count = {}
        for layer in chain.layers:
            kind = {Conv: "conv", BatchNorm: "bn", Relu: "relu"}[type(layer)]
            count[kind] = count.get(kind, 0) + 1
            x = self.layer(layer, x, f"{name}.{kind}{count[kind]}")
        return x

    def residual(self, block, x, name):
        main, short = self.chain(block.main, x, name), self.chain(block.short, x, name + ".short")
        return self.op("Relu", [self.op("Add", [main, short], name + ".add")], name + ".relu")


def export(net, path):
    import onnx
    from onnx import TensorProto, helper
    e, x, blocks = Export(), "image", 0
    stem = Chain(*[layer for layer in net.layers if isinstance(layer, (Conv, BatchNorm, Relu))])
    x = e.chain(stem, x, "stem")
    for layer in net.layers:
        if isinstance(layer, Residual):
            blocks += 1
            x = e.residual(layer, x, f"block{blocks}")
    x = e.op("Flatten", [e.op("GlobalAveragePool", [x], "pool")], "flat")
    head = net.layers[-1]
    e.op("Gemm", [x, e.constant("head.weight", head.weight.T), e.constant("head.bias", head.bias)], "logits", transB=1)
    graph = helper.make_graph(e.nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])], e.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="scripts/train_demo.py")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default=OUT, help="folder to write to (default: models/digits)")
    p.add_argument("--epochs", type=int, default=60)
    a = p.parse_args()
    from sklearn.datasets import load_digits
    digits, rng = load_digits(), np.random.RandomState(0)
    order = rng.permutation(len(digits.target))
    images = (digits.images[order, :, :, None] / 16).astype(np.float32)    # 0..16 in the data set
    labels = digits.target[order].astype(np.int64)
    net = network(rng)
    train(net, images[HELD_OUT:], labels[HELD_OUT:], rng, a.epochs)
    reached = accuracy(net, images[:HELD_OUT], labels[:HELD_OUT])
    print(f"held-out accuracy {reached:.4f} on {HELD_OUT} pictures")
    if reached < 0.97:
        sys.exit("train_demo.py: under 0.97, nothing written")
    os.makedirs(a.out, exist_ok=True)
    export(net, os.path.join(a.out, "digits.onnx"))
    held = images[:HELD_OUT].transpose(0, 3, 1, 2)
    np.savez(os.path.join(a.out, "heldout.npz"), image=held)
    np.save(os.path.join(a.out, "labels.npy"), labels[:HELD_OUT])
    chosen = [int(np.flatnonzero(labels[:HELD_OUT] == d)[0]) for d in range(10)]
    np.savez(os.path.join(a.out, "samples.npz"), image=held[chosen])
    np.save(os.path.join(a.out, "samples.npy"), held[chosen])
    np.save(os.path.join(a.out, "samples_labels.npy"), labels[:HELD_OUT][chosen])


if __name__ == "__main__":
    main()
