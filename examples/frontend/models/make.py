"""Makes the models of this folder, and what LIBLINEAR itself answers. Needs numpy and liblinear-official; the files are checked in."""

import os

import numpy as np
from liblinear.liblinearutil import load_model, predict, save_model, train

folder = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(3)
centers = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
x = np.round(centers[np.repeat([0, 1, 2], 50)] + random.normal(0, 0.35, (150, 4)), 1)
kind = np.repeat([30, 10, 20], 50)
rows = x.tolist()


def make(name, targets, samples, options):
    path = os.path.join(folder, name + ".model")
    save_model(path, train(list(targets), samples, options + " -q"))
    return load_model(path)


iris = make("iris", kind, rows, "-s 0 -B 1")  # logistic, three classes
make("binary", np.where(kind == 30, 1, -1), rows, "-s 1")  # a support vector machine
make("regression", x[:, 0], x[:, 1:].tolist(), "-s 11 -B 1")

samples = x[::15].astype(np.float32)
labels, _, probabilities = predict([], samples.astype(float).tolist(), iris, "-b 1 -q")
scores = np.array(predict([], samples.astype(float).tolist(), iris, "-q")[2])
np.savez(os.path.join(folder, "samples.npz"), x=samples)
np.savez(
    os.path.join(folder, "expected.npz"),
    label=np.array(labels, np.int64),
    scores=scores.astype(np.float32),
    probabilities=np.array(probabilities, np.float32),
)
