"""The lock of HDF5, which a thread holds without waiting for others."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from h5py._objects import phil

from tamis import library_lock


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()  # dask leaves it off after each selection if it was imported while tests were collected
    yield
    assert gc.isenabled()


def test_is_held_in_the_thread_that_holds_it_alone() -> None:
    assert not library_lock.is_held()
    with phil:
        assert library_lock.is_held()
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.append(library_lock.is_held()))
        thread.start()
        thread.join()
        assert found == [False]


def test_unless_held_lock_of_another_thread_passed_with_the_lock() -> None:
    lock = threading.Lock()
    with lock, phil, library_lock.unless_held(lock):
        pass
    with library_lock.unless_held(lock):
        assert lock.locked()


def test_without_collection_nested_and_in_threads_off_until_the_last_ends() -> None:
    meeting = threading.Barrier(2, timeout=30)

    def pause() -> None:
        with library_lock.without_collection():
            meeting.wait()
            meeting.wait()

    thread = threading.Thread(target=pause)
    thread.start()
    meeting.wait()
    with library_lock.without_collection(), library_lock.without_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
    meeting.wait()
    thread.join()
    assert gc.isenabled()


def test_without_collection_switched_off_by_others_stays_off() -> None:
    gc.disable()
    try:
        with library_lock.without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_imported_new_module_nothing_is_collected_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("import gc\nis_collecting = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = library_lock.imported("imported_late")
    assert not module.is_collecting
    assert library_lock.imported("imported_late") is module


def test_imported_no_such_module_raises_its_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        library_lock.imported("no_such_module")


@pytest.mark.check
def test_modules_of_tamis_imported_while_another_thread_holds_the_lock() -> None:
    """A thread with the lock may wait for one that imports."""
    code = """if True:
        import faulthandler, pkgutil, threading
        from importlib import import_module
        from h5py._objects import phil
        import tamis
        faulthandler.dump_traceback_later(100, exit=True)
        names = [module.name for module in pkgutil.walk_packages(tamis.__path__, "tamis.")]
        def work():
            for name in names:
                if not name.endswith(("__main__", "_plugin_worker")):
                    import_module(name)
        with phil:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        print(len(names))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


def test_names_of_a_face_imported_while_another_thread_waits_for_a_module() -> None:
    """The other one holds the lock of `imported`, and waits for a module whose import comes to the face."""
    code = """
import threading, tamis
from tamis import library_lock

def use():
    from tamis.notation import command_text
    found.append(command_text)

found = []
with library_lock._importing:
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(30)
print(len(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
