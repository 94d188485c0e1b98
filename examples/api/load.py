"""Traffic: a bot that asks for codes that do not exist, and honest users.

To 127.0.0.1 only, and bounded: so many requests, so many seconds.
"""
import asyncio
import collections
import itertools
import random
import statistics
import time

SPACE = 10 ** 10
FACTOR = 7654321987             # as in schema.sql
INVERSE = pow(FACTOR, -1, SPACE)
CONNECTIONS = 64
GRACE = 4.0                     # seconds for answers that come late

Answer = collections.namedtuple("Answer", "status source body")


def code_of(number):
    """The code with that number; the table has those from 1 on."""
    return f"GG-{number * FACTOR % SPACE:010d}"


def honest_codes(count, seed):
    """Codes of the table, at random."""
    rng = random.Random(seed)
    while True:
        yield code_of(rng.randint(1, count))


def bot_codes(reserved, seed):
    """Random codes, but for those up to a number: they are, or will be, in the
    table."""
    rng = random.Random(seed)
    while True:
        guess = rng.randrange(SPACE)
        if guess * INVERSE % SPACE > reserved:
            yield f"GG-{guess:010d}"


class Client:
    """One kept-alive connection: just enough HTTP, since the load generator
    shares the machine with what it measures."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None
        self.turn = asyncio.Lock()

    async def connect(self):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port)

    async def request(self, method, path):
        async with self.turn:
            await self.connect()
            return await self._exchange(method, path)

    async def _exchange(self, method, path):
        self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: api\r\n\r\n".encode())
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await self.reader.readexactly(int(fields["content-length"]))
        except asyncio.IncompleteReadError:
            self.close()
            raise ConnectionError("the API closed the connection") from None
        except BaseException:
            self.close()            # half an answer is no use to the next one
            raise
        return Answer(int(head[0].split()[1]), fields.get("x-source"), body)

    async def get(self, code):
        return await self.request("GET", f"/codes/{code}")

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


class Tally:
    """What came of one kind of user's requests."""

    def __init__(self, planned):
        self.planned = planned
        self.statuses = collections.Counter()
        self.sources = collections.Counter()
        self.latencies = []

    @property
    def answered(self):
        return len(self.latencies)

    @property
    def reached(self):
        """Requests that reached the database."""
        return sum(n for source, n in self.sources.items()
                   if source.startswith("database"))

    def latency(self):
        """Median and 99th percentile, in milliseconds"""
        if self.answered < 2:
            return float("nan"), float("nan")
        cuts = statistics.quantiles(self.latencies, n=100)
        return cuts[49] * 1000, cuts[98] * 1000


async def run_load(ports, users, seconds):
    """users: name -> (requests a second, codes).  Each request has a time at
    which it is due, whether or not the ones before it are answered, and its
    latency counts from then.  What is unanswered after `seconds` and some
    grace is given up."""
    due = sorted((i / rate, name, code)
                 for name, (rate, codes) in users.items()
                 for i, code in enumerate(itertools.islice(codes, int(rate * seconds))))
    tallies = {name: Tally(int(rate * seconds)) for name, (rate, _) in users.items()}
    clients = [Client(port)
               for port, _ in zip(itertools.cycle(ports), range(CONNECTIONS))]
    for client in clients:
        await client.connect()
    queue = iter(due)
    start = time.monotonic()

    async def worker(client):
        try:
            for at, name, code in queue:
                wait = start + at - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                answer = await client.get(code)
                tally = tallies[name]
                tally.latencies.append(time.monotonic() - start - at)
                tally.statuses[answer.status] += 1
                tally.sources[answer.source] += 1
        finally:
            client.close()

    workers = [asyncio.create_task(worker(client)) for client in clients]
    done, late = await asyncio.wait(workers, timeout=seconds + GRACE)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return tallies
