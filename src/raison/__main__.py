"""python -m raison: the command line."""

from raison.cli import main

if __name__ == "__main__":
    main()
