"""What differs between systems: Linux, macOS and Windows. All other folders ask here and know no system.

Each module has one subject, and says at its top what a system lacks and what takes its place there:

- `files`: descriptors, opened, read and written at offsets.
- `locks`: locks on open files.
- `renames`: names that change in one step.
- `durability`: what was written reaches the disk.
- `leases`: whether another program writes a file.
- `users`, `access_lists`: whom a file belongs to, and who else may use it.
- `attributes`: extended attributes.
- `processors`, `memory`: what this process may use, and has.
- `processes`, `connections`, `signals`: other processes, those that work for this one, and what ends them.
- `libraries`: shared libraries, and calls of the C library.
- `windows`: calls of Windows that Python lacks.

Modules choose at their import, by what Python has here or by ``sys.platform``, between functions of the same name. No
name says for which system it is, so that no caller asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.system.connections import ask_to_end, connection_of, start_with
    from tamis.system.durability import sync_file, sync_folder
    from tamis.system.files import open_file, opened, write_all
    from tamis.system.leases import begin_lease, can_tell, end_lease, file_system_of, is_lease_awaited
    from tamis.system.libraries import folders_in, is_plugin, shared_library_in, static_library_in
    from tamis.system.locks import lock_at_once
    from tamis.system.memory import memory_limits, open_file_limit
    from tamis.system.processors import processor_count
    from tamis.system.renames import exchanges_at_once
    from tamis.system.signals import ASKED_TO_END, how_it_ended, without_interrupts
    from tamis.system.users import may_act_for

__all__ = [
    "ASKED_TO_END",
    "ask_to_end",
    "begin_lease",
    "can_tell",
    "connection_of",
    "end_lease",
    "exchanges_at_once",
    "file_system_of",
    "folders_in",
    "how_it_ended",
    "is_lease_awaited",
    "is_plugin",
    "lock_at_once",
    "may_act_for",
    "memory_limits",
    "open_file",
    "open_file_limit",
    "opened",
    "processor_count",
    "shared_library_in",
    "start_with",
    "static_library_in",
    "sync_file",
    "sync_folder",
    "without_interrupts",
    "write_all",
]

__getattr__ = face_names(
    globals(),
    {
        "connections": "ask_to_end connection_of start_with",
        "durability": "sync_file sync_folder",
        "files": "open_file opened write_all",
        "leases": "begin_lease can_tell end_lease file_system_of is_lease_awaited",
        "libraries": "folders_in is_plugin shared_library_in static_library_in",
        "locks": "lock_at_once",
        "memory": "memory_limits open_file_limit",
        "processors": "processor_count",
        "renames": "exchanges_at_once",
        "signals": "ASKED_TO_END how_it_ended without_interrupts",
        "users": "may_act_for",
    },
)
