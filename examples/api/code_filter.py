"""The filter in the API's memory.

    codes = CodeFilter(lease=2.0)
    asyncio.create_task(codes.run())

    if codes.excludes(code):        # certainly not in the table
        ...
    with codes.adding(code):        # around a transaction that inserts it
        ...

It says "no" only while it knows that it has every code there is, but those
that were committed within the last `lease` seconds:

- It listens before it loads, so it hears of all that its copy lacks.
- Whatever was committed before a query on the listening connection was sent
  has been heard when the answer is there.  Each such query therefore renews a
  lease, counted from when it was sent; when that has run out, because
  the server or the network is silent, there are no more "no"s.
- When the connection is lost there are none at once, and after a message
  that many codes have come there are none until the filter is loaded again.

A writer that waits for one lease after its commit before it tells anyone of
the code has closed the window: by then every process has heard, or has no
lease.  Clocks need not agree, only run at the same speed.
"""
import asyncio
import collections
import contextlib
import logging
import socket
import time

import psycopg
from bloomfilter_pg import BloomFilter

LOAD_LIMIT = 60.0               # seconds

log = logging.getLogger("code_filter")


def first_line(error):
    return str(error).strip().partition("\n")[0]


async def bounded(conn, work, seconds):
    """A server that says nothing for so long is one that is not there.  (To
    cancel the query would be to wait for that server.)"""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        with socket.socket(fileno=socket.dup(conn.fileno())) as connection:
            connection.shutdown(socket.SHUT_RDWR)
    return await task


class CodeFilter:
    def __init__(self, lease, refresh_after=2.0):
        self.lease = lease
        self.refresh_after = refresh_after
        self.filter = None          # None: ask the database
        self.etag = None            # of the stored filter that was loaded
        self.loaded_at = 0.0
        self.trusted_until = 0.0
        self.reloads = 0            # how often we were told to load anew
        self.own = collections.Counter()    # codes of our open transactions
        self.journal = None         # additions since the load under way began
        self.heard = collections.deque(maxlen=1000)
        self.loading = None         # that task
        self.wake = asyncio.Event()
        self.listener = None        # the server process that we listen to
        self.checks = self.fetches = 0

    # -- What the API asks ------------------------------------------------

    @property
    def ready(self):
        return self.filter is not None and time.monotonic() < self.trusted_until

    def excludes(self, code):
        """True: the code is certainly not in the table."""
        return self.ready and code not in self.filter

    @contextlib.contextmanager
    def adding(self, code):
        """Around a transaction that inserts the code: this process knows it
        before anyone can see it, and a load in between does not forget it.
        After a rollback it stays, as one more "maybe"."""
        self.own[code] += 1
        self._add(code)
        try:
            yield
        finally:
            self.own[code] -= 1
            if not self.own[code]:
                del self.own[code]

    # -- What keeps it right ----------------------------------------------

    def _add(self, code):
        if self.filter is not None:
            self.filter.add(code)
        if self.journal is not None:
            self.journal.append(code)

    def _hear(self, message):
        what, _, code = message.partition(" ")
        if what == "add":
            self._add(code)
            self.heard.append((code, time.monotonic()))
        else:
            self.filter = None
            self.reloads += 1

    def _hear_all(self, conn):
        while True:
            notify = conn.pgconn.notifies()
            if notify is None:
                return
            self._hear(notify.extra.decode())

    async def _fetch(self, conn):
        cursor = await conn.execute(
            "SELECT bloom_etag(filter), filter FROM filters WHERE name = 'codes'",
            binary=True)
        return await cursor.fetchone() or (None, b"")   # which is no filter

    async def _load(self):
        """Replace the filter by the stored one.  On a connection and in a task
        of its own: while it lasts, news are still heard."""
        reloads = self.reloads
        self.journal = list(self.own)
        try:
            conn = await psycopg.AsyncConnection.connect(autocommit=True)
            try:
                etag, image = await bounded(conn, self._fetch(conn), LOAD_LIMIT)
            finally:
                await conn.close()
            loaded = await asyncio.to_thread(BloomFilter.from_bytes, image)
            for code in self.journal:
                loaded.add(code)
            if reloads == self.reloads:     # else it may lack codes
                self.filter, self.etag = loaded, etag
                self.loaded_at = time.monotonic()
                self.fetches += 1
        except (psycopg.Error, OSError, ValueError) as error:
            log.warning("not loaded: %s", first_line(error))
            await asyncio.sleep(1)      # before the next try
        finally:
            self.journal = None
            self.loading = None
            self.wake.set()

    def _must_load(self):
        return self.filter is None and self.loading is None

    async def _check_etag(self, conn):
        """Renew the lease, and have the filter loaded if it has changed."""
        sent = time.monotonic()
        cursor = await conn.execute(
            "SELECT bloom_etag(filter) FROM filters WHERE name = 'codes'")
        row = await cursor.fetchone()
        if row is None:
            raise LookupError("there is no filter named 'codes'")
        etag = row[0]
        self._hear_all(conn)
        self.trusted_until = sent + self.lease
        self.checks += 1
        stale = etag != self.etag and sent > self.loaded_at + self.refresh_after
        if self._must_load() or stale and self.loading is None:
            self.loading = asyncio.create_task(self._load())

    async def _listen(self, conn, seconds):
        """Hear news as they come, for so long or until we must load."""
        loop = asyncio.get_running_loop()
        fd = conn.fileno()          # which is gone when we hear of a loss
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._must_load():
            self.wake.clear()
            loop.add_reader(fd, self.wake.set)
            try:
                await asyncio.wait_for(self.wake.wait(), until - time.monotonic())
                conn.pgconn.consume_input()     # raises if it was lost
                self._hear_all(conn)
            except asyncio.TimeoutError:
                pass
            finally:
                loop.remove_reader(fd)

    async def _follow(self):
        """Listen, and stay up to date, until the connection is lost."""
        conn = await psycopg.AsyncConnection.connect(autocommit=True)
        try:
            conn.add_notify_handler(lambda notify: self._hear(notify.payload))
            await bounded(conn, conn.execute("LISTEN codes"), self.lease)
            self.listener = conn.info.backend_pid
            while True:
                await bounded(conn, self._check_etag(conn), self.lease)
                await self._listen(conn, self.lease / 4)
        finally:
            self._hear("reload")    # we may miss anything from here on
            await conn.close()

    async def run(self):
        while True:
            try:
                await self._follow()
            except (psycopg.Error, OSError, LookupError) as error:
                log.warning("not listening: %s", first_line(error))
            await asyncio.sleep(0.1)
