"""What long work shares on the disk: whole files and lines, whose folder it is, who is at work, and on what."""
