"""Run the command line with ``python -m holdfast``, where its script is not on the PATH."""

from holdfast.cli import main

if __name__ == "__main__":
    main()
