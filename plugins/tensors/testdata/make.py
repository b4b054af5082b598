#!/usr/bin/env python3
"""Writes the .npz fixtures next to it with numpy, so that the tests read what numpy writes."""
import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
arrays = {"a/b:0": np.arange(6, dtype=np.float32).reshape(2, 3), "Ünï": np.array([1, -2], dtype=">i4"),
          "fortran": np.asfortranarray(np.arange(24, dtype=np.int64).reshape(2, 3, 4)), "text": np.array(["ab", "ü€😀", ""]),
          "seq[0]": np.float16([1.5]), "seq[1]": np.float16([2.5, 3.5]), "flag": np.array(True)}
np.savez(os.path.join(here, "stored.npz"), **arrays)
np.savez_compressed(os.path.join(here, "deflated.npz"), **arrays)
