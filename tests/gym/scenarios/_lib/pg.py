"""A PostgreSQL cluster of its own for a scenario."""

import glob
import os
import pwd
import subprocess
import sys
import time

BIN = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [""])[-1]


def user_argv(argv):
    """postgres does not run as root."""
    if os.getuid():
        return argv
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *argv]


class Cluster:
    def __init__(self, scene, *options):
        self.port = scene.port()
        self.folder = scene.tmp / "pg"
        self.folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, pwd.getpwnam("postgres").pw_gid)
        self.env = {
            **os.environ,
            "PGHOST": str(self.folder),
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
            "PGDATABASE": "shop",
            "LC_ALL": "C.UTF-8",
        }
        self._run(
            [
                f"{BIN}/initdb",
                "-D",
                f"{self.folder}/data",
                "-A",
                "trust",
                "-U",
                "postgres",
                "--no-sync",
            ]
        )
        self.pid = scene.spawn(
            user_argv([
                f"{BIN}/postgres", "-D", f"{self.folder}/data", "-p", str(self.port), "-k", str(self.folder),
                "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=64MB", "-c", "autovacuum=off",
                *(word for option in options for word in ("-c", option)),
            ]),
            log="postgres.log", cwd="/",
        )  # fmt: skip
        for _ in range(100):
            if (
                subprocess.run([f"{BIN}/pg_isready", "-q"], env=self.env, check=False).returncode
                == 0
            ):
                break
            time.sleep(0.1)
        else:
            sys.exit("postgres does not start")
        subprocess.run([f"{BIN}/createdb", "shop"], env=self.env, check=True)

    def _run(self, argv):
        done = subprocess.run(user_argv(argv), cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{argv[0]}: {done.stderr}")

    def sql(self, text):
        subprocess.run(
            ["psql", "-q", "-v", "ON_ERROR_STOP=1"],
            input=text,
            text=True,
            env=self.env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
