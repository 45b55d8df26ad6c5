"""Our end of the talk with a guest: frames to and fro, all of it within a time, and what the guest prints meanwhile.

A frame goes as `multiprocessing.connection` sends it, which is what the other end uses. That is not used here, as it
waits without limit for the rest of what has begun.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import socket
import struct
import sys
import time

from pruners.core.plain_text import printable_lines

from .frames import MOST, FrameError

MOST_PRINTED = 1_000_000
"""Characters that a sandboxed guest may print, in all."""

SMALL = 2**14
"""Bytes of a frame that are sent together with its length."""


class GuestLine:
    """A socket to a guest, and the pipe that it prints to; None: it prints where we do."""

    def __init__(self, talk: socket.socket, prints: int | None) -> None:
        self.talk, self.prints = talk, prints
        self.talk.setblocking(False)
        self.printed = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if prints is not None:
            os.set_blocking(prints, False)

    def send(self, data: bytes, until: float) -> None:
        """Send a frame; `TimeoutError` if it is not taken by then."""
        head = struct.pack("!i", len(data)) if len(data) < 2**31 else struct.pack("!iQ", -1, len(data))
        for part in [head + data] if len(data) <= SMALL else [head, data]:
            left = memoryview(part)
            while left:
                self._wait(select.POLLOUT, until)
                try:
                    left = left[self.talk.send(left) :]
                except BlockingIOError:
                    continue

    def receive(self, until: float) -> memoryview:
        """The next frame; `TimeoutError` if it is not whole by then, `EOFError` if the guest is gone."""
        (size,) = struct.unpack("!i", self._bytes(4, until))
        if size == -1:
            (size,) = struct.unpack("!Q", self._bytes(8, until))
        if not 0 <= size <= MOST:
            raise FrameError(f"what its process sent cannot be read: a frame of {size} bytes")
        return self._bytes(size, until)

    def _bytes(self, count: int, until: float) -> memoryview:
        found = bytearray(count)  # of which no memory is taken before it is filled
        left = memoryview(found)
        while left:
            self._wait(select.POLLIN, until)
            try:
                size = self.talk.recv_into(left)
            except BlockingIOError:
                continue
            if not size:
                raise EOFError
            left = left[size:]
        return memoryview(found).toreadonly()

    def _wait(self, event: int, until: float) -> None:
        """Until the socket is ready; what is printed meanwhile is shown, or a guest would wait for us."""
        waiting = select.poll()
        waiting.register(self.talk, event)
        if self.prints is not None:
            waiting.register(self.prints, select.POLLIN)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = {place for place, _ in waiting.poll(left * 1000)}
            if self.prints in ready and not self._show():
                waiting.unregister(self.prints)
                self._close_prints()
            if self.talk.fileno() in ready:
                return

    def _show(self) -> bool:
        """Print some of what the guest printed; whether there was any."""
        data = os.read(self.prints, 2**16) if self.prints is not None else b""
        text = re.sub("\r\n?", "\n", self.decoder.decode(data, final=not data))
        room = MOST_PRINTED - self.printed
        self.printed += len(text)
        if text and room > 0:
            more = f"\n(it printed more than {MOST_PRINTED:,} characters: the rest is not shown)\n"
            print(
                printable_lines(text, 2**20)[:room] + (more if len(text) > room else ""),
                end="",
                file=sys.stderr,
                flush=True,
            )
        return bool(data)

    def close(self) -> None:
        """Hang up, and show what it printed at last."""
        self.talk.close()
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):  # a pipe holds less, and a guest may go on for ever
                if not self._show():
                    break
        self._close_prints()

    def _close_prints(self) -> None:
        if self.prints is not None:
            os.close(self.prints)
            self.prints = None
