"""The example's run: phases, drills, figures, and the promises checked.

    demo.py [--short]

Makes its tables in the database that the PG* environment variables name, which
must be local (CPU time is read from /proc).  Ends with "N passed, N failed".
"""
import argparse
import asyncio
import itertools
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import load
import psycopg

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
PROCESSES = 2
BOT_RATE, HONEST_RATE = 1000, 300       # requests a second, in all
KEY = "000102030405060708090a0b0c0d0e0f"    # fixed, for runs that repeat
TICK = os.sysconf("SC_CLK_TCK")

passed = failed = 0


def check(ok, what):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
    print(f"  {'ok    ' if ok else 'FAILED'}  {what}", flush=True)


def bound(requests, rate):
    """What a filter of that rate lets pass at most, to three sigma"""
    return requests * rate + 3 * math.sqrt(requests * rate * (1 - rate))


# ---------------------------------------------------------------------------
# CPU time, from /proc
# ---------------------------------------------------------------------------


def proc_stat(pid):
    """parent, utime, stime, cutime, cstime"""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(fields[i]) for i in (1, 11, 12, 13, 14)]


def cpu_of(pids):
    return sum(sum(proc_stat(pid)[1:3]) for pid in pids) / TICK


def server_cpu(postmaster):
    """The postmaster, its children, and the children that have ended"""
    ticks = sum(proc_stat(postmaster)[1:])
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = proc_stat(name)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if stat[0] == postmaster:
                ticks += sum(stat[1:3])
    return ticks / TICK


# ---------------------------------------------------------------------------
# The API's processes
# ---------------------------------------------------------------------------


class Process:
    """One process of the API."""

    def __init__(self, guard, lease):
        path = os.pathsep.join(filter(None, [str(TOP / "clients/python"),
                                             os.environ.get("PYTHONPATH")]))
        self.popen = subprocess.Popen(
            [sys.executable, HERE / "api.py", "--guard", guard, "--lease", str(lease)],
            stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1"))
        self.port = self.client = None

    @property
    def pid(self):
        return self.popen.pid

    async def started(self):
        line = await asyncio.get_running_loop().run_in_executor(
            None, self.popen.stdout.readline)
        if not line:
            raise RuntimeError("the API did not start")
        self.port = int(line)
        self.client = load.Client(self.port)
        return self

    async def get(self, code):
        return await self.client.get(code)

    async def put(self, code, wait=True):
        """When it was committed.  On a connection of its own: it may take a
        lease."""
        client = load.Client(self.port)
        answer = await client.request(
            "PUT", f"/codes/{code}" + ("" if wait else "?wait=no"))
        client.close()
        if answer.status != 201:
            raise RuntimeError(f"PUT: {answer}")
        return json.loads(answer.body)["committed"]

    async def stats(self):
        return json.loads((await self.client.request("GET", "/stats")).body)

    async def until(self, true, seconds=15):
        """Wait for the statistics to be so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            stats = await self.stats()
            if true(stats):
                return stats
            await asyncio.sleep(0.02)
        stats["heard"] = len(stats["heard"])
        raise RuntimeError(f"not within {seconds} s: {stats}")

    async def until_found(self, code, seconds=15):
        """Ask until it is found: the number of refusals, and seconds."""
        start = time.monotonic()
        for refused in itertools.count():
            if (await self.get(code)).status == 200:
                return refused, time.monotonic() - start
            if time.monotonic() > start + seconds:
                raise RuntimeError(f"{code} was not found within {seconds} s")
            await asyncio.sleep(0.005)

    def kill(self):
        self.popen.kill()
        self.popen.wait()
        if self.client:
            self.client.close()

    def stop(self):
        self.popen.terminate()
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


async def start_api(guard, lease):
    processes = [Process(guard, lease) for _ in range(PROCESSES)]
    try:
        for process in processes:
            await process.started()
        if guard == "filter":
            for process in processes:
                await process.until(lambda stats: stats["ready"])
    except BaseException:
        stop_api(processes)
        raise
    return processes


def stop_api(processes):
    for process in processes:
        process.stop()


# ---------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------


class Demo:
    def __init__(self, short):
        self.short = short
        self.codes = 100_000 if short else 1_000_000
        self.seconds = 3 if short else 10
        self.lease = 1.0 if short else 2.0
        self.new_codes = itertools.count(self.codes + 1)
        # The bot asks for none of those that are to come
        self.reserved = self.codes + 100_000

    def new_code(self):
        return load.code_of(next(self.new_codes))

    async def value(self, query, *params):
        return (await (await self.conn.execute(query, params)).fetchone())[0]

    async def set_up(self):
        self.conn = await psycopg.AsyncConnection.connect(autocommit=True)
        for name, setting in ("demo.codes", self.codes), ("demo.key", KEY):
            await self.conn.execute("SELECT set_config(%s, %s, false)",
                                    [name, str(setting)])
        subprocess.run(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", HERE / "schema.sql"],
            check=True, env=dict(os.environ, PGOPTIONS=(
                f"-c demo.codes={self.codes} -c demo.key={KEY}"
                " -c client_min_messages=warning")))
        backend = await self.value("SELECT pg_backend_pid()")
        self.postmaster = proc_stat(backend)[0]
        self.rate = await self.value("SELECT bloom_expected_fpr(filter) FROM filters")
        size = await self.value("SELECT octet_length(filter::bytea) FROM filters")
        print(f"{self.codes:,} codes; their filter takes {size:,} bytes,"
              f" expected rate {self.rate:.3%}\n")

    async def lookups(self):
        """PostgreSQL's own count of reads of the primary key"""
        await self.conn.execute("SELECT pg_stat_clear_snapshot()")
        return await self.value("SELECT idx_scan FROM pg_stat_user_indexes"
                                " WHERE indexrelname = 'codes_pkey'")

    async def settled_lookups(self, expected):
        """Backends report when they end, which takes a moment."""
        for _ in range(100):
            found = await self.lookups()
            if found >= expected:
                break
            await asyncio.sleep(0.05)
        return found

    def users(self, seed):
        return {"bot": (BOT_RATE, load.bot_codes(self.reserved, seed)),
                "honest": (HONEST_RATE, load.honest_codes(self.codes, seed))}

    async def phase(self, guard, processes):
        """One phase's load; the figures are printed, the tallies returned."""
        pids = [process.pid for process in processes]
        before = cpu_of(pids), server_cpu(self.postmaster), time.process_time()
        tallies = await load.run_load([process.port for process in processes],
                                      self.users(2026), self.seconds)
        after = cpu_of(pids), server_cpu(self.postmaster), time.process_time()
        api, server, own = (b - a for a, b in zip(before, after))
        for name, tally in tallies.items():
            median, late = tally.latency()
            first = name == "bot"
            print(f"{guard if first else '':<16}{name:<8}{tally.answered:>9,}"
                  f"{tally.reached:>10,}{median:>9.1f}{late:>9.1f}"
                  + (f"{api:>9.2f}{server:>9.2f}{own:>9.2f}" if first else ""),
                  flush=True)
        return tallies

    async def phases(self):
        print(f"{self.seconds} s each of {BOT_RATE:,} requests a second by the bot and"
              f" {HONEST_RATE} by honest users,\nto {PROCESSES} processes:\n")
        print(f"{'':<24}{'':>9}{'reached':>10}{'latency, ms':>18}{'CPU seconds':>21}")
        print(f"{'guard':<16}{'who':<8}{'requests':>9}{'database':>10}{'median':>9}{'p99':>9}"
              f"{'API':>9}{'server':>9}{'load':>9}")
        results = {}
        counts_agree = True
        for guard, title in (("none", "none"), ("cache", "negative cache"),
                             ("filter", "filter")):
            processes = await start_api(guard, self.lease)
            lookups = await self.lookups()
            try:
                results[guard] = await self.phase(title, processes)
            finally:
                stop_api(processes)
            reached = sum(tally.reached for tally in results[guard].values())
            counts_agree &= await self.settled_lookups(lookups + reached) == lookups + reached
        print()
        self.judge(results, counts_agree)

    def judge(self, results, counts_agree):
        bot = {guard: tallies["bot"] for guard, tallies in results.items()}
        honest = [tallies["honest"] for tallies in results.values()]
        everyone = [*bot.values(), *honest]
        check(all(t.answered == t.planned for t in everyone),
              f"every request was answered: {sum(t.answered for t in everyone):,}")
        check(counts_agree, "PostgreSQL counts as many lookups as the API")
        check(all(t.statuses == {200: t.answered} for t in honest),
              f"no honest request was refused, of {sum(t.answered for t in honest):,}")
        check(all(t.statuses == {404: t.answered} for t in bot.values()),
              "the bot found nothing")
        check(bot["none"].reached == bot["none"].answered,
              "without a guard all of the bot's requests reach the database")
        hits = bot["cache"].answered - bot["cache"].reached
        check(hits <= bot["cache"].answered / 1000,
              f"negative caching spared the database {hits} of"
              f" {bot['cache'].answered:,}: random codes do not come twice")
        filtered = bot["filter"]
        limit = bound(filtered.answered, self.rate)
        open_ = filtered.sources["database, no filter"]
        check(filtered.reached <= limit,
              f"with the filter {filtered.reached:,} of {filtered.answered:,} reached"
              f" it, 1 in {filtered.answered / max(filtered.reached, 1):.0f}"
              f" (at most {limit:.1f} are allowed"
              + (f"; {open_} of them while there was none)" if open_ else ")"))

    # -- Drills -----------------------------------------------------------

    async def added(self, a, b):
        """A code is added in one process, and asked for in another."""
        lags, refused, longest = [], 0, 0.0
        count = 20 if self.short else 50
        for _ in range(count):
            code = self.new_code()
            committed = await a.put(code, wait=False)
            asked, seconds = await b.until_found(code)
            refused += asked > 0
            longest = max(longest, seconds if asked else 0)
            stats = await b.stats()
            heard = dict(map(tuple, stats["heard"]))
            lags.append((heard[code] - committed) * 1000 if code in heard else math.inf)
        lags.sort()
        print(f"\nA code added in one process, asked for in the other ({count} times)\n"
              f"  The other heard of it {lags[count // 2]:+.1f} ms from the end of COMMIT"
              f" (median; {lags[0]:+.1f} to {lags[-1]:+.1f});\n"
              f"  asked at once it refused {refused} times, for up to"
              f" {longest * 1000:.1f} ms.")

        async def told_later(_):
            code = self.new_code()
            await a.put(code)
            return [(await process.get(code)).status for process in (a, b)]

        statuses = sum(await asyncio.gather(*map(told_later, range(20))), [])
        check(statuses == [200] * 40,
              "told of it one lease after COMMIT, none was refused, of 40")

    async def deaf(self, a, b, what, stop_hearing):
        """The same while the other process cannot hear."""
        listener = (await b.stats())["listener"]
        await stop_hearing(listener)
        try:
            later = self.new_code()
            waiting = asyncio.create_task(a.put(later))
            code = self.new_code()
            await a.put(code, wait=False)
            refused, seconds = await b.until_found(code)
            print(f"\n{what}\n  A code told of at once was refused"
                  f" {refused} times, for {seconds * 1000:.0f} ms")
            await waiting
            check((await b.get(later)).status == 200,
                  f"told of it one lease ({self.lease:g} s) after COMMIT, it was not")
            await b.until(lambda stats: stats["ready"] and stats["listener"] != listener)
            check(True, "it listens again, with a filter loaded anew")
        finally:
            try:
                os.kill(listener, signal.SIGCONT)
            except ProcessLookupError:
                pass

    async def stop_backend(self, pid):
        os.kill(pid, signal.SIGSTOP)

    async def terminate_backend(self, pid):
        await self.conn.execute("SELECT pg_terminate_backend(%s)", [pid])

    async def restart(self, processes):
        """A process dies, and starts while nobody can read the filter."""
        a, b = processes
        b.kill()
        code = self.new_code()
        await a.put(code, wait=False)
        print("\nA process restarted, while the table of filters is locked")
        await self.conn.execute("BEGIN; LOCK TABLE filters")
        try:
            processes[1] = b = await Process("filter", self.lease).started()
            bot = load.bot_codes(self.reserved, 1)
            guesses = [await b.get(next(bot)) for _ in range(100)]
            honest = load.honest_codes(self.codes, 1)
            answers = [await b.get(next(honest)) for _ in range(100)]
            answers.append(await b.get(code))
        finally:
            await self.conn.execute("COMMIT")
        check({(x.status, x.source) for x in guesses} == {(404, "database, no filter")},
              "without a filter it asks the database: 100 of 100 wrong codes")
        check({x.status for x in answers} == {200},
              "no right code was refused, of 101, one of them added while it was down")
        await b.until(lambda stats: stats["ready"])
        guesses = [await b.get(next(bot)) for _ in range(1000)]
        reached = sum(x.source != "filter" for x in guesses)
        check(reached <= bound(1000, self.rate) and (await b.get(code)).status == 200,
              f"then it has loaded it: {reached} of 1,000 wrong codes reach the database")

    async def batch(self, processes):
        """Many codes at once, by SQL."""
        numbers = list(itertools.islice(self.new_codes, 1000))
        codes = [load.code_of(number) for number in numbers]
        await self.conn.execute("INSERT INTO codes (code) SELECT unnest(%s::text[])", [codes])
        await asyncio.sleep(self.lease)
        print("\n1,000 codes inserted by SQL")
        answers = [await process.get(code) for process in processes for code in codes[::10]]
        check({x.status for x in answers} == {200},
              f"one lease after COMMIT none was refused, of {len(answers)}")
        for process in processes:
            await process.until(lambda stats: stats["ready"])

    async def refresh(self, processes):
        """The filter is fetched when it has changed, and only then."""
        print("\nRefresh by bloom_etag")
        etag = await self.value("SELECT bloom_etag(filter) FROM filters")
        for process in processes:
            await process.until(lambda stats: stats["etag"] == etag)
        before = [await process.stats() for process in processes]
        for process, old in zip(processes, before):
            await process.until(lambda stats: stats["checks"] >= old["checks"] + 3)
        after = [await process.stats() for process in processes]
        check([x["fetches"] for x in after] == [x["fetches"] for x in before],
              "unchanged, it was asked for its etag and not fetched")
        gone = [load.code_of(number) for number in range(1, 101)]
        await self.conn.execute("DELETE FROM codes WHERE code = ANY(%s)", [gone])
        async with self.conn.transaction():     # docs/operations.md, Rebuild
            template = await self.value("SELECT bloom_clear(filter)::bytea FROM filters"
                                        " WHERE name = 'codes' FOR UPDATE")
            await self.conn.execute(
                "UPDATE filters SET filter ="
                " (SELECT bloom_agg(code, %b::bytea::bloomfilter) FROM codes)"
                " WHERE name = 'codes'", [template])
        etag = await self.value("SELECT bloom_etag(filter) FROM filters")
        for process in processes:
            await process.until(lambda stats: stats["etag"] == etag)
        check(True, "rebuilt without 100 codes, it was fetched")
        answers = [await process.get(code) for process in processes for code in gone]
        spared = sum(x.source == "filter" for x in answers)
        check({x.status for x in answers} == {404} and spared > len(answers) // 2,
              f"of {len(answers)} requests for these, {spared} did not reach the database")

    async def trickle(self, processes, done):
        """Honest users, all the while.  Like a balancer, it tries the next
        process if one is not there; and it asks only for codes that stay."""
        statuses = []
        numbers = load.honest_codes(self.codes - 100, 3)
        while not done.is_set():
            guess = next(numbers)
            if guess in self.leaving:
                continue
            for process in (*processes, *processes):
                try:
                    client = load.Client(process.port)
                    statuses.append((await client.get(guess)).status)
                    client.close()
                    break
                except OSError:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
        return statuses

    async def drills(self):
        self.leaving = {load.code_of(number) for number in range(1, 101)}
        processes = await start_api("filter", self.lease)
        done = asyncio.Event()
        honest = asyncio.create_task(self.trickle(processes, done))
        try:
            await self.added(*processes)
            await self.deaf(*processes, "A process whose connection is silent",
                            self.stop_backend)
            await self.deaf(*processes, "A process whose connection is cut",
                            self.terminate_backend)
            await self.restart(processes)
            await self.batch(processes)
            await self.refresh(processes)
            done.set()
            statuses = await honest
            print()
            check(set(statuses) == {200},
                  f"no honest request was refused all the while, of {len(statuses):,}")
        finally:
            honest.cancel()
            stop_api(processes)

    async def run(self):
        await self.set_up()
        await self.phases()
        await self.drills()
        await self.conn.close()


def main():
    global failed
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    demo = Demo(parser.parse_args().short)
    start = time.monotonic()
    try:
        asyncio.run(asyncio.wait_for(demo.run(), 300))
    except (Exception, asyncio.TimeoutError) as error:
        failed += 1
        print(f"broke off: {error!r}")
        raise
    finally:
        print(f"\n{time.monotonic() - start:.0f} s\n{passed} passed, {failed} failed", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
