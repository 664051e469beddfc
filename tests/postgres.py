"""A PostgreSQL server of our own on loopback, which can be killed and started again."""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

PASSWORD = "s3cret of the tests"


def programs() -> Path:
    """Where initdb and pg_ctl are, or a skip."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: install lmkbc[postgres]")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in [*places, *(Path(found).parent for found in [shutil.which("initdb")] if found)]:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    return pytest.skip("no PostgreSQL server here: install postgresql")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A fresh cluster. url: as its owner, whom it trusts; guarded: as a user who needs PASSWORD, which is not in it.

    PostgreSQL does not run as root, so that its own user runs it there.
    """

    def __init__(self, *, fsync: bool = False) -> None:
        self._place, self._port = programs(), free_port()
        self._user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        self._folder = Path(tempfile.mkdtemp(prefix="lmkbc-pg-"))
        if self._user:
            shutil.chown(self._folder, "postgres", "postgres")
        self._data = str(self._folder / "data")
        self._call(str(self._place / "initdb"), "-D", self._data, "-U", "lmkbc", "--auth=trust", "--no-sync", "-EUTF8")
        rules = ["host all guarded 127.0.0.1/32 scram-sha-256", "host all all 127.0.0.1/32 trust"]
        (self._folder / "data" / "pg_hba.conf").write_text("\n".join(rules) + "\n")
        self._options = (
            f"-c listen_addresses=127.0.0.1 -c port={self._port} -c unix_socket_directories={self._folder} "
            f"-c max_connections=200 -c fsync={'on' if fsync else 'off'}"
        )
        self.url = f"postgresql://lmkbc@127.0.0.1:{self._port}/postgres"
        self.guarded = f"postgresql://guarded@127.0.0.1:{self._port}/postgres"
        self.start()
        self.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'", "GRANT ALL ON SCHEMA public TO guarded")

    def start(self) -> None:
        log = str(self._folder / "log")
        self._call(str(self._place / "pg_ctl"), "-D", self._data, "-l", log, "-w", "-o", self._options, "start")

    def kill(self) -> None:
        """Stop as a crash does: no connection is told, and the next start recovers."""
        self._call(str(self._place / "pg_ctl"), "-D", self._data, "-m", "immediate", "-w", "stop")

    def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """Return what the last of some statements gives."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            for sql in statements:
                cursor = db.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def fresh(self, name: str) -> str:
        """The URL of an empty schema of this name."""
        self.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE', f'CREATE SCHEMA "{name}"')
        return f"{self.url}?options=-csearch_path%3D{name}"

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def _call(self, *command: str) -> None:
        subprocess.run([*self._user, *command], check=True, cwd=self._folder, stdout=subprocess.DEVNULL, timeout=120)
