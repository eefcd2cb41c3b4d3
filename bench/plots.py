"""The plots of the benchmarks, as SVG that reads in light and in dark.

The same points give the same bytes.
"""
import collections
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 62, 66
EDGE = 18  # where titles and notes begin
LABEL_STEP = 15  # between the baselines of two labels
ROOM = 0.03  # of an axis, beyond its first and last values
MARKED = 8  # a line of at most this number of points has a mark at each
GROUPED = "-grouped"  # ends the names of peers that their application groups
KILLED = ", killed"  # ends the names of what was measured after a kill

# By the beginning of a line's name: light and dark.
COLOURS = (
    ("agentwal", "#0550ae", "#6cb6ff"),
    ("bare", "#57606a", "#9198a1"),
    ("jsonl-reopen", "#8a6d00", "#d9bb3c"),
    ("jsonl", "#c2520a", "#f59b55"),
    ("json-message", "#8a4a2f", "#cf9a80"),
    ("sqlite", "#1a7f37", "#57c26f"),
    ("lmdb", "#8250df", "#c297ff"),
    ("rocksdb", "#cf222e", "#ff8182"),
    ("leveldb", "#0a7d8c", "#4fc8d6"),
    ("", "#57606a", "#9198a1"),
)

Axis = collections.namedtuple("Axis", "text place ticks")
Plot = collections.namedtuple("Plot", "name title x y")


def rare(part):
    """Places 50 %, 90 %, 99 %, 99.9 % at equal steps but the first."""
    return -math.log10(1 - part)


def short(value):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return "%g%s" % (value / size, letter)
    return "%g" % value


def plain(value):
    return "{:,.0f}".format(value) if value >= 1 else "%g" % value


def decades(show):
    """1, 10, 100 ... and, where those are few, 2 and 5 of them too."""
    def ticks(low, high):
        steps = (1,) if high / low > 300 else (1, 2, 5)
        powers = range(math.floor(math.log10(low)),
                       math.ceil(math.log10(high)) + 1)
        values = [float("%ge%d" % (step, power)) for power in powers
                  for step in steps]
        return [(value, show(value)) for value in values
                if low <= value <= high]
    return ticks


def fixed(*ticks):
    return lambda low, high: [(value, text) for value, text in ticks
                              if low <= value <= high]


PLOTS = (
    Plot("latency",
         "Durable append, 64 threads: time until it is acknowledged",
         Axis("share of the appends that took no longer", rare,
              fixed((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"),
                    (0.999, "99.9 %"), (0.9999, "99.99 %"))),
         Axis("milliseconds, logarithmic", math.log10, decades(plain))),
    Plot("threads",
         "Durable appends, each thread to its own session",
         Axis("threads, logarithmic", math.log10,
              fixed((1, "1"), (4, "4"), (16, "16"), (64, "64"))),
         Axis("acknowledgements per second, logarithmic", math.log10,
              decades(short))),
    Plot("size",
         "A fresh process opens a store and lists the newest 50 sessions",
         Axis("sessions in the store, logarithmic", math.log10,
              decades(short)),
         Axis("milliseconds, logarithmic", math.log10, decades(plain))),
)


# --- how it looks -----------------------------------------------------------


def colour_class(name):
    for number, (start, _, _) in enumerate(COLOURS):
        if name.startswith(start):
            return "c%d" % number
    raise AssertionError("the last colour is for every name")


def style():
    light = " ".join(".c%d{stroke:%s;color:%s}" % (i, day, day)
                     for i, (_, day, _) in enumerate(COLOURS))
    dark = " ".join(".c%d{stroke:%s;color:%s}" % (i, night, night)
                    for i, (_, _, night) in enumerate(COLOURS))
    return ("<style>text{font:12px system-ui,sans-serif;fill:#1f2328}"
            ".title{font-size:15px;font-weight:600}"
            ".note{font-size:11px;fill:#57606a}"
            ".grid{stroke:#d8dee4}.back{fill:#ffffff}"
            ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}"
            ".own{stroke-width:3.2}.app{stroke-dasharray:6 3}"
            ".limit,.killed{stroke-dasharray:2 4}"
            ".strong{font-weight:700}" + light +
            "circle{fill:currentColor}"
            "text.label{stroke:none;fill:currentColor}"
            "@media (prefers-color-scheme:dark){text{fill:#e6edf3}"
            ".note{fill:#9198a1}.grid{stroke:#30363d}.back{fill:#0d1117}" +
            dark + "}</style>")


def line_classes(name):
    return " ".join(["line", colour_class(name)] +
                    ["own"] * name.startswith("agentwal") +
                    ["app"] * name.endswith(GROUPED) +
                    ["killed"] * name.endswith(KILLED) +
                    ["limit"] * name.startswith("bare"))


# --- overview --------------------------------------------------------------


class Scale:
    """From values of an axis to places in the picture."""

    def __init__(self, axis, values, begin, end):
        self.axis, self.low, self.high = axis, min(values), max(values)
        self.begin, self.end = begin, end
        first, last = axis.place(self.low), axis.place(self.high)
        room = (last - first) * ROOM or 0.5
        self.first, self.span = first - room, last - first + 2 * room

    def at(self, value):
        part = (self.axis.place(value) - self.first) / self.span
        return self.begin + part * (self.end - self.begin)

    def ticks(self):
        return [(self.at(value), text)
                for value, text in self.axis.ticks(self.low, self.high)]


def spread_labels(wanted):
    """Baselines for labels, near where they are wanted and apart."""
    placed = []
    for y, name in sorted(wanted):
        placed.append([max(y, placed[-1][0] + LABEL_STEP if placed else y),
                       name])
    bottom = HEIGHT - BOTTOM + 4
    for label in reversed(placed):
        label[0] = min(label[0], bottom)
        bottom = label[0] - LABEL_STEP
    return placed


# --- the picture ------------------------------------------------------------


def text(kind, x, y, words, anchor="start"):
    return '<text%s x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (
        ' class="%s"' % kind if kind else "", x, y, anchor, escape(words))


def grid(x1, x2, y1, y2):
    return '<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (
        x1, x2, y1, y2)


def axes(plot, x, y):
    made = []
    for place, words in x.ticks():
        made += [grid(place, place, TOP, HEIGHT - BOTTOM),
                 text("", place, HEIGHT - BOTTOM + 17, words, "middle")]
    for place, words in y.ticks():
        made += [grid(LEFT, WIDTH - RIGHT, place, place),
                 text("", LEFT - 8, place + 4, words, "end")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return made + [text("", middle, HEIGHT - BOTTOM + 36, plot.x.text,
                        "middle"),
                   text("", EDGE, TOP - 14, plot.y.text)]


def draw_line(name, places):
    made = ['<polyline class="%s" points="%s"/>' %
            (line_classes(name), " ".join("%.1f,%.1f" % at for at in places))]
    if len(places) <= MARKED:
        made += ['<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>' %
                 ((colour_class(name),) + at +
                  (3.5 if name.startswith("agentwal") else 2,))
                 for at in places]
    return made


def explain(names, note):
    if any(name.endswith(GROUPED) for name in names):
        note += "; dashed: a group commit of the application"
    if any(name.endswith(KILLED) for name in names):
        note += "; dotted: after a process that wrote was killed"
    return note


def draw(plot, points, note):
    lines = collections.defaultdict(list)
    for point in points:
        lines[point["line"]].append((point["x"], point["y"]))
    x = Scale(plot.x, [p[0] for line in lines.values() for p in line],
              LEFT, WIDTH - RIGHT)
    y = Scale(plot.y, [p[1] for line in lines.values() for p in line],
              HEIGHT - BOTTOM, TOP)
    made = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"'
            ' role="img">' % (WIDTH, HEIGHT),
            "<title>%s</title>" % escape(plot.title), style(),
            '<rect class="back" width="%d" height="%d"/>' % (WIDTH, HEIGHT),
            text("title", EDGE, 26, plot.title)]
    made += axes(plot, x, y)
    ends = []
    # The engine's last, over the others.
    for name in sorted(lines, key=lambda name: (name.startswith("agentwal"),
                                                name)):
        places = [(x.at(a), y.at(b)) for a, b in sorted(lines[name])]
        made += draw_line(name, places)
        ends.append((places[-1][1] + 4, name))
    for place, name in spread_labels(ends):
        strong = " strong" if name.startswith("agentwal") else ""
        made.append(text("label " + colour_class(name) + strong,
                         WIDTH - RIGHT + 8, place, name))
    made.append(text("note", EDGE, HEIGHT - 10, explain(lines, note)))
    return "\n".join(made + ["</svg>"]) + "\n"
