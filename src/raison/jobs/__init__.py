"""Long work on disk: atomic files and lines, folders and their locks, jobs, shards and identities."""
