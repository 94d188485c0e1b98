"""A filter that is fetched again when it has changed."""
import random
import threading
import time
from typing import Any, Callable, FrozenSet, List, Optional, Tuple

from ._filter import BloomFilter

Fetch = Callable[[Optional[str]], Optional[Tuple[str, bytes]]]


class Refresher:
    """Holds the newest filter, and fetches it again.

    fetch(etag) returns None if the filter's ETag is still this one, else the
    new ETag and the bytes; what it raises leaves the old filter in place.
    Without a filter, or with one not confirmed for max_age seconds, every
    answer is "maybe": the database is asked (the refresher fails open).
    All methods may be called from any thread.
    """

    def __init__(self, fetch: Fetch, *, max_age: Optional[float] = None,
                 keep: float = 600.0,
                 on_error: Optional[Callable[[Exception], Any]] = None) -> None:
        self._fetch = fetch
        self._max_age = max_age
        self._keep = keep
        self._on_error = on_error
        self._refreshing = threading.Lock()
        self._changing = threading.Lock()
        # replaced as a whole, so that a reader sees one state or the other
        self._state: Tuple[Optional[BloomFilter], FrozenSet[bytes]] = (
            None, frozenset())
        self._etag: Optional[str] = None
        self._confirmed = float("-inf")
        self._recent: List[Tuple[float, Any]] = []
        self._stopping: Optional[threading.Event] = None

    @property
    def filter(self) -> Optional[BloomFilter]:
        """The newest filter, or None."""
        return self._state[0]

    @property
    def etag(self) -> Optional[str]:
        return self._etag

    @property
    def age(self) -> float:
        """Seconds since the filter was last known to be the newest."""
        return time.monotonic() - self._confirmed

    def maybe(self, key: Any) -> bool:
        """False: certainly not there.  True: ask the database."""
        bf, recent = self._state
        if bf is None or (self._max_age is not None and self.age > self._max_age):
            return True
        return key in bf or bool(recent) and bf.encode(key) in recent

    def add(self, key: Any) -> None:
        """maybe(key) is true from now on, for keep seconds at least, whatever
        is fetched meanwhile: call it before the key is committed."""
        with self._changing:
            now = time.monotonic()
            self._recent = [(until, old) for until, old in self._recent
                            if until > now]
            bf, recent = self._state
            if bf is not None:
                encoded = bf.encode(key)        # of the wrong kind: KindError
                self._state = bf, recent | {encoded}
            self._recent.append((now + self._keep, key))

    def refresh(self) -> bool:
        """Fetch if it has changed; returns whether it had.  Errors of fetch
        and of the format are raised, and change nothing."""
        with self._refreshing:
            began = time.monotonic()
            answer = self._fetch(self._etag)
            if answer is None:
                if self._state[0] is None:
                    raise ValueError("fetch returned nothing, but there is no"
                                     " filter yet")
                self._confirmed = began
                self._swap(self._state[0])
                return False
            etag, data = answer
            self._swap(BloomFilter.from_bytes(data))
            self._etag = etag
            self._confirmed = began
            return True

    def _swap(self, bf: BloomFilter) -> None:
        with self._changing:
            now = time.monotonic()
            self._recent = [(until, key) for until, key in self._recent
                            if until > now]
            self._state = bf, frozenset(bf.encode(key)
                                        for _, key in self._recent)

    def start(self, interval: float) -> None:
        """Refresh now and then, every interval seconds or so, in a thread."""
        if self._stopping is not None:
            raise RuntimeError("already started")
        stopping = self._stopping = threading.Event()

        def run() -> None:
            while True:
                try:
                    self.refresh()
                except Exception as error:      # whatever a driver raises
                    if self._on_error is not None:
                        self._on_error(error)
                # not all processes at the same moment
                if stopping.wait(interval * random.uniform(0.9, 1.1)):
                    return
        threading.Thread(target=run, name="bloomfilter-refresh",
                         daemon=True).start()

    def stop(self) -> None:
        if self._stopping is not None:
            self._stopping.set()
            self._stopping = None
