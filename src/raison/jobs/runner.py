"""Long work that can be done by this process, a share of it, several processes here, or actors of Ray.

Every engine does the same jobs and writes the same records into the same folder. Jobs that need all others, and
whatever an engine has left, are done here at the end.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from raison.core.errors import BusyError
from raison.jobs.engine import WHOLE, Job, Sharing, Work, do, do_share, finish
from raison.jobs.folder import PATIENCE, alone
from raison.jobs.workers import in_processes
from raison.progress import Advance


def perform(work: Work, sharing: Sharing, progress: bool | Advance = True) -> None:
    """Do the missing work, or this process's share of it, with the requested engine. Raises RaisonError."""
    if sharing.is_here:
        with work.opened(sharing.shard) as jobs:
            if sharing.shard == WHOLE:
                do(jobs(), progress)
                return
            do_share(jobs(), sharing.shard, progress)
            with alone(work.folder):
                finish(jobs(), progress)
        return
    with work.opened(WHOLE) as jobs:
        # Files that other processes read must exist before they start.
        shared = [job for job in jobs() if not job.last]
    is_done = all(job.is_done() for job in shared)
    if not is_done and sharing.engine == "ray":
        # Only now: it takes seconds to import.
        from raison.jobs.actors import in_actors

        in_actors(work, shared, sharing, progress)
    elif not is_done:
        in_processes(work, shared, sharing.workers, progress)
    with _opened_again(work) as jobs:
        do(jobs(), progress is True)


@contextmanager
def _opened_again(work: Work) -> Iterator[Callable[[], Sequence[Job]]]:
    """The whole folder, after the processes that shared it have ended, which can take a while."""
    until = time.monotonic() + PATIENCE
    with ExitStack() as held:
        while True:
            try:
                jobs = held.enter_context(work.opened(WHOLE))
                break
            except BusyError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
        yield jobs
