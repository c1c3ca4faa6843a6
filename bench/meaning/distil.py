#!/usr/bin/env python3
"""Makes crates/memory/data/meaning.bin: what each piece of a word means, taken from a sentence encoder.

    python3 bench/meaning/distil.py POCKET_ENCODER/assets meaning.bin     # needs numpy and safetensors

POCKET_ENCODER is the unpacked crate pocket-encoder 0.1.2, which has paraphrase-MiniLM-L3-v2 in it (Apache-2.0). Each piece
of its vocabulary is given to it alone; what it makes of them is centred, turned to its 128 widest directions, made half as
uneven in them (which keeps texts apart that have nothing in common), and weighed by how rare the piece is (its place in the
vocabulary stands for that). The mean of its pieces is then the place of a text. That is the way of Model2Vec (MinishLab,
2024), which needs no text to learn from.

The file, little-endian: how many pieces (u32); where each begins in the text, and the end of the last (u32 each); a scale of
each (f32); 128 coordinates of each in 4 bits, the even one low, 8 is zero; the pieces as text, in order of their bytes, those
that go on with a word after "##". The same assets give the same bytes on one kind of machine.
"""

import json
import pathlib
import re
import struct
import sys

import numpy as np
from safetensors import safe_open

WIDTH, HIDDEN, HEADS, LAYERS = 128, 384, 12, 3
RARE = 1e-3


def weights(assets):
    shapes = json.loads((assets / "shapes.json").read_text())
    held = safe_open(assets / "model.safetensors", "np")
    for name, shape in shapes.items():
        if len(shape) < 2:
            yield name, held.get_tensor(name)
            continue
        # Matrices are in 4 bits, 32 values to a scale.
        packed = held.get_tensor(name + ".q4").view(np.uint8).ravel()
        scales = held.get_tensor(name + ".scales").view(np.float16).astype(np.float32).ravel()
        values = np.stack([packed & 15, packed >> 4], 1).ravel().astype(np.float32) - 8
        count = int(np.prod(shape))
        yield name, (values[:count] * np.repeat(scales, 32)[:count]).reshape(shape)


class Encoder:
    def __init__(self, assets):
        self.of = dict(weights(assets))

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * self.of[name + ".weight"] + self.of[name + ".bias"]

    def linear(self, x, name):
        return x @ self.of[name + ".weight"].T + self.of[name + ".bias"]

    def __call__(self, ids):
        """The means of what it makes of texts of one length, given as rows of ids."""
        of, (rows, length) = self.of, ids.shape
        x = of["embeddings.word_embeddings.weight"][ids] + of["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x + of["embeddings.position_embeddings.weight"][:length], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            split = lambda y: y.reshape(rows, length, HEADS, -1).transpose(0, 2, 1, 3)
            q, k, v = (split(self.linear(x, f"{at}attention.self.{part}")) for part in ("query", "key", "value"))
            seen = np.exp(q @ k.transpose(0, 1, 3, 2) / (HIDDEN / HEADS) ** 0.5)
            seen = (seen / seen.sum(-1, keepdims=True)) @ v
            seen = seen.transpose(0, 2, 1, 3).reshape(rows, length, HIDDEN)
            x = self.norm(self.linear(seen, at + "attention.output.dense") + x, at + "attention.output.LayerNorm")
            inner = gelu(self.linear(x, at + "intermediate.dense"))
            x = self.norm(self.linear(inner, at + "output.dense") + x, at + "output.LayerNorm")
        return x.mean(1)


def gelu(x):
    """With the error function by Abramowitz and Stegun 7.1.26, which is exact to 1e-7."""
    z = x * 0.70710678
    t = 1 / (1 + 0.3275911 * np.abs(z))
    poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return 0.5 * x * (1 + np.sign(z) * (1 - poly * np.exp(-z * z)))


def main():
    assets, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    vocabulary = json.loads((assets / "tokenizer.json").read_text())["model"]["vocab"]
    # Words are folded before they are looked up; digits and the single letters of other scripts mean nothing alone.
    pieces = sorted((at, text) for text, at in vocabulary.items() if re.fullmatch("(##)?[a-z]+", text))
    encoder, rows = Encoder(assets), []
    for start in range(0, len(pieces), 256):
        ids = [[vocabulary["[CLS]"], at, vocabulary["[SEP]"]] for at, _ in pieces[start : start + 256]]
        rows.append(encoder(np.array(ids)))
    means = np.concatenate(rows)
    means -= means.mean(0)
    _, lengths, directions = np.linalg.svd(means, full_matrices=False)
    means = means @ directions[:WIDTH].T / np.sqrt(lengths[:WIDTH])
    share = 1 / np.arange(3.0, len(pieces) + 3)
    means *= (RARE / (RARE + share / share.sum()))[:, None]
    scales = np.abs(means).max(1) / 7
    nibbles = (np.round(means / scales[:, None]) + 8).astype(np.uint8)
    packed = nibbles[:, 0::2] | nibbles[:, 1::2] << 4
    order = sorted(range(len(pieces)), key=lambda i: pieces[i][1].encode())
    texts = [pieces[i][1].encode() for i in order]
    starts = np.cumsum([0] + [len(text) for text in texts]).astype("<u4")
    body = [struct.pack("<I", len(pieces)), starts.tobytes(), scales[order].astype("<f4").tobytes(), packed[order].tobytes()]
    out.write_bytes(b"".join(body + texts))
    print(f"{len(pieces)} pieces, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
