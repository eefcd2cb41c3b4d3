"""The plots of the benchmarks, as SVG that reads in light and in dark."""
import collections
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 56, 64
LABEL_STEP = 14  # between the baselines of two labels
GROUPED = "-grouped"  # ends the names of peers that their application groups

# By the beginning of a line's name: light and dark.
COLOURS = (
    ("agentwal", "#0550ae", "#6cb6ff"),
    ("bare", "#6e7781", "#8b949e"),
    ("jsonl", "#b35900", "#f0a050"),
    ("json-message", "#8a4a2f", "#d0957a"),
    ("sqlite", "#1a7f37", "#57c26f"),
    ("lmdb", "#8250df", "#c297ff"),
    ("rocksdb", "#cf222e", "#ff8182"),
    ("leveldb", "#0a7d8c", "#4fc8d6"),
    ("", "#6e7781", "#8b949e"),
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


def decades(low, high):
    """1, 10, 100 ... and, where those are few, 2 and 5 of them too."""
    steps = (1,) if high / low > 300 else (1, 2, 5)
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        ticks += [step * 10.0 ** power for step in steps]
    return [(tick, short(tick)) for tick in ticks if low <= tick <= high]


def fixed(*ticks):
    return lambda low, high: [(value, text) for value, text in ticks
                              if low <= value <= high]


PLOTS = (
    Plot("latency", "Durable append, 64 threads: how long until it is acknowledged",
         Axis("of all appends take at most", rare,
              fixed((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"),
                    (0.9999, "99.99 %"))),
         Axis("milliseconds", math.log10, decades)),
    Plot("threads", "Durable appends acknowledged per second, each thread a session",
         Axis("threads", math.log10,
              fixed((1, "1"), (4, "4"), (16, "16"), (64, "64"))),
         Axis("acknowledgements per second", math.log10, decades)),
    Plot("size", "A fresh process opens a store and lists the newest 50 sessions",
         Axis("sessions in the store", math.log10, decades),
         Axis("milliseconds", math.log10, decades)),
)


def colour_class(name):
    for number, (start, _, _) in enumerate(COLOURS):
        if name.startswith(start):
            return "c%d" % number
    return "c0"


def style():
    light = " ".join(".c%d{stroke:%s;color:%s}" % (i, day, day)
                     for i, (_, day, _) in enumerate(COLOURS))
    dark = " ".join(".c%d{stroke:%s;color:%s}" % (i, night, night)
                    for i, (_, _, night) in enumerate(COLOURS))
    return ("<style>text{font:12px system-ui,sans-serif;fill:#1f2328}"
            ".title{font-size:15px;font-weight:600}.note{font-size:10px;fill:#57606a}"
            ".grid{stroke:#d0d7de}.back{fill:#ffffff}"
            ".line{fill:none;stroke-width:1.6}.own{stroke-width:3.2}"
            ".app{stroke-dasharray:5 3}.limit{stroke-dasharray:2 3}"
            ".strong{font-weight:700}" + light +
            "text.label{stroke:none;fill:currentColor}"
            "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}"
            ".grid{stroke:#3d444d}.back{fill:#0d1117}" + dark + "}</style>")


class Scale:
    """From values of an axis to places in the picture."""

    def __init__(self, axis, values, begin, end):
        self.axis, self.low, self.high = axis, min(values), max(values)
        self.begin, self.end = begin, end
        self.first, last = axis.place(self.low), axis.place(self.high)
        self.span = last - self.first or 1.0

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
        placed.append([max(y, placed[-1][0] + LABEL_STEP if placed else y), name])
    bottom = HEIGHT - BOTTOM + 4
    for label in reversed(placed):
        label[0] = min(label[0], bottom)
        bottom = label[0] - LABEL_STEP
    return placed


def axes(plot, x, y):
    made = []
    for place, text in x.ticks():
        made.append('<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>' %
                    (place, place, TOP, HEIGHT - BOTTOM))
        made.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' %
                    (place, HEIGHT - BOTTOM + 18, escape(text)))
    for place, text in y.ticks():
        made.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' %
                    (LEFT, WIDTH - RIGHT, place, place))
        made.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' %
                    (LEFT - 8, place + 4, escape(text)))
    made.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' %
                ((LEFT + WIDTH - RIGHT) // 2, HEIGHT - BOTTOM + 38, escape(plot.x.text)))
    made.append('<text x="%d" y="%d">%s</text>' % (LEFT - 50, TOP - 12, escape(plot.y.text)))
    return made


def line_classes(name):
    return " ".join(["line", colour_class(name)] +
                    ["own"] * name.startswith("agentwal") +
                    ["app"] * name.endswith(GROUPED) +
                    ["limit"] * name.startswith("bare"))


def draw(plot, points, note):
    lines = collections.defaultdict(list)
    for point in points:
        if point["y"] is not None and point["y"] > 0:
            lines[point["line"]].append((point["x"], point["y"]))
    x = Scale(plot.x, [p[0] for line in lines.values() for p in line],
              LEFT, WIDTH - RIGHT)
    y = Scale(plot.y, [p[1] for line in lines.values() for p in line],
              HEIGHT - BOTTOM, TOP)
    made = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">' %
            (WIDTH, HEIGHT), "<title>%s</title>" % escape(plot.title), style(),
            '<rect class="back" width="%d" height="%d"/>' % (WIDTH, HEIGHT),
            '<text class="title" x="%d" y="24">%s</text>' % (LEFT - 50, escape(plot.title))]
    made += axes(plot, x, y)
    ends = []
    for name, line in sorted(lines.items(), key=lambda item: item[0].startswith("agentwal")):
        line.sort()
        path = " ".join("%.1f,%.1f" % (x.at(a), y.at(b)) for a, b in line)
        made.append('<polyline class="%s" points="%s"/>' % (line_classes(name), path))
        ends.append((y.at(line[-1][1]) + 4, name))
    for place, name in spread_labels(ends):
        strong = " strong" if name.startswith("agentwal") else ""
        made.append('<text class="label %s%s" x="%d" y="%.1f">%s</text>' %
                    (colour_class(name), strong, WIDTH - RIGHT + 8, place, escape(name)))
    if any(name.endswith(GROUPED) for name in lines):
        note += "; dashed: with a group commit of the application"
    made.append('<text class="note" x="%d" y="%d">%s</text>' %
                (LEFT - 50, HEIGHT - 10, escape(note)))
    return "\n".join(made + ["</svg>"]) + "\n"
