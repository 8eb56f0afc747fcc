"""Processes of a script that run at the same time and are killed, stopped and started again at random."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

_PATIENCE_SECONDS = 300


class WorkerProcesses:
    """Runs a script as several processes; one that was killed is started again with the same arguments."""

    def __init__(self, script: Path, arguments: Sequence[Sequence[str]], seed: int) -> None:
        self.chance = random.Random(seed)
        self._script = script
        self._arguments = arguments
        self._running = [self._start(number) for number in range(len(arguments))]

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, self._script, *self._arguments[number]], stderr=subprocess.PIPE)

    def kill_one(self) -> None:
        number = self.chance.randrange(len(self._running))
        process = self._running[number]
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self._running[number] = self._start(number)

    def pause_one(self) -> None:
        """Stop a worker until the next event."""
        process = self.chance.choice(self._running)
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)

    def end_a_connection(self, url: str) -> None:
        """End a connection of a worker, as an administrator may."""
        with psycopg.connect(url, autocommit=True) as connection:
            pids = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'daypack'").fetchall()
            if pids:
                connection.execute("SELECT pg_terminate_backend(%s)", self.chance.choice(pids))

    def run(self, events: Sequence[Callable[[], object]], pause: float) -> None:
        """Let things happen, one after the other, until the workers are done."""
        try:
            for event in events:
                time.sleep(pause)
                if all(process.poll() is not None for process in self._running):
                    break
                self._continue_all()
                event()
            self._continue_all()
            for process in self._running:
                _, problem = process.communicate(timeout=_PATIENCE_SECONDS)
                assert process.returncode == 0, problem.decode()[-2000:]
        finally:
            for process in self._running:
                process.kill()
                process.communicate()

    def _continue_all(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
