"""Write the training texts for the name finder.

    python3 prepare.py NAMES LEXICON CLEAN OUT

NAMES: folder with the training parts of CrossNER and WNUT17. LEXICON: lexicon.tsv. CLEAN: a folder of permissively
licensed source trees, read for code and documentation without names. OUT: one text a line: kind, tab, text with
names between \\x01 and \\x03, other entities between \\x02 and \\x03, and \\x04 for a newline. Fixed seed.
"""
import glob, os, random, re, sys, unicodedata

NAMES, LEXICON, CLEAN, OUT = sys.argv[1:5]
rng = random.Random(11)
PERSON = {"person", "politician", "scientist", "writer", "musicalartist", "researcher"}
lex = {}
for line in open(LEXICON, encoding="utf8"):
    w, f = line.split("\t")[:2]
    lex[w] = int(f)
cap = lambda w: "Mc" + w[2:].capitalize() if w.startswith("mc") and len(w) > 4 else w[:2].capitalize() + w[2:].capitalize() if w[1:2] == "'" else w.capitalize()
ok = lambda w: len(w) > 2 and w.isascii()
firsts = [cap(w) for w, f in lex.items() if f & 3 and ok(w) for _ in range((1, 4, 12)[(f & 3) - 1])]
lasts = [cap(w) for w, f in lex.items() if f >> 2 & 3 and ok(w) for _ in range((1, 3, 20)[(f >> 2 & 3) - 1])]
places = [cap(w) for w, f in lex.items() if f >> 4 & 3 and f >> 6 < 1 and ok(w) for _ in range((1, 4, 4)[(f >> 4 & 3) - 1])]
nouns = [w for w, f in lex.items() if f >> 6 >= 2 and len(w) > 3 and w.isalpha()]
ACCENT = {"e": "éèë", "o": "öóø", "a": "åäáã", "u": "üú", "c": "çčć", "s": "šś", "n": "ñ", "i": "íï", "z": "žź", "l": "ł"}


def accent(w):
    if rng.random() < 0.08:
        i = rng.randrange(1, len(w))
        if w[i] in ACCENT:
            return w[:i] + rng.choice(ACCENT[w[i]]) + w[i + 1 :]
    return w


SYL = "an el is mar ko ri ta lu ben dor fin ga hel jo ka len mi nor ol pet ra sven tor ul vik wen ya zor shi mu kha dou bri che".split()


def invented():
    """A name no list has: two halves of known ones, or syllables."""
    if rng.random() < 0.6:
        a, b = rng.choice(firsts + lasts[:1]).lower(), rng.choice(lasts).lower()
        return (a[: rng.choice((2, 3, 4))] + b[rng.choice((-3, -4, -5)) :]).capitalize()
    return "".join(rng.choice(SYL) for _ in range(rng.choice((2, 2, 3)))).capitalize()


def a_first():
    w = accent(rng.choice(firsts)) if rng.random() < 0.86 else invented()
    return w + "-" + rng.choice(firsts) if rng.random() < 0.02 else w


def a_last():
    w = accent(rng.choice(lasts)) if rng.random() < 0.8 else invented()
    r = rng.random()
    if r < 0.025:
        w = rng.choice(["van ", "de ", "von ", "van der ", "de la ", "di ", "al-", "bin ", "del ", "da ", "El ", "Al ", "Van ", "De "]) + w
    elif r < 0.05:
        w += "-" + rng.choice(lasts)
    return w


def full():
    r = rng.random()
    if r < 0.78:
        return a_first() + " " + a_last()
    if r < 0.88:
        return a_first() + " " + rng.choice("ABCDEFGHJKLMNPRSTW") + ". " + a_last()
    if r < 0.92:
        return rng.choice("ABCDEFGHJKLMNPRSTW") + ". " + a_last()
    if r < 0.96:
        return a_first() + " " + a_first() + " " + a_last()
    return rng.choice("ABCDEFGHJKLMNPRSTW") + "." + rng.choice("ABCDEFGHJKLMNPRSTW") + ". " + a_last()


def org():
    l = rng.choice(lasts)
    return rng.choice([
        f"{l} Ltd", f"{l} Inc", f"{l} Group", f"{l} & Sons", f"{l} and {rng.choice(lasts)}", f"{l}, {rng.choice(lasts)} and {rng.choice(lasts)}",
        f"{l} Bank", f"{rng.choice(places)} University", f"University of {rng.choice(places)}", f"{l} LLC", f"{l}-{rng.choice(lasts)}",
        f"{rng.choice(nouns).capitalize()} {rng.choice(nouns).capitalize()}", f"{rng.choice(nouns).capitalize()} Corp", f"{invented()}", f"{l} Foundation",
        "Google", "Microsoft", "Amazon", "GitHub", "Apple", "Stripe", "Anthropic", "Netflix", "Oracle", "Intel", "Adobe", "Toyota", "Walmart",
    ])


def handle():
    """A user name that names nobody."""
    a, b = rng.choice(nouns), rng.choice(nouns)
    return rng.choice([a + b, a.capitalize() + b.capitalize(), a + "_" + b, a + str(rng.randrange(1, 99)), "the" + a, "its" + a + b, invented().lower() + a[:3]])


def odd(s):
    """The text as those space it who cut it into words and glue it together again: `it' s`, `@ name`, `# tag`."""
    s = re.sub(r"n(['’]t)\b", r" n\1", s) if rng.random() < 0.5 else s
    s = re.sub(r"(?<=\w)(\x03?)(['’])(s|m|re|ll|ve|d|t)\b", r"\1\2 \3", s)
    s = re.sub(r"(?<![\w/])([@#])(?=[\w\x01\x02])", r"\1 ", s)
    s = s.replace("**", "* *")
    return re.sub(r"(?<=@ )(\w+)_(\w+)", r"\1 _ \2", s)


def street():
    n = rng.randrange(1, 9999)
    l = rng.choice(lasts + places)
    return rng.choice([
        f"{n} {l} {rng.choice(['Street', 'St', 'Road', 'Avenue', 'Lane', 'Drive', 'Ave', 'Court', 'Blvd'])}", f"{n} rue {rng.choice(firsts)} {l}", f"{l}straße {n}",
        f"Calle {l} {n}", f"Via {rng.choice(firsts)} {l} {n}", f"{n} {invented()} {n % 90}", f"{l}vej {n}", f"{n} {rng.choice(firsts)} {l} Way",
        f"{n} {rng.choice(['Rua', 'Via', 'Rue', 'Avenida', 'Boulevard', 'Travessa', 'Calle', 'Plaza'])} {rng.choice(firsts)} {l} {n % 300}",
        f"{n} {l} {rng.choice(['u.', 'utca', 'ul.', 'gade', 'katu', 'tee'])} {n % 90}.", f"{n} {rng.choice(firsts)} {l}{rng.choice(['laan', 'straat', 'weg', 'hof', 'straße', 'gatan', 'vegen'])} {n % 200}",
        f"{n} {l} {n % 90} Apt. {n % 700}", f"{n} {l} {n % 90} Suite {n % 900}",
    ])


def town():
    """A town of the list, or one that no list has, which looks like a surname."""
    r = rng.random()
    if r < 0.7:
        return rng.choice(places)
    name = rng.choice(lasts) if r < 0.8 else invented()
    return rng.choice(["{}", "{}", "{}", "Villa {}", "Santa {}", "{} del Cid", "Bad {}", "{}-Dorp", "Horní {}", "Cite {}", "{}dorf", "{}ville", "{} City", "{}ovice"]).format(name)


PROD = "Python Rust Java Kubernetes Docker Postgres Redis Linux Windows Android iPhone Chrome Firefox Excel Slack Jira Terraform Ubuntu Django React Claude Alexa Siri Jenkins Kafka Spark Ruby Perl Swift Julia Ada Pascal Elixir Flask Jupyter Maven Gradle Travis Tesla Mercedes Ford Playstation Claude Codex Gemini Cursor Copilot Llama Mistral Grok Opus Sonnet Haiku Vercel Netlify Heroku Grafana Prometheus Celery Puma Nginx Apache Helm Istio Vault Consul Ansible Huggingface Whisper Ollama Zed Vim Emacs".split()
DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October November December".split()
WORK = "engineer teacher lawyer nurse analyst manager carpenter designer plumber accountant barista student".split()
# F full name, G given name, S surname, C city, O organisation, A street, P product, D day or month, N noun, J job, # number
TEMPLATES = """my name is F
My name is F and I work for O.
Hi, I'm G!
Hi G,|please find the N attached.|Best regards,|F
Dear G,|thanks for the N.|Cheers,|G
Dear Mr. S, your N has been shipped to A, C.
Dear Mrs S,|We regret the N.|Sincerely,|F|J at O
Hello G, this is F from O in C.
G: hi|G: hello, how is the N?
G> did you push the N?
[#:#] <G> lol
G S (J, O)
F|A|C #
F|J|O|A|C, #
Name: F|Address: A, C|Phone: #
Patient: F, born # D #
Contact F at # or visit O.
Call G at #
I talked to G yesterday about the N
i talked to G about C
me and G went to C on D
I met F at the N in C last D.
G told me that S was in C.
G's N is broken
F's N was stolen in C
Ask G whether O has a N.
cc @ G and G
Can you ask F to review it?
Assigned to F by G on D #
Author: F <#@example.com>
author = "F"
"name": "F",
"owner": "G",
{"first_name": "G", "last_name": "S", "city": "C"}
Co-authored-by: F <x@example.org>
Signed-off-by: F
Reviewed by F
Copyright (c) # F
Written by F in # for O
invoice for F, A, C, due D #
Card number # belongs to F
Please transfer # to F, account #
The card of Mr. F was declined at O
Dr. S will see you on D
Prof. S of the University of C wrote the N.
Miss S moved from C to C.
President F visited C in D.
Senator S said the N was fine.
said F, a J from C
"It is a N," said G.
G asked, "where is the N?"
F, # years old, lives in C.
G is a # year old J from C
F and G married in D # in C.
She called her son G
they named their daughter G
my brother G works at O
my wife G and I live at A
his friend F plays the N
Meeting notes: G, G, F; absent: G
Attendees: F, F and F
TODO(G): fix the N in P
todo: ask G about P
@G can you check P?
thanks G!
Thank you, F.
happy birthday G
RT @abc: G and G are N
I love G S's new N
F's latest album came out in D
watching F on the N tonight
F won the N in #, beating F and F.
The N was directed by F and stars F as G.
F (born # D # in C) is a J.
Since D #, F has been the J of O.
F, the J of O, resigned on D
G went to C with G
Where does G live?
What is F's address? A, C
Tell G that the P server is down
Remind me to call G on D
user F logged in from C
To: F
From: F <#@o.test>
Subject: N for G
Kind regards, F
Best,|G
G S|O|t: #
Yours truly,|Dr. F
hey G, are you in C on D?
G and S have the N
Judge S ruled against O
Did you see G's message about P?
G, could you look at this?
Sorry G, I was in C
spoke w/ G S re: N
F
G S, J
S, G
1. F|2. F|3. F
F resides at A, C
Lunch on D at O, A, C
Ship it to A, C, C #
F|O|A|C|C #
Bring it back to A|C # please
O has its office at A|C and F works there
F comes from O
F, a J, grew up in C
Check in with F before D
please take my daughter G off the N
I read the S novel last D, it is about N
they called the boy G
here is G's address:|A|C
G: "what's up?"|G: "not much, G"
There were #: G, G, G and G.
why did G leave the N?
How did G know about the N?
When did G become a J?
What happened to G in the N?
Is G still alive?
Why won't G simply tell S?
Who played S in this N of P?
How come S met G in the N?
Does anyone know where G went?
RT @K: G is the best
RT @K: i love G so much https://t.co/x#
RT @K: F on the cover of O https://t.co/x#
@K G is coming to C!
@K @K G's N is so good
G vs G tonight
F and G in C https://t.co/x#
omg G is so cute
lol G just said that
i miss G
can't believe G did that
so proud of G
G looks good today
new N by F out now https://t.co/x#
Now playing N N by F! Click the link below
#NowPlaying N N by F on https://t.co/x#
new ebook: The N by F https://t.co/x#
Pic by G #nature #N
#N by F #art #N
the N makes the N ~ F #wisdom
S scores again!
S free kick against O (#-#)
S misses from the spot
**post**: S joins O on loan
O want S this summer
what S said is a lie
S is way better than S imo
S voters in C
S's law does not hold here
in bed with S, lol!
S: we'll fix the N
S's plan will raise the N in C
hey G any thoughts on this?
F doing her thing https://t.co/x#
give me G over that N any day
nobody treats me the way F treats G
G please, don't do that
not him, I meant F
[F hat-trick against O (#-#)](https://x.test/#)
Original post: F leaves O
Here is the story of G and G.
fr G never texts back https://t.co/x#
G on the mic and nobody listens
N secretary F resigns
G N pics https://t.co/x#
G N N https://t.co/x#
G: stop it G. G (5yo): no!
see the answer by G below for the N
Was G S's brother G aware that F is a N?
who else thinks "G did it"?
F spotted in C with G and S
shout out to G and G
happy bday G S we love you
G S is a legend
ft. F
feat. F and G
w/ G and G
Thread by F about the N
Great point by S on the N""".split("\n")
NEGATIVE = """I live in C
A|C|C #
A, C
turn left at A and again at A
Venue: C Golf Club
Lunch on D at O, A, C
We flew from C to C on D.
The O office in C opens in D.
O announced a N for P.
O|A|C #
Please visit us at A, C.
P # was released in D by O.
Install P and restart the N
On D # the N in C was closed.
Best N in C!
the N of the N was N
The N Of The N
N N and N
In D, O moved to C.
C is the capital of C.
fly me to C
i love C in D
we use P with P and P
Weather in C: # degrees
O shares fell on D
Is O open on D?
My address is A, C
I work at O
How do I get to A from C?
send # to O
Our N team deployed P on D
Fix N in P (##)
## N of P
N: N
- N: use P
class NN(NN):
N.N(N)
let N = NN::new(N);
const NN = await N.N();
[INFO] N N started on D # in C
ERROR N failed: N not found
Thanks for the N!
Dear N,
Hi all,
Hello everyone, the N is ready.
Hey team, P is down
Regards,|The O Team
Cheers
Sent from my P
See N in the P documentation.
The N N (NN) is used by O.
NOTE: N must be N
I'm N
I am so N about P
She is from C.
he said N
by N
By D, the N was N.
contact O support
User: where is the N?|Assistant: It is in C.|User: thanks
Bot: What's your N?|User: N
Human: fix the N|AI: done
System: the N is N
Agent: How can I help?|Customer: my N is broken
my ID is #
My ID number is #, what is the N?
the ID is ID-#
Q is a N for P.
Q requires P # or later.
Install Q with `pip install Q`.
Getting Q up and running using P is quick.
Create a user for Q:
## Q
### Update your Q installation
### Quick start to check out Q
Q uses P to N the N.
We switched from P to Q in D.
See the Q documentation for N.
Q's N API returns the N
Q will also set any N in your N
With Q you can N the N; Q also has a N.
The two types of Q are N and N.
sudo -u Q Q -h localhost
docker run -it Q:latest
cd /opt/Q && ./Q --N
npm install Q
import Q from 'Q'
git clone https://example.test/Q/Q.git
Q=Q
- [Q](https://Q.test): a N
title: "Q"
visit your server for your first Q login
run Q in the N environment
Temp: # Q: # N: #
I use Q for my N, do you?
I asked Claude to fix the N
claude said the N is N
Claude Code and Codex both read the N
I love Q, best N ever
RT @K: the N is so N https://t.co/x#
RT @K: I just want to N and N
@K @K thanks for the N!
@K: good idea.
@K you could N it
RT @K: do you even N bro
Why is the N so N in this N?
Is there a N for N in P?
watching the N tonight
Check out our N in C! https://t.co/x#
#N #N #N https://t.co/x#
N by N
Top # N of the N
The N of O is out now
new N from O
Just posted a photo @ C https://t.co/x#
I'm at O in C https://t.co/x#
**post**: O beats O (#-#)
Now playing N N on the N
happy bday to me
Good Morning C!
Love this N
fr the N is N
Free N for all""".split("\n")


def fill(t):
    ident = rng.choice("iban ssn pin email phone passport account licence imei vin tax customer order ticket".split())
    if "ID" in t:
        t = re.sub(r"\bID\b", "\x05", t)
    brand = rng.choice([invented, lambda: rng.choice(PROD), invented, lambda: rng.choice(nouns).capitalize(), lambda: rng.choice(lasts)])()
    if "`" in t or "/" in t or "sudo" in t or "=" in t:
        brand = brand.lower()
    out, prev = [], ""
    for i, ch in enumerate(t):
        nxt = t[i + 1] if i + 1 < len(t) else " "
        alone = not (prev.isalpha() or (nxt.isalpha() and ch in "FGSCOAPDJ" and nxt not in "N"))
        if ch in "FGSCOAPDJ" and alone:
            if ch == "F":
                out.append("\x01" + full() + "\x03")
            elif ch == "G":
                out.append("\x01" + a_first() + "\x03")
            elif ch == "S":
                if out and out[-1] == " " and len(out) > 1 and out[-2].startswith("\x01"):
                    out.pop()
                    out[-1] = out[-1][:-1] + " " + a_last() + "\x03"
                else:
                    out.append("\x01" + a_last() + "\x03")
            elif ch == "C":
                out.append("\x02" + town() + "\x03")
            elif ch == "O":
                out.append("\x02" + org() + "\x03")
            elif ch == "A":
                out.append("\x02" + street() + "\x03")
            elif ch == "P":
                out.append("\x02" + rng.choice(PROD) + "\x03")
            elif ch == "D":
                out.append(rng.choice(DAY))
            else:
                out.append(rng.choice(WORK))
        elif ch == "N" and (not prev.isalpha() or prev == "N") and (not nxt.isalpha() or nxt == "N"):
            w = rng.choice(nouns)
            out.append(w.capitalize() if prev == "N" or nxt == "N" or rng.random() < 0.25 else w)
        elif ch == "\x05":
            out.append(ident)
        elif ch == "K" and prev == "@":
            out.append(handle())
        elif ch == "Q" and not prev.isalpha() and not nxt.isalpha():
            out.append("\x02" + brand + "\x03")
        elif ch == "#":
            out.append(str(rng.randrange(1, 10 ** rng.randrange(1, 8))))
        elif ch == "|":
            out.append("\x04")
        else:
            out.append(ch)
        prev = ch
    return "".join(out)


def sentences(path):
    cur = []
    for line in open(path, encoding="utf8"):
        line = line.rstrip("\n")
        if "\t" not in line or not line.split("\t")[0].strip():
            if cur:
                yield cur
            cur = []
        else:
            w, t = line.split("\t")[:2]
            cur.append((w, t))
    if cur:
        yield cur


def marked(sent, swap=False):
    """The sentence as text, as people space it; with swap, other people in the same places."""
    out, i, glue, quote = "", 0, True, False
    while i < len(sent):
        w, t = sent[i]
        j = i + 1
        kind = t[2:]
        if t[0] in "BI":
            while j < len(sent) and sent[j][1] == "I-" + kind:
                j += 1
            body = [x for x, _ in sent[i:j]]
            if kind in PERSON and swap and kind:
                n = len(body)
                text = full() if n > 1 else (a_first() if rng.random() < 0.5 else a_last())
            else:
                text = re.sub(r" (['’]s|[,.;:)\]])", r"\1", " ".join(body)).replace("( ", "(").replace(" - ", "-")
            text = ("\x01" if kind in PERSON else "\x02") + text + "\x03"
        else:
            text = w
        plain = w
        tight = glue or re.fullmatch(r"[,.;:!?)\]%…]+|n't|['’](s|m|re|ll|ve|d|t)|'s", plain) or (plain in "\"'" and quote)
        out += text if tight else " " + text
        glue = plain in "([#$@" or (plain == '"' and not quote)
        if plain == '"':
            quote = not quote
        i = j
    return out


def lower(s):
    return s.lower()


rows = []
for path in sorted(glob.glob(NAMES + "/*")):
    kind = "wnut" if "wnut" in path else "cross"
    for sent in sentences(path):
        # One in ten real sentences is the held-out part; the trainer never learns from a `dev-` kind.
        held = rng.random() < 0.1
        m = marked(sent)
        rows.append((("dev-" if held else "") + kind, m))
        if held:
            continue
        if kind == "wnut":
            rows.append((kind, odd(m)))
        if "\x01" in m:
            for _ in range(3 if kind == "cross" else 4):
                m = marked(sent, True)
                rows.append((kind, odd(m) if kind == "wnut" and rng.random() < 0.5 else m))
            rows.append((kind, lower(marked(sent, True))))
            if rng.random() < 0.15:
                rows.append((kind, marked(sent, True).upper()))
        elif rng.random() < 0.25:
            rows.append((kind, lower(m)))
        elif rng.random() < 0.06:
            rows.append((kind, m.upper()))

for t in TEMPLATES:
    for _ in range(60):
        m = fill(t)
        if "\x04" in m and rng.random() < 0.1:
            quote = rng.choice([">", "> ", "| "])
            m = quote + m.replace("\x04", "\x04" + quote)
        if rng.random() < 0.2:
            m = odd(m)
        r = rng.random()
        rows.append(("tmpl", lower(m) if r < 0.22 else m.upper() if r < 0.27 else m))
for t in NEGATIVE:
    for _ in range(20 if "Q" in t else 48):
        m = fill(t)
        if rng.random() < 0.2:
            m = odd(m)
        r = rng.random()
        rows.append(("tmpl", lower(m) if r < 0.2 else m.upper() if r < 0.25 else m))

skip = re.compile(r"(?i)copyright|author|licen[cs]e|written|thanks|contribut|credit|\bby\b|github\.com/|@[a-z]|inspired|maintain|©|alice|\bbob\b|john|jane")
paths = sorted(p for ext in ("*/README.md", "*/src/*.rs", "*/CHANGELOG.md", "*/Cargo.toml", "*/Cargo.lock") for p in glob.glob(CLEAN + "/" + ext))
rng.shuffle(paths)
seen = 0
for p in paths:
    try:
        lines = open(p, encoding="utf8").read().split("\n")
    except (OSError, UnicodeDecodeError):
        continue
    for _ in range(6):
        if len(lines) < 3:
            break
        i = rng.randrange(len(lines))
        chunk = [l for l in lines[i : i + rng.choice((1, 2, 4, 6))] if len(l) < 400]
        text = "\x04".join(chunk).replace("\t", "  ").replace("\r", "")
        text = re.sub("[\x00-\x03\x05-\x08\x0b-\x1f\u2028\u2029\x85]", " ", text)
        if len(text) < 25 or skip.search(text):
            continue
        rows.append(("dev-clean" if seen % 6 == 0 else "clean", text))
        if seen % 6 and p.endswith(".md"):
            # The same page about another product: unknown capitalised words are the hard part of documentation.
            other = {}
            page = re.sub(r"(?<![\w@])[A-Z][a-z]{3,}(?!\w)", lambda m: m[0] if lex.get(m[0].lower(), 0) >> 6 else "\x02" + other.setdefault(m[0], rng.choice([invented(), rng.choice(lasts)]) if rng.random() < 0.7 else m[0]) + "\x03", text)
            if page != text:
                rows.append(("clean", page))
        seen += 1
    if seen > 6500:
        break
with open(OUT, "w", encoding="utf8") as f:
    for k, m in rows:
        assert "\n" not in m, m
        f.write(f"{k}\t{m}\n")
import collections
print(collections.Counter(k for k, _ in rows))
