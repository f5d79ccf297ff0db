"""Kill runs that write a Zarr store to S3, and compare the store with that of a run that was left alone.

`KILLS` runs of the same command with ``--resume`` are killed (SIGKILL) at random times, most of them while they copy to
a server of moto. After each, the store must not look whole unless it is: its root metadata may only be there with all
objects of the target. In the end its values must be proven, no object may be left over, and nothing may have been
copied twice without need::

    python tests/tools/kill_uploads.py 30
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import obstore
from moto.server import ThreadedMotoServer

import tamis

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
TARGET = "s3://bucket/killed/a.zarr"
WORDS = ("-q", "-f", "TS:zfp(accuracy=0.01)", "-c", "TS:4x48x48")


def objects_at(address: str) -> dict[str, str]:
    """Return the ETag of each object below an address, by its name from there on."""
    store = obstore.store.from_url(address, client_options={"allow_http": True})
    return {item["path"]: item["e_tag"] for batch in obstore.list(store) for item in batch}


def check(kills: int, seed: int, folder: Path) -> list[str]:
    """Return what is wrong; nothing if all is right."""
    chance, problems = random.Random(seed), list[str]()
    whole = "s3://bucket/whole/a.zarr"
    command = [sys.executable, "-m", "tamis", "repack", str(SAMPLE)]
    environment = os.environ | {"TAMIS_STAGING": str(folder)}
    began = time.monotonic()
    subprocess.run([*command, whole, *WORDS], env=environment, check=True)
    seconds, expected, killed, copying = time.monotonic() - began, objects_at(whole), 0, 0
    end: float | None = None
    while True:
        run = subprocess.Popen(
            [*command, TARGET, *WORDS, "--resume"], env=environment, stderr=subprocess.PIPE, text=True
        )
        end = time.monotonic() + chance.uniform(0.3, 1.0) * seconds if killed < kills else None
        while run.poll() is None and (end is None or time.monotonic() < end):
            time.sleep(0.01)
        if run.poll() is not None:
            if run.returncode:
                problems.append(f"exit code {run.returncode} after {killed} kills: {run.communicate()[1]}")
            if killed >= kills or problems:
                break
            for name in objects_at(TARGET):  # it was complete: begin anew
                obstore.delete(obstore.store.from_url(TARGET, client_options={"allow_http": True}), name)
            continue
        run.kill()
        run.wait()
        killed += 1
        found = objects_at(TARGET)
        copying += bool(found) and len(found) < len(expected)
        if "zarr.json" in found and found.keys() != expected.keys():
            problems.append(f"looks whole with {len(found)} of {len(expected)} objects after {killed} kills")
    if objects_at(TARGET) != expected:
        problems.append("objects differ from those of a run that was left alone")
    elif not tamis.verify(SAMPLE, TARGET, bounds={"TS": 0.01}).ok:
        problems.append("a value is outside of its bound")
    print(f"{killed} runs killed, {copying} of them while they copied {len(expected)} objects")
    return problems


def main() -> None:
    """Run the check, and end with exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=30)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    given = parser.parse_args()
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
    os.environ |= {"AWS_ENDPOINT_URL": url, **keys}
    urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
    with tempfile.TemporaryDirectory() as folder:
        problems = check(given.kills, given.seed, Path(folder))
    server.stop()
    print("\n".join(problems) or "all is right")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
