"""A small web API in front of a table of codes.

    GET /codes/GG-0123456789    200 or 404; X-Source says who answered
    PUT /codes/GG-0123456789    201: a new code, known to all processes
    GET /stats                  counters

    api.py [--guard none|cache|filter] [--lease SECONDS]

Listens on 127.0.0.1, prints its port, and finds the database by the PG*
environment variables.
"""
import argparse
import asyncio
import collections
import time

import psycopg_pool
from aiohttp import web
from code_filter import CodeFilter

LOOKUP = "SELECT code, created FROM codes WHERE code = %s"
INSERT = "INSERT INTO codes (code) VALUES (%s) ON CONFLICT DO NOTHING"


class NotFoundCache:
    """Codes that were not there when asked for, up to so many."""

    def __init__(self, size):
        self.size = size
        self.codes = collections.OrderedDict()

    def __contains__(self, code):
        return code in self.codes

    def add(self, code):
        self.codes[code] = True
        if len(self.codes) > self.size:
            self.codes.popitem(last=False)

    def discard(self, code):
        self.codes.pop(code, None)


class Api:
    def __init__(self, guard, lease):
        self.guard = guard
        self.cache = NotFoundCache(100_000)
        self.filter = CodeFilter(lease)
        self.counts = collections.Counter()

    async def background(self, app):
        """While the server runs: connections, and the filter's upkeep."""
        async with psycopg_pool.AsyncConnectionPool(
                min_size=8, max_size=8, kwargs={"autocommit": True}) as self.pool:
            task = None
            if self.guard == "filter":
                # Not waited for: until it is there, the database answers
                task = asyncio.create_task(self.filter.run())
            yield
            if task:
                task.cancel()

    def answer(self, source, code, row):
        self.counts[source] += 1
        headers = {"X-Source": source}
        if row is None:
            return web.json_response({"error": "no such code"}, status=404,
                                     headers=headers)
        return web.json_response({"code": code, "created": row[1].isoformat()},
                                 headers=headers)

    async def get_code(self, request):
        code = request.match_info["code"]
        if self.guard == "filter" and self.filter.excludes(code):
            return self.answer("filter", code, None)
        if self.guard == "cache" and code in self.cache:
            return self.answer("cache", code, None)
        source = "database"
        if self.guard == "filter" and not self.filter.ready:
            source = "database, no filter"
        async with self.pool.connection() as conn:
            cursor = await conn.execute(LOOKUP, [code], prepare=True)
            row = await cursor.fetchone()
        if row is None and self.guard == "cache":
            self.cache.add(code)
        return self.answer(source, code, row)

    async def put_code(self, request):
        code = request.match_info["code"]
        with self.filter.adding(code):
            async with self.pool.connection() as conn:
                await conn.execute(INSERT, [code])      # and commit
        committed = time.monotonic()
        self.cache.discard(code)
        # Nobody knows the code until we answer.  After one lease no process
        # says "no" to it any more.  ("wait=no" is there to show the window.)
        if self.guard == "filter" and request.query.get("wait") != "no":
            await asyncio.sleep(self.filter.lease)
        return web.json_response({"code": code, "committed": committed},
                                 status=201)

    async def get_stats(self, request):
        codes = self.filter
        return web.json_response({
            "counts": self.counts, "ready": codes.ready, "etag": codes.etag,
            "checks": codes.checks, "fetches": codes.fetches,
            "listener": codes.listener, "heard": list(codes.heard)})


async def serve(api):
    app = web.Application()
    app.add_routes([web.get("/codes/{code}", api.get_code),
                    web.put("/codes/{code}", api.put_code),
                    web.get("/stats", api.get_stats)])
    app.cleanup_ctx.append(api.background)
    runner = web.AppRunner(app, access_log=None, handle_signals=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    try:
        await asyncio.Event().wait()        # until a signal
    finally:
        await runner.cleanup()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--guard", choices=["none", "cache", "filter"],
                        default="filter")
    parser.add_argument("--lease", type=float, default=2.0)
    options = parser.parse_args()
    try:
        asyncio.run(serve(Api(options.guard, options.lease)))
    except web.GracefulExit:
        pass


if __name__ == "__main__":
    main()
