"""Run ``holdfast`` as ``python -m holdfast.cli``."""

from holdfast.cli import main

if __name__ == "__main__":
    main()
