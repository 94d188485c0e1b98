#!/usr/bin/python3
"""Charts and tables of what peers.py has measured.

    charts.py [--check] [FILE]      bench/results/peers.json unless it is said

Writes docs/images/*.svg (matplotlib), and the tables between the marks in
docs/benchmarks.md.  --check writes nothing, and fails if a table is not the
file's; it does without matplotlib.
"""
import argparse
import json
import math
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
IMAGES = TOP / "docs" / "images"
DOCUMENT = TOP / "docs" / "benchmarks.md"

# Half-tones that stand out from white and from black.  Text is of the colour
# that the page's scheme asks for.
COLOURS = ["#2f81f7", "#e36209", "#2da44e", "#a371f7", "#e5534b", "#b08800", "#1b9e9e", "#d45bb6", "#848d97", "#5a6ee0"]
MARKERS = "osD^vPX<>*"
STYLE = """<style>text{fill:#24292f!important}
@media (prefers-color-scheme:dark){text{fill:#e6edf3!important}}</style>"""
GREY = "#848d97"

LAYOUTS = ["blocked", "standard", "cuckoo", "counting", "blocked, growing"]


class Results:
    def __init__(self, path):
        self.data = json.loads(path.read_text(encoding="utf-8"))

    def __getitem__(self, suite):
        return self.data[suite]

    def series(self, suite, x, y, **chosen):
        """Rows that have both, in the order of x: (xs, ys)"""
        rows = sorted((row[x], row[y]) for row in self[suite]
                      if x in row and y in row and all(row[k] == v for k, v in chosen.items()))
        return [r[0] for r in rows], [r[1] for r in rows]

    def one(self, suite, value, **chosen):
        """The value of the one row that is chosen, None if there is none"""
        found = [row[value] for row in self[suite] if all(row[k] == v for k, v in chosen.items())]
        return found[0] if found else None


# ---------------------------------------------------------------------------
# Charts
# ---------------------------------------------------------------------------

def figure(columns=1, height=3.6):
    import matplotlib                           # pylint: disable=import-outside-toplevel
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "bloomfilter", "font.family": "sans-serif", "font.size": 10,
        "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.spines.top": False,
        "axes.spines.right": False, "grid.color": GREY, "grid.alpha": 0.25, "axes.grid": True,
        "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.6, "lines.markersize": 4.5})
    from matplotlib import pyplot               # pylint: disable=import-outside-toplevel
    return pyplot.subplots(1, columns, figsize=(7.2 if columns == 1 else 9.6, height), layout="constrained")


def save(fig, name, what):
    path = IMAGES / name
    for axes in fig.axes:
        axes.minorticks_off()
    fig.savefig(path, transparent=True, metadata={"Date": None, "Creator": None, "Title": what})
    svg = re.sub(r"(<svg [^>]*>)", r"\1\n" + STYLE, path.read_text(encoding="utf-8"), count=1)
    svg = re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
    path.write_text(svg, encoding="utf-8")


def look(i):
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def legend_below(axes, columns):
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=columns)


def rates_chart(results):
    fig, axes = figure()
    for i, layout in enumerate(LAYOUTS):
        xs, theory = results.series("rates", "load", "theory", layout=layout)
        _, measured = results.series("rates", "load", "measured", layout=layout)
        axes.plot(xs, [100 * y for y in theory], color=COLOURS[i], alpha=0.8)
        axes.plot(xs, [100 * y or math.nan for y in measured], linestyle="", label=layout, **look(i))
    axes.axhline(1, color=GREY, linestyle=":")
    axes.set(yscale="log", xlabel="elements, as a multiple of the capacity", ylabel="false positives, %",
             ylim=(0.0005, 110), title="What overfilling does (designed for 1%; lines: theory)")
    axes.set_yticks([0.001, 0.01, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"])
    axes.legend(loc="lower right")
    save(fig, "rates.svg", "False positives against load, for each layout")


def bits_chart(results):
    fig, axes = figure()
    for i, layout in enumerate(LAYOUTS[:4]):
        axes.plot(*results.series("bits", "p", "bits", layout=layout), color=COLOURS[i], alpha=0.8)
        axes.plot(*results.series("bits", "measured", "bits", layout=layout), linestyle="", label=layout, **look(i))
    axes.plot(*results.series("bits", "p", "limit", layout="blocked"), color=GREY, linestyle="--",
              label="limit, log2(1/p)")
    ticks = [10 ** -i for i in range(1, 7)]
    axes.set(xscale="log", xlim=(0.2, 8e-7), ylim=(0, 64), xlabel="false-positive rate p", ylabel="bits a key",
             title="Bits a key (lines: as sized; marks: as measured)")
    axes.set_xticks(ticks, ["10%", "1%", "0.1%", "0.01%", "0.001%", "0.0001%"])
    axes.legend(loc="upper right", bbox_to_anchor=(1, 0.98))
    save(fig, "bits.svg", "Bits a key against the false-positive rate, for each layout")


BUILT = ["count(x)", "bloom_agg(x, n)", "bloom_agg(x)", "hll", "count(DISTINCT x)", "live index", "btree index",
         "Python set", "Python client", "Python, few lines"]
PROBED = ["x > 0", "stored filter", "IN", "btree lookup", "= ANY(array)", "Python set", "Python client, array",
          "Python client", "Python, few lines"]


def times_chart(results):
    fig, (left, right) = figure(2, 5)
    for i, what in enumerate(BUILT):
        xs, ys = results.series("build", "n", "cpu", what=what)
        left.plot(xs, [1e6 * y / x for x, y in zip(xs, ys)], label=what, **look(i))
    for i, what in enumerate(PROBED):
        right.plot(*results.series("probe", "n", "cpu_ns", what=what), label=what, **look(i))
    left.set(title="Building", ylabel="CPU time, ns a key")
    right.set(title="Probing, 1 in 10 present", ylabel="CPU time, ns a probe")
    for axes in left, right:
        axes.set(xscale="log", yscale="log", xlabel="keys")
        legend_below(axes, 2)
    save(fig, "times.svg", "Time to build and to probe, against the number of keys")


def stored_chart(results):
    fig, axes = figure()
    for i, (what, label) in enumerate([("read whole", "reading the value whole"), ("a probe", "filter @> value"),
                                       ("its row", "finding the row alone")]):
        axes.plot(*results.series("stored", "bytes", "cpu_us", what=what), label=label, **look(i))
    axes.set(xscale="log", yscale="log", xlabel="size of the filter", ylabel="CPU time, microseconds",
             title="One probe of a filter in a table")
    axes.set_xticks([10 ** i for i in range(4, 9)], ["10 kB", "100 kB", "1 MB", "10 MB", "100 MB"])
    axes.legend(loc="upper left")
    save(fig, "stored.svg", "Time of a probe of a stored filter, against its size")


def joins_chart(results):
    fig, axes = figure(1, 4.2)
    names = list(dict.fromkeys((row["what"], row["work_mem"]) for row in results["joins"]))
    for i, way in enumerate(("by hand", "automatic")):
        gains = [results.one("joins", "cpu", what=what, work_mem=mem, way="plain") /
                 results.one("joins", "cpu", what=what, work_mem=mem, way=way) for what, mem in names]
        places = [j + 0.2 - 0.4 * (1 - i) for j in range(len(names))]
        bars = axes.barh(places, gains, 0.36, color=COLOURS[i], label=way)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=9)
    axes.axvline(1, color=GREY, linestyle=":")
    axes.set_yticks(range(len(names)), [f"{what}, {mem}" for what, mem in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="times less CPU time than the query without a filter", title="Filters in front of joins, by work_mem")
    legend_below(axes, 2)
    save(fig, "joins.svg", "What filters gain in front of joins")


# ---------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------

def number(x, digits=2):
    """So many significant digits, without an exponent"""
    if x is None:
        return ""
    if x == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(x)))
    return f"{round(x, places):,.{max(places, 0)}f}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def count(n):
    return f"{n:,}"


def machine_table(results):
    m, load = results["machine"], results["load"].values()
    return (f"{m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}; PostgreSQL {m['postgresql'].split()[0]},"
            f" Redis {m['redis']}, Python {m['python']}, numpy {m['numpy']}; {results['date']}. The machine's load while"
            f" it ran: {min(min(x) for x in load):.0f} to {max(max(x) for x in load):.0f}.")


def distinct_table(results):
    return table(["", "CPU ms", "error"], [[f"`{row['what']}`" if "(" in row["what"] else row["what"], number(row["cpu"]),
                                        f"{number(100 * row['error'])}%"] for row in results["distinct"]])


def against_n(results, suite, names, value):
    ns = sorted({row["n"] for row in results[suite]})
    rows = []
    for what in names:
        rows.append([what] + [number(value(row) if row else None) for row in (
            next((r for r in results[suite] if r["what"] == what and r["n"] == n), None) for n in ns)])
    return table(["CPU ns"] + [count(n) for n in ns], rows)


def names_of(results, suite):
    return list(dict.fromkeys(row["what"] for row in results[suite]))


def build_table(results):
    return against_n(results, "build", names_of(results, "build"), lambda row: 1e6 * row["cpu"] / row["n"])


def probe_table(results):
    return against_n(results, "probe", names_of(results, "probe"), lambda row: row["cpu_ns"])


def point_table(results):
    names = names_of(results, "point")
    rows = []
    for what in names:
        row = [what]
        for kind in ("absent", "present"):
            for value in ("us", "cpu_us"):
                row.append(number(results.one("point", value, what=what, kind=kind, batch=1)))
        row.append(number(results.one("point", "cpu_us", what=what, kind="absent", batch=1000)))
        rows.append(row)
    return table(["microseconds", "absent", "CPU", "present", "CPU", "CPU, of 1,000 at once"], rows)


def space_table(results):
    return table(["", "bytes a key"], [[row["what"], number(row["bytes"], 3)] for row in results["space"]])


def stored_table(results):
    return table(["bytes", "a probe", "its row", "read whole"], [
        [count(size)] + [number(results.one("stored", "cpu_us", what=what, bytes=size))
                         for what in ("a probe", "its row", "read whole")]
        for size in sorted({row["bytes"] for row in results["stored"]})])


def joins_table(results):
    rows = []
    for what, mem in dict.fromkeys((row["what"], row["work_mem"]) for row in results["joins"]):
        cells = [what, mem]
        for way in ("plain", "by hand", "automatic"):
            cells += [number(results.one("joins", unit, what=what, work_mem=mem, way=way), 3) for unit in ("ms", "cpu")]
        rows.append(cells)
    return table(["", "work_mem", "plain, ms", "CPU", "by hand", "CPU", "automatic", "CPU"], rows)


TABLES = {"machine": machine_table, "distinct": distinct_table, "build": build_table, "probe": probe_table,
          "point": point_table, "space": space_table, "stored": stored_table, "joins": joins_table}


def with_tables(text, results):
    def replaced(found):
        return f"{found[1]}\n{TABLES[found[2]](results)}\n{found[3]}"
    return re.sub(r"(<!-- table: (\w+) -->)\n.*?\n?(<!-- end -->)", replaced, text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=TOP / "bench" / "results" / "peers.json")
    args = parser.parse_args()
    results = Results(args.file)
    text = DOCUMENT.read_text(encoding="utf-8")
    missing = [name for name in TABLES if f"<!-- table: {name} -->" not in text]
    if missing:
        sys.exit(f"{DOCUMENT.name} has no place for {', '.join(missing)}")
    renewed = with_tables(text, results)
    if args.check:
        if renewed != text:
            sys.exit(f"the tables of {DOCUMENT.name} are not those of {args.file.name}; run bench/charts.py")
        print(f"{len(TABLES)} tables of {DOCUMENT.name} are those of {args.file.name}")
        return
    for chart in rates_chart, bits_chart, times_chart, stored_chart, joins_chart:
        chart(results)
    DOCUMENT.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    main()
